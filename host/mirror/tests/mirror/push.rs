//! Snapshots and commits pushed to a remote, and everything that a remote may say to it.

use crate::setup::{Host, code, spec};
use warren_mirror::MirrorError;
use warren_testkit::{Fault, GitRepo};

const REF: &str = "refs/heads/vance/suspend/r";

/// A host with `up.git` and a RootDir `r` that has work in it.
fn dirty() -> Host {
    let host = Host::new();
    host.bare("up.git").seed("main", &[("a.txt", "1")]);
    host.cloned("r").write("new.txt", "work");
    host
}

#[test]
fn a_snapshot_is_pushed_read_back_and_proved() {
    let host = dirty();
    let up = GitRepo::at(host.work.join("srv/up.git"));
    let origin = host.origin("up.git");
    let mut session = host.session("r");
    let made = session.snapshot(&origin, &[]).unwrap();
    assert!(!made.saved);
    assert!(session.receipts().is_empty());
    session.push(&origin, &made.commit, REF, None).unwrap();
    assert_eq!(up.ref_id(REF), Some(made.commit.clone()));
    let [receipt] = session.receipts() else {
        panic!("{:?}", session.receipts());
    };
    assert_eq!(receipt.ref_name.as_deref(), Some(REF));
    assert_eq!((&receipt.commit, &receipt.url), (&made.commit, &origin.url));
    // The same again, as after a crash.
    let mut again = host.session("r");
    let same = again.snapshot(&origin, &[]).unwrap();
    assert_eq!(same.commit, made.commit);
    again.push(&origin, &same.commit, REF, None).unwrap();
    assert_eq!(again.receipts().len(), 1);
    drop((session, again));
    assert!(host.scratch_is_empty());
    assert_eq!(up.git(&["fsck", "--full"]), "");
}

#[test]
fn a_clean_root_is_saved_already_and_a_local_commit_is_not() {
    let host = Host::new();
    host.bare("up.git").seed("main", &[("a.txt", "1")]);
    let root = host.cloned("r");
    let origin = host.origin("up.git");
    let mut session = host.session("r");
    let made = session.snapshot(&origin, &[]).unwrap();
    assert!(made.saved);
    assert_eq!(made.commit, root.head());
    assert_eq!(session.receipts()[0].ref_name, None);

    root.write("b.txt", "2");
    let local = root.commit("local");
    let mut session = host.session("r");
    let made = session.snapshot(&origin, &[]).unwrap();
    assert!(!made.saved);
    assert!(session.receipts().is_empty());
    session.push(&origin, &made.commit, REF, None).unwrap();
    let up = GitRepo::at(host.work.join("srv/up.git"));
    assert!(up.run(&["cat-file", "-e", &local]).status.success());
}

#[test]
fn heads_own_commit_and_a_commit_of_all_can_be_pushed() {
    let host = dirty();
    let root = host.root("r");
    let up = GitRepo::at(host.work.join("srv/up.git"));
    let origin = host.origin("up.git");
    let mut session = host.session("r");
    let made = session.commit_all(&origin, "all of it").unwrap().unwrap();
    session
        .push(&origin, &made, "refs/heads/agent", None)
        .unwrap();
    assert_eq!(up.git(&["show", "agent:new.txt"]), "work");
    assert!(session.receipts().is_empty(), "no snapshot was pushed");

    let head = root.commit("by hand");
    let mut session = host.session("r");
    // It would take `made` away from the branch.
    let sideways = session.push(&origin, &head, "refs/heads/agent", Some(&made));
    assert_eq!(code(sideways), "GitConflict");
    assert_eq!(up.ref_id("agent"), Some(made.clone()));
    root.git(&["fetch", "-q", up.path().to_str().unwrap(), "agent"]);
    root.git(&["merge", "-q", "-s", "ours", "-m", "both", "FETCH_HEAD"]);
    let both = root.head();
    session
        .push(&origin, &both, "refs/heads/agent", Some(&made))
        .unwrap();
    assert_eq!(up.ref_id("agent"), Some(both));
    let unknown = session.push(&origin, &"d".repeat(40), "refs/heads/agent", None);
    assert_eq!(code(unknown), "GitMissing");
    let other = session.push(&origin, &made, "refs/heads/main", None);
    assert_eq!(code(other), "GitDenied");
    let option = session.push(&origin, &made, "--force", None);
    assert_eq!(code(option), "GitInvalidArgument");
}

