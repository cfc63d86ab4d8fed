//! What is granted is reached; its twin is not.

use std::sync::atomic::Ordering;

use tokio::io::{AsyncReadExt, AsyncWriteExt};

use super::kit::{Names, Origin, World, echo};
use crate::proxy::{Limits, Outcome};

#[tokio::test]
async fn a_tunnel_goes_where_it_is_granted_and_nowhere_else() {
    let (port, other) = (echo().await, Origin::ok().await);
    let world = World::new(&[format!("https://127.0.0.1:{port}")], Limits::default());
    let mut tunnel = world.tunnel(&format!("127.0.0.1:{port}")).await;
    tunnel.write_all(b"over there").await.unwrap();
    tunnel.shutdown().await.unwrap();
    let mut back = String::new();
    tunnel.read_to_string(&mut back).await.unwrap();
    assert_eq!(back, "over there");

    let denied = world
        .say(&format!("CONNECT 127.0.0.1:{} HTTP/1.1\n\n", other.port))
        .await;
    assert!(denied.starts_with("HTTP/1.1 403 "), "{denied}");
    assert!(denied.ends_with("is not granted\n"), "{denied}");
    assert_eq!(other.connections(), 0);
    // The scheme is part of the grant.
    let denied = world.get(&format!("http://127.0.0.1:{port}/")).await;
    assert!(denied.starts_with("HTTP/1.1 403 "), "{denied}");

    let reports = world.reports(3).await;
    assert_eq!(reports[0].target, format!("https://127.0.0.1:{port}"));
    assert_eq!(reports[0].outcome, Outcome::Ended);
    assert_eq!((reports[0].sent_bytes, reports[0].received_bytes), (10, 10));
    assert!(matches!(&reports[1].outcome, Outcome::Denied(why) if why.contains("not granted")));
    assert_eq!(reports[1].outcome.code(), "NetworkDenied");
    assert_eq!(world.opened(), [format!("https://127.0.0.1:{port}")]);
}

#[tokio::test]
async fn a_request_is_passed_on_with_the_host_that_was_decided_on() {
    let origin = Origin::ok().await;
    let port = origin.port;
    let world = World::new(&[format!("http://127.0.0.1:{port}")], Limits::default());
    let answer = world
        .say(&format!(
            "GET http://127.0.0.1:{port}/a?b=c HTTP/1.1\nHost: metadata.internal\nX-Mine: 1\n\
             X-Hop: 2\nProxy-Authorization: Basic c2VjcmV0\nConnection: close, X-Hop\n\n"
        ))
        .await;
    assert!(answer.starts_with("HTTP/1.1 200 OK\n"), "{answer}");
    assert!(answer.ends_with("\n\nhi"), "{answer}");
    let seen = origin.seen().remove(0).to_ascii_lowercase();
    assert!(seen.starts_with("get /a?b=c http/1.1\n"), "{seen}");
    assert_eq!(seen.matches("host:").count(), 1, "{seen}");
    assert!(
        seen.contains(&format!("host: 127.0.0.1:{port}\n")),
        "{seen}"
    );
    assert!(seen.contains("x-mine: 1") && seen.contains("connection: close"));
    assert!(
        !seen.contains("x-hop") && !seen.contains("proxy-"),
        "{seen}"
    );
    let report = world.reports(1).await.remove(0);
    assert_eq!(report.outcome, Outcome::Ended);
    assert_eq!(report.target, format!("http://127.0.0.1:{port}"));
    assert!(report.received_bytes > 30 && report.sent_bytes > 50);
}

#[tokio::test]
async fn a_body_goes_up_and_the_next_request_is_decided_anew() {
    let origin = Origin::ok().await;
    let port = origin.port;
    let world = World::new(&[format!("http://127.0.0.1:{port}")], Limits::default());
    // The second one comes on the same connection, for another server.
    let answers = world
        .say(&format!(
            "POST http://127.0.0.1:{port}/up HTTP/1.1\nHost: h\nContent-Length: 4\n\nbody\
             GET http://127.0.0.2:{port}/down HTTP/1.1\nHost: h\n\n"
        ))
        .await;
    assert!(answers.starts_with("HTTP/1.1 200 OK\n"), "{answers}");
    assert_eq!(answers.matches("HTTP/1.1 403 ").count(), 1, "{answers}");
    assert_eq!(origin.connections(), 1);
}

