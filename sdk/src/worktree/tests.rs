use std::cell::RefCell;
use std::rc::Rc;

use super::*;
use crate::GitError;
use crate::testing::{FakeRepo, GitCall, Host};

const REF: &str = "refs/heads/vance/suspend/docs";

fn settings() -> Settings {
    Settings {
        repo_url: Some("https://host/repo".to_owned()),
        ..Settings::default()
    }
}

fn start() -> (Host, Root, Rc<RefCell<FakeRepo>>) {
    let host = Host::new();
    let root = host.root_named("docs");
    let repo = FakeRepo::new().install(&host);
    (host, root, repo)
}

fn pushes(host: &Host) -> Vec<(String, String, Option<String>)> {
    let push = |call| match call {
        GitCall::Push {
            commit,
            ref_name,
            expected,
            ..
        } => Some((commit, ref_name, expected)),
        _ => None,
    };
    host.git_calls().into_iter().filter_map(push).collect()
}

fn some(text: &str) -> Option<String> {
    Some(text.to_owned())
}

#[test]
fn init_notes_the_branch_and_commit_it_came_to() {
    let (host, ..) = start();
    let mut settings = settings();
    settings.credential_alias = some("acme");
    init(&mut settings).unwrap();
    assert_eq!(settings.branch, some("main"));
    assert_eq!(settings.commit, some("base"));
    let [GitCall::Clone { origin, branch }] = &host.git_calls()[..] else {
        panic!("{:?}", host.git_calls());
    };
    assert_eq!(origin.credential_alias, some("acme"));
    assert_eq!(*branch, None);
}

#[test]
fn init_at_a_commit_clones_that_commit() {
    let (host, ..) = start();
    let mut settings = settings();
    settings.commit = some("old");
    init(&mut settings).unwrap();
    assert_eq!(settings.commit, some("old"));
    assert!(matches!(host.git_calls()[..], [GitCall::CloneAt { .. }]));
}

#[test]
fn init_refuses_metadata_that_cannot_be() {
    let (host, ..) = start();
    let key = |mut settings: Settings| match init(&mut settings) {
        Err(Error::InvalidMetadata(invalid)) => invalid.key,
        other => panic!("{other:?}"),
    };
    assert_eq!(key(Settings::default()), "repoUrl");
    let mut planted = settings();
    planted.suspend_branch = some("main");
    assert_eq!(key(planted.clone()), "suspendBranch");
    planted.suspend_branch = None;
    planted.suspend_commit = some("base");
    assert_eq!(key(planted), "suspendCommit");
    assert_eq!(host.git_calls(), []);
}

#[test]
fn a_saved_tree_is_not_pushed_and_forgets_the_older_snapshot() {
    let (host, root, repo) = start();
    repo.borrow_mut().snapshot.saved = true;
    let mut settings = settings();
    settings.suspend_branch = some("vance/suspend/docs");
    settings.suspend_commit = some("older");
    suspend(&root, &mut settings).unwrap();
    assert_eq!(pushes(&host), []);
    assert_eq!(settings.suspend_branch, None);
    assert_eq!(settings.suspend_commit, None);
    assert_eq!(settings.commit, some("base"));
    recover(&mut settings).unwrap();
    let last = host.git_calls().pop();
    assert!(
        matches!(&last, Some(GitCall::CloneAt { commit, branch: Some(branch), .. })
            if commit == "base" && branch == "main"),
        "{last:?}"
    );
}

#[test]
fn a_tree_without_a_commit_is_always_pushed() {
    let (host, root, repo) = start();
    repo.borrow_mut().snapshot.saved = true;
    repo.borrow_mut().snapshot.head.commit = None;
    suspend(&root, &mut settings()).unwrap();
    assert_eq!(pushes(&host).len(), 1);
}

#[test]
fn work_goes_to_the_suspend_ref_and_comes_back_from_it() {
    let (host, root, repo) = start();
    repo.borrow_mut().snapshot.head.branch = None;
    let mut settings = settings();
    settings.branch = some("main");
    settings.keep = vec![".env".to_owned()];
    suspend(&root, &mut settings).unwrap();
    assert_eq!(pushes(&host), [("snap".into(), REF.into(), None)]);
    assert_eq!(settings.suspend_branch, some("vance/suspend/docs"));
    assert_eq!(settings.suspend_commit, some("snap"));
    assert_eq!(settings.branch, None, "HEAD is detached now");
    assert!(
        matches!(&host.git_calls()[0], GitCall::Snapshot { keep, .. } if *keep == [".env"]),
        "the keep list reaches the host"
    );

    recover(&mut settings).unwrap();
    let last = host.git_calls().pop();
    let Some(GitCall::Restore {
        ref_name,
        commit,
        lay,
        ..
    }) = last
    else {
        panic!("{last:?}");
    };
    assert_eq!((ref_name.as_str(), commit.as_str()), (REF, "snap"));
    assert_eq!(lay, RestoreAs::WorkingTree);
    assert_eq!(settings.branch, some("main"), "as `restore` says");
    assert_eq!(settings.suspend_commit, some("snap"), "still ours");
}

