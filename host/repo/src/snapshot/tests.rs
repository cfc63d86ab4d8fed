use std::os::unix::fs::{PermissionsExt, symlink};

use warren_model::LossKind;

use super::*;
use crate::Exclude;
use crate::testrepo::{TestRepo, git_in};

fn lost(snapshot: &Snapshot) -> Vec<(LossKind, &str, u64)> {
    let lost = snapshot.loss.iter();
    lost.map(|loss| (loss.kind, loss.path.as_str(), loss.bytes))
        .collect()
}

#[test]
fn a_clean_published_root_is_saved_already() {
    let repo = TestRepo::new();
    let (snapshot, _) = repo.snapshot().unwrap();
    assert!(snapshot.saved && !snapshot.dirty && !snapshot.unpushed);
    assert_eq!(snapshot.commit, repo.id("HEAD"));
    assert_eq!(snapshot.head.branch.as_deref(), Some("main"));
    assert!(snapshot.loss.is_empty());
}

#[test]
fn a_clean_tree_with_unpushed_commits_is_not_saved() {
    let repo = TestRepo::new();
    repo.write("c.txt", "three\n");
    repo.git(&["add", "-A"]);
    let head = repo.commit("second");
    let (snapshot, outbox) = repo.snapshot().unwrap();
    assert!(!snapshot.saved && !snapshot.dirty && snapshot.unpushed);
    assert_eq!(
        outbox
            .git(&["rev-parse", &format!("{}^1", snapshot.commit)])
            .trim(),
        head.to_string()
    );
    assert_eq!(
        outbox.text(snapshot.commit, "c.txt").as_deref(),
        Some("three\n")
    );
}

#[test]
fn staged_and_unstaged_changes_stay_apart() {
    let repo = TestRepo::new();
    repo.write("a.txt", "staged\n");
    repo.git(&["add", "a.txt"]);
    repo.write("a.txt", "working\n");
    repo.write("new/untracked.txt", "mine\n");
    repo.git(&["rm", "-q", "--cached", "dir/b.txt"]);
    let (snapshot, outbox) = repo.snapshot().unwrap();
    assert!(snapshot.dirty && !snapshot.saved);
    let state = outbox.state(&snapshot);
    assert_eq!(
        outbox.text(state, "index/a.txt").as_deref(),
        Some("staged\n")
    );
    assert_eq!(outbox.text(state, "index/dir/b.txt"), None);
    assert_eq!(
        outbox.text(snapshot.commit, "a.txt").as_deref(),
        Some("working\n")
    );
    assert_eq!(
        outbox.text(snapshot.commit, "dir/b.txt").as_deref(),
        Some("two\n")
    );
    assert_eq!(
        outbox.text(snapshot.commit, "new/untracked.txt").as_deref(),
        Some("mine\n")
    );
    let manifest: Manifest =
        serde_json::from_str(&outbox.text(state, "manifest.json").unwrap()).unwrap();
    assert_eq!(manifest, snapshot.manifest);
}

#[test]
fn the_same_content_gives_the_same_commit_and_another_one_another() {
    let repo = TestRepo::new();
    repo.write("a.txt", "changed\n");
    let first = repo.snapshot().unwrap().0;
    std::thread::sleep(std::time::Duration::from_millis(1100));
    repo.write("a.txt", "changed\n");
    let (second, outbox) = repo.snapshot().unwrap();
    assert_eq!(first, second);
    let stamp = outbox.git(&[
        "log",
        "-1",
        "--format=%an %ae %at %ai",
        &first.commit.to_string(),
    ]);
    assert_eq!(
        stamp,
        "Warren warren@localhost 1700000000 2023-11-14 22:13:20 +0000\n"
    );
    repo.write("a.txt", "otherwise\n");
    assert_ne!(repo.snapshot().unwrap().0.commit, first.commit);
}

#[test]
fn a_root_without_a_commit_is_saved_too() {
    let repo = TestRepo::empty();
    repo.write("draft.txt", "x");
    repo.write("staged.txt", "y");
    repo.git(&["add", "staged.txt"]);
    let (snapshot, outbox) = repo.snapshot().unwrap();
    assert_eq!(
        snapshot.head,
        Head {
            commit: None,
            branch: Some("main".into())
        }
    );
    assert_eq!(
        outbox.text(snapshot.commit, "draft.txt").as_deref(),
        Some("x")
    );
    assert_eq!(outbox.files(&outbox.state(&snapshot).to_string()).len(), 2);
}