#[test]
fn a_refused_push_is_an_error_with_what_the_server_said() {
    let host = dirty();
    let up = GitRepo::at(host.work.join("srv/up.git"));
    up.hook(
        "pre-receive",
        r"printf '\033]0;x\007policy says no\n' >&2; yes loud | head -c 5000000 >&2; exit 1",
    );
    let origin = host.origin("up.git");
    let mut session = host.session("r");
    let made = session.snapshot(&origin, &[]).unwrap();
    let error = session.push(&origin, &made.commit, REF, None).unwrap_err();
    let MirrorError::Rejected { ref_name, message } = &error else {
        panic!("{error:?}");
    };
    assert_eq!(ref_name, REF);
    assert!(message.contains("policy says no"), "{message}");
    assert!(message.contains("hook declined"), "{message}");
    assert!(message.len() <= 500 && !message.contains('\u{1b}'));
    assert!(session.receipts().is_empty());
    assert_eq!(up.ref_id(REF), None);
    assert_eq!(host.root("r").git(&["status", "--porcelain"]), "?? new.txt");
    up.unhook("pre-receive");
    session.push(&origin, &made.commit, REF, None).unwrap();
    assert_eq!(up.ref_id(REF), Some(made.commit));
}

#[test]
fn a_protected_ref_is_rejected_too() {
    let host = dirty();
    let up = GitRepo::at(host.work.join("srv/up.git"));
    up.hook("update", "echo protected; exit 1");
    let origin = host.origin("up.git");
    let mut session = host.session("r");
    let made = session.snapshot(&origin, &[]).unwrap();
    assert_eq!(
        code(session.push(&origin, &made.commit, REF, None)),
        "GitRejected"
    );
    up.unhook("update");
    up.git(&["config", "http.receivepack", "false"]);
    let denied = code(session.push(&origin, &made.commit, REF, None));
    assert_eq!(denied, "GitAuthenticationFailed");
    assert!(session.receipts().is_empty());
}

#[test]
fn foreign_and_moved_refs_are_conflicts_and_stay() {
    let host = dirty();
    let up = GitRepo::at(host.work.join("srv/up.git"));
    let foreign = up.seed("vance/suspend/r", &[("theirs.txt", "x")]);
    let origin = host.origin("up.git");
    let mut session = host.session("r");
    let made = session.snapshot(&origin, &[]).unwrap();
    let error = session.push(&origin, &made.commit, REF, None).unwrap_err();
    let MirrorError::Conflict {
        expected, found, ..
    } = &error
    else {
        panic!("{error:?}");
    };
    assert_eq!((expected, found.as_ref()), (&None, Some(&foreign)));
    let wrong = session.push(
        &origin,
        &made.commit,
        REF,
        Some(&made.commit.replace('a', "b")),
    );
    assert!(
        matches!(wrong, Err(MirrorError::Conflict { .. })),
        "{wrong:?}"
    );
    assert_eq!(up.ref_id(REF), Some(foreign.clone()));
    let delete = session.delete_remote_ref(&origin, REF, &made.commit);
    assert_eq!(code(delete), "GitConflict");
    // Replacing what is known is fine, though no fast-forward.
    session
        .push(&origin, &made.commit, REF, Some(&foreign))
        .unwrap();
    assert_eq!(up.ref_id(REF), Some(made.commit.clone()));
    assert_eq!(
        session.remote_ref(&origin, REF).unwrap(),
        Some(made.commit.clone())
    );
    session
        .delete_remote_ref(&origin, REF, &made.commit)
        .unwrap();
    session
        .delete_remote_ref(&origin, REF, &made.commit)
        .unwrap();
    assert_eq!(session.remote_ref(&origin, REF).unwrap(), None);
}