#[test]
fn the_next_suspend_replaces_its_own_ref() {
    let (host, root, repo) = start();
    let mut settings = settings();
    suspend(&root, &mut settings).unwrap();
    repo.borrow_mut().snapshot.commit = "snap2".to_owned();
    suspend(&root, &mut settings).unwrap();
    assert_eq!(pushes(&host)[1], ("snap2".into(), REF.into(), some("snap")));
    assert_eq!(repo.borrow().refs[REF], "snap2");
}

#[test]
fn a_repeated_suspend_finds_its_own_push() {
    let (host, root, _) = start();
    for _ in 0..2 {
        // As after a crash: the metadata of the first try is lost.
        let mut settings = settings();
        suspend(&root, &mut settings).unwrap();
        assert_eq!(settings.suspend_branch, some("vance/suspend/docs"));
    }
    // The second push is how the host sees for itself that the content is saved.
    assert_eq!(
        pushes(&host),
        [
            ("snap".into(), REF.into(), None),
            ("snap".into(), REF.into(), None)
        ]
    );
}

#[test]
fn a_ref_that_was_discarded_is_made_anew() {
    let (_host, root, repo) = start();
    let mut settings = settings();
    suspend(&root, &mut settings).unwrap();
    repo.borrow_mut().refs.remove(REF);
    repo.borrow_mut().snapshot.commit = "snap2".to_owned();
    suspend(&root, &mut settings).unwrap();
    assert_eq!(repo.borrow().refs[REF], "snap2");
    assert_eq!(settings.suspend_branch, some("vance/suspend/docs"));
}

#[test]
fn a_foreign_ref_is_left_alone_and_the_next_name_taken() {
    let (_host, root, repo) = start();
    let foreign = [("", "theirs"), ("-2", "theirs2")];
    for (suffix, commit) in foreign {
        let name = format!("{REF}{suffix}");
        repo.borrow_mut().refs.insert(name, commit.to_owned());
    }
    let mut settings = settings();
    suspend(&root, &mut settings).unwrap();
    assert_eq!(settings.suspend_branch, some("vance/suspend/docs-3"));
    assert_eq!(repo.borrow().refs[REF], "theirs");

    // Next time, the name in use comes first, also when the plain one has become free.
    repo.borrow_mut().refs.remove(REF);
    repo.borrow_mut().snapshot.commit = "snap2".to_owned();
    suspend(&root, &mut settings).unwrap();
    assert_eq!(settings.suspend_branch, some("vance/suspend/docs-3"));
    assert_eq!(repo.borrow().refs[&format!("{REF}-3")], "snap2");
}

#[test]
fn a_ref_that_moved_since_we_wrote_it_is_foreign() {
    let (_host, root, repo) = start();
    let mut settings = settings();
    suspend(&root, &mut settings).unwrap();
    repo.borrow_mut().refs.insert(REF.into(), "workers".into());
    repo.borrow_mut().snapshot.commit = "snap2".to_owned();
    suspend(&root, &mut settings).unwrap();
    assert_eq!(settings.suspend_branch, some("vance/suspend/docs-2"));
    assert_eq!(repo.borrow().refs[REF], "workers");
}

#[test]
fn planted_metadata_never_has_another_branch_replaced() {
    let (_host, root, repo) = start();
    let mut settings = settings();
    settings.suspend_branch = some("main");
    settings.suspend_commit = some("base");
    suspend(&root, &mut settings).unwrap();
    assert_eq!(repo.borrow().refs["refs/heads/main"], "base");
    assert_eq!(settings.suspend_branch, some("vance/suspend/docs"));
}

#[test]
fn when_all_names_are_taken_nothing_is_forced() {
    let (host, root, repo) = start();
    for n in 1..=50 {
        let name = if n == 1 {
            REF.to_owned()
        } else {
            format!("{REF}-{n}")
        };
        repo.borrow_mut().refs.insert(name, "theirs".to_owned());
    }
    let before = settings();
    let mut settings = before.clone();
    let error = suspend(&root, &mut settings).unwrap_err();
    assert!(
        matches!(error, Error::Git(GitError::Conflict(_))),
        "{error:?}"
    );
    assert!(
        pushes(&host)
            .iter()
            .all(|(_, _, expected)| expected.is_none())
    );
    assert!(repo.borrow().refs.values().all(|commit| commit != "snap"));
    assert_eq!(settings, before);
}