#[test]
fn a_detached_head_with_commits_is_kept() {
    let repo = TestRepo::new();
    repo.git(&["checkout", "-q", "--detach"]);
    let (snapshot, _) = repo.snapshot().unwrap();
    assert!(!snapshot.saved, "the branch that HEAD left is local only");
    let head = repo.commit("on nothing");
    repo.write("a.txt", "dirty\n");
    let (snapshot, outbox) = repo.snapshot().unwrap();
    assert_eq!(
        snapshot.head,
        Head {
            commit: Some(head.to_string()),
            branch: None
        }
    );
    let parents = outbox.git(&["log", "-1", "--format=%P", &snapshot.commit.to_string()]);
    assert!(parents.starts_with(&head.to_string()));
    repo.git(&["checkout", "-q", "-f", "--detach", "main"]);
    repo.git(&["branch", "-D", "main"]);
    assert!(repo.snapshot().unwrap().0.saved);
}

#[test]
fn branches_tags_notes_and_stashes_are_carried() {
    let repo = TestRepo::new();
    repo.git(&["branch", "wip/x"]);
    repo.git(&["tag", "-a", "v1", "-m", "annotated"]);
    repo.git(&["tag", "light"]);
    repo.git(&["tag", "-a", "v1-twice", "-m", "of a tag", "v1"]);
    repo.git(&["notes", "add", "-m", "a note"]);
    repo.git(&["config", "branch.main.remote", "origin"]);
    repo.git(&["config", "branch.main.merge", "refs/heads/main"]);
    repo.git(&["update-ref", "refs/remotes/origin/main", "main"]);
    repo.git(&["update-ref", "refs/odd/one", "main"]);
    repo.write("a.txt", "first stash\n");
    repo.git(&["stash", "-q"]);
    repo.write("a.txt", "second\n");
    repo.write("extra", "untracked in a stash");
    repo.git(&["stash", "push", "-q", "-u", "-m", "with untracked"]);
    let (snapshot, outbox) = repo.snapshot().unwrap();
    assert!(!snapshot.saved && !snapshot.dirty);
    let manifest = &snapshot.manifest;
    let names: Vec<_> = manifest.refs.keys().map(String::as_str).collect();
    let expected = [
        "refs/heads/main",
        "refs/heads/wip/x",
        "refs/notes/commits",
        "refs/tags/light",
        "refs/tags/v1",
        "refs/tags/v1-twice",
    ];
    assert_eq!(names, expected);
    assert_eq!(
        manifest.remote_refs["refs/remotes/origin/main"],
        repo.id("main").to_string()
    );
    assert_eq!(manifest.upstream["main"].merge, "refs/heads/main");
    assert_eq!(manifest.stash[0].message, "On main: with untracked");
    assert_eq!(lost(&snapshot), [(LossKind::Ref, "refs/odd/one", 0)]);
    let state = outbox.state(&snapshot);
    let reached = outbox.git(&["rev-list", &state.to_string()]);
    for name in [
        "stash@{0}",
        "stash@{0}^3",
        "stash@{1}",
        "refs/notes/commits",
    ] {
        assert!(reached.contains(&repo.id(name).to_string()), "{name}");
    }
    for tag in ["v1", "v1-twice"] {
        let id = repo.id(tag).to_string();
        let text = outbox.text(state, &format!("objects/{id}")).unwrap();
        assert_eq!(text, repo.git(&["cat-file", "tag", &id]));
    }
}

#[test]
fn tags_of_the_remote_are_no_change() {
    let repo = TestRepo::new();
    repo.git(&["tag", "-a", "v1", "-m", "release"]);
    let mirror = repo.outside("mirror.git");
    repo.git(&["push", "-q", mirror.to_str().unwrap(), "v1"]);
    assert!(repo.snapshot().unwrap().0.saved);
    repo.git(&["tag", "mine"]);
    assert!(!repo.snapshot().unwrap().0.saved);
}

