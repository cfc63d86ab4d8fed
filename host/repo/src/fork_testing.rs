//! Repositories made and looked at by the git program.

use std::ffi::OsStr;
use std::io::Write as _;
use std::os::unix::fs::PermissionsExt as _;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};

use git2::Oid;
use tempfile::TempDir;

use crate::fork::{ForkSpec, HeadSpec, fork};
use crate::{Bounds, Head, RepoError};

/// A directory for one test, with an upstream `up.git` and a clone of it, `work`.
pub(crate) struct Lab(TempDir);

impl Lab {
    /// A lab whose upstream is empty.
    pub(crate) fn new() -> Self {
        let shm = Path::new("/dev/shm");
        let base = if shm.is_dir() {
            shm.to_owned()
        } else {
            std::env::temp_dir()
        };
        let lab = Self(TempDir::new_in(base).unwrap());
        git(
            lab.path(),
            &[
                "init",
                "-q",
                "--bare",
                "--template=",
                "-b",
                "main",
                "up.git",
            ],
        );
        git(
            lab.path(),
            &["init", "-q", "--template=", "-b", "main", "work"],
        );
        git(&lab.work(), &["remote", "add", "origin", "../up.git"]);
        lab
    }

    pub(crate) fn path(&self) -> &Path {
        self.0.path()
    }

    pub(crate) fn upstream(&self) -> PathBuf {
        self.path().join("up.git")
    }

    pub(crate) fn work(&self) -> PathBuf {
        self.path().join("work")
    }

    /// Writes files of the clone.
    pub(crate) fn write(&self, files: &[(&str, &str)]) {
        for (path, text) in files {
            write(&self.work(), path.as_bytes(), text.as_bytes());
        }
    }

    /// Commits everything in the clone and pushes all branches and tags.
    pub(crate) fn commit_and_push(&self, message: &str) -> Oid {
        git(&self.work(), &["add", "-A"]);
        git(
            &self.work(),
            &["commit", "-q", "--allow-empty", "-m", message],
        );
        self.push();
        self.head()
    }

    pub(crate) fn push(&self) {
        git(&self.work(), &["push", "-q", "-u", "origin", "--all"]);
        git(&self.work(), &["push", "-q", "origin", "--tags"]);
    }

    pub(crate) fn head(&self) -> Oid {
        id(&self.work(), "HEAD")
    }

    /// Refs of the upstream below a prefix.
    pub(crate) fn refs(&self, prefix: &str) -> Vec<(String, Oid)> {
        let text = git(
            &self.upstream(),
            &["for-each-ref", "--format=%(refname) %(objectname)", prefix],
        );
        let pair = |line: &str| {
            let (name, id) = line.split_once(' ').unwrap();
            (name.to_owned(), id.parse().unwrap())
        };
        text.lines().map(pair).collect()
    }

    /// Forks the upstream into the new directory `name`.
    pub(crate) fn fork(&self, name: &str, head: HeadSpec) -> Result<(PathBuf, Head), RepoError> {
        self.fork_within(name, head, Bounds::default())
    }

    /// The same within bounds.
    pub(crate) fn fork_within(
        &self,
        name: &str,
        head: HeadSpec,
        bounds: Bounds,
    ) -> Result<(PathBuf, Head), RepoError> {
        let path = self.path().join(name);
        std::fs::create_dir_all(&path).unwrap();
        let root = warren_disk::open_root(&path).unwrap();
        let spec = ForkSpec {
            upstream: &self.upstream(),
            root: &root,
            root_path: &path,
            origin_url: "https://example.org/up.git",
            remote_refs: self.refs("refs/heads/"),
            tags: self.refs("refs/tags/"),
            default_branch: Some("refs/heads/main".into()),
            head,
            bounds,
        };
        let head = fork(spec, &mut |_, _| {})?;
        Ok((path, head))
    }

    /// Forks the tip of `main`.
    pub(crate) fn fork_main(&self, name: &str) -> Result<(PathBuf, Head), RepoError> {
        let head = HeadSpec::Branch {
            name: "main".into(),
            commit: id(&self.upstream(), "main"),
            upstream: Some("refs/heads/main".into()),
        };
        self.fork(name, head)
    }
}

pub(crate) fn write(dir: &Path, path: &[u8], bytes: &[u8]) {
    let path = dir.join(crate::files::as_path(path));
    std::fs::create_dir_all(path.parent().unwrap()).unwrap();
    std::fs::write(path, bytes).unwrap();
}

pub(crate) fn chmod(path: &Path, mode: u32) {
    std::fs::set_permissions(path, std::fs::Permissions::from_mode(mode)).unwrap();
}

