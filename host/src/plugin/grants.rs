//! What a plugin may reach, and how much of it.

mod http;

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;
use std::time::Duration;

use warren_mirror::{RefPatterns, UrlPolicy};
use warren_model::Endpoints;
use warren_policy::GrantId;
use warren_process::{ChildLimits, Programs};

use super::engine::EPOCH;

pub use http::{HttpGrant, HttpLimits};

/// How a plugin sees its RootDir.
pub use warren_policy::Access as RootAccess;

/// What a plugin may do with remotes.
#[derive(Debug, Clone, Default)]
pub struct GitGrant {
    /// What narrows the host's own policy: every one of these must let a remote through.
    pub remotes: Vec<UrlPolicy>,
    /// Refs that it may push and delete: every one of these must allow it, at least one.
    pub push_refs: Vec<RefPatterns>,
    /// Credential aliases that it may name; none: all.
    pub aliases: Option<BTreeSet<String>>,
    /// Most bytes that one verb may receive; the host's own limit holds when it is lower.
    pub received_bytes_max: Option<u64>,
    /// Whether git works on threads that are not confined, also where this machine could.
    pub unconfined: bool,
}

/// Which programs a plugin may run; by default none.
#[derive(Debug, Clone, Default)]
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

/// Users that children may run as, and their groups of the same number.
pub use warren_policy::UidRange;

/// What a plugin may import.
#[derive(Debug, Clone)]
pub struct Grants {
    /// Names the grant in logs.
    pub id: GrantId,
    /// The verbs of `git`; none: not at all.
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
            id: GrantId::default(),
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
        Self::from(&warren_policy::Limits::default())
    }
}

impl From<&warren_policy::Limits> for Limits {
    fn from(limits: &warren_policy::Limits) -> Self {
        let number = |limit: Option<u64>| limit.unwrap_or(u64::MAX);
        let size = |limit: Option<u64>| usize::try_from(number(limit)).unwrap_or(usize::MAX);
        let seconds = |limit: Option<u64>| Duration::from_secs(number(limit).min(SECONDS_MAX));
        Self {
            memory_bytes: size(limits.memory_bytes),
            table_elements: size(limits.table_elements),
            instances: size(limits.instances),
            wall: seconds(limits.wall_seconds),
            cpu_epochs: epochs(seconds(limits.cpu_seconds)),
            log_bytes: size(limits.log_bytes),
            log_line_bytes: size(limits.log_line_bytes),
            stdio_bytes: size(limits.stdio_bytes),
            hostcall_bytes: size(limits.hostcall_bytes),
            handles: size(limits.handles),
            random_bytes: number(limits.random_bytes),
            disk_bytes: limits.disk_bytes,
            inodes: limits.inodes,
        }
    }
}

/// A year: added to now, it is still a time.
const SECONDS_MAX: u64 = 365 * 24 * 3600;

/// Epochs in a duration, at least one.
pub fn epochs(duration: Duration) -> u64 {
    u64::try_from(duration.as_millis() / EPOCH.as_millis())
        .unwrap_or(u64::MAX)
        .max(1)
}

/// Grants by type that the embedder of a runtime gives itself; a type that is not named is plain.
#[derive(Debug, Clone, Default)]
pub struct GrantTable {
    by_type: BTreeMap<String, Grants>,
    default: Grants,
}

impl GrantTable {
    /// Sets the grants of one type.
    pub fn set(&mut self, handler: impl Into<String>, grants: Grants) {
        self.by_type.insert(handler.into(), grants);
    }

    /// The grants of a type.
    pub fn get(&self, handler: &str) -> &Grants {
        self.by_type.get(handler).unwrap_or(&self.default)
    }
}