#[test]
fn modes_links_and_odd_names_come_along() {
    let repo = TestRepo::new();
    repo.write_bytes(b"\xff\xfe.txt", b"bytes");
    repo.write_bytes(b"new\nline\"q.txt", b"q");
    repo.write_bytes("é".repeat(127).as_bytes(), b"long");
    repo.write("run.sh", "#!/bin/sh\n");
    repo.write("secret", "s");
    let mode = |name: &str, mode| {
        std::fs::set_permissions(repo.at(name), PermissionsExt::from_mode(mode)).unwrap();
    };
    mode("run.sh", 0o755);
    mode("secret", 0o600);
    mode("dir", 0o700);
    symlink("/etc/passwd", repo.at("link")).unwrap();
    symlink("nowhere\n", repo.at("dangling")).unwrap();
    std::fs::create_dir_all(repo.at("empty/inner")).unwrap();
    let (snapshot, outbox) = repo.snapshot().unwrap();
    let files = outbox.files(&snapshot.commit.to_string());
    let entry = |name: &[u8]| {
        let (mode, content) = &files[name];
        (mode.as_str(), content.as_slice())
    };
    assert_eq!(entry(b"\xff\xfe.txt"), ("100644", &b"bytes"[..]));
    assert_eq!(entry(b"new\nline\"q.txt"), ("100644", &b"q"[..]));
    assert_eq!(entry("é".repeat(127).as_bytes()), ("100644", &b"long"[..]));
    assert_eq!(entry(b"run.sh"), ("100755", &b"#!/bin/sh\n"[..]));
    assert_eq!(entry(b"link"), ("120000", &b"/etc/passwd"[..]));
    assert_eq!(entry(b"dangling"), ("120000", &b"nowhere\n"[..]));
    let manifest = snapshot.manifest;
    let modes: Vec<_> = manifest.modes.into_iter().collect();
    assert_eq!(
        modes,
        [("dir".to_owned(), 0o700), ("secret".to_owned(), 0o600)]
    );
    assert_eq!(manifest.empty_dirs, ["empty/inner"]);
}

#[test]
fn index_flags_do_not_hide_edits() {
    let repo = TestRepo::new();
    repo.write("planned.txt", "content");
    repo.git(&["add", "-N", "planned.txt"]);
    repo.git(&["update-index", "--assume-unchanged", "a.txt"]);
    repo.git(&["update-index", "--skip-worktree", "dir/b.txt"]);
    repo.write("a.txt", "edited behind git\n");
    repo.write("dir/b.txt", "edited too\n");
    assert_eq!(repo.git(&["status", "--porcelain"]), " A planned.txt\n");
    let (snapshot, outbox) = repo.snapshot().unwrap();
    let flags = &snapshot.manifest.flags;
    assert_eq!(flags.intent_to_add, ["planned.txt"]);
    assert_eq!(flags.assume_unchanged, ["a.txt"]);
    assert_eq!(flags.skip_worktree, ["dir/b.txt"]);
    let text = |path| outbox.text(snapshot.commit, path).unwrap();
    assert_eq!(text("a.txt"), "edited behind git\n");
    assert_eq!(text("dir/b.txt"), "edited too\n");
    assert_eq!(text("planned.txt"), "content");
    assert_eq!(
        outbox.text(outbox.state(&snapshot), "index/planned.txt"),
        None
    );
}

#[test]
fn what_is_ignored_is_listed_and_kept_on_request() {
    let repo = TestRepo::new();
    repo.write(".gitignore", "data/\n*.log\n!keep.log\n.venv/\n");
    repo.write("data/big.bin", "12345");
    repo.write("data/deep/more.bin", "67890");
    repo.write("x.log", "log");
    repo.write("keep.log", "kept");
    repo.write("env/.env", "secret");
    repo.write(".git/info/exclude", "/env\n");
    symlink("elsewhere", repo.at(".venv")).unwrap();
    let (snapshot, outbox) = repo.snapshot().unwrap();
    let expected = [
        (LossKind::Ignored, "data/", 10),
        (LossKind::Ignored, "env/", 6),
        (LossKind::Ignored, "x.log", 3),
    ];
    assert_eq!(lost(&snapshot), expected);
    assert_eq!(
        outbox.text(snapshot.commit, "keep.log").as_deref(),
        Some("kept")
    );
    // As git: `.venv/` is about directories, and a link is none.
    assert_eq!(
        outbox.text(snapshot.commit, ".venv").as_deref(),
        Some("elsewhere")
    );
    assert!(repo.git(&["status", "--porcelain"]).contains("?? .venv\n"));

    let options = SnapshotOptions {
        keep: vec!["data/deep/".into(), "x.log".into()],
        ..repo.options()
    };
    let (snapshot, outbox) = repo.snapshot_with(&options).unwrap();
    assert_eq!(
        outbox
            .text(snapshot.commit, "data/deep/more.bin")
            .as_deref(),
        Some("67890")
    );
    assert_eq!(outbox.text(snapshot.commit, "data/big.bin"), None);
    assert!(outbox.text(snapshot.commit, "x.log").is_some());
    assert_eq!(lost(&snapshot)[0], (LossKind::Ignored, "data/big.bin", 5));

    for bad in ["../x", "/etc", "a/../b", ".git/config", "", "%zz"] {
        let options = SnapshotOptions {
            keep: vec![bad.into()],
            ..repo.options()
        };
        let error = repo.snapshot_with(&options).err().unwrap();
        assert_eq!(error.code(), "InvalidArgument", "{bad}");
    }
}

