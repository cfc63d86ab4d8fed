use std::os::unix::fs::symlink;
use std::path::{Path, PathBuf};

use crate::fork_testing::{Lab, chmod, files, fsck, git, git_with, id, observe, write};
use crate::restore_testing::fork;

impl Lab {
    /// There and back: everything the same, git content, and the same snapshot again.
    fn round_trip(&self, dir: &Path) -> PathBuf {
        let before = observe(dir);
        let (snapshot, inbox) = self.suspend(dir, "first");
        let (path, head) = self.restore(&inbox, snapshot.commit, "back", None).unwrap();
        assert_eq!(head, snapshot.head);
        let after = observe(&path);
        for (before, after) in before.iter().zip(&after) {
            assert_eq!(before, after);
        }
        assert_eq!(before.len(), after.len());
        fsck(&path);
        let (again, _) = self.suspend(&path, "second");
        assert_eq!(again.manifest, snapshot.manifest);
        assert_eq!(again.commit, snapshot.commit);
        path
    }
}

#[test]
fn staged_unstaged_and_untracked_come_back_apart() {
    let lab = Lab::new();
    let dir = fork(&lab);
    write(&dir, b"both", b"1 staged\n2\n3\n");
    git(&dir, &["add", "both"]);
    write(&dir, b"both", b"1 staged\n2\n3 not\n");
    write(&dir, b"new/staged", b"staged\n");
    git(&dir, &["add", "new/staged"]);
    std::fs::remove_file(dir.join("new/staged")).unwrap();
    git(&dir, &["rm", "-q", "--cached", "src/a/b.txt"]);
    std::fs::remove_file(dir.join("src/gone")).unwrap();
    chmod(&dir.join("run.sh"), 0o644);
    std::fs::remove_file(dir.join("link")).unwrap();
    symlink("elsewhere", dir.join("link")).unwrap();
    symlink("/dangling", dir.join("new-link")).unwrap();
    write(&dir, b"untracked/\xff\xfe.txt", b"bytes");
    write(&dir, b"untracked/new\nline\"q\t", b"odd");
    write(&dir, b"untracked/run", b"#!");
    chmod(&dir.join("untracked/run"), 0o755);
    write(&dir, b"empty-file", b"");
    let status = git(&dir, &["status", "--porcelain"]);
    for line in [
        "MM both",
        "AD new/staged",
        " D src/gone",
        " M run.sh",
        "?? src/a/",
    ] {
        assert!(status.contains(line), "{status}");
    }
    lab.round_trip(&dir);
}

#[test]
fn permissions_and_empty_directories_come_back() {
    let lab = Lab::new();
    let dir = fork(&lab);
    write(&dir, b"secret", b"s");
    write(&dir, b"closed/inner/file", b"x");
    write(&dir, b"closed/run", b"x");
    std::fs::create_dir_all(dir.join("empty/deep/er")).unwrap();
    std::fs::create_dir_all(dir.join("closed/empty")).unwrap();
    for (path, mode) in [
        ("secret", 0o600),
        ("README", 0o440),
        ("run.sh", 0o700),
        ("closed/inner/file", 0o400),
        ("closed/run", 0o500),
        ("empty/deep", 0o700),
        ("closed/inner", 0o500),
        ("closed/empty", 0o500),
        ("closed", 0o500),
    ] {
        chmod(&dir.join(path), mode);
    }
    let back = lab.round_trip(&dir);
    for dir in [dir, back] {
        for path in ["closed", "closed/inner", "closed/empty"] {
            chmod(&dir.join(path), 0o755);
        }
    }
}

