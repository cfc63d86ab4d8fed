//! Repositories made by the git program itself.

use std::ffi::OsStr;
use std::fs;
use std::os::unix::fs::PermissionsExt;
use std::path::{Path, PathBuf};
use std::process::{Command, Output, Stdio};

/// The git program in a directory, with nothing of this machine's config or environment.
pub fn git_command(dir: &Path) -> Command {
    let mut command = Command::new("git");
    clean(&mut command)
        .current_dir(dir)
        .env("GIT_AUTHOR_NAME", "Ada")
        .env("GIT_AUTHOR_EMAIL", "ada@example.org")
        .env("GIT_AUTHOR_DATE", "2026-01-02T03:04:05Z")
        .env("GIT_COMMITTER_NAME", "Ada")
        .env("GIT_COMMITTER_EMAIL", "ada@example.org")
        .env("GIT_COMMITTER_DATE", "2026-01-02T03:04:05Z")
        .stdin(Stdio::null());
    command
}

/// Empties the environment of a child but for what git needs to run.
pub(crate) fn clean(command: &mut Command) -> &mut Command {
    command
        .env_clear()
        .env("PATH", std::env::var_os("PATH").unwrap_or_default())
        .env("HOME", "/nonexistent")
        .env("LC_ALL", "C")
        .env("GIT_CONFIG_NOSYSTEM", "1")
        .env("GIT_CONFIG_GLOBAL", "/dev/null")
        // The files of a Project that ran a program belong to its user.
        .env("GIT_CONFIG_COUNT", "1")
        .env("GIT_CONFIG_KEY_0", "safe.directory")
        .env("GIT_CONFIG_VALUE_0", "*")
        .env("GIT_TERMINAL_PROMPT", "0")
}

/// One repository: bare, or with a working tree.
///
/// Every method panics when git fails: a test cannot go on then.
#[derive(Debug, Clone)]
pub struct GitRepo {
    path: PathBuf,
}

impl GitRepo {
    /// A bare repository, whose default branch is `main`.
    pub fn bare(path: impl Into<PathBuf>) -> Self {
        Self::make(path.into(), &["init", "-q", "--bare", "-b", "main"])
    }

    /// A repository with a working tree and an unborn `main`.
    pub fn init(path: impl Into<PathBuf>) -> Self {
        Self::make(path.into(), &["init", "-q", "-b", "main"])
    }

    /// One that exists.
    pub fn at(path: impl Into<PathBuf>) -> Self {
        Self { path: path.into() }
    }

    fn make(path: PathBuf, args: &[&str]) -> Self {
        fs::create_dir_all(&path).expect("a directory for the repository");
        let repo = Self { path };
        repo.git(args);
        repo
    }

    /// Where it is.
    pub fn path(&self) -> &Path {
        &self.path
    }

    /// Runs git; returns what it wrote, without the last line break.
    pub fn git<S: AsRef<OsStr>>(&self, args: &[S]) -> String {
        let output = self.run(args);
        let names: Vec<_> = args
            .iter()
            .map(|arg| arg.as_ref().to_string_lossy())
            .collect();
        assert!(
            output.status.success(),
            "git {}: {}",
            names.join(" "),
            String::from_utf8_lossy(&output.stderr)
        );
        let mut text = String::from_utf8_lossy(&output.stdout).into_owned();
        if text.ends_with('\n') {
            text.pop();
        }
        text
    }

    /// Runs git and hands back whatever came of it.
    pub fn run<S: AsRef<OsStr>>(&self, args: &[S]) -> Output {
        git_command(&self.path)
            .args(args)
            .output()
            .expect("the git program")
    }

    /// Writes a file of the working tree, with its directories.
    pub fn write(&self, name: &str, bytes: impl AsRef<[u8]>) {
        let path = self.path.join(name);
        if let Some(parent) = path.parent() {
            fs::create_dir_all(parent).expect("a directory");
        }
        fs::write(path, bytes).expect("a file");
    }

    /// Commits the whole working tree; returns the commit's id.
    pub fn commit(&self, message: &str) -> String {
        self.git(&["add", "-A"]);
        self.git(&["commit", "-q", "--allow-empty", "-m", message]);
        self.head()
    }

    /// Id of HEAD's commit.
    pub fn head(&self) -> String {
        self.git(&["rev-parse", "HEAD"])
    }

    /// Id that a ref points at; none: it does not exist.
    pub fn ref_id(&self, name: &str) -> Option<String> {
        let output = self.run(&["rev-parse", "-q", "--verify", name]);
        output
            .status
            .success()
            .then(|| String::from_utf8_lossy(&output.stdout).trim().to_owned())
    }

    /// Adds one commit with these files on `branch` of a bare repository; returns its id.
    pub fn seed(&self, branch: &str, files: &[(&str, &str)]) -> String {
        let work = crate::Work::new();
        let clone = self.clone_to(work.join("clone"));
        let upstream = format!("origin/{branch}");
        if clone.ref_id(&upstream).is_some() {
            clone.git(&["checkout", "-q", "-B", branch, &upstream]);
        } else {
            clone.git(&["checkout", "-q", "-B", branch]);
        }
        for (name, text) in files {
            clone.write(name, text);
        }
        let id = clone.commit("seed");
        clone.git(&["push", "-q", "origin", &format!("HEAD:refs/heads/{branch}")]);
        id
    }

    /// A clone with a working tree, made by the git program.
    pub fn clone_to(&self, path: impl Into<PathBuf>) -> Self {
        let path = path.into();
        self.git(&[
            OsStr::new("clone"),
            OsStr::new("-q"),
            OsStr::new("."),
            path.as_os_str(),
        ]);
        Self { path }
    }

    /// Installs a hook: a shell script without its first line.
    pub fn hook(&self, name: &str, script: &str) {
        let dir = if self.path.join(".git").is_dir() {
            self.path.join(".git/hooks")
        } else {
            self.path.join("hooks")
        };
        fs::create_dir_all(&dir).expect("a directory for hooks");
        let path = dir.join(name);
        fs::write(&path, format!("#!/bin/sh\n{script}\n")).expect("a hook");
        fs::set_permissions(&path, fs::Permissions::from_mode(0o755)).expect("an executable hook");
    }

    /// Takes a hook away.
    pub fn unhook(&self, name: &str) {
        fs::remove_file(self.path.join("hooks").join(name)).expect("a hook to remove");
    }
}