#[test]
fn a_rule_that_hides_everything_does_not_hide_the_loss() {
    let repo = TestRepo::new();
    repo.write(".git/info/exclude", "*\n");
    repo.write("work/result.txt", "all my work");
    let (snapshot, _) = repo.snapshot().unwrap();
    assert!(snapshot.saved);
    assert_eq!(lost(&snapshot), [(LossKind::Ignored, "work/", 11)]);
    repo.write("dir/more.txt", "beside a tracked file");
    let (snapshot, _) = repo.snapshot().unwrap();
    assert_eq!(lost(&snapshot)[0], (LossKind::Ignored, "dir/more.txt", 21));
}

#[test]
fn special_files_are_lost_and_do_not_hang() {
    let repo = TestRepo::new();
    let fifo = |name: &str| {
        let path = repo.at(name);
        let done = std::process::Command::new("mkfifo")
            .arg(path)
            .status()
            .unwrap();
        assert!(done.success());
    };
    fifo("pipe");
    fifo("dir/.gitattributes");
    std::fs::remove_file(repo.at("a.txt")).unwrap();
    fifo("a.txt");
    repo.write("dir/b.txt", "changed\r\n");
    let _socket = std::os::unix::net::UnixListener::bind(repo.at("sock")).unwrap();
    let (snapshot, outbox) = repo.snapshot().unwrap();
    let names: Vec<_> = lost(&snapshot)
        .into_iter()
        .map(|(kind, path, _)| (kind, path))
        .collect();
    let special = |name| (LossKind::SpecialFile, name);
    let expected = ["a.txt", "dir/.gitattributes", "pipe", "sock"].map(special);
    assert_eq!(names, expected);
    assert_eq!(
        outbox.text(snapshot.commit, "dir/b.txt").as_deref(),
        Some("changed\r\n")
    );
    assert_eq!(outbox.text(snapshot.commit, "a.txt"), None);
}

#[test]
fn what_git_calls_clean_is_clean() {
    let repo = TestRepo::empty();
    repo.write("crlf.txt", "a\r\nb\r\n");
    repo.write("lf.txt", "a\nb\n");
    repo.git(&["add", "-A"]);
    repo.commit("crlf in the blob");
    repo.write(
        ".gitattributes",
        "* text=auto\nwin.txt text eol=crlf\nid.txt ident\n",
    );
    repo.write("win.txt", "w\r\n");
    repo.write("id.txt", "$Id: expanded $\n");
    repo.git(&["add", ".gitattributes", "win.txt", "id.txt"]);
    repo.commit("attributes");
    repo.publish();
    // Stale times make every file doubtful.
    repo.write("crlf.txt", "a\r\nb\r\n");
    repo.write("lf.txt", "a\r\nb\r\n");
    repo.write("win.txt", "w\r\n");
    let (snapshot, _) = repo.snapshot().unwrap();
    assert!(snapshot.saved, "{snapshot:?}");
    assert_eq!(repo.git(&["diff", "--stat"]), "");
    repo.write("win.txt", "w2\r\n");
    let (snapshot, outbox) = repo.snapshot().unwrap();
    assert_eq!(
        outbox.text(snapshot.commit, "win.txt").as_deref(),
        Some("w2\r\n")
    );
    assert_eq!(
        outbox.text(snapshot.commit, "lf.txt").as_deref(),
        Some("a\nb\n")
    );
}

