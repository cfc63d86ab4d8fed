use super::*;
use crate::testrepo::TestRepo;

#[test]
fn counts_are_those_of_git() {
    let repo = TestRepo::new();
    let status = |repo: &TestRepo| repo.open().unwrap().status(Limits::default()).unwrap();
    repo.git(&["update-ref", "refs/remotes/origin/main", "main"]);
    let clean = status(&repo);
    let head = clean.head.clone();
    assert_eq!(head.commit, Some(repo.id("HEAD").to_string()));
    assert_eq!(
        clean,
        Status {
            head,
            ..Status::default()
        }
    );

    repo.write("n1", "1");
    repo.write("n2/x", "2");
    repo.write("n2/y", "3");
    repo.git(&["add", "n2/y"]);
    std::fs::remove_file(repo.at("a.txt")).unwrap();
    repo.write("dir/b.txt", "changed\n");
    repo.write(".git/info/exclude", "*.o\n");
    repo.write("x.o", "ignored");
    repo.git(&["branch", "side"]);
    repo.git(&["commit", "-q", "--allow-empty", "-m", "one"]);
    let dirty = status(&repo);
    assert_eq!(
        (
            dirty.staged,
            dirty.modified,
            dirty.untracked,
            dirty.unpushed
        ),
        (0, 2, 2, 1)
    );
    repo.git(&["tag", "-a", "v1", "-m", "no commit more"]);
    repo.git(&["checkout", "-q", "-b", "other", "HEAD~1"]);
    repo.git(&["commit", "-q", "--allow-empty", "-m", "two"]);
    repo.git(&["merge", "-q", "-m", "both", "main"]);
    let all = [
        "rev-list",
        "--count",
        "--branches",
        "--tags",
        "--not",
        "--remotes",
    ];
    assert_eq!(repo.git(&all).trim(), status(&repo).unpushed.to_string());
    repo.git(&["update-ref", "refs/remotes/origin/x", "other"]);
    assert_eq!(status(&repo).unpushed, 0);
    repo.git(&["update-ref", "-d", "refs/remotes/origin/x"]);
    repo.git(&["checkout", "-q", "main"]);
    repo.git(&["branch", "-q", "-D", "other"]);
    repo.git(&["add", "a.txt"]);
    let dirty = status(&repo);
    assert_eq!(
        (
            dirty.staged,
            dirty.modified,
            dirty.untracked,
            dirty.unpushed
        ),
        (1, 1, 2, 1)
    );
}

#[test]
fn an_unborn_branch_has_a_status() {
    let repo = TestRepo::empty();
    repo.write("x", "1");
    repo.git(&["add", "x"]);
    let status = repo.open().unwrap().status(Limits::default()).unwrap();
    assert_eq!(
        (status.staged, status.untracked, status.unpushed),
        (1, 0, 0)
    );
    assert_eq!(status.head.branch.as_deref(), Some("main"));
}
