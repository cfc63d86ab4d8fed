//! Connections to real servers on loopback.

use std::net::{IpAddr, TcpListener};
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::Duration;

use tokio::time::Instant;
use warren_model::{EndpointPermit, Endpoints, Target};

use crate::{ConnectError, Connector, Tls, TlsError};

fn soon() -> Instant {
    Instant::now() + Duration::from_secs(20)
}

fn permit(granted: &str, url: &str) -> (Target, EndpointPermit) {
    let target = Target::from_url(url).unwrap();
    let list = Endpoints::new(vec![granted.parse().unwrap()]);
    let permit = list.permit(&target).unwrap();
    (target, permit)
}

/// A resolver with one answer for all names, and how often it was asked.
fn answering(addresses: &[&str]) -> (Connector, Arc<AtomicUsize>) {
    let addresses: Vec<IpAddr> = addresses.iter().map(|text| text.parse().unwrap()).collect();
    let asked = Arc::new(AtomicUsize::new(0));
    let count = Arc::clone(&asked);
    let connector = Connector::with_lookup(Arc::new(move |_| {
        count.fetch_add(1, Ordering::SeqCst);
        Ok(addresses.clone())
    }));
    (connector, asked)
}

fn listener() -> (TcpListener, u16) {
    let listener = TcpListener::bind("127.0.0.1:0").unwrap();
    listener.set_nonblocking(true).unwrap();
    let port = listener.local_addr().unwrap().port();
    (listener, port)
}

#[tokio::test]
async fn a_name_that_leads_inside_is_not_connected_to() {
    let (listener, port) = listener();
    let url = format!("http://public.example:{port}");
    let (target, any) = permit("*", &url);
    let (connector, asked) = answering(&["127.0.0.1", "::1"]);
    let error = connector.connect(&target, any, soon()).await.unwrap_err();
    assert!(matches!(error, ConnectError::Denied { .. }), "{error:?}");
    assert!(listener.accept().is_err());
    assert_eq!(asked.load(Ordering::SeqCst), 1);
    // Named by the operator, it may be inside.
    let (target, named) = permit(&url, &url);
    let mut stream = connector.connect(&target, named, soon()).await.unwrap();
    assert_eq!(stream.peer_addr().unwrap().port(), port);
    assert!(listener.accept().is_ok());
    assert_eq!(asked.load(Ordering::SeqCst), 2);
    drop(tokio::io::AsyncWriteExt::shutdown(&mut stream).await);
}

#[tokio::test]
async fn of_several_addresses_only_the_allowed_ones_are_tried() {
    let (listener, port) = listener();
    let url = format!("http://two.example:{port}");
    let (target, named) = permit(&url, &url);
    // A link-local address is what no name stands for; nothing listens on the second.
    let (connector, _) = answering(&["169.254.169.254", "127.0.0.2", "127.0.0.1"]);
    let stream = connector.connect(&target, named, soon()).await.unwrap();
    assert_eq!(stream.peer_addr().unwrap().ip().to_string(), "127.0.0.1");
    assert!(listener.accept().is_ok());
    let (connector, _) = answering(&["169.254.169.254"]);
    let error = connector.connect(&target, named, soon()).await.unwrap_err();
    assert!(matches!(error, ConnectError::Denied { .. }), "{error:?}");
}

#[tokio::test]
async fn what_cannot_be_reached_is_told_apart() {
    let (target, any) = permit("*", "http://none.example");
    let (nowhere, _) = answering(&[]);
    let error = nowhere.connect(&target, any, soon()).await.unwrap_err();
    assert!(matches!(error, ConnectError::Name { source: None, .. }));
    let failing = Connector::with_lookup(Arc::new(|_| Err(std::io::Error::other("no"))));
    let error = failing.connect(&target, any, soon()).await.unwrap_err();
    assert!(matches!(
        error,
        ConnectError::Name {
            source: Some(_),
            ..
        }
    ));
    let slow = Connector::with_lookup(Arc::new(|_| {
        std::thread::sleep(Duration::from_millis(500));
        Ok(Vec::new())
    }));
    let now = Instant::now();
    let error = slow.connect(&target, any, now).await.unwrap_err();
    assert!(matches!(error, ConnectError::Timeout { .. }), "{error:?}");
    let (listener, port) = listener();
    drop(listener);
    let url = format!("http://127.0.0.1:{port}");
    let (target, named) = permit(&url, &url);
    let system = Connector::system();
    let error = system.connect(&target, named, soon()).await.unwrap_err();
    assert!(
        matches!(error, ConnectError::Unreachable { .. }),
        "{error:?}"
    );
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn tls_proves_who_is_at_the_other_end() {
    let dir = tempfile::tempdir().unwrap();
    let (_plain, port) = listener();
    let server = warren_testkit::Tls::before(port, dir.path());
    let url = server.url("");
    let port = Target::from_url(&url).unwrap().port;
    let talk = async |tls: &Tls, url: &str| {
        let (target, named) = permit(url, url);
        let (connector, _) = answering(&["127.0.0.1"]);
        let stream = connector.connect(&target, named, soon()).await.unwrap();
        tls.connect(&target, stream).await.map(drop)
    };
    let trusting = Tls::new(Some(server.certificate())).unwrap();
    let by_address = format!("https://127.0.0.1:{port}");
    talk(&trusting, &by_address).await.unwrap();
    // The name is in the certificate.
    let by_name = format!("https://git.example:{port}");
    talk(&trusting, &by_name).await.unwrap();
    let other = format!("https://other.example:{port}");
    let error = talk(&trusting, &other).await.unwrap_err();
    assert!(matches!(error, TlsError::Certificate { .. }), "{error:?}");
    let strict = Tls::new(None).unwrap();
    let error = talk(&strict, &by_address).await.unwrap_err();
    assert!(matches!(error, TlsError::Certificate { .. }), "{error:?}");
    assert!(Tls::new(Some(&dir.path().join("missing"))).is_err());
}
