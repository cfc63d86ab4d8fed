//! Suspend in one workspace root, recover in another: a git RootDir comes back as it was.

use std::os::unix::fs::{PermissionsExt, symlink};

use crate::world::{Seen, World};
use warren_testkit::GitRepo;

const FILES: &[(&str, &str)] = &[
    ("README.md", "# hello\n"),
    ("src/a.txt", "a\n"),
    ("src/b.txt", "b\n"),
    ("tool.sh", "#!/bin/sh\n"),
    (".gitignore", "*.log\n"),
];

/// Makes a git RootDir, lets `work` change it, moves it, and compares.
fn comes_back(work: impl FnOnce(&GitRepo)) {
    let mut world = World::new();
    let (_remote, url) = world.remote("up.git", "main", FILES);
    world.ok(&["workspace", "init", "p"]);
    let name = world.create_git("p", &url, &["--label", "repo"]);
    let repo = world.repo("p", &name);
    work(&repo);
    let before = Seen::of(&repo);
    world.move_away("p");
    let after = Seen::of(&world.repo("p", &name));
    assert_eq!(before, after);
    let fsck = world
        .repo("p", &name)
        .git(&["fsck", "--strict", "--no-dangling"]);
    assert_eq!(fsck.trim(), "");
}

#[test]
fn staged_and_unstaged_changes_stay_apart() {
    comes_back(|repo| {
        repo.write("src/a.txt", "staged\n");
        repo.git(&["add", "src/a.txt"]);
        repo.write("src/a.txt", "staged, then edited\n");
        repo.write("src/b.txt", "only edited\n");
        repo.write("new.txt", "untracked\n");
        repo.write("added.txt", "added\n");
        repo.git(&["add", "added.txt"]);
        repo.git(&["rm", "-q", "README.md"]);
        std::fs::remove_file(repo.path().join("tool.sh")).unwrap();
    });
}

#[test]
fn modes_and_links_come_back() {
    comes_back(|repo| {
        let path = |name: &str| repo.path().join(name);
        let mode = |name: &str, mode| {
            std::fs::set_permissions(path(name), std::fs::Permissions::from_mode(mode)).unwrap();
        };
        mode("tool.sh", 0o755);
        repo.write("secret", "s\n");
        mode("secret", 0o600);
        symlink("src/a.txt", path("link")).unwrap();
        symlink("/nowhere/at/all", path("dangling")).unwrap();
        std::fs::create_dir(path("empty")).unwrap();
        std::fs::remove_file(path("README.md")).unwrap();
        symlink("src/b.txt", path("README.md")).unwrap();
    });
}

#[test]
fn names_of_any_bytes_come_back() {
    use std::ffi::OsStr;
    use std::os::unix::ffi::OsStrExt;
    comes_back(|repo| {
        for name in [
            &b"\xff\xfe.txt"[..],
            b"new\nline\"q.txt",
            &[b'n'; 255],
            b" lead",
            b"-dash",
        ] {
            std::fs::write(repo.path().join(OsStr::from_bytes(name)), b"x").unwrap();
        }
    });
}

#[test]
fn local_commits_on_a_clean_tree_come_back() {
    comes_back(|repo| {
        repo.write("src/a.txt", "committed\n");
        repo.git(&["add", "-A"]);
        repo.commit("local only");
    });
}

#[test]
fn other_branches_tags_and_stashes_come_back() {
    comes_back(|repo| {
        repo.git(&["switch", "-q", "-c", "wip/x"]);
        repo.write("wip.txt", "wip\n");
        repo.git(&["add", "-A"]);
        repo.commit("on wip");
        repo.git(&["tag", "light"]);
        repo.git(&["tag", "-a", "-m", "a message", "heavy"]);
        repo.git(&["switch", "-q", "main"]);
        repo.write("src/a.txt", "stashed one\n");
        repo.git(&["stash", "-q"]);
        repo.write("src/b.txt", "stashed two\n");
        repo.git(&["stash", "push", "-q", "-m", "second"]);
    });
}

#[test]
fn a_detached_head_with_commits_comes_back() {
    comes_back(|repo| {
        repo.git(&["switch", "-q", "--detach"]);
        for text in ["one\n", "two\n"] {
            repo.write("src/a.txt", text);
            repo.git(&["add", "-A"]);
            repo.commit(text.trim());
        }
        repo.write("src/b.txt", "dirty\n");
    });
}

#[test]
fn a_feature_branch_stays_the_branch() {
    comes_back(|repo| {
        repo.git(&["switch", "-q", "-c", "feature/x/y"]);
        repo.write("src/a.txt", "1\n");
        repo.write("src/b.txt", "2\n");
        repo.git(&["add", "src/a.txt"]);
    });
}

#[test]
fn a_tree_that_nobody_touched_leaves_no_ref() {
    let mut world = World::new();
    let (remote, url) = world.remote("up.git", "trunk", FILES);
    remote.git(&["symbolic-ref", "HEAD", "refs/heads/trunk"]);
    world.ok(&["workspace", "init", "p"]);
    let name = world.create_git("p", &url, &[]);
    let before = Seen::of(&world.repo("p", &name));
    world.move_away("p");
    assert_eq!(before, Seen::of(&world.repo("p", &name)));
    assert_eq!(
        remote.git(&["for-each-ref", "--format=%(refname)"]).trim(),
        "refs/heads/trunk"
    );
}

#[test]
fn it_comes_back_twice() {
    let mut world = World::new();
    let (remote, url) = world.remote("up.git", "main", FILES);
    world.ok(&["workspace", "init", "p"]);
    let name = world.create_git("p", &url, &["--label", "repo"]);
    world.repo("p", &name).write("new.txt", "1\n");
    world.move_away("p");
    let repo = world.repo("p", &name);
    repo.write("new.txt", "2\n");
    repo.git(&["checkout", "-q", "HEAD", "--", "."]);
    let before = Seen::of(&repo);
    world.ok(&["workspace", "suspend", "p"]);
    world.ok(&["workspace", "init", "p"]);
    assert_eq!(before, Seen::of(&world.repo("p", &name)));
    // Our own ref of the first round was replaced, not joined by another one.
    let refs = remote.git(&["for-each-ref", "--format=%(refname)", "refs/heads/vance"]);
    assert_eq!(refs.lines().count(), 1, "{refs}");
}