#[test]
fn a_ref_that_moves_during_the_push_is_not_overwritten() {
    let host = dirty();
    let up = GitRepo::at(host.work.join("srv/up.git"));
    // Between what the server showed and what it does, somebody else is quicker.
    up.hook(
        "pre-receive",
        &format!("env -u GIT_QUARANTINE_PATH git update-ref {REF} refs/heads/main"),
    );
    let origin = host.origin("up.git");
    let mut session = host.session("r");
    let made = session.snapshot(&origin, &[]).unwrap();
    assert_eq!(
        code(session.push(&origin, &made.commit, REF, None)),
        "GitConflict"
    );
    assert_eq!(up.ref_id(REF), up.ref_id("main"));
    assert!(session.receipts().is_empty());
}

#[test]
fn a_server_that_says_yes_and_does_not_keep_it_is_found_out() {
    let host = dirty();
    let up = GitRepo::at(host.work.join("srv/up.git"));
    up.hook("post-receive", &format!("git update-ref -d {REF}"));
    let origin = host.origin("up.git");
    let mut session = host.session("r");
    let made = session.snapshot(&origin, &[]).unwrap();
    assert_eq!(
        code(session.push(&origin, &made.commit, REF, None)),
        "GitConflict"
    );
    assert!(session.receipts().is_empty());
}

#[test]
fn a_remote_that_is_gone_costs_nothing() {
    let host = dirty();
    let origin = host.origin("up.git");
    let mut session = host.session("r");
    let made = session.snapshot(&origin, &[]).unwrap();
    host.server
        .misbehave("git-receive-pack", Fault::Status(403));
    assert_eq!(
        code(session.push(&origin, &made.commit, REF, None)),
        "GitAuthenticationFailed"
    );
    let away = host.work.join("srv/away.git");
    std::fs::rename(host.work.join("srv/up.git"), &away).unwrap();
    host.server.behave();
    assert_eq!(
        code(session.push(&origin, &made.commit, REF, None)),
        "GitUnreachable"
    );
    assert_eq!(
        code(host.session("r").snapshot(&origin, &[])),
        "GitUnreachable"
    );
    std::fs::rename(away, host.work.join("srv/up.git")).unwrap();
    session.push(&origin, &made.commit, REF, None).unwrap();
    assert_eq!(session.receipts().len(), 1);
}

#[test]
fn a_dry_run_proves_without_pushing() {
    let host = dirty();
    let up = GitRepo::at(host.work.join("srv/up.git"));
    let origin = host.origin("up.git");
    let mut dry = spec(&host.work, "r");
    dry.dry_run = true;
    let mut session = host.mirrors.session(dry);
    let made = session.snapshot(&origin, &[]).unwrap();
    session.push(&origin, &made.commit, REF, None).unwrap();
    assert_eq!(session.receipts().len(), 1);
    assert_eq!(up.ref_id(REF), None);
    let foreign = up.seed("vance/suspend/r", &[("theirs.txt", "x")]);
    assert_eq!(
        code(session.push(&origin, &made.commit, REF, None)),
        "GitConflict"
    );
    session.delete_remote_ref(&origin, REF, &foreign).unwrap();
    assert_eq!(up.ref_id(REF), Some(foreign));
}

#[test]
fn the_url_comes_from_the_caller_never_from_the_roots_config() {
    let host = dirty();
    host.bare("evil.git");
    let evil = host.server.url("evil.git");
    let root = host.root("r");
    root.git(&["remote", "set-url", "origin", &evil]);
    root.git(&["remote", "set-url", "--push", "origin", &evil]);
    let origin = host.origin("up.git");
    let mut session = host.session("r");
    let made = session.snapshot(&origin, &[]).unwrap();
    session.push(&origin, &made.commit, REF, None).unwrap();
    assert!(
        host.server
            .seen()
            .iter()
            .all(|seen| !seen.path.contains("evil"))
    );
}

#[test]
fn a_mirror_that_lost_its_packs_does_not_keep_work_from_being_saved() {
    let host = dirty();
    for entry in std::fs::read_dir(host.mirror_repositories()[0].join("objects/pack")).unwrap() {
        std::fs::remove_file(entry.unwrap().path()).unwrap();
    }
    let origin = host.origin("up.git");
    let mut session = host.session("r");
    let made = session.snapshot(&origin, &[]).unwrap();
    session.push(&origin, &made.commit, REF, None).unwrap();
    let up = GitRepo::at(host.work.join("srv/up.git"));
    assert_eq!(up.git(&["fsck", "--full"]), "");
    assert_eq!(up.ref_id(REF), Some(made.commit));
}
