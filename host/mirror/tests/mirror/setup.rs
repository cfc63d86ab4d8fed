//! One host with a state directory, one server, and sessions on RootDirs.

use std::path::PathBuf;
use std::sync::Arc;
use std::sync::atomic::AtomicBool;
use std::time::{Duration, Instant};

use warren_disk::budget::Budget;
use warren_mirror::{
    CredentialStore, Limits, MirrorError, Mirrors, MirrorsSpec, Origin, RefPatterns, Session,
    SessionSpec, UrlPolicy,
};
use warren_testkit::{GitHttp, GitRepo, Work};

pub(crate) struct Host {
    pub(crate) work: Work,
    pub(crate) server: GitHttp,
    pub(crate) mirrors: Mirrors,
}

pub(crate) fn limits() -> Limits {
    Limits {
        connect_timeout_ms: 5_000,
        timeout_ms: 20_000,
        lock_timeout_ms: 20_000,
        ..Limits::default()
    }
}

pub(crate) fn mirrors(
    work: &Work,
    allow: &[&str],
    credentials: CredentialStore,
    limits: Limits,
) -> Mirrors {
    let state = work.dir("state");
    Mirrors::open(MirrorsSpec {
        state: warren_disk::open_root(&state).unwrap(),
        state_path: state,
        policy: UrlPolicy::new(allow).unwrap(),
        credentials,
        known_hosts: work.join("known_hosts"),
        ca_file: None,
        limits,
        repo_limits: warren_repo::Limits::default(),
        disk: None,
        exclude: warren_repo::Exclude::default(),
    })
    .unwrap()
}

pub(crate) fn spec(work: &Work, name: &str) -> SessionSpec {
    let root_path = work.dir(format!("roots/{name}"));
    SessionSpec {
        tenant: "t".into(),
        root: warren_disk::open_root(&root_path).unwrap(),
        root_path,
        dir_name: name.into(),
        dry_run: false,
        push_refs: vec![
            RefPatterns::new(&["refs/heads/vance/suspend/**", "refs/heads/agent"]).unwrap(),
        ],
        remotes: Vec::new(),
        aliases: None,
        received_bytes_max: None,
        budget: Budget::unlimited(),
        unconfined: false,
        progress: Arc::new(|_| {}),
        deadline: Instant::now() + Duration::from_secs(120),
        cancel: Arc::new(AtomicBool::new(false)),
    }
}

impl Host {
    pub(crate) fn new() -> Self {
        Self::with(CredentialStore::default(), limits())
    }

    pub(crate) fn with(credentials: CredentialStore, limits: Limits) -> Self {
        let work = Work::new();
        let server = GitHttp::serve(work.dir("srv"));
        let mirrors = mirrors(&work, &["http://127.0.0.1:*/**"], credentials, limits);
        Self {
            work,
            server,
            mirrors,
        }
    }

    /// A bare repository on the server.
    pub(crate) fn bare(&self, name: &str) -> GitRepo {
        GitRepo::bare(self.work.join(format!("srv/{name}")))
    }

    pub(crate) fn session(&self, root: &str) -> Session {
        self.mirrors.session(spec(&self.work, root))
    }

    pub(crate) fn origin(&self, name: &str) -> Origin {
        Origin {
            url: self.server.url(name),
            credential_alias: None,
        }
    }

    pub(crate) fn root(&self, name: &str) -> GitRepo {
        GitRepo::at(self.work.join(format!("roots/{name}")))
    }

    /// A RootDir cloned from `up.git`.
    pub(crate) fn cloned(&self, root: &str) -> GitRepo {
        self.session(root)
            .clone(&self.origin("up.git"), None)
            .unwrap();
        self.root(root)
    }

    /// Nothing is left in `scratch/`.
    pub(crate) fn scratch_is_empty(&self) -> bool {
        let entries = std::fs::read_dir(self.work.join("state/scratch")).unwrap();
        entries.into_iter().all(|entry| {
            let name = entry.unwrap().file_name();
            name == ".lock"
        })
    }

    pub(crate) fn mirror_repositories(&self) -> Vec<PathBuf> {
        std::fs::read_dir(self.work.join("state/mirrors"))
            .unwrap()
            .map(|entry| entry.unwrap().path().join("upstream.git"))
            .filter(|path| path.is_dir())
            .collect()
    }
}

pub(crate) fn code<T: std::fmt::Debug>(result: Result<T, MirrorError>) -> &'static str {
    result.expect_err("an error").code()
}

/// Bytes that do not compress.
pub(crate) fn noise(length: usize) -> Vec<u8> {
    let mut state = 0x9e37_79b9_7f4a_7c15_u64;
    std::iter::repeat_with(|| {
        state ^= state << 13;
        state ^= state >> 7;
        state ^= state << 17;
        state as u8
    })
    .take(length)
    .collect()
}
