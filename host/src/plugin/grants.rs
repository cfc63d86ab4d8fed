//! What a plugin may reach, and how much of it.

mod http;

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;
use std::time::Duration;

use warren_mirror::RefPatterns;
use warren_model::Endpoints;
use warren_process::{ChildLimits, Programs};

use super::engine::EPOCH;

pub use http::{HttpGrant, HttpLimits};

/// How a plugin sees its RootDir.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum RootAccess {
    /// Not at all: no directory is preopened.
    None,
    /// Nothing can be changed.
    ReadOnly,
    /// Everything inside can be changed.
    #[default]
    ReadWrite,
}

/// What a plugin may do with remotes.
#[derive(Debug, Clone, Default)]
pub struct GitGrant {
    /// Refs that it may push and delete.
    pub push_refs: RefPatterns,
    /// Credential aliases that it may name; none: all.
    pub aliases: Option<BTreeSet<String>>,
    /// Most bytes that one verb may receive; the host's own limit holds when it is lower.
    pub received_bytes_max: Option<u64>,
}

/// Which programs a plugin may run.
#[derive(Debug, Clone)]
pub struct ProcessGrant {
    /// Programs by alias and by path.
    pub programs: Arc<Programs>,
    /// Programs inside the RootDir by their relative path, `.venv/bin/python` say.
    pub in_root: Vec<String>,
    /// Variables that may be set for children; `PIP_*` stands for all that start so.
    pub environment: Vec<String>,
    /// Variables that the host sets for all children; those of the plugin come on top.
    pub variables: Vec<(String, String)>,
    /// Servers that children may reach, through a proxy of the host.
    pub network: Endpoints,
    /// How much network one child may use.
    pub network_limits: warren_egress::proxy::Limits,
    /// Users that children run as, when the host is root: a Project has one of them.
    pub uids: Option<UidRange>,
    /// Whether children run with all that the host may, where the kernel or the operator wants it so.
    pub unconfined: bool,
    /// Longest run of one child.
    pub wall_max: Duration,
    /// Resource limits of one child.
    pub limits: ChildLimits,
}

/// Users, and their groups of the same number.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct UidRange {
    /// The first, not 0.
    pub first: u32,
    /// How many, at least 1.
    pub count: u32,
}

/// What a plugin may import.
#[derive(Debug, Clone)]
pub struct Grants {
    /// The verbs of `git`; none: not at all. Which remotes is the policy of the mirrors.
    pub git: Option<GitGrant>,
    /// The verbs of `process`; none: not at all.
    pub process: Option<ProcessGrant>,
    /// Requests over HTTP, `wasi:http`; none: not at all.
    pub http: Option<HttpGrant>,
    /// Lines for the host's log.
    pub log: bool,
    /// Reports of progress.
    pub progress: bool,
    /// The RootDir of a call.
    pub root: RootAccess,
    /// How much of everything.
    pub limits: Limits,
}

impl Default for Grants {
    /// A plain handler: its RootDir, log and progress.
    fn default() -> Self {
        Self {
            git: None,
            process: None,
            http: None,
            log: true,
            progress: true,
            root: RootAccess::ReadWrite,
            limits: Limits::default(),
        }
    }
}

/// Limits of one call.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Limits {
    /// Bytes of all linear memories together.
    pub memory_bytes: usize,
    /// Elements of all tables together.
    pub table_elements: usize,
    /// Core instances.
    pub instances: usize,
    /// Time from start to end, host calls included.
    pub wall: Duration,
    /// Time in guest code, in epochs of [`EPOCH`].
    pub cpu_epochs: u64,
    /// Bytes of log lines; what is more is dropped and counted.
    pub log_bytes: usize,
    /// Bytes of one log line; longer ones are cut.
    pub log_line_bytes: usize,
    /// Bytes kept of stdout and of stderr; the tail is kept.
    pub stdio_bytes: usize,
    /// Bytes that one host call may copy out of the guest, the result of an export too.
    pub hostcall_bytes: usize,
    /// Open handles: files, directories, streams, pollables.
    pub handles: usize,
    /// Bytes of one request for random data.
    pub random_bytes: u64,
    /// Allocated bytes of the RootDir, whoever wrote them; none: only the disk ends it.
    pub disk_bytes: Option<u64>,
    /// Files and directories of the RootDir; none: only the disk ends it.
    pub inodes: Option<u64>,
}

impl Default for Limits {
    fn default() -> Self {
        Self {
            memory_bytes: 256 * 1024 * 1024,
            table_elements: 20_000,
            instances: 16,
            wall: Duration::from_secs(900),
            cpu_epochs: epochs(Duration::from_secs(60)),
            log_bytes: 64 * 1024,
            log_line_bytes: 4 * 1024,
            stdio_bytes: 16 * 1024,
            hostcall_bytes: 4 * 1024 * 1024,
            handles: 1024,
            random_bytes: 64 * 1024,
            disk_bytes: None,
            inodes: None,
        }
    }
}

/// Epochs in a duration, at least one.
pub fn epochs(duration: Duration) -> u64 {
    u64::try_from(duration.as_millis() / EPOCH.as_millis())
        .unwrap_or(u64::MAX)
        .max(1)
}

/// Grants by plugin.
///
/// A shipped plugin is known by its name, one from a file by the file's name without `.wasm`.
#[derive(Debug, Clone, Default)]
pub struct GrantTable {
    by_name: BTreeMap<String, Grants>,
    default: Grants,
}

impl GrantTable {
    /// The grants of the shipped plugins: what `git` and `python` may write to remotes, and what
    /// `python` may run. Every other plugin is plain.
    pub fn shipped(git: GitGrant, python: ProcessGrant) -> Self {
        let git = Grants {
            git: Some(git),
            ..Grants::default()
        };
        let python = Grants {
            process: Some(python),
            ..git.clone()
        };
        let mut table = Self::default();
        table.set("git", git);
        table.set("python", python);
        table
    }

    /// Sets the grants of one plugin.
    pub fn set(&mut self, name: impl Into<String>, grants: Grants) {
        self.by_name.insert(name.into(), grants);
    }

    /// The grants of a plugin.
    pub fn get(&self, name: &str) -> &Grants {
        self.by_name.get(name).unwrap_or(&self.default)
    }
}
