//! Servers that stall, redirect, break and flood.

use std::net::TcpListener;
use std::sync::atomic::Ordering;
use std::time::{Duration, Instant};

use crate::setup::{Host, code, limits, mirrors, noise, spec};
use warren_mirror::{CredentialStore, Limits, Origin};
use warren_testkit::{Fault, GitHttp};

fn with_limits(limits: Limits) -> Host {
    let host = Host::with(CredentialStore::default(), limits);
    host.bare("up.git").seed("main", &[("a.txt", "1")]);
    host
}

#[test]
fn a_server_that_stalls_ends_in_a_timeout() {
    let host = with_limits(Limits {
        timeout_ms: 300,
        ..limits()
    });
    let origin = host.origin("up.git");
    for fault in [Fault::NoAnswer, Fault::StallAfterHeaders] {
        for place in ["info/refs", "POST"] {
            let what = if place == "POST" {
                "/git-upload-pack?"
            } else {
                place
            };
            host.server.misbehave(what, fault.clone());
            assert_eq!(code(host.session("r").clone(&origin, None)), "GitTimeout");
            host.server.behave();
        }
    }
    assert_eq!(
        std::fs::read_dir(host.work.join("roots/r"))
            .unwrap()
            .count(),
        0
    );
    assert!(host.scratch_is_empty());
    host.cloned("r");
}

#[test]
fn a_push_that_stalls_in_the_middle_ends_in_a_timeout() {
    let host = with_limits(Limits {
        timeout_ms: 500,
        ..limits()
    });
    // More than the buffers of both sockets hold, and nothing that compresses.
    host.cloned("r").write("big.bin", noise(4 << 20));
    let origin = host.origin("up.git");
    let mut session = host.session("r");
    let made = session.snapshot(&origin, &[]).unwrap();
    let name = "refs/heads/vance/suspend/r";
    host.server
        .misbehave("/git-receive-pack?", Fault::StallInBody(10_000));
    assert_eq!(
        code(session.push(&origin, &made.commit, name, None)),
        "GitTimeout"
    );
    assert!(session.receipts().is_empty());
    host.server.behave();
    let patient = mirrors(
        &host.work,
        &["http://127.0.0.1:*/**"],
        CredentialStore::default(),
        limits(),
    );
    let mut session = patient.session(spec(&host.work, "r"));
    let made = session.snapshot(&origin, &[]).unwrap();
    session.push(&origin, &made.commit, name, None).unwrap();
    assert_eq!(session.receipts().len(), 1);
}

#[test]
fn the_deadline_and_the_caller_end_what_would_go_on() {
    let host = with_limits(limits());
    let origin = host.origin("up.git");
    host.server.misbehave("info/refs", Fault::NoAnswer);
    let mut late = spec(&host.work, "r");
    late.deadline = Instant::now() + Duration::from_millis(200);
    assert_eq!(
        code(host.mirrors.session(late).clone(&origin, None)),
        "GitTimeout"
    );

    let given_up = spec(&host.work, "r");
    let cancel = std::sync::Arc::clone(&given_up.cancel);
    let session = host.mirrors.session(given_up);
    let found = std::thread::scope(|scope| {
        let work = scope.spawn(|| code(session.clone(&origin, None)));
        while host.server.seen().len() < 2 {
            std::thread::yield_now();
        }
        cancel.store(true, Ordering::Relaxed);
        work.join().unwrap()
    });
    assert_eq!(found, "GitCancelled");
}

#[test]
fn the_deadline_ends_a_server_that_drips_and_one_that_never_speaks_ssh() {
    let host = with_limits(limits());
    host.server.misbehave("info/refs", Fault::Drip);
    let mut late = spec(&host.work, "r");
    late.deadline = Instant::now() + Duration::from_millis(400);
    let session = host.mirrors.session(late);
    assert_eq!(
        code(session.clone(&host.origin("up.git"), None)),
        "GitTimeout"
    );

    let silent = TcpListener::bind("127.0.0.1:0").unwrap();
    let port = silent.local_addr().unwrap().port();
    let patient = mirrors(
        &host.work,
        &["ssh://127.0.0.1:*/**"],
        CredentialStore::default(),
        limits(),
    );
    let mut late = spec(&host.work, "r");
    late.deadline = Instant::now() + Duration::from_millis(400);
    let origin = Origin {
        url: format!("ssh://git@127.0.0.1:{port}/up.git"),
        credential_alias: None,
    };
    assert_eq!(
        code(patient.session(late).clone(&origin, None)),
        "GitTimeout"
    );
}

#[test]
fn a_redirect_is_denied_and_not_followed() {
    let host = with_limits(limits());
    let other = GitHttp::serve(host.work.join("srv"));
    for base in [
        format!("http://localhost:{}", other.port()),
        format!("http://127.0.0.1:{}", other.port()),
    ] {
        host.server.misbehave("info/refs", Fault::Redirect(base));
        assert_eq!(
            code(host.session("r").clone(&host.origin("up.git"), None)),
            "GitDenied"
        );
        host.server.behave();
    }
    assert!(other.seen().is_empty());
}

#[test]
fn broken_answers_are_unreachable_and_a_retry_works() {
    let host = with_limits(limits());
    let origin = host.origin("up.git");
    for (place, fault) in [
        ("info/refs", Fault::Status(500)),
        ("info/refs", Fault::Status(404)),
        ("info/refs", Fault::Cut(20)),
        ("/git-upload-pack?", Fault::Status(502)),
        ("/git-upload-pack?", Fault::Cut(60)),
    ] {
        host.server.misbehave(place, fault.clone());
        let found = code(host.session("r").clone(&origin, None));
        assert_eq!(found, "GitUnreachable", "{place} {fault:?}");
        host.server.behave();
    }
    host.cloned("r");
}

#[test]
fn a_closed_port_looks_like_any_other_failure() {
    let host = with_limits(limits());
    let closed = {
        let gone = GitHttp::serve(host.work.join("srv"));
        gone.url("up.git")
    };
    let origin = Origin {
        url: closed,
        credential_alias: None,
    };
    let error = host.session("r").clone(&origin, None).unwrap_err();
    assert_eq!(error.code(), "GitUnreachable");
    assert!(!error.to_string().contains("refused"), "{error}");
}

#[test]
fn too_many_bytes_are_cut_off_while_they_flow() {
    let host = with_limits(Limits {
        received_bytes_max: 100_000,
        ..limits()
    });
    let hex: String = noise(400_000).iter().map(|b| format!("{b:02x}")).collect();
    let up = warren_testkit::GitRepo::at(host.work.join("srv/up.git"));
    up.seed("main", &[("big.txt", &hex)]);
    assert_eq!(
        code(host.session("r").clone(&host.origin("up.git"), None)),
        "GitTooLarge"
    );
    let few = with_limits(Limits {
        refs_max: 1,
        ..limits()
    });
    assert_eq!(
        code(few.session("r").clone(&few.origin("up.git"), None)),
        "GitTooLarge"
    );
}