#[test]
fn ignore_rules_are_those_of_git() {
    let repo = TestRepo::new();
    let rules = "# comment\n\nfoo/\n/bar\na/**/b\n*.o\n!keep.o\n\\#x\n\\!y\ntrail\\ \nspaces   \n\
        dir/*\n!dir/keep\n**/deep\nx[0-9]\n[!m-z]z\na?c\nf**r\n/**/only\nq/**\n\ncrlf\r\n[broken\n\
        sub/inner\n!sub/inner/back\nUPPER\n";
    repo.write(".gitignore", rules);
    repo.write("sub/.gitignore", "!*.o\n/local\n*.tmp\n!foo/\n");
    repo.write(".git/info/exclude", "excluded\n!bar\nsub/x.keep\n");
    let names = [
        "foo/x",
        "n/foo/x",
        "foo.txt",
        "bar",
        "n/bar",
        "a/b",
        "a/x/b",
        "a/x/y/b",
        "b",
        "x.o",
        "keep.o",
        "n/keep.o",
        "#x",
        "!y",
        "trail ",
        "trail",
        "spaces",
        "spaces   ",
        "dir/new",
        "dir/keep",
        "n/dir/new",
        "deep",
        "n/n/deep/f",
        "x1",
        "xx",
        "az",
        "mz",
        "abc",
        "ac",
        "a/c",
        "foor",
        "f/r",
        "fr",
        "only",
        "n/m/only",
        "q/f",
        "q/g/f",
        "crlf",
        "crlf\r",
        "[broken",
        "sub/inner/back",
        "sub/inner/f",
        "sub/x.o",
        "sub/local",
        "sub/n/local",
        "sub/n/y.tmp",
        "sub/foo/x",
        "excluded",
        "sub/x.keep",
        "upper",
        "UPPER",
        "é.o",
        "é",
    ];
    for name in names {
        if repo
            .at(name)
            .parent()
            .is_some_and(|parent| !parent.is_file())
            && !repo.at(name).exists()
        {
            repo.write(name, "x");
        }
    }
    let listed = repo.git(&[
        "ls-files",
        "-z",
        "--cached",
        "--others",
        "--exclude-standard",
    ]);
    let mut expected: Vec<_> = listed.split_terminator('\0').map(String::from).collect();
    expected.sort();
    let (snapshot, outbox) = repo.snapshot().unwrap();
    let files = outbox.files(&snapshot.commit.to_string());
    let found: Vec<_> = files
        .into_keys()
        .map(|name| String::from_utf8(name).unwrap())
        .collect();
    assert_eq!(found, expected);
}

#[test]
fn what_the_operator_keeps_out_is_in_no_snapshot_and_no_commit() {
    let repo = TestRepo::new();
    repo.write("tracked.pem", "from the start\n");
    repo.git(&["add", "-A"]);
    repo.commit("with a key");
    repo.publish();
    repo.write(".env", "TOKEN=secret\n");
    repo.write("deep/er/.env", "TOKEN=secret\n");
    repo.write("cache/a.bin", "12345");
    repo.write("staged.pem", "secret\n");
    repo.git(&["add", "staged.pem"]);
    repo.write("good.txt", "good\n");
    let exclude = Exclude::new(&[".env", "*.pem", "/cache/"]).unwrap();
    let options = SnapshotOptions {
        keep: vec![".env".into(), "cache/".into()],
        ..repo.options()
    };
    let outbox = repo.outbox();
    let open = repo.open().unwrap().excluding(exclude.clone());
    let snapshot = open.snapshot(&outbox, &options).unwrap();
    let expected = [
        (LossKind::Ignored, ".env", 13),
        (LossKind::Ignored, "cache/", 5),
        (LossKind::Ignored, "deep/er/.env", 13),
        (LossKind::Ignored, "staged.pem", 7),
    ];
    let found: Vec<_> = lost(&snapshot);
    assert_eq!(found, expected);
    let open = repo.open().unwrap().excluding(exclude);
    let commit = open.commit_all(&outbox, "all", Limits::default());
    let commit = commit.unwrap().unwrap();
    for id in [snapshot.commit, commit] {
        let objects = git_in(outbox.path(), &["rev-list", "--objects", &id.to_string()]);
        for name in [".env", "staged.pem", "a.bin"] {
            assert!(!objects.contains(name), "{name} in {objects}");
        }
        for name in ["tracked.pem", "good.txt"] {
            assert!(objects.contains(name), "{name} not in {objects}");
        }
    }
    for bad in ["", "# x", "a\nb", "a[", "[z-a]"] {
        assert!(Exclude::new(&[bad]).is_err(), "{bad:?}");
    }
}
