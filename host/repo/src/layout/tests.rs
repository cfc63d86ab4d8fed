use std::os::unix::fs::symlink;

use super::*;
use crate::testrepo::{TestRepo, git_in};

fn refused(repo: &TestRepo) -> RepoError {
    check(&repo.root(), &Bounds::default()).unwrap_err()
}

fn is_unsafe(repo: &TestRepo, part: &str) {
    match refused(repo) {
        RepoError::Unsafe(what) => assert!(what.contains(part), "{what}"),
        other => panic!("{part}: {other:?}"),
    }
    assert!(repo.open().is_err());
}

#[test]
fn an_honest_repository_passes_with_all_that_a_person_does() {
    let repo = TestRepo::new();
    repo.git(&["tag", "-a", "v1", "-m", "x"]);
    repo.git(&["gc", "-q"]);
    repo.git(&["config", "core.fsmonitor", "touch /tmp/PWN"]);
    repo.git(&["config", "core.hooksPath", "/elsewhere"]);
    repo.git(&["config", "filter.lfs.clean", "git-lfs clean -- %f"]);
    symlink("/bin/true", repo.at(".git/hooks/pre-commit")).unwrap();
    assert!(check(&repo.root(), &Bounds::default()).is_ok());
    assert!(repo.open().is_ok());
}

#[test]
fn a_dot_git_that_is_no_directory_is_refused() {
    let repo = TestRepo::new();
    let other = TestRepo::new();
    std::fs::rename(repo.at(".git"), repo.outside("moved")).unwrap();
    assert_eq!(refused(&repo).code(), "NotARepository");
    repo.write(".git", &format!("gitdir: {}\n", other.at(".git").display()));
    is_unsafe(&repo, "`.git` is a file");
    std::fs::remove_file(repo.at(".git")).unwrap();
    symlink(other.at(".git"), repo.at(".git")).unwrap();
    is_unsafe(&repo, "`.git` is a file");
    std::fs::remove_file(repo.at(".git")).unwrap();
    std::fs::create_dir(repo.at(".git")).unwrap();
    assert_eq!(refused(&repo).code(), "NotARepository");
}

#[test]
fn files_that_point_elsewhere_are_refused() {
    for pointer in POINTERS {
        let repo = TestRepo::new();
        let other = TestRepo::new();
        let target = format!("{}\n", other.at(".git/objects").display());
        repo.write(&format!(".git/{pointer}"), &target);
        is_unsafe(&repo, pointer);
    }
}

#[test]
fn links_and_special_files_in_dot_git_are_refused() {
    for name in [
        "objects",
        "refs",
        "HEAD",
        "config",
        "index",
        "packed-refs",
        "logs",
        "info",
        "refs/heads",
        "refs/heads/main",
        "objects/pack",
        "objects/info",
        "logs/HEAD",
    ] {
        let repo = TestRepo::new();
        repo.git(&["pack-refs"]);
        repo.git(&["commit", "-q", "--allow-empty", "-m", "x"]);
        let (path, moved) = (repo.at(".git").join(name), repo.outside("moved"));
        std::fs::rename(&path, &moved).unwrap();
        symlink(&moved, &path).unwrap();
        is_unsafe(&repo, &format!("`.git/{name}` is a link"));
        std::fs::remove_file(&path).unwrap();
        let done = std::process::Command::new("mkfifo")
            .arg(&path)
            .status()
            .unwrap();
        assert!(done.success());
        // Refused before anything opens it, which would hang.
        assert_eq!(refused(&repo).code(), "UnsafeRepository", "{name}");
    }
}

#[test]
fn config_is_read_before_libgit2_follows_it() {
    for (key, what) in [
        ("core.worktree", "core.worktree"),
        ("include.path", "include"),
        ("url.http://evil/.insteadOf", "insteadOf"),
        ("core.attributesFile", "core.attributesFile"),
    ] {
        let repo = TestRepo::new();
        git_in(
            &repo.path(),
            &["config", "--file", ".git/config", key, "/victim"],
        );
        is_unsafe(&repo, what);
        let repo = TestRepo::new();
        git_in(
            &repo.path(),
            &["config", "--file", ".git/config.worktree", key, "/victim"],
        );
        is_unsafe(&repo, what);
    }
    let repo = TestRepo::new();
    repo.write(".git/config", &"#".repeat(2 << 20));
    assert_eq!(refused(&repo).code(), "TooLarge");
}

#[test]
fn formats_beyond_libgit2_are_named() {
    let named = |repo: &TestRepo| match repo.snapshot().err().unwrap() {
        RepoError::UnsupportedFormat(name) => name,
        other => panic!("{other:?}"),
    };
    for format in ["--object-format=sha256", "--ref-format=reftable"] {
        let repo = TestRepo::new();
        std::fs::remove_dir_all(repo.at(".git")).unwrap();
        repo.git(&["init", "-q", format]);
        assert!(format.ends_with(&named(&repo)));
    }
    let repo = TestRepo::new();
    repo.git(&["update-index", "--split-index"]);
    assert_eq!(named(&repo), "split index");
    let repo = TestRepo::new();
    repo.git(&["config", "core.repositoryFormatVersion", "1"]);
    repo.git(&["config", "extensions.partialClone", "origin"]);
    assert_eq!(named(&repo), "partialclone");
    let repo = TestRepo::new();
    repo.write(".git/shallow", &format!("{}\n", repo.id("HEAD")));
    assert_eq!(named(&repo), "shallow clone");
    let repo = TestRepo::new();
    repo.git(&["sparse-checkout", "set", "--sparse-index", "dir"]);
    assert_eq!(named(&repo), "split or sparse index");
}

#[test]
fn a_dot_git_that_is_too_deep_is_refused() {
    let repo = TestRepo::new();
    std::fs::create_dir_all(repo.at(&format!(".git/refs/{}", "d/".repeat(100)))).unwrap();
    assert_eq!(refused(&repo).code(), "TooLarge");
}