#[tokio::test]
async fn a_redirect_is_the_childs_to_follow_and_is_judged_again() {
    let other = Origin::ok().await;
    let location = format!("http://127.0.0.1:{}/loot", other.port);
    let answer = format!("HTTP/1.1 302 Found\nLocation: {location}\nContent-Length: 0\n\n");
    let origin = Origin::new(&answer, "").await;
    let granted = [format!("http://127.0.0.1:{}", origin.port)];
    let world = World::new(&granted, Limits::default());
    let answer = world
        .get(&format!("http://127.0.0.1:{}/", origin.port))
        .await;
    assert!(
        answer
            .to_lowercase()
            .contains(&format!("location: {location}"))
    );
    let denied = world.get(&location).await;
    assert!(denied.starts_with("HTTP/1.1 403 "), "{denied}");
    assert_eq!(other.connections(), 0);
}

#[tokio::test]
async fn a_name_is_resolved_once_and_never_to_an_inner_address() {
    let origin = Origin::ok().await;
    let port = origin.port;
    let url = format!("http://index.example:{port}/");
    // The grant names no host: a name that points inside is an attack.
    let names = Names::new(&[&["10.0.0.1", "127.0.0.1", "::1", "169.254.169.254"]]);
    let below = [format!("http://*.example:{port}")];
    let world = World::with_names(&below, Limits::default(), names);
    let denied = world.get(&url).await;
    assert!(denied.starts_with("HTTP/1.1 403 "), "{denied}");
    assert!(matches!(world.outcome().await, Outcome::Denied(_)));
    assert_eq!(origin.connections(), 0);

    // It does: inside is fine, metadata is not, and the second answer counts for itself.
    let names = Names::new(&[&["169.254.169.254", "127.0.0.1"], &["169.254.169.254"]]);
    let named = [format!("http://index.example:{port}")];
    let world = World::with_names(&named, Limits::default(), names.clone());
    let answer = world.get(&url).await;
    assert!(answer.starts_with("HTTP/1.1 200 "), "{answer}");
    assert_eq!(names.asked(), 1);
    let seen = origin.seen().remove(0).to_ascii_lowercase();
    assert!(
        seen.contains(&format!("host: index.example:{port}")),
        "{seen}"
    );
    let denied = world.get(&url).await;
    assert!(denied.starts_with("HTTP/1.1 403 "), "{denied}");
    assert_eq!((names.asked(), origin.connections()), (2, 1));
}

#[tokio::test]
async fn nothing_happens_that_cannot_be_noted() {
    let origin = Origin::ok().await;
    let url = format!("http://127.0.0.1:{}", origin.port);
    let world = World::new(std::slice::from_ref(&url), Limits::default());
    world.notes.full.store(true, Ordering::SeqCst);
    let refused = world.get(&url).await;
    assert!(refused.starts_with("HTTP/1.1 503 "), "{refused}");
    assert_eq!(origin.connections(), 0);
    world.notes.full.store(false, Ordering::SeqCst);
    assert!(world.get(&url).await.starts_with("HTTP/1.1 200 "));
}

#[tokio::test]
async fn a_server_that_is_not_there_is_a_failure_and_no_denial() {
    let port = {
        let gone = std::net::TcpListener::bind("127.0.0.1:0").unwrap();
        gone.local_addr().unwrap().port()
    };
    let url = format!("http://127.0.0.1:{port}");
    let world = World::new(std::slice::from_ref(&url), Limits::default());
    let failed = world.get(&url).await;
    assert!(failed.starts_with("HTTP/1.1 502 "), "{failed}");
    assert!(failed.contains("cannot be connected"), "{failed}");
    assert!(matches!(world.outcome().await, Outcome::Failed(_)));
}