fn command(dir: &Path) -> Command {
    let mut command = Command::new("git");
    command
        .args(["-c", "safe.directory=*"])
        .current_dir(dir)
        .env_clear()
        .env("PATH", std::env::var_os("PATH").unwrap())
        .env("HOME", "/nonexistent")
        .env("LC_ALL", "C.UTF-8")
        .env("GIT_CONFIG_GLOBAL", "/dev/null")
        .env("GIT_CONFIG_NOSYSTEM", "1")
        .env("GIT_AUTHOR_DATE", "1700000000 +0130")
        .env("GIT_COMMITTER_DATE", "1700000000 -0730");
    for who in ["AUTHOR", "COMMITTER"] {
        command.env(format!("GIT_{who}_NAME"), "Tester");
        command.env(format!("GIT_{who}_EMAIL"), "tester@example.org");
    }
    command
}

/// Runs git with more of the environment and with input; gives what it prints.
pub(crate) fn git_with<S: AsRef<OsStr>>(
    dir: &Path,
    args: &[S],
    env: &[(&str, &Path)],
    input: &[u8],
) -> Vec<u8> {
    let mut child = command(dir)
        .args(args)
        .envs(env.iter().copied())
        .stdin(Stdio::piped())
        .stdout(Stdio::piped())
        .stderr(Stdio::piped())
        .spawn()
        .unwrap();
    let mut stdin = child.stdin.take().unwrap();
    let out = std::thread::scope(|scope| {
        scope.spawn(move || stdin.write_all(input));
        child.wait_with_output().unwrap()
    });
    let args: Vec<_> = args.iter().map(AsRef::as_ref).collect();
    let stderr = String::from_utf8_lossy(&out.stderr);
    assert!(out.status.success(), "git {args:?}: {stderr}");
    out.stdout
}

/// Runs git; gives what it prints.
pub(crate) fn git(dir: &Path, args: &[&str]) -> String {
    String::from_utf8_lossy(&git_with(dir, args, &[], b"")).into_owned()
}

pub(crate) fn id(dir: &Path, rev: &str) -> Oid {
    git(dir, &["rev-parse", rev]).trim().parse().unwrap()
}

/// Everything below a directory but `.git`: path, kind with permissions, content; and what git
/// says of the repository.
pub(crate) fn observe(dir: &Path) -> Vec<String> {
    let mut out: Vec<_> = [
        &[
            "status",
            "--porcelain=v2",
            "--branch",
            "--untracked-files=all",
            "-z",
        ][..],
        &["diff", "--no-ext-diff", "--binary"],
        &["diff", "--no-ext-diff", "--binary", "--cached"],
        &["ls-files", "-s", "-v", "-z"],
        &["stash", "list", "--format=%gd %H %gs %gn"],
        &[
            "for-each-ref",
            "--format=%(refname) %(objectname) %(symref) %(upstream)",
        ],
        &[
            "rev-parse",
            "--symbolic-full-name",
            "--verify",
            "-q",
            "HEAD",
        ],
    ]
    .iter()
    .map(|args| {
        let out = command(dir).args(*args).output().unwrap();
        format!("$ git {args:?}\n{}", String::from_utf8_lossy(&out.stdout))
    })
    .collect();
    out.extend(files(dir, &mut vec![]));
    out
}

/// Every entry below a directory but `.git`.
pub(crate) fn files(dir: &Path, prefix: &mut Vec<u8>) -> Vec<String> {
    use std::os::unix::ffi::OsStrExt as _;
    let mut out = Vec::new();
    let before = std::fs::symlink_metadata(dir).unwrap().permissions();
    let mut entries: Vec<_> = std::fs::read_dir(dir)
        .unwrap()
        .map(Result::unwrap)
        .collect();
    entries.sort_by_key(std::fs::DirEntry::file_name);
    for entry in entries {
        let name = entry.file_name();
        if prefix.is_empty() && name == ".git" {
            continue;
        }
        let length = prefix.len();
        prefix.extend_from_slice(name.as_bytes());
        let shown = warren_disk::text::escape(prefix);
        let (meta, path) = (entry.metadata().unwrap(), entry.path());
        let mode = meta.permissions().mode() & 0o7777;
        if meta.is_symlink() {
            out.push(format!(
                "{shown} -> {:?}",
                std::fs::read_link(&path).unwrap()
            ));
        } else if meta.is_dir() {
            out.push(format!("{shown}/ {mode:o}"));
            prefix.push(b'/');
            out.extend(files(&path, prefix));
        } else {
            let content = std::fs::read(&path).unwrap();
            out.push(format!(
                "{shown} {mode:o} {}",
                warren_disk::text::escape(&content)
            ));
        }
        prefix.truncate(length);
    }
    assert_eq!(
        before,
        std::fs::symlink_metadata(dir).unwrap().permissions()
    );
    out
}

/// Fails unless git finds nothing wrong.
pub(crate) fn fsck(dir: &Path) {
    let text = git(dir, &["fsck", "--strict", "--full", "--no-progress"]);
    for line in text.lines() {
        assert!(line.starts_with("dangling "), "{line}");
    }
}
