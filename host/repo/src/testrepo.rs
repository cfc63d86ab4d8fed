//! A RootDir made by the real git program, with a mirror and an outbox, for tests.

use std::collections::BTreeMap;
use std::ffi::OsStr;
use std::os::unix::ffi::OsStrExt;
use std::path::{Path, PathBuf};
use std::process::Command;

use git2::{Oid, Repository};
use warren_disk::Dir;

use crate::{Bounds, Repo, RepoError, Snapshot, SnapshotOptions};

pub(crate) struct TestRepo {
    dir: tempfile::TempDir,
    boxes: std::cell::Cell<u32>,
}

impl TestRepo {
    /// A repository with two files in one commit, all of it in the mirror.
    pub(crate) fn new() -> Self {
        let repo = Self::empty();
        repo.write("a.txt", "one\n");
        repo.write("dir/b.txt", "two\n");
        repo.git(&["add", "-A"]);
        repo.commit("first");
        repo.publish();
        repo
    }

    /// A repository without a commit, and an empty mirror.
    pub(crate) fn empty() -> Self {
        let place = Path::new("/dev/shm");
        let place = if place.is_dir() {
            place.to_owned()
        } else {
            std::env::temp_dir()
        };
        let repo = Self {
            dir: tempfile::tempdir_in(place).unwrap(),
            boxes: std::cell::Cell::new(0),
        };
        std::fs::create_dir(repo.path()).unwrap();
        repo.git(&["init", "-q", "-b", "main"]);
        git_in(repo.dir.path(), &["init", "-q", "--bare", "mirror.git"]);
        repo
    }

    pub(crate) fn path(&self) -> PathBuf {
        self.dir.path().join("root")
    }

    pub(crate) fn at(&self, name: &str) -> PathBuf {
        self.path().join(name)
    }

    pub(crate) fn outside(&self, name: &str) -> PathBuf {
        self.dir.path().join(name)
    }

    pub(crate) fn root(&self) -> Dir {
        warren_disk::open_root(&self.path()).unwrap()
    }

    pub(crate) fn open(&self) -> Result<Repo, RepoError> {
        Repo::open(&self.root(), &self.path(), Bounds::default())
    }

    /// Runs git in the RootDir and returns what it prints.
    pub(crate) fn git(&self, args: &[&str]) -> String {
        git_in(&self.path(), args)
    }

    pub(crate) fn commit(&self, message: &str) -> Oid {
        self.git(&["commit", "-q", "--allow-empty", "-m", message]);
        self.id("HEAD")
    }

    pub(crate) fn id(&self, name: &str) -> Oid {
        Oid::from_str(self.git(&["rev-parse", name]).trim()).unwrap()
    }

    pub(crate) fn write(&self, name: &str, content: &str) {
        self.write_bytes(name.as_bytes(), content.as_bytes());
    }

    pub(crate) fn write_bytes(&self, name: &[u8], content: &[u8]) {
        let path = self.path().join(OsStr::from_bytes(name));
        std::fs::create_dir_all(path.parent().unwrap()).unwrap();
        std::fs::write(path, content).unwrap();
    }

    /// Pushes every branch to the mirror, as the remote would have it.
    pub(crate) fn publish(&self) {
        let mirror = self.outside("mirror.git");
        self.git(&[
            "push",
            "-q",
            mirror.to_str().unwrap(),
            "refs/heads/*:refs/heads/*",
        ]);
    }

    pub(crate) fn options(&self) -> SnapshotOptions {
        let mirror = Repository::open_bare(self.outside("mirror.git")).unwrap();
        let mut remote_tips = Vec::new();
        let mut remote_tags = BTreeMap::new();
        for reference in mirror.references().unwrap() {
            let reference = reference.unwrap();
            let name = reference.name().unwrap().to_owned();
            if name.starts_with("refs/tags/") {
                remote_tags.insert(name, reference.target().unwrap());
            }
            remote_tips.push(reference.peel_to_commit().unwrap().id());
        }
        SnapshotOptions {
            remote_tips,
            remote_tags,
            dir_name: "docs".to_owned(),
            ..SnapshotOptions::default()
        }
    }

    /// A new outbox on top of the mirror.
    pub(crate) fn outbox(&self) -> Repository {
        let number = self.boxes.replace(self.boxes.get() + 1);
        let path = self.outside(&format!("outbox-{number}.git"));
        let outbox = Repository::init_bare(&path).unwrap();
        let objects = self.outside("mirror.git/objects");
        let line = format!("{}\n", objects.to_str().unwrap());
        std::fs::write(path.join("objects/info/alternates"), line).unwrap();
        drop(outbox);
        Repository::open_bare(path).unwrap()
    }

