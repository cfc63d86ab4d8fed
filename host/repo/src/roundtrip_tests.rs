//! Snapshot and restore together, held against the git program.

use std::collections::BTreeMap;
use std::os::unix::ffi::OsStrExt;
use std::os::unix::fs::{MetadataExt, PermissionsExt, symlink};
use std::path::Path;

use crate::testrepo::{TestRepo, git_in};
use crate::{Head, RestoreSpec, Snapshot, restore};

/// What a person sees of a RootDir.
#[derive(Debug, PartialEq)]
struct Seen {
    files: BTreeMap<Vec<u8>, (u32, Vec<u8>)>,
    git: Vec<String>,
}

fn look(root: &Path) -> Seen {
    let mut files = BTreeMap::new();
    let mut pending = vec![root.to_owned()];
    while let Some(dir) = pending.pop() {
        for entry in std::fs::read_dir(&dir).unwrap() {
            let path = entry.unwrap().path();
            let stat = std::fs::symlink_metadata(&path).unwrap();
            let name = path.strip_prefix(root).unwrap().as_os_str().as_bytes();
            if name == b".git" {
                continue;
            }
            let content = if stat.is_dir() {
                pending.push(path.clone());
                Vec::new()
            } else if stat.is_symlink() {
                let target = std::fs::read_link(&path).unwrap();
                target.as_os_str().as_bytes().to_vec()
            } else {
                std::fs::read(&path).unwrap()
            };
            files.insert(name.to_vec(), (stat.mode(), content));
        }
    }
    let ask = |args: &[&str]| git_in(root, args);
    let git = vec![
        ask(&[
            "status",
            "--porcelain=v2",
            "--branch",
            "--untracked-files=all",
        ]),
        ask(&["ls-files", "-s", "-v"]),
        ask(&["for-each-ref"]),
        ask(&["stash", "list", "--format=%H %gs"]),
    ];
    Seen { files, git }
}

/// Puts a RootDir away and brings it back beside the old one.
fn there_and_back(repo: &TestRepo) -> (Snapshot, Head, Seen) {
    let outbox = repo.outbox();
    let snapshot = repo
        .open()
        .unwrap()
        .snapshot(&outbox, &repo.options())
        .unwrap();
    let back = repo.outside("back");
    std::fs::create_dir(&back).unwrap();
    let root = warren_disk::open_root(&back).unwrap();
    let mirror = repo.outside("mirror.git");
    let spec = RestoreSpec {
        inbox: outbox.path(),
        snapshot: snapshot.commit,
        upstream: &mirror,
        root: &root,
        root_path: &back,
        origin_url: "https://example.com/x.git",
        remote_refs: Vec::new(),
        tags: Vec::new(),
        default_branch: None,
        as_branch: None,
        bounds: crate::Bounds::default(),
    };
    let head = restore(spec, &mut |_, _| {}).unwrap();
    git_in(&back, &["fsck", "--strict"]);
    let seen = look(&back);
    (snapshot, head, seen)
}

#[test]
fn a_messy_root_comes_back_as_it_was() {
    let repo = TestRepo::new();
    repo.write(".gitattributes", "*.win text eol=crlf\n");
    repo.write("clean.win", "w\r\n");
    repo.write("dirty.win", "w\r\n");
    repo.git(&["add", "-A"]);
    repo.commit("not pushed");
    repo.git(&["branch", "wip"]);
    repo.git(&["tag", "-a", "v1", "-m", "annotated"]);
    repo.git(&["notes", "add", "-m", "a note"]);
    for text in ["first\n", "second\n"] {
        repo.write("a.txt", text);
        repo.git(&["stash", "-q"]);
    }
    repo.git(&["checkout", "-q", "-b", "feature/x"]);
    repo.write("a.txt", "staged\n");
    repo.git(&["add", "a.txt"]);
    repo.write("a.txt", "staged and edited\n");
    repo.write("dirty.win", "w\nmixed\r\n");
    repo.git(&["rm", "-q", "--cached", "dir/b.txt"]);
    repo.write("dir/planned", "p");
    repo.git(&["add", "-N", "dir/planned"]);
    repo.git(&["update-index", "--skip-worktree", "clean.win"]);
    repo.write_bytes(b"\xff\n.bin", b"\0");
    repo.write("run", "#!/bin/sh\n");
    let mode = |name: &str, mode| {
        std::fs::set_permissions(repo.at(name), PermissionsExt::from_mode(mode)).unwrap();
    };
    mode("run", 0o755);
    mode("dir/planned", 0o600);
    symlink("../outside", repo.at("link")).unwrap();
    std::fs::create_dir_all(repo.at("empty/inner")).unwrap();
    mode("empty/inner", 0o700);

    let before = look(&repo.path());
    let (snapshot, head, after) = there_and_back(&repo);
    assert_eq!(head, snapshot.head);
    assert_eq!(before, after);
}

#[test]
fn detached_and_unborn_heads_come_back() {
    let repo = TestRepo::new();
    repo.git(&["checkout", "-q", "--detach"]);
    repo.commit("on nothing");
    let before = look(&repo.path());
    assert_eq!(there_and_back(&repo).2, before);

    let repo = TestRepo::empty();
    repo.write("staged", "s");
    repo.git(&["add", "-A"]);
    repo.write("draft", "d");
    let before = look(&repo.path());
    assert_eq!(there_and_back(&repo).2, before);
}
