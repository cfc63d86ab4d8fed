//! Roots that cannot be saved whole, and roots made to do harm.

use std::os::unix::fs::symlink;

use super::*;
use crate::testrepo::{TestRepo, git_in};

#[test]
fn nested_repositories_are_named_and_nothing_is_done() {
    let repo = TestRepo::new();
    repo.write("vendor/inner/file", "x");
    git_in(&repo.at("vendor/inner"), &["init", "-q"]);
    repo.write("other/f", "x");
    git_in(&repo.at("other"), &["init", "-q"]);
    repo.write("linked/.git", "gitdir: /elsewhere");
    let error = repo.snapshot().err().unwrap();
    assert!(
        matches!(&error, RepoError::Nested(names) if names == &["linked", "other", "vendor/inner"])
    );
    repo.write(".git/info/exclude", "vendor\nother\nlinked\n");
    let (snapshot, _) = repo.snapshot().unwrap();
    assert_eq!(snapshot.loss.len(), 3);
}

#[test]
fn a_submodule_counts_while_it_is_empty() {
    let repo = TestRepo::new();
    let head = repo.id("HEAD").to_string();
    let entry = format!("160000,{head},sub");
    repo.git(&["update-index", "--add", "--cacheinfo", &entry]);
    repo.commit("with a submodule");
    std::fs::create_dir(repo.at("sub")).unwrap();
    repo.publish();
    assert!(repo.snapshot().unwrap().0.saved);
    repo.write("a.txt", "dirty\n");
    let (snapshot, outbox) = repo.snapshot().unwrap();
    let files = outbox.files(&snapshot.commit.to_string());
    assert_eq!(files[&b"sub"[..]], ("160000".to_owned(), head.into_bytes()));
    repo.write("sub/new.txt", "invisible to git status");
    assert_eq!(repo.snapshot().err().unwrap().code(), "NestedRepository");
}

#[test]
fn an_operation_under_way_is_refused_by_name() {
    let in_progress = |repo: &TestRepo| match repo.snapshot() {
        Err(RepoError::OperationInProgress(name)) => name,
        other => panic!("{:?}", other.map(|(snapshot, _)| snapshot)),
    };
    let repo = TestRepo::new();
    for (file, name) in [
        ("MERGE_HEAD", "merge"),
        ("CHERRY_PICK_HEAD", "cherry-pick"),
        ("REVERT_HEAD", "revert"),
        ("BISECT_LOG", "bisect"),
    ] {
        repo.write(&format!(".git/{file}"), &format!("{}\n", repo.id("HEAD")));
        assert_eq!(in_progress(&repo), name);
        std::fs::remove_file(repo.at(".git").join(file)).unwrap();
    }
    for (dir, name) in [
        ("rebase-merge", "rebase"),
        ("rebase-apply", "am"),
        ("sequencer", "sequencer"),
    ] {
        std::fs::create_dir(repo.at(".git").join(dir)).unwrap();
        assert_eq!(in_progress(&repo), name);
        std::fs::remove_dir(repo.at(".git").join(dir)).unwrap();
    }
    // Conflicts of a stash leave no other mark than the index.
    let id = repo.git(&["hash-object", "-w", "a.txt"]);
    let lines = format!(
        "0 {} 0\ta.txt\n100644 {} 1\ta.txt\n",
        "0".repeat(40),
        id.trim()
    );
    repo.write(".git/lines", &lines);
    let status = std::process::Command::new("git")
        .current_dir(repo.path())
        .args(["update-index", "--index-info"])
        .stdin(std::fs::File::open(repo.at(".git/lines")).unwrap())
        .status()
        .unwrap();
    assert!(status.success());
    assert_eq!(in_progress(&repo), "unresolved conflicts");
}

#[test]
fn names_that_no_git_takes_are_refused() {
    for name in [".GIT/config", "dir/git~1", "x/.g\u{200c}it", "back\\slash"] {
        let repo = TestRepo::new();
        repo.write(name, "x");
        assert_eq!(
            repo.snapshot().err().unwrap().code(),
            "UnsafePath",
            "{name}"
        );
    }
    let repo = TestRepo::new();
    symlink("/etc/passwd", repo.at(".gitmodules")).unwrap();
    assert_eq!(repo.snapshot().err().unwrap().code(), "UnsafePath");
}

#[test]
fn limits_are_asked_before_bytes_are_read() {
    let repo = TestRepo::new();
    let file = std::fs::File::create(repo.at("sparse")).unwrap();
    file.set_len(1 << 40).unwrap();
    let error = repo.snapshot().err().unwrap();
    assert!(matches!(&error, RepoError::TooLarge(what) if what.contains("`sparse`")));
    file.set_len(5).unwrap();
    let mut options = repo.options();
    options.limits.entries_max = 3;
    assert_eq!(
        repo.snapshot_with(&options).err().unwrap().code(),
        "TooLarge"
    );
    options.limits.entries_max = 5;
    repo.write(".git/info/exclude", "ignored\n");
    for number in 0..9 {
        repo.write(&format!("dir/ignored/{number}"), "x");
    }
    assert!(repo.snapshot_with(&options).is_ok());

    std::fs::create_dir_all(repo.at(&"d/".repeat(600))).unwrap();
    assert_eq!(repo.snapshot().err().unwrap().code(), "TooLarge");
}