    pub(crate) fn snapshot_with(
        &self,
        options: &SnapshotOptions,
    ) -> Result<(Snapshot, Outbox), RepoError> {
        let before = self.digest();
        let outbox = self.outbox();
        let result = self.open().and_then(|repo| repo.snapshot(&outbox, options));
        assert!(before == self.digest(), "the RootDir has changed");
        let outbox = Outbox(outbox.path().to_owned());
        if let Ok(snapshot) = &result {
            outbox.check(snapshot.commit);
        }
        result.map(|snapshot| (snapshot, outbox))
    }

    pub(crate) fn snapshot(&self) -> Result<(Snapshot, Outbox), RepoError> {
        self.snapshot_with(&self.options())
    }

    /// Everything in the RootDir: names, kinds, modes, content.
    fn digest(&self) -> BTreeMap<PathBuf, (u32, Vec<u8>)> {
        use std::os::unix::fs::MetadataExt;
        let mut all = BTreeMap::new();
        let mut pending = vec![self.path()];
        while let Some(path) = pending.pop() {
            let stat = std::fs::symlink_metadata(&path).unwrap();
            let content = if stat.is_dir() {
                let entries = std::fs::read_dir(&path).unwrap();
                pending.extend(entries.map(|entry| entry.unwrap().path()));
                Vec::new()
            } else if stat.is_symlink() {
                let target = std::fs::read_link(&path).unwrap();
                target.as_os_str().as_bytes().to_vec()
            } else if stat.is_file() && stat.len() < 1 << 20 {
                std::fs::read(&path).unwrap_or_default()
            } else {
                Vec::new()
            };
            all.insert(path, (stat.mode(), content));
        }
        all
    }
}

/// An outbox as the git program sees it.
pub(crate) struct Outbox(PathBuf);

impl Outbox {
    pub(crate) fn git(&self, args: &[&str]) -> String {
        git_in(&self.0, args)
    }

    /// Paths below a tree with mode and content.
    pub(crate) fn files(&self, tree: &str) -> BTreeMap<Vec<u8>, (String, Vec<u8>)> {
        let list = run(&self.0, &["ls-tree", "-r", "-z", tree]);
        let mut files = BTreeMap::new();
        for line in list.split(|&b| b == 0).filter(|line| !line.is_empty()) {
            let tab = line.iter().position(|&b| b == b'\t').unwrap();
            let fields: Vec<&str> = std::str::from_utf8(&line[..tab])
                .unwrap()
                .split(' ')
                .collect();
            let content = match fields[1] {
                "blob" => run(&self.0, &["cat-file", "blob", fields[2]]),
                _ => fields[2].as_bytes().to_vec(),
            };
            files.insert(line[tab + 1..].to_vec(), (fields[0].to_owned(), content));
        }
        files
    }

    pub(crate) fn text(&self, commit: Oid, path: &str) -> Option<String> {
        let files = self.files(&commit.to_string());
        let (_, content) = files.get(path.as_bytes())?;
        Some(String::from_utf8(content.clone()).unwrap())
    }

    /// The commit that carries index and manifest.
    pub(crate) fn state(&self, snapshot: &Snapshot) -> Oid {
        let parents = self.git(&["log", "-1", "--format=%P", &snapshot.commit.to_string()]);
        Oid::from_str(parents.split_whitespace().last().unwrap()).unwrap()
    }

    /// Whether git finds everything in order that a commit reaches.
    fn check(&self, commit: Oid) {
        let said = self.git(&["fsck", "--strict", "--no-dangling", &commit.to_string()]);
        assert_eq!(said, "", "git fsck");
        self.git(&["rev-list", "--objects", "--quiet", &commit.to_string()]);
    }
}

pub(crate) fn git_in(dir: &Path, args: &[&str]) -> String {
    String::from_utf8(run(dir, args)).unwrap()
}

fn run(dir: &Path, args: &[&str]) -> Vec<u8> {
    let output = Command::new("git")
        .current_dir(dir)
        .args(args)
        .env_clear()
        .env("PATH", std::env::var_os("PATH").unwrap())
        .env("HOME", "/nonexistent")
        .env("GIT_CONFIG_GLOBAL", "/dev/null")
        .env("GIT_CONFIG_NOSYSTEM", "1")
        .envs(["AUTHOR", "COMMITTER"].into_iter().flat_map(|role| {
            [
                ("NAME", "T"),
                ("EMAIL", "t@example.com"),
                ("DATE", "1700000000 +0100"),
            ]
            .map(|(key, value)| (format!("GIT_{role}_{key}"), value))
        }))
        .output()
        .unwrap();
    let error = String::from_utf8_lossy(&output.stderr);
    assert!(output.status.success(), "git {args:?}: {error}");
    output.stdout
}
