//! Requests and answers that are made to confuse.

use super::kit::{Origin, World};
use crate::proxy::{Limits, Outcome};

#[tokio::test]
async fn every_form_of_an_address_is_the_same_server() {
    let origin = Origin::ok().await;
    let port = origin.port;
    let world = World::new(&[format!("http://127.0.0.1:{port}")], Limits::default());
    for host in [
        "127.0.0.1",
        "2130706433",
        "0x7f.1",
        "0177.0.0.1",
        "127.0.0.1.",
    ] {
        let answer = world.get(&format!("http://{host}:{port}/")).await;
        assert!(answer.starts_with("HTTP/1.1 200 "), "{host}: {answer}");
    }
    let answer = world
        .get(&format!("HTTP://[::ffff:127.0.0.1]:{port}/"))
        .await;
    assert!(answer.starts_with("HTTP/1.1 200 "), "{answer}");
    // And of one that is not granted, none is.
    let world = World::new(&["*".to_owned()], Limits::default());
    for host in [
        "127.0.0.1",
        "2130706433",
        "0x7f.1",
        "[::1]",
        "[::ffff:7f00:1]",
        "[64:ff9b::7f00:1]",
        "0.0.0.0",
        "169.254.169.254",
    ] {
        let denied = world.get(&format!("http://{host}:{port}/")).await;
        assert!(denied.starts_with("HTTP/1.1 403 "), "{host}: {denied}");
    }
    assert_eq!(origin.connections(), 6);
}

#[tokio::test]
async fn what_is_not_plainly_for_a_granted_server_is_refused() {
    let origin = Origin::ok().await;
    let port = origin.port;
    let at = format!("127.0.0.1:{port}");
    let granted = [format!("http://{at}"), format!("https://{at}")];
    let world = World::new(&granted, Limits::default());
    for request in [
        format!("GET http://user:SECRET@{at}/ HTTP/1.1"),
        format!("GET http://{at}@127.0.0.2/ HTTP/1.1"),
        format!("GET http://127.0.0.2#@{at}/ HTTP/1.1"),
        format!("GET https://{at}/ HTTP/1.1"),
        format!("GET ftp://{at}/ HTTP/1.1"),
        "GET / HTTP/1.1".to_owned(),
        "OPTIONS * HTTP/1.1".to_owned(),
        format!("CONNECT user@{at} HTTP/1.1"),
        format!("CONNECT http://{at} HTTP/1.1"),
        format!("CONNECT {at}/ HTTP/1.1"),
        format!("GET http://{at}\\@evil.example/ HTTP/1.1"),
        format!("GET http://{at} /x HTTP/1.1"),
        format!("GET http://{at}/\rX: y HTTP/1.1"),
        format!("GET http://{at}/ HTTP/1.1\r\nX: a\rb"),
        format!("GET http://{at}/ HTTP/1.1\r\nX: a\0b"),
        format!("GET http://{at}/ HTTP/1.1\r\n Folded: a"),
        "\u{16}\u{3}\u{1}".to_owned(),
    ] {
        let head = format!("{request}\r\nHost: {at}\r\nConnection: close\r\n\r\n");
        let answer = world.say_raw(head.as_bytes()).await;
        let refused = answer.is_empty()
            || answer.starts_with("HTTP/1.1 403 ")
            || answer.starts_with("HTTP/1.1 400 ");
        assert!(refused, "{request:?}: {answer}");
        assert!(!answer.contains("SECRET"), "{answer}");
    }
    assert_eq!(origin.connections(), 0);
    for report in world.notes_of_denials() {
        assert!(!report.contains("SECRET"), "{report}");
    }
}

#[tokio::test]
async fn two_lengths_are_not_two_requests() {
    let origin = Origin::ok().await;
    let at = format!("127.0.0.1:{}", origin.port);
    let world = World::new(&[format!("http://{at}")], Limits::default());
    for lengths in [
        "Content-Length: 5\nContent-Length: 44",
        "Content-Length: 5\nTransfer-Encoding: chunked",
        "Transfer-Encoding: identity, chunked, x",
    ] {
        world
            .say(&format!(
                "POST http://{at}/ HTTP/1.1\nHost: h\n{lengths}\nConnection: close\n\n\
                 0\n\nGET /smuggled HTTP/1.1\nHost: inner\n\n"
            ))
            .await;
    }
    for head in origin.seen() {
        let head = head.to_ascii_lowercase();
        let both = head.contains("content-length") && head.contains("transfer-encoding");
        assert!(!both && !head.contains("smuggled"), "{head}");
    }
}

#[tokio::test]
async fn an_answer_that_is_none_is_a_failure() {
    let many = "X-Header: 1\n".repeat(1_000_000);
    let long = format!("X-Header: {}\n", "x".repeat(1 << 20));
    for answer in [
        format!("HTTP/1.1 200 OK\n{many}\nhi"),
        format!("HTTP/1.1 200 OK\n{long}\nhi"),
        "SSH-2.0-server\n\n\n".to_owned(),
        "HTTP/1.1 101 Switching Protocols\nUpgrade: x\nConnection: upgrade\n\n".to_owned(),
        String::new(),
    ] {
        let origin = Origin::new(&answer, "").await;
        let url = format!("http://127.0.0.1:{}", origin.port);
        let world = World::new(std::slice::from_ref(&url), Limits::default());
        let said = world.get(&url).await;
        assert!(said.starts_with("HTTP/1.1 502 "), "{said}");
        let report = world.reports(1).await.remove(0);
        assert!(matches!(report.outcome, Outcome::Failed(_)), "{report:?}");
        assert!(report.received_bytes < 1 << 19, "{report:?}");
    }
}