/// Root may do what it likes, so this runs as somebody else when it can.
#[test]
fn closed_directories_come_back_for_a_plain_user() {
    let lab = Lab::new();
    let dir = fork(&lab);
    write(&dir, b"closed/inner/file", b"x");
    std::fs::create_dir_all(dir.join("closed/empty")).unwrap();
    write(&dir, b"sealed/inner/file", b"x");
    for (path, mode) in [
        ("closed/inner/file", 0o400),
        ("closed/inner", 0o500),
        ("closed/empty", 0o500),
        ("closed", 0o500),
        ("sealed/inner/file", 0o600),
        ("sealed/inner", 0o700),
    ] {
        chmod(&dir.join(path), mode);
    }
    let is_root = rustix::process::geteuid().is_root();
    if is_root {
        // Not even its owner may look into this one; only root could save it.
        chmod(&dir.join("sealed"), 0o000);
    }
    let (snapshot, inbox) = lab.suspend(&dir, "s");
    let home = lab.path().join("home");
    std::fs::create_dir(&home).unwrap();
    if is_root {
        chmod(lab.path(), 0o755);
        std::os::unix::fs::chown(&home, Some(65534), Some(65534)).unwrap();
    }
    let path = std::thread::scope(|scope| {
        let thread = scope.spawn(|| {
            if is_root {
                // Of this thread and those it starts.
                rustix::thread::set_thread_uid(rustix::fs::Uid::from_raw(65534)).unwrap();
            }
            let (path, _) = lab
                .restore(&inbox, snapshot.commit, "home/back", None)
                .unwrap();
            path
        });
        thread.join().unwrap()
    });
    assert_eq!(files(&path, &mut vec![]), files(&dir, &mut vec![]));
    for dir in [dir, path] {
        for path in ["closed", "closed/inner", "closed/empty"] {
            chmod(&dir.join(path), 0o755);
        }
    }
}

#[test]
fn a_tag_that_the_remote_dropped_does_not_stop_the_rest() {
    let lab = Lab::new();
    let dir = fork(&lab);
    write(&dir, b"README", b"dirty\n");
    let (snapshot, inbox) = lab.suspend(&dir, "s");
    assert!(snapshot.manifest.refs.contains_key("refs/tags/v1"));
    git(&lab.upstream(), &["tag", "-d", "v1"]);
    git(&lab.upstream(), &["gc", "-q", "--prune=now"]);
    let (path, _) = lab.restore(&inbox, snapshot.commit, "back", None).unwrap();
    assert_eq!(git(&path, &["tag"]), "");
    assert_eq!(files(&path, &mut vec![]), files(&dir, &mut vec![]));
    fsck(&path);
}

#[test]
fn the_index_knows_the_files_that_did_not_change() {
    use std::os::unix::fs::MetadataExt as _;
    let lab = Lab::new();
    let dir = fork(&lab);
    write(&dir, b"README", b"dirty\n");
    chmod(&dir.join("both"), 0o600);
    let (snapshot, inbox) = lab.suspend(&dir, "s");
    let (path, _) = lab.restore(&inbox, snapshot.commit, "back", None).unwrap();
    let debug = git(&path, &["ls-files", "--debug"]);
    let mut known = Vec::new();
    for entry in debug.split_inclusive("flags: 0\n") {
        let (name, rest) = entry.split_once('\n').unwrap();
        let stat = std::fs::symlink_metadata(path.join(name)).unwrap();
        let times = format!(
            "  ctime: {}:{}\n  mtime: {}:{}\n",
            stat.ctime(),
            stat.ctime_nsec(),
            stat.mtime(),
            stat.mtime_nsec()
        );
        if rest.starts_with(&times) {
            known.push(name);
        }
    }
    assert_eq!(known, ["both", "link", "run.sh", "src/a/b.txt", "src/gone"]);
}