#[test]
fn a_file_too_big_for_memory_is_streamed() {
    let repo = TestRepo::new();
    let file = std::fs::File::create(repo.at("big")).unwrap();
    file.set_len((64 << 20) + 1).unwrap();
    let (snapshot, outbox) = repo.snapshot().unwrap();
    let size = outbox.git(&["cat-file", "-s", &format!("{}:big", snapshot.commit)]);
    assert_eq!(size.trim(), ((64 << 20) + 1).to_string());
}

#[test]
fn a_damaged_repository_is_an_error_and_not_a_half_snapshot() {
    let repo = TestRepo::new();
    repo.write("c.txt", "three\n");
    repo.git(&["add", "-A"]);
    repo.commit("second");
    let id = repo.git(&["rev-parse", "HEAD:c.txt"]);
    let object = repo.at(&format!(".git/objects/{}/{}", &id[..2], id[2..].trim()));
    std::fs::remove_file(&object).unwrap();
    assert_eq!(repo.snapshot().err().unwrap().code(), "MissingObject");
    // Another object under its name.
    let other = repo.git(&["rev-parse", "HEAD:a.txt"]);
    let other = repo.at(&format!(
        ".git/objects/{}/{}",
        &other[..2],
        other[2..].trim()
    ));
    std::fs::copy(other, &object).unwrap();
    assert!(repo.snapshot().is_err());
}

#[test]
fn objects_that_are_mostly_zeros_do_not_fill_the_memory() {
    use std::io::Write;
    let repo = TestRepo::new();
    // 100 MB of a commit in 100 KB on disk: only the header is read.
    let path = repo.outside("zeros");
    let mut file = std::fs::File::create(&path).unwrap();
    let head = repo.git(&["cat-file", "commit", "HEAD"]);
    file.write_all(head.as_bytes()).unwrap();
    file.write_all(&vec![b'0'; 100 << 20]).unwrap();
    let args = [
        "hash-object",
        "-w",
        "-t",
        "commit",
        "--literally",
        path.to_str().unwrap(),
    ];
    let id = repo.git(&args);
    repo.git(&["update-ref", "refs/heads/bomb", id.trim()]);
    assert_eq!(repo.snapshot().err().unwrap().code(), "TooLarge");
    let status = repo.open().unwrap().status(Limits::default());
    assert_eq!(status.unwrap_err().code(), "TooLarge");

    let repo = TestRepo::new();
    std::fs::File::create(repo.at(".git/refs/heads/sparse"))
        .unwrap()
        .set_len(1 << 40)
        .unwrap();
    assert_eq!(repo.open().unwrap_err().code(), "TooLarge");
}

#[test]
fn times_that_are_no_times_do_not_spread() {
    for (time, kept) in [("99999999999999", "4102444799"), ("-5", "0"), ("0", "0")] {
        let repo = TestRepo::new();
        let text = repo.git(&["cat-file", "commit", "HEAD"]);
        let text = text.replace("1700000000 +0100", &format!("{time} +0000"));
        repo.write(".git/commit", &text);
        let args = [
            "hash-object",
            "-w",
            "-t",
            "commit",
            "--literally",
            ".git/commit",
        ];
        let id = repo.git(&args);
        repo.git(&["update-ref", "refs/heads/main", id.trim()]);
        repo.write("a.txt", "dirty\n");
        let outbox = repo.outbox();
        let options = repo.options();
        let snapshot = repo.open().unwrap().snapshot(&outbox, &options).unwrap();
        let commit = outbox.find_commit(snapshot.commit).unwrap();
        assert_eq!(commit.time().seconds().to_string(), kept, "{time}");
    }
}

#[test]
fn refs_that_lead_nowhere_are_listed() {
    let repo = TestRepo::new();
    repo.write(".git/refs/heads/gone", &format!("{}\n", "1".repeat(40)));
    repo.write(".git/refs/heads/alias", "ref: refs/heads/main\n");
    let (snapshot, _) = repo.snapshot().unwrap();
    assert!(!snapshot.saved);
    let lost: Vec<_> = snapshot
        .loss
        .iter()
        .map(|loss| loss.path.as_str())
        .collect();
    assert_eq!(lost, ["refs/heads/alias", "refs/heads/gone"]);
}

#[test]
fn an_index_that_lies_is_refused() {
    use sha1::Digest;
    for (honest, evil, code) in [
        ("..gx", "../x", "GitFailed"),
        ("xgit/hooks/pre", ".git/hooks/pre", "GitFailed"),
        ("backgslash", "back\\slash", "UnsafePath"),
        ("a.txtgx", "a.txt/x", "UnsupportedFormat"),
    ] {
        let repo = TestRepo::new();
        repo.write(honest, "x");
        repo.git(&["add", honest]);
        // No git adds such names; libgit2 finds the worst of them when it reads.
        let mut bytes = std::fs::read(repo.at(".git/index")).unwrap();
        let mut places = bytes.windows(honest.len());
        let at = places.position(|part| part == honest.as_bytes()).unwrap();
        bytes[at..at + honest.len()].copy_from_slice(evil.as_bytes());
        let end = bytes.len() - 20;
        let sum = sha1::Sha1::digest(&bytes[..end]);
        bytes[end..].copy_from_slice(&sum);
        std::fs::write(repo.at(".git/index"), bytes).unwrap();
        let error = repo.snapshot().err().unwrap();
        assert_eq!(error.code(), code, "{evil}: {error:?}");
    }
}
