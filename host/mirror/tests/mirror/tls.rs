//! https: a certificate must be trusted.

use crate::setup::{Host, limits, mirrors, spec};
use warren_mirror::{CredentialStore, Mirrors, MirrorsSpec, Origin, UrlPolicy};
use warren_testkit::{Fault, GitRepo, Tls};

#[test]
fn a_certificate_must_be_trusted_and_then_everything_works() {
    let host = Host::new();
    let commit = host.bare("up.git").seed("main", &[("a.txt", "1")]);
    let tls = Tls::before(host.server.port(), host.work.path());
    let origin = Origin {
        url: tls.url("up.git"),
        credential_alias: None,
    };
    let allow = ["https://127.0.0.1:*/**", "https://localhost:*/**"];
    let strict = mirrors(&host.work, &allow, CredentialStore::default(), limits());
    let error = strict
        .session(spec(&host.work, "r"))
        .clone(&origin, None)
        .unwrap_err();
    assert_eq!(error.code(), "GitUnreachable");
    assert!(error.to_string().contains("not trusted"), "{error}");
    assert!(host.server.seen().is_empty());

    let state = host.work.dir("state");
    let trusting = Mirrors::open(MirrorsSpec {
        state: warren_disk::open_root(&state).unwrap(),
        state_path: state,
        policy: UrlPolicy::new(&allow).unwrap(),
        credentials: CredentialStore::default(),
        known_hosts: host.work.join("known_hosts"),
        ca_file: Some(tls.certificate().to_owned()),
        limits: limits(),
        repo_limits: warren_repo::Limits::default(),
        disk: None,
        exclude: warren_repo::Exclude::default(),
    })
    .unwrap();
    let mut session = trusting.session(spec(&host.work, "r"));
    session.clone(&origin, None).unwrap();
    let root = host.root("r");
    assert_eq!(root.head(), commit);
    root.write("new.txt", crate::setup::noise(300_000));
    let made = session.snapshot(&origin, &[]).unwrap();
    let name = "refs/heads/vance/suspend/r";
    session.push(&origin, &made.commit, name, None).unwrap();
    let up = GitRepo::at(host.work.join("srv/up.git"));
    assert_eq!(up.ref_id(name), Some(made.commit));
    // Every hop is held against the policy, through TLS as well.
    let moved = Fault::Redirect("/other".to_owned());
    host.server.misbehave("up.git/info/refs", moved);
    let ask = |layer: &str| {
        let mut spec = spec(&host.work, "t");
        spec.remotes = vec![UrlPolicy::layer(&[layer]).unwrap()];
        host.server.forget();
        let asked = trusting.session(spec).remote_ref(&origin, "main");
        (asked.unwrap_err().to_string(), host.server.seen().len())
    };
    let (said, requests) = ask("https://127.0.0.1:*/up.git");
    assert!(said.contains("path that is not allowed"), "{said}");
    assert_eq!(requests, 1, "the second is not sent");
    assert!(ask("**").1 > 1, "an allowed path is asked");
    host.server.behave();
    // The name in the certificate counts, too.
    let other = Origin {
        url: origin.url.replace("127.0.0.1", "localhost"),
        credential_alias: None,
    };
    let session = trusting.session(spec(&host.work, "s"));
    let error = session.clone(&other, None).unwrap_err();
    assert!(error.to_string().contains("not trusted"), "{error}");
}
