use std::process::{Command, Stdio};

use super::*;
use crate::testrepo::TestRepo;

fn clear(repo: &TestRepo, wait: Duration) -> Result<(), RepoError> {
    clear_stale_locks(&repo.root(), &repo.path(), wait)
}

#[test]
fn locks_of_the_dead_are_removed() {
    let repo = TestRepo::new();
    let locks = [
        "index.lock",
        "HEAD.lock",
        "config.lock",
        "refs/heads/a/b.lock",
        "packed-refs.lock",
    ];
    for lock in locks {
        repo.write(&format!(".git/{lock}"), "");
    }
    repo.write("Cargo.lock", "the worker's own");
    clear(&repo, Duration::ZERO).unwrap();
    for lock in locks {
        assert!(!repo.at(".git").join(lock).exists(), "{lock}");
    }
    assert!(repo.at("Cargo.lock").exists());
    repo.git(&["commit", "-q", "--allow-empty", "-m", "works again"]);
}

#[test]
fn a_lock_of_the_living_is_waited_for_and_then_named() {
    let repo = TestRepo::new();
    repo.write(".git/index.lock", "");
    let mut child = Command::new("sleep")
        .arg("600")
        .current_dir(repo.at("dir"))
        .spawn()
        .unwrap();
    match clear(&repo, Duration::from_millis(120)) {
        Err(RepoError::Locked(name)) => assert_eq!(name, "index.lock"),
        other => panic!("{other:?}"),
    }
    assert!(repo.at(".git/index.lock").exists());
    child.kill().unwrap();
    child.wait().unwrap();
    clear(&repo, Duration::ZERO).unwrap();
    assert!(!repo.at(".git/index.lock").exists());
}

#[test]
fn an_open_lock_file_is_a_living_one() {
    let repo = TestRepo::new();
    let lock = std::fs::File::create(repo.at(".git/index.lock")).unwrap();
    let mut child = Command::new("sleep")
        .arg("600")
        .stdin(Stdio::from(lock))
        .spawn()
        .unwrap();
    assert!(matches!(
        clear(&repo, Duration::ZERO),
        Err(RepoError::Locked(_))
    ));
    child.kill().unwrap();
    child.wait().unwrap();
    clear(&repo, Duration::from_secs(5)).unwrap();
}

#[test]
fn without_locks_nobody_is_asked() {
    let repo = TestRepo::new();
    let mut child = Command::new("sleep")
        .arg("600")
        .current_dir(repo.path())
        .spawn()
        .unwrap();
    clear(&repo, Duration::ZERO).unwrap();
    child.kill().unwrap();
    child.wait().unwrap();
}