#[test]
fn a_push_that_loses_the_race_takes_the_next_name_and_a_refused_one_is_an_error() {
    let (_host, root, repo) = start();
    repo.borrow_mut().fail_push = Some(GitError::Conflict(crate::RefConflict {
        ref_name: REF.to_owned(),
        expected: None,
        found: some("theirs"),
    }));
    let mut metadata = settings();
    suspend(&root, &mut metadata).unwrap();
    assert_eq!(metadata.suspend_branch, some("vance/suspend/docs-2"));

    let rejected = GitError::Rejected(crate::Rejection {
        ref_name: REF.to_owned(),
        message: "hook declined".to_owned(),
    });
    repo.borrow_mut().snapshot.commit = "snap2".to_owned();
    repo.borrow_mut().fail_push = Some(rejected.clone());
    let error = suspend(&root, &mut settings()).unwrap_err();
    assert_eq!(error, Error::Git(rejected));
}

#[test]
fn a_snapshot_that_is_gone_or_moved_is_an_error_and_not_the_base_branch() {
    let (host, root, repo) = start();
    let mut settings = settings();
    suspend(&root, &mut settings).unwrap();
    repo.borrow_mut().refs.insert(REF.into(), "moved".into());
    let error = recover(&mut settings.clone()).unwrap_err();
    assert!(
        matches!(error, Error::Git(GitError::Conflict(_))),
        "{error:?}"
    );
    repo.borrow_mut().refs.remove(REF);
    let error = recover(&mut settings.clone()).unwrap_err();
    assert!(
        matches!(error, Error::Git(GitError::Missing(_))),
        "{error:?}"
    );
    let clones = |call: &GitCall| matches!(call, GitCall::Clone { .. } | GitCall::CloneAt { .. });
    assert!(!host.git_calls().iter().any(clones));

    settings.suspend_commit = None;
    assert!(
        matches!(recover(&mut settings), Err(Error::InvalidMetadata(i)) if i.key == "suspendCommit")
    );
}

#[test]
fn a_document_without_a_commit_comes_back_as_its_branch() {
    let (host, ..) = start();
    let mut settings = settings();
    settings.branch = some("main");
    recover(&mut settings).unwrap();
    assert_eq!(settings.commit, some("base"));
    assert!(
        matches!(&host.git_calls()[..], [GitCall::Clone { branch, .. }] if *branch == some("main"))
    );
}

#[test]
fn recover_as_branch_is_an_option() {
    let (host, root, _) = start();
    let mut settings = settings();
    settings.recover_as = RecoverAs::Branch;
    suspend(&root, &mut settings).unwrap();
    recover(&mut settings).unwrap();
    let last = host.git_calls().pop();
    assert!(
        matches!(
            last,
            Some(GitCall::Restore {
                lay: RestoreAs::Branch,
                ..
            })
        ),
        "{last:?}"
    );
}

#[test]
fn close_does_nothing_unless_asked() {
    let (host, root, repo) = start();
    repo.borrow_mut().status.modified = 1;
    close(&root, &settings()).unwrap();
    assert_eq!(host.git_calls(), []);
}

fn commit_on_close() -> Settings {
    Settings {
        commit_on_close: true,
        ..settings()
    }
}

#[test]
fn close_commits_and_pushes_to_the_branch_of_head_once() {
    let (host, root, repo) = start();
    repo.borrow_mut().status.untracked = 1;
    repo.borrow_mut().commit = some("work");
    for _ in 0..2 {
        close(&root, &commit_on_close()).unwrap();
    }
    let expected = ("work".into(), "refs/heads/main".into(), some("base"));
    assert_eq!(pushes(&host), [expected]);
    assert!(
        matches!(&host.git_calls()[1], GitCall::CommitAll { message, .. } if message.contains("docs"))
    );
}

#[test]
fn close_pushes_commits_that_only_exist_here() {
    let (host, root, repo) = start();
    repo.borrow_mut().status.unpushed = 2;
    repo.borrow_mut().status.head.branch = some("feature/x");
    repo.borrow_mut().status.head.commit = some("local");
    close(&root, &commit_on_close()).unwrap();
    let expected = ("local".into(), "refs/heads/feature/x".into(), None);
    assert_eq!(pushes(&host), [expected]);
}

#[test]
fn close_on_a_detached_head_fails_only_when_there_is_work() {
    let (host, root, repo) = start();
    repo.borrow_mut().status.head.branch = None;
    close(&root, &commit_on_close()).unwrap();
    repo.borrow_mut().status.modified = 1;
    let error = close(&root, &commit_on_close()).unwrap_err();
    assert!(matches!(error, Error::InvalidMetadata(i) if i.key == "commitOnClose"));
    assert_eq!(pushes(&host), []);
}
