//! Bringing a root back from a snapshot ref.

use crate::setup::{Host, code};
use warren_mirror::{Lay, MirrorError};
use warren_testkit::{GitRepo, Work};

const REF: &str = "refs/heads/vance/suspend/r";

/// A snapshot of a root with staged, unstaged, untracked and committed work, pushed.
fn suspended() -> (Host, String, String) {
    let host = Host::new();
    host.bare("up.git")
        .seed("main", &[("a.txt", "1"), ("b.txt", "1")]);
    let root = host.cloned("r");
    root.write("c.txt", "committed");
    root.commit("local");
    root.write("a.txt", "staged");
    root.git(&["add", "a.txt"]);
    root.write("a.txt", "unstaged");
    root.write("new.txt", "untracked");
    let status = root.git(&["status", "--porcelain=v2", "--branch"]);
    let origin = host.origin("up.git");
    let mut session = host.session("r");
    let made = session.snapshot(&origin, &[]).unwrap();
    session.push(&origin, &made.commit, REF, None).unwrap();
    (host, made.commit, status)
}

fn status(root: &GitRepo) -> String {
    root.git(&["status", "--porcelain=v2", "--branch"])
}

#[test]
fn a_root_comes_back_as_it_was_with_a_warm_mirror_and_a_cold_one() {
    let (host, commit, before) = suspended();
    let origin = host.origin("up.git");
    host.server.forget();
    host.session("warm")
        .restore(&origin, REF, &commit, Lay::WorkingTree)
        .unwrap();
    assert_eq!(status(&host.root("warm")), before);
    let asked = host.server.seen();
    assert_eq!(
        asked.len(),
        2,
        "one connection lists and fetches: {asked:?}"
    );

    let cold = Work::new();
    let mirrors = crate::setup::mirrors(
        &cold,
        &["http://127.0.0.1:*/**"],
        warren_mirror::CredentialStore::default(),
        crate::setup::limits(),
    );
    mirrors
        .session(crate::setup::spec(&cold, "r"))
        .restore(&origin, REF, &commit, Lay::WorkingTree)
        .unwrap();
    let root = GitRepo::at(cold.join("roots/r"));
    assert_eq!(status(&root), before);
    assert_eq!(root.git(&["fsck", "--full", "--no-dangling"]), "");
}

#[test]
fn a_remote_that_moved_on_is_followed() {
    let (host, commit, _) = suspended();
    let up = GitRepo::at(host.work.join("srv/up.git"));
    let newer = up.seed("main", &[("d.txt", "newer")]);
    host.session("s")
        .restore(&host.origin("up.git"), REF, &commit, Lay::WorkingTree)
        .unwrap();
    let root = host.root("s");
    assert!(root.run(&["cat-file", "-e", &newer]).status.success());
    assert!(
        root.git(&["status", "--porcelain=v2", "--branch"])
            .contains("branch.ab +1 -")
    );
}

#[test]
fn as_a_branch_head_is_on_the_snapshot() {
    let (host, commit, _) = suspended();
    let head = host
        .session("s")
        .restore(&host.origin("up.git"), REF, &commit, Lay::Branch)
        .unwrap();
    assert_eq!(head.branch.as_deref(), Some("vance/suspend/r"));
    assert_eq!(head.commit.as_ref(), Some(&commit));
    let root = host.root("s");
    assert_eq!(root.head(), commit);
    assert_eq!(root.git(&["status", "--porcelain"]), "");
}

#[test]
fn a_ref_that_is_gone_or_points_elsewhere_restores_nothing() {
    let (host, commit, _) = suspended();
    let up = GitRepo::at(host.work.join("srv/up.git"));
    let origin = host.origin("up.git");
    up.git(&["update-ref", REF, "refs/heads/main"]);
    let error = host
        .session("s")
        .restore(&origin, REF, &commit, Lay::WorkingTree)
        .unwrap_err();
    let MirrorError::Conflict {
        expected, found, ..
    } = error
    else {
        panic!("{error:?}");
    };
    assert_eq!((expected, found), (Some(commit.clone()), up.ref_id("main")));
    up.git(&["update-ref", "-d", REF]);
    let gone = host
        .session("s")
        .restore(&origin, REF, &commit, Lay::WorkingTree);
    assert_eq!(code(gone), "GitMissing");
    assert_eq!(
        std::fs::read_dir(host.work.join("roots/s"))
            .unwrap()
            .count(),
        0
    );
    assert!(host.scratch_is_empty());
}