#[test]
fn local_commits_branches_tags_notes_and_stash_come_back() {
    let lab = Lab::new();
    let dir = fork(&lab);
    git(&dir, &["checkout", "-q", "-b", "feature/x/y"]);
    write(&dir, b"README", b"local\n");
    git(&dir, &["commit", "-q", "-a", "-m", "local"]);
    git(&dir, &["branch", "-q", "--track", "other", "origin/other"]);
    git(&dir, &["branch", "-q", "--track", "on-local", "main"]);
    git(&dir, &["checkout", "-q", "other"]);
    git(&dir, &["commit", "-q", "--allow-empty", "-m", "ahead"]);
    git(
        &dir,
        &["tag", "-a", "local-tag", "-m", "mine", "feature/x/y"],
    );
    git(
        &dir,
        &["tag", "-a", "tag-of-tag", "-m", "nested", "local-tag"],
    );
    git(&dir, &["tag", "plain", "feature/x/y"]);
    git(&dir, &["tag", "-d", "v1"]);
    git(&dir, &["notes", "add", "-m", "a note", "HEAD"]);
    for n in ["one", "two: é", "three"] {
        write(&dir, b"README", n.as_bytes());
        write(&dir, b"untracked", n.as_bytes());
        git(&dir, &["stash", "push", "-q", "-u", "-m", n]);
    }
    write(&dir, b"README", b"dirty\n");
    let back = lab.round_trip(&dir);
    let list = git(&back, &["stash", "list"]);
    let messages: Vec<_> = list
        .lines()
        .map(|line| line.rsplit_once(": ").unwrap().1)
        .collect();
    assert_eq!(messages, ["three", "é", "one"]);
    git(&back, &["checkout", "-q", "README"]);
    git(&back, &["stash", "drop", "-q", "stash@{1}"]);
    git(&back, &["stash", "pop", "-q", "stash@{1}"]);
    assert_eq!(
        std::fs::read_to_string(back.join("untracked")).unwrap(),
        "one"
    );
}

#[test]
fn head_comes_back_where_it_was() {
    let lab = Lab::new();
    let dir = fork(&lab);
    git(&dir, &["checkout", "-q", "v1"]);
    git(
        &dir,
        &["commit", "-q", "--allow-empty", "-m", "on no branch"],
    );
    write(&dir, b"README", b"dirty\n");
    lab.round_trip(&dir);

    let lab = Lab::new();
    let dir = fork(&lab);
    git(&dir, &["checkout", "-q", "--orphan", "fresh"]);
    write(&dir, b"more", b"more\n");
    lab.round_trip(&dir);

    let lab = Lab::new();
    let dir = fork(&lab);
    git(&dir, &["checkout", "-q", "--orphan", "bare"]);
    git(&dir, &["rm", "-q", "-rf", "."]);
    write(&dir, b"only", b"untracked\n");
    lab.round_trip(&dir);
}

#[test]
fn index_flags_come_back() {
    let lab = Lab::new();
    let dir = fork(&lab);
    write(&dir, b"intended", b"not yet\n");
    write(&dir, b"a/intended.sh", b"not yet\n");
    chmod(&dir.join("a/intended.sh"), 0o755);
    git(&dir, &["add", "-N", "intended", "a/intended.sh"]);
    git(&dir, &["update-index", "--assume-unchanged", "README"]);
    write(&dir, b"README", b"secretly changed\n");
    git(
        &dir,
        &["update-index", "--skip-worktree", "both", "src/gone"],
    );
    std::fs::remove_file(dir.join("src/gone")).unwrap();
    lab.round_trip(&dir);
}

#[test]
fn line_ends_and_filters_come_back() {
    let lab = Lab::new();
    lab.write(&[
        (
            ".gitattributes",
            "* text=auto\n*.win text eol=crlf\n*.big filter=lfs -text\n*.id ident\n",
        ),
        ("a.win", "one\ntwo\n"),
        ("b.win", "one\ntwo\n"),
        ("plain", "one\ntwo\n"),
        (
            "x.big",
            "version https://git-lfs.github.com/spec/v1\noid sha256:00\nsize 1\n",
        ),
        ("v.id", "$Id$\n"),
    ]);
    git(&lab.work(), &["add", "-A"]);
    let raw = git_with(
        &lab.work(),
        &["hash-object", "-w", "--no-filters", "--stdin"],
        &[],
        b"x\r\ny\r\n",
    );
    let entry = format!("100644,{},old", String::from_utf8(raw).unwrap().trim());
    git(
        &lab.work(),
        &["update-index", "--add", "--cacheinfo", &entry],
    );
    git(&lab.work(), &["commit", "-q", "-m", "attributes"]);
    lab.push();
    let dir = lab.fork_main("fork").unwrap().0;
    assert_eq!(std::fs::read(dir.join("a.win")).unwrap(), b"one\r\ntwo\r\n");
    assert_eq!(std::fs::read(dir.join("old")).unwrap(), b"x\r\ny\r\n");
    write(&dir, b"b.win", b"one\r\nchanged\r\n");
    write(&dir, b"new.win", b"untracked\r\n");
    write(&dir, b"mixed.win", b"untracked\r\nmixed\n");
    write(&dir, b"plain", b"one\r\ntwo\r\nthree\r\n");
    write(&dir, b"v.id", b"$Id: mine $\nmore\n");
    lab.round_trip(&dir);
}

