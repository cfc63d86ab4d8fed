use std::os::unix::fs::symlink;
use std::path::{Path, PathBuf};

use git2::{Oid, Repository};

use crate::fork_testing::{Lab, chmod, files, fsck, git, git_with, id, observe, write};
use crate::{
    Head, Manifest, Repo, RepoError, RestoreSpec, Snapshot, SnapshotOptions, StashEntry, restore,
};

impl Lab {
    /// A bare repository on top of the upstream.
    fn scratch(&self, name: &str) -> PathBuf {
        let path = self.path().join(name);
        git(self.path(), &["init", "-q", "--bare", "--template=", name]);
        let objects = self.upstream().join("objects");
        let line = format!("{}\n", objects.display());
        std::fs::write(path.join("objects/info/alternates"), line).unwrap();
        path
    }

    /// Snapshots a RootDir and sends the result on: a new inbox gets what is reachable only.
    fn suspend(&self, dir: &Path, name: &str) -> (Snapshot, PathBuf) {
        let outbox = self.scratch(&format!("{name}.out.git"));
        let options = SnapshotOptions {
            remote_tips: self
                .refs("refs/heads/")
                .into_iter()
                .map(|(_, id)| id)
                .collect(),
            remote_tags: self.refs("refs/tags/").into_iter().collect(),
            dir_name: "docs".into(),
            ..SnapshotOptions::default()
        };
        let root = warren_disk::open_root(dir).unwrap();
        let repo = Repo::open(&root, dir).unwrap();
        let snapshot = repo
            .snapshot(&Repository::open_bare(&outbox).unwrap(), &options)
            .unwrap();
        let commit = snapshot.commit.to_string();
        git(&outbox, &["update-ref", "refs/warren/s", &commit]);
        let inbox = self.scratch(&format!("{name}.in.git"));
        let from = outbox.to_str().unwrap();
        git(
            &inbox,
            &["fetch", "-q", from, "refs/warren/s:refs/warren/s"],
        );
        (snapshot, inbox)
    }

