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