#[test]
fn a_repository_that_init_made_comes_back() {
    let lab = Lab::new();
    let dir = lab.path().join("made");
    std::fs::create_dir(&dir).unwrap();
    let root = warren_disk::open_root(&dir).unwrap();
    crate::init(
        &root,
        &dir,
        "main",
        Some("https://example.org/up.git"),
        &crate::Bounds::default(),
    )
    .unwrap();
    write(&dir, b"staged", b"1\n");
    git(&dir, &["add", "-A"]);
    write(&dir, b"untracked", b"2\n");
    lab.round_trip(&dir);
}

#[test]
fn a_submodule_that_is_not_checked_out_comes_back() {
    let lab = Lab::new();
    fork(&lab);
    let entry = format!("160000,{},mods/sub", lab.head());
    git(
        &lab.work(),
        &["update-index", "--add", "--cacheinfo", &entry],
    );
    git(&lab.work(), &["commit", "-q", "-m", "sub"]);
    lab.push();
    let dir = lab.fork_main("with-sub").unwrap().0;
    write(&dir, b"README", b"dirty\n");
    lab.round_trip(&dir);
}

#[test]
fn remote_tracking_refs_are_those_of_then_where_they_are_left() {
    let lab = Lab::new();
    let dir = fork(&lab);
    write(&dir, b"README", b"dirty\n");
    let (snapshot, inbox) = lab.suspend(&dir, "s");
    let then = id(&dir, "origin/main");
    lab.commit_and_push("three, meanwhile");
    git(&lab.upstream(), &["branch", "-q", "-D", "other"]);
    let (path, _) = lab.restore(&inbox, snapshot.commit, "back", None).unwrap();
    assert_eq!(id(&path, "origin/main"), then);
    assert_eq!(observe(&path), observe(&dir));
}

#[test]
fn as_a_branch_head_is_the_snapshot_itself() {
    let lab = Lab::new();
    let dir = fork(&lab);
    git(&dir, &["branch", "mine"]);
    write(&dir, b"README", b"dirty\n");
    write(&dir, b"untracked", b"x");
    chmod(&dir.join("untracked"), 0o600);
    std::fs::create_dir(dir.join("empty")).unwrap();
    let (snapshot, inbox) = lab.suspend(&dir, "s");
    let name = "vance/suspend/docs";
    let (path, head) = lab
        .restore(&inbox, snapshot.commit, "back", Some(name))
        .unwrap();
    assert_eq!(head.branch.as_deref(), Some(name));
    assert_eq!(head.commit, Some(snapshot.commit.to_string()));
    assert_eq!(id(&path, "HEAD"), snapshot.commit);
    assert_eq!(
        git(&path, &["status", "--porcelain", "-b"]),
        format!("## {name}\n")
    );
    assert_eq!(id(&path, "mine"), id(&dir, "mine"));
    assert_eq!(files(&path, &mut vec![]), files(&dir, &mut vec![]));
    fsck(&path);
    // The next snapshot of that branch may take its name again, a stranger's branch may not.
    write(&path, b"README", b"dirtier\n");
    let (snapshot, inbox) = lab.suspend(&path, "t");
    lab.restore(&inbox, snapshot.commit, "again", Some(name))
        .unwrap();
    git(&path, &["checkout", "-q", "--orphan", "stranger"]);
    git(&path, &["commit", "-q", "-m", "unrelated"]);
    git(&path, &["checkout", "-q", "-f", "main"]);
    write(&path, b"README", b"dirty once more\n");
    let (snapshot, inbox) = lab.suspend(&path, "u");
    for taken in ["vance", "vance/suspend", "HEAD", "-x"] {
        let result = lab.restore(&inbox, snapshot.commit, "refused", Some(taken));
        assert_eq!(result.unwrap_err().code(), "InvalidArgument", "{taken}");
        std::fs::remove_dir(lab.path().join("refused")).unwrap();
    }
}