    fn restore(
        &self,
        inbox: &Path,
        snapshot: Oid,
        name: &str,
        as_branch: Option<&str>,
    ) -> Result<(PathBuf, Head), RepoError> {
        let path = self.path().join(name);
        std::fs::create_dir(&path).unwrap();
        let root = warren_disk::open_root(&path).unwrap();
        let spec = RestoreSpec {
            inbox,
            snapshot,
            upstream: &self.upstream(),
            root: &root,
            root_path: &path,
            origin_url: "https://example.org/up.git",
            remote_refs: self.refs("refs/heads/"),
            tags: self.refs("refs/tags/"),
            default_branch: Some("main".into()),
            as_branch: as_branch.map(str::to_owned),
        };
        let head = restore(spec, &mut |_, _| {})?;
        Ok((path, head))
    }

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

/// A fork with a history, on branch `main`.
fn fork(lab: &Lab) -> PathBuf {
    lab.write(&[
        ("README", "hello\n"),
        ("src/a/b.txt", "deep\n"),
        ("src/gone", "gone\n"),
        ("run.sh", "#!/bin/sh\n"),
        ("both", "1\n2\n3\n"),
    ]);
    chmod(&lab.work().join("run.sh"), 0o755);
    symlink("README", lab.work().join("link")).unwrap();
    lab.commit_and_push("one");
    git(&lab.work(), &["tag", "-a", "v1", "-m", "first"]);
    git(&lab.work(), &["branch", "other"]);
    lab.write(&[("README", "hello again\n")]);
    lab.commit_and_push("two");
    lab.fork_main("fork").unwrap().0
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
    for (path, mode) in [
        ("closed/inner/file", 0o400),
        ("closed/inner", 0o500),
        ("closed/empty", 0o500),
        ("closed", 0o500),
    ] {
        chmod(&dir.join(path), mode);
    }
    let (snapshot, inbox) = lab.suspend(&dir, "s");
    let home = lab.path().join("home");
    std::fs::create_dir(&home).unwrap();
    let is_root = rustix::process::geteuid().is_root();
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
            let (path, _) = lab.restore(&inbox, snapshot.commit, "home/back", None).unwrap();
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
    crate::init(&root, &dir, "main", Some("https://example.org/up.git")).unwrap();
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

/// The snapshot with another manifest, as somebody who may push could make it.
fn forge(
    lab: &Lab,
    inbox: &Path,
    of: &Snapshot,
    name: &str,
    change: impl FnOnce(&mut Manifest),
) -> Result<PathBuf, RepoError> {
    let mut manifest = of.manifest.clone();
    change(&mut manifest);
    let json = serde_json::to_vec(&manifest).unwrap();
    forge_json(lab, inbox, of, name, &json)
}

fn forge_json(
    lab: &Lab,
    inbox: &Path,
    of: &Snapshot,
    name: &str,
    json: &[u8],
) -> Result<PathBuf, RepoError> {
    let repo = Repository::open_bare(inbox).unwrap();
    let snapshot = repo.find_commit(of.commit).unwrap();
    let parents: Vec<_> = snapshot.parents().collect();
    let (meta, others) = parents.split_last().unwrap();
    let mut builder = repo.treebuilder(Some(&meta.tree().unwrap())).unwrap();
    builder
        .insert("manifest.json", repo.blob(json).unwrap(), 0o100_644)
        .unwrap();
    let tree = repo.find_tree(builder.write().unwrap()).unwrap();
    let by = meta.author();
    let meta = repo.commit(None, &by, &by, "m", &tree, &[]).unwrap();
    let meta = repo.find_commit(meta).unwrap();
    let parents: Vec<_> = others.iter().chain([&meta]).collect();
    let commit = repo
        .commit(None, &by, &by, "s", &snapshot.tree().unwrap(), &parents)
        .unwrap();
    lab.restore(inbox, commit, name, None).map(|(path, _)| path)
}

#[test]
fn a_hostile_manifest_is_refused() {
    let lab = Lab::new();
    let dir = fork(&lab);
    write(&dir, b"README", b"dirty\n");
    let (snapshot, inbox) = lab.suspend(&dir, "s");
    let commit = lab.head().to_string();
    let gone = "1".repeat(40);
    type Change = Box<dyn Fn(&mut Manifest)>;
    let reference = |name: &str, id: &str| -> Change {
        let (name, id) = (name.to_owned(), id.to_owned());
        Box::new(move |m| drop(m.refs.insert(name.clone(), id.clone())))
    };
    let blob = id(&lab.upstream(), "main:README").to_string();
    let set = |m: &mut Manifest, path: &str, mode| {
        m.modes.insert(path.into(), mode);
    };
    let cases: Vec<(Change, &str)> = vec![
        (Box::new(|m| m.format = 2), "BadSnapshot"),
        (Box::new(|m| m.head.commit = None), "BadSnapshot"),
        (
            Box::new(|m| m.head.branch = Some("elsewhere".into())),
            "BadSnapshot",
        ),
        (
            Box::new(|m| m.head.branch = Some("../../config".into())),
            "InvalidArgument",
        ),
        (
            Box::new(|m| m.head.branch = Some("x%0A[core]".into())),
            "InvalidArgument",
        ),
        (
            reference("refs/heads/../../config", &commit),
            "InvalidArgument",
        ),
        (reference("refs/heads/x%0Ay", &commit), "InvalidArgument"),
        (
            reference("refs/remotes/origin/x", &commit),
            "InvalidArgument",
        ),
        (reference("HEAD", &commit), "InvalidArgument"),
        (
            reference("refs/heads/main/below", &commit),
            "InvalidArgument",
        ),
        (reference("refs/heads/%zz", &commit), "BadSnapshot"),
        (reference("refs/heads/x", "nothex"), "BadSnapshot"),
        (reference("refs/heads/x", &gone), "MissingObject"),
        (reference("refs/heads/x", &blob), "InvalidArgument"),
        (
            Box::new(move |m| {
                m.stash.push(StashEntry {
                    commit: gone.clone(),
                    message: String::new(),
                })
            }),
            "MissingObject",
        ),
        (
            Box::new(move |m| set(m, "../../etc/passwd", 0o777)),
            "UnsafePath",
        ),
        (
            Box::new(move |m| set(m, ".git/config", 0o777)),
            "UnsafePath",
        ),
        (
            Box::new(move |m| set(m, "README", 0o100_777)),
            "BadSnapshot",
        ),
        (
            Box::new(|m| m.empty_dirs.push("../outside".into())),
            "UnsafePath",
        ),
        (Box::new(|m| m.empty_dirs.push("/abs".into())), "UnsafePath"),
        (
            Box::new(|m| m.empty_dirs.push(".git/hooks".into())),
            "UnsafePath",
        ),
        (
            Box::new(|m| m.empty_dirs.push("a%00b".into())),
            "UnsafePath",
        ),
        (
            Box::new(|m| m.empty_dirs.push("README".into())),
            "UnsafePath",
        ),
        (
            Box::new(|m| m.empty_dirs.push("link/x".into())),
            "UnsafePath",
        ),
        (
            Box::new(|m| m.flags.intent_to_add.push(".git/config".into())),
            "UnsafePath",
        ),
        (
            Box::new(|m| m.flags.skip_worktree.push("../x".into())),
            "UnsafePath",
        ),
    ];
    for (n, (change, code)) in cases.into_iter().enumerate() {
        let error = forge(&lab, &inbox, &snapshot, &format!("bad{n}"), change).unwrap_err();
        assert_eq!(error.code(), code, "case {n}: {error}");
    }
    assert!(!lab.path().join("outside").exists());
    for (n, json) in [&b"{}"[..], b"null", b"{\"format\":1", b"\xff"]
        .iter()
        .enumerate()
    {
        let error = forge_json(&lab, &inbox, &snapshot, &format!("json{n}"), json).unwrap_err();
        assert_eq!(error.code(), "BadSnapshot", "{error}");
    }
    let error = lab.restore(&inbox, lab.head(), "plain", None).unwrap_err();
    assert_eq!(error.code(), "BadSnapshot");
    let gone = Oid::from_bytes(&[1; 20]).unwrap();
    assert_eq!(
        lab.restore(&inbox, gone, "gone", None).unwrap_err().code(),
        "MissingObject"
    );
}

#[test]
fn what_could_run_or_reach_further_is_left_out() {
    let lab = Lab::new();
    let dir = fork(&lab);
    write(&dir, b"README", b"dirty\n");
    let (snapshot, inbox) = lab.suspend(&dir, "s");
    let top = lab.head().to_string();
    let path = forge(&lab, &inbox, &snapshot, "forged", |m| {
        let upstream = m.upstream.get_mut("main").unwrap();
        upstream.remote = "ext::sh -c id".into();
        m.modes.insert("run.sh".into(), 0o6755);
        m.modes.insert("link/x".into(), 0o777);
        m.stash.push(StashEntry {
            commit: top,
            message: "one%0A0000000000000000000000000000000000000000 second".into(),
        });
    })
    .unwrap();
    let config = std::fs::read_to_string(path.join(".git/config")).unwrap();
    assert!(!config.contains("ext::"), "{config}");
    assert!(files(&path, &mut vec![]).contains(&"run.sh 755 #!/bin/sh%0A".to_owned()));
    assert_eq!(git(&path, &["stash", "list"]).lines().count(), 1);
}

#[test]
fn a_tag_object_must_have_its_id() {
    let lab = Lab::new();
    let dir = fork(&lab);
    git(&dir, &["tag", "-a", "mine", "-m", "mine"]);
    let (snapshot, inbox) = lab.suspend(&dir, "s");
    let repo = Repository::open_bare(&inbox).unwrap();
    let commit = repo.find_commit(snapshot.commit).unwrap();
    let parents: Vec<_> = commit.parents().collect();
    let (meta, others) = parents.split_last().unwrap();
    let tag = id(&dir, "mine").to_string();
    let text = String::from_utf8(git_with(&dir, &["cat-file", "tag", &tag], &[], b"")).unwrap();
    let text = text.replace("mine", "evil");
    let mut objects = repo.treebuilder(None).unwrap();
    objects
        .insert(&tag, repo.blob(text.as_bytes()).unwrap(), 0o100_644)
        .unwrap();
    let mut builder = repo.treebuilder(Some(&meta.tree().unwrap())).unwrap();
    builder
        .insert("objects", objects.write().unwrap(), 0o040_000)
        .unwrap();
    let tree = repo.find_tree(builder.write().unwrap()).unwrap();
    let by = meta.author();
    let meta = repo.commit(None, &by, &by, "m", &tree, &[]).unwrap();
    let meta = repo.find_commit(meta).unwrap();
    let parents: Vec<_> = others.iter().chain([&meta]).collect();
    let forged = repo
        .commit(None, &by, &by, "s", &commit.tree().unwrap(), &parents)
        .unwrap();
    let error = lab.restore(&inbox, forged, "bad", None).unwrap_err();
    assert_eq!(error.code(), "BadSnapshot", "{error}");
}
