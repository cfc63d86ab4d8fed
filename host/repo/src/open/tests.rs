use super::*;
use crate::testrepo::TestRepo;

#[test]
fn another_place_than_the_handle_is_refused() {
    let repo = TestRepo::new();
    let other = TestRepo::new();
    let error = Repo::open(&repo.root(), &other.path(), Bounds::default()).unwrap_err();
    assert_eq!(error.code(), "UnsafeRepository");
    assert!(Repo::open(&repo.root(), &repo.path(), Bounds::default()).is_ok());
}

#[test]
fn a_repository_of_another_owner_opens() {
    let repo = TestRepo::new();
    if std::os::unix::fs::chown(repo.at(".git"), Some(12345), None).is_ok() {
        std::os::unix::fs::chown(repo.path(), Some(12345), None).unwrap();
        assert!(repo.open().is_ok());
    }
}

#[test]
fn head_is_read_in_every_form() {
    let repo = TestRepo::new();
    let id = repo.id("HEAD").to_string();
    let head = |repo: &TestRepo| repo.open().unwrap().head();
    repo.git(&["checkout", "-q", "-b", "feature/x/y"]);
    let on_branch = head(&repo).unwrap();
    assert_eq!(on_branch.branch.as_deref(), Some("feature/x/y"));
    assert_eq!(on_branch.commit.as_ref(), Some(&id));
    repo.git(&["checkout", "-q", "--detach"]);
    assert_eq!(
        head(&repo).unwrap(),
        Head {
            commit: Some(id),
            branch: None
        }
    );
    repo.write(".git/HEAD", "ref: refs/remotes/origin/main\n");
    assert_eq!(head(&repo).unwrap_err().code(), "UnsupportedFormat");
    repo.write(".git/HEAD", &format!("{}\n", "1".repeat(40)));
    assert_eq!(head(&repo).unwrap_err().code(), "MissingObject");
}
