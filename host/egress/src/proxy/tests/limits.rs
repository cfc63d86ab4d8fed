//! How much, how long, and what is left at the end.

use std::time::Duration;

use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::runtime::Handle;

use super::kit::{Origin, World, echo, hung_up};
use crate::proxy::{Limits, Outcome};

const SHORT: Duration = Duration::from_millis(50);

#[tokio::test]
async fn an_endless_answer_is_cut_at_the_budget() {
    let origin = Origin::new("HTTP/1.1 200 OK\n\n", "for ever and ever and ").await;
    let url = format!("http://127.0.0.1:{}", origin.port);
    let limits = Limits {
        received_bytes: 1 << 20,
        ..Limits::default()
    };
    let world = World::new(std::slice::from_ref(&url), limits);
    let answer = world.get(&url).await;
    assert!(answer.starts_with("HTTP/1.1 200 "), "{answer:.100}");
    assert!(answer.len() < (1 << 20) + 1024, "{}", answer.len());
    let report = world.reports(1).await.remove(0);
    assert!(matches!(report.outcome, Outcome::Cut(why) if why.contains("bytes")));
    assert!(report.received_bytes < (1 << 20) + (1 << 18), "{report:?}");
    // It is of the child, not of one connection.
    let again = world.get(&url).await;
    assert!(!again.starts_with("HTTP/1.1 200 "), "{again:.100}");
}

#[tokio::test]
async fn what_is_sent_is_cut_too() {
    let port = echo().await;
    let at = format!("127.0.0.1:{port}");
    let limits = Limits {
        sent_bytes: 1000,
        ..Limits::default()
    };
    let world = World::new(&[format!("https://{at}")], limits);
    let mut tunnel = world.tunnel(&at).await;
    while tunnel.write_all(&[b'x'; 4096]).await.is_ok() {}
    assert!(matches!(world.outcome().await, Outcome::Cut(why) if why.contains("bytes")));
}

#[tokio::test]
async fn heads_are_short_and_soon_complete() {
    let origin = Origin::ok().await;
    let at = format!("127.0.0.1:{}", origin.port);
    let limits = Limits {
        head_time: SHORT,
        ..Limits::default()
    };
    let world = World::new(&[format!("http://{at}")], limits);
    for more in [
        "X: 1\n".repeat(1_000_000),
        format!("X: {}\n", "x".repeat(1 << 20)),
    ] {
        let answer = world
            .say(&format!("GET http://{at}/ HTTP/1.1\nHost: h\n{more}\n"))
            .await;
        assert!(!answer.contains(" 200 "), "{answer}");
    }
    let mut slow = world.connect().await;
    slow.write_all(b"GET http://").await.unwrap();
    hung_up(&mut slow).await;
    let mut silent = world.connect().await;
    hung_up(&mut silent).await;
    assert_eq!(origin.connections(), 0);
}

#[tokio::test]
async fn silence_and_the_end_of_the_time_close() {
    let at = format!("127.0.0.1:{}", echo().await);
    let idle = Limits {
        idle_time: SHORT,
        ..Limits::default()
    };
    let total = Limits {
        total_time: SHORT,
        ..Limits::default()
    };
    for limits in [idle, total] {
        let world = World::new(&[format!("https://{at}")], limits);
        let mut tunnel = world.tunnel(&at).await;
        hung_up(&mut tunnel).await;
        assert!(matches!(world.outcome().await, Outcome::Cut(_)));
    }
}

#[tokio::test]
async fn connections_and_requests_are_counted() {
    let origin = Origin::ok().await;
    let at = format!("127.0.0.1:{}", echo().await);
    let url = format!("http://127.0.0.1:{}", origin.port);
    let limits = Limits {
        connections: 1,
        requests: 3,
        ..Limits::default()
    };
    let world = World::new(&[format!("https://{at}"), url.clone()], limits);
    let mut tunnel = world.tunnel(&at).await;
    let waiting = world.get(&url);
    tokio::pin!(waiting);
    tokio::select! {
        answer = &mut waiting => panic!("it had to wait: {answer}"),
        () = tokio::time::sleep(SHORT) => {}
    }
    tunnel.shutdown().await.unwrap();
    hung_up(&mut tunnel).await;
    assert!(waiting.await.starts_with("HTTP/1.1 200 "));
    assert!(
        world
            .get("http://other.example")
            .await
            .starts_with("HTTP/1.1 403 ")
    );
    assert!(world.get(&url).await.starts_with("HTTP/1.1 429 "));
    assert_eq!(origin.connections(), 1);
}

#[tokio::test]
async fn nothing_is_left_when_it_stops_or_is_dropped() {
    let at = format!("127.0.0.1:{}", echo().await);
    let endless = Origin::new("HTTP/1.1 200 OK\n\n", "more ").await;
    let url = format!("http://127.0.0.1:{}", endless.port);
    let granted = [format!("https://{at}"), url.clone()];
    for waits in [true, false] {
        let world = World::new(&granted, Limits::default());
        let mut tunnel = world.tunnel(&at).await;
        let mut reading = world.connect().await;
        let ask = format!("GET {url} HTTP/1.1\r\nHost: h\r\n\r\n");
        reading.write_all(ask.as_bytes()).await.unwrap();
        reading.read_exact(&mut [0; 1024]).await.unwrap();
        let _quiet = world.connect().await;
        let (notes, proxy) = (world.notes.clone(), world.proxy);
        match waits {
            true => {
                proxy.stop().await;
                assert_eq!(notes.count(), 2);
            }
            false => drop(proxy),
        }
        hung_up(&mut tunnel).await;
        hung_up(&mut reading).await;
        drop((tunnel, reading));
        let all_gone = async {
            // The two servers; theirs end when the proxy hangs up.
            while Handle::current().metrics().num_alive_tasks() > 2 {
                tokio::time::sleep(Duration::from_millis(5)).await;
            }
        };
        let gone = tokio::time::timeout(Duration::from_secs(60), all_gone).await;
        assert!(gone.is_ok(), "tasks are left");
        assert_eq!(notes.count(), 2);
    }
}
