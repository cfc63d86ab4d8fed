//! Credentials: used where they are for, and never seen anywhere else.

use std::error::Error;

use crate::setup::{Host, code, limits, spec};
use warren_mirror::{Credential, CredentialStore, MirrorError, Origin, SecretSource};

const SECRET: &str = "s3cr3t-t0ken-of-acme";

fn host() -> Host {
    let mut store = CredentialStore::default();
    let password = |words: &[&str]| Credential::Password {
        username: "ada".into(),
        password: SecretSource::Command(words.iter().map(ToString::to_string).collect()),
    };
    let anywhere: &[&str] = &[];
    store
        .insert("acme", password(&["echo", SECRET]), anywhere)
        .unwrap();
    store
        .insert("wrong", password(&["echo", "nope-nope"]), anywhere)
        .unwrap();
    let elsewhere = ["https://git.example/**"];
    store
        .insert("bound", password(&["echo", SECRET]), &elsewhere)
        .unwrap();
    let host = Host::with(store, limits());
    host.bare("up.git").seed("main", &[("a.txt", "1")]);
    host.server.require("/up.git", "ada", SECRET);
    host
}

fn origin(host: &Host, alias: Option<&str>) -> Origin {
    Origin {
        credential_alias: alias.map(str::to_owned),
        ..host.origin("up.git")
    }
}

/// An error with all its causes, as a person or a log may see it.
fn whole(error: &MirrorError) -> String {
    let mut text = format!("{error} {error:?} {:?}", error.hint());
    let mut source = error.source();
    while let Some(error) = source {
        text.push_str(&format!(" {error} {error:?}"));
        source = error.source();
    }
    text
}

#[test]
fn a_locked_remote_opens_for_the_right_credential_only_and_nobody_is_asked() {
    let host = host();
    let clone =
        |root: &str, alias: Option<&str>| host.session(root).clone(&origin(&host, alias), None);
    assert_eq!(code(clone("r", None)), "GitAuthenticationFailed");
    assert_eq!(code(clone("r", Some("wrong"))), "GitAuthenticationFailed");
    let tries = host
        .server
        .seen()
        .iter()
        .filter(|seen| seen.authorization.is_some())
        .count();
    assert_eq!(tries, 1, "a wrong password is sent once");
    assert_eq!(code(clone("r", Some("bound"))), "GitDenied");
    assert_eq!(code(clone("r", Some("unknown"))), "GitDenied");
    clone("r", Some("acme")).unwrap();
    let mut narrow = spec(&host.work, "s");
    narrow.aliases = Some(["other".to_owned()].into());
    let session = host.mirrors.session(narrow);
    assert_eq!(
        code(session.clone(&origin(&host, Some("acme")), None)),
        "GitDenied"
    );
}

#[test]
fn the_secret_is_in_no_file_and_no_error() {
    let host = host();
    let up = warren_testkit::GitRepo::at(host.work.join("srv/up.git"));
    let origin = origin(&host, Some("acme"));
    host.session("r").clone(&origin, None).unwrap();
    host.root("r").write("new.txt", "x");
    let mut session = host.session("r");
    let made = session.snapshot(&origin, &[]).unwrap();
    // A server that repeats what it was sent.
    up.hook("pre-receive", &format!("echo token {SECRET} >&2; exit 1"));
    let name = "refs/heads/vance/suspend/r";
    let rejected = session.push(&origin, &made.commit, name, None).unwrap_err();
    assert_eq!(rejected.code(), "GitRejected");
    assert!(whole(&rejected).contains("token ***"), "{rejected}");
    assert!(!whole(&rejected).contains(SECRET));
    up.unhook("pre-receive");
    session.push(&origin, &made.commit, name, None).unwrap();
    let in_url = Origin {
        url: host
            .server
            .url("up.git")
            .replace("http://", &format!("http://ada:{SECRET}@")),
        credential_alias: None,
    };
    let refused = host.session("s").clone(&in_url, None).unwrap_err();
    assert!(!whole(&refused).contains(SECRET), "{refused}");
    for text in [format!("{session:?}"), format!("{:?}", session.receipts())] {
        assert!(!text.contains(SECRET));
    }
    assert_eq!(
        host.work.files_holding(SECRET.as_bytes()),
        Vec::<std::path::PathBuf>::new()
    );
}
