use super::*;
use crate::testrepo::{TestRepo, git_in};

fn commit_all(repo: &TestRepo) -> (Result<Option<Oid>, RepoError>, std::path::PathBuf) {
    let outbox = repo.outbox();
    let result = repo
        .open()
        .and_then(|open| open.commit_all(&outbox, " work\n", Limits::default()));
    (result, outbox.path().to_owned())
}

/// What the git program makes of the same working tree.
fn expected(repo: &TestRepo) -> String {
    repo.git(&["add", "-A"]);
    repo.git(&["write-tree"])
}

#[test]
fn the_tree_is_the_one_that_git_would_commit() {
    let repo = TestRepo::new();
    repo.write(
        ".gitattributes",
        "*.txt text=auto\n*.win text eol=crlf\n*.id ident\n*.bin -text\n",
    );
    repo.write(".gitignore", "ignored\n");
    repo.write("ignored", "x");
    repo.git(&["add", "-A", "-f"]);
    repo.commit("an ignored file that is tracked");
    repo.write("ignored", "changed");
    repo.write("a.txt", "one\r\ntwo\r\n");
    repo.write("x.win", "w\r\n");
    repo.write("y.id", "$Id: old $\r\n");
    repo.write("z.bin", "b\r\n");
    repo.write("binary.txt", "\0\r\n");
    repo.write("other/ignored", "x");
    std::fs::remove_file(repo.at("dir/b.txt")).unwrap();
    let head = repo.id("HEAD");
    let (id, outbox) = commit_all(&repo);
    let id = id.unwrap().unwrap();
    let facts = git_in(
        &outbox,
        &["log", "-1", "--format=%T %P %an %at %B", &id.to_string()],
    );
    let tree = expected(&repo);
    assert_eq!(
        facts.trim(),
        format!("{} {head} Warren 1700000000 work", tree.trim())
    );
    git_in(&outbox, &["fsck", "--strict", &id.to_string()]);
    assert_eq!(commit_all(&repo).0.unwrap(), Some(id));
}

#[test]
fn without_a_change_there_is_no_commit() {
    let repo = TestRepo::new();
    assert_eq!(commit_all(&repo).0.unwrap(), None);
    assert_eq!(commit_all(&TestRepo::empty()).0.unwrap(), None);
    let repo = TestRepo::empty();
    repo.write("first", "1");
    let (id, outbox) = commit_all(&repo);
    let parents = git_in(
        &outbox,
        &[
            "log",
            "-1",
            "--format=%P",
            &id.unwrap().unwrap().to_string(),
        ],
    );
    assert_eq!(parents.trim(), "");
}

#[test]
fn entries_that_git_was_told_to_leave_stay() {
    let repo = TestRepo::new();
    repo.git(&["update-index", "--assume-unchanged", "a.txt"]);
    repo.git(&["update-index", "--skip-worktree", "dir/b.txt"]);
    repo.write("a.txt", "edited\n");
    std::fs::remove_file(repo.at("dir/b.txt")).unwrap();
    assert_eq!(commit_all(&repo).0.unwrap(), None);
    repo.write("c.txt", "new");
    let (id, outbox) = commit_all(&repo);
    let tree = git_in(
        &outbox,
        &[
            "log",
            "-1",
            "--format=%T",
            &id.unwrap().unwrap().to_string(),
        ],
    );
    assert_eq!(tree, expected(&repo));
}

#[test]
fn a_filter_that_would_have_to_run_is_an_error_and_does_not_run() {
    let repo = TestRepo::new();
    let mark = repo.outside("PWN");
    repo.write(".gitattributes", "*.big filter=evil\n");
    repo.git(&["add", "-A"]);
    repo.commit("attributes");
    repo.git(&[
        "config",
        "filter.evil.clean",
        &format!("touch {}", mark.display()),
    ]);
    repo.git(&[
        "config",
        "core.fsmonitor",
        &format!("touch {}", mark.display()),
    ]);
    repo.write("x.big", "data");
    match commit_all(&repo).0 {
        Err(RepoError::UnsupportedFormat(what)) => assert_eq!(what, "filter=evil on `x.big`"),
        other => panic!("{other:?}"),
    }
    // A snapshot takes the bytes as they are.
    let (snapshot, outbox) = repo.snapshot().unwrap();
    assert_eq!(
        outbox.text(snapshot.commit, "x.big").as_deref(),
        Some("data")
    );
    assert!(!mark.exists());
}

#[test]
fn a_message_needs_text() {
    let repo = TestRepo::new();
    let outbox = repo.outbox();
    for bad in ["", " \n", "a\0b"] {
        let result = repo
            .open()
            .unwrap()
            .commit_all(&outbox, bad, Limits::default());
        assert_eq!(result.unwrap_err().code(), "InvalidArgument");
    }
}
