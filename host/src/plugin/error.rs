//! Why a call into a plugin failed.

use std::time::Duration;

use warren_audit::AuditError;
use warren_model::MetadataError;

use super::load_error::LoadError;

/// A limit that a plugin ran into.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[non_exhaustive]
pub enum LimitKind {
    /// Linear memory.
    Memory,
    /// Linear memory of all calls together: the Project's others hold what it may have.
    HostMemory,
    /// Tables.
    Table,
    /// Time in guest code.
    Cpu,
    /// Stack of the guest.
    Stack,
    /// Bytes copied between guest and host in one call.
    HostCall,
    /// Open handles.
    Handles,
}

impl LimitKind {
    pub(crate) fn as_str(self) -> &'static str {
        match self {
            Self::Memory => "memory",
            Self::HostMemory => "memory that all calls share",
            Self::Table => "table",
            Self::Cpu => "CPU time",
            Self::Stack => "stack",
            Self::HostCall => "data in one host call",
            Self::Handles => "open handles",
        }
    }
}

/// Why a verb of `git` failed; the cases of `git-error` in `wit/types.wit`.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[expect(missing_docs, reason = "each case is documented in `wit/types.wit`")]
pub enum GitFailure {
    #[error("refused by the policy: {0}")]
    Denied(String),
    #[error("{0}")]
    InvalidArgument(String),
    #[error("the rootdir holds no repository")]
    NotARepository,
    #[error("the repository reaches outside its rootdir: {0}")]
    UnsafeRepository(String),
    #[error("the repository uses a format that is not supported: {0}")]
    UnsupportedFormat(String),
    #[error("an operation is in progress in the repository: {0}")]
    OperationInProgress(String),
    #[error("there are repositories inside the repository: {}", list(.0))]
    NestedRepository(Vec<String>),
    #[error("the repository is locked: {0}")]
    Locked(String),
    #[error("authentication failed: {0}")]
    AuthenticationFailed(String),
    #[error("{0}")]
    HostKeyUnknown(String),
    #[error("{0}")]
    HostKeyChanged(String),
    #[error("the remote cannot be reached: {0}")]
    Unreachable(String),
    #[error("the remote did not answer in time: {0}")]
    Timeout(String),
    #[error("the remote rejected `{ref_name}`: {message}")]
    Rejected { ref_name: String, message: String },
    #[error("`{0}` is missing")]
    Missing(String),
    #[error("`{ref_name}` is at {}, expected {}", at(.found), at(.expected))]
    Conflict {
        ref_name: String,
        expected: Option<String>,
        found: Option<String>,
    },
    #[error("too large: {0}")]
    TooLarge(String),
    #[error("no space is left: {0}")]
    NoSpace(String),
    #[error("file work of git failed: {0}")]
    Io(String),
}

/// Paths for one line of text: the first few, and how many more there are.
fn list(paths: &[String]) -> String {
    const SHOWN: usize = 5;
    let mut text = paths
        .iter()
        .take(SHOWN)
        .map(|path| format!("`{path}`"))
        .collect::<Vec<_>>()
        .join(", ");
    if paths.len() > SHOWN {
        text.push_str(&format!(" and {} more", paths.len() - SHOWN));
    }
    text
}

fn at(commit: &Option<String>) -> String {
    match commit {
        Some(commit) => format!("`{commit}`"),
        None => "no commit".to_owned(),
    }
}

/// Why a verb of `process` failed; the cases of `process-error` in `wit/types.wit`.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[expect(missing_docs, reason = "each case is documented in `wit/types.wit`")]
pub enum ProcessFailure {
    #[error("refused by the policy: {0}")]
    Denied(String),
    #[error("{0}")]
    InvalidArgument(String),
    #[error("the program `{0}` is not on this Pod")]
    NotFound(String),
    #[error("the program was stopped at its time limit: {0}")]
    Timeout(String),
    #[error("the program was killed by signal {0}")]
    Killed(i32),
    #[error("the program could not be started: {0}")]
    Failed(String),
}

/// Why a call into a plugin failed: first what the handler said, then what the host found.
#[derive(Debug, thiserror::Error)]
pub enum PluginError {
    /// The metadata asks for something that cannot be.
    #[error("metadata key `{key}` cannot be used: {reason}")]
    InvalidMetadata {
        /// The key.
        key: String,
        /// What is wrong with it.
        reason: String,
    },
    /// There is no place where the content could be saved.
    #[error("suspend is not configured: {0}")]
    SuspendNotConfigured(String),
    /// A program that the handler needs is not on this Pod.
    #[error("a program is missing: {0}")]
    ProgramMissing(String),
    /// A program ran and failed; holds the tail of its output.
    #[error("a program failed: {0}")]
    ProgramFailed(String),
    /// The content's environment must be rebuilt.
    #[error("the environment is broken: {0}")]
    EnvironmentBroken(String),
    /// The `git` capability failed.
    #[error("git failed")]
    Git(#[source] GitFailure),
    /// The `process` capability failed.
    #[error("a process failed")]
    Process(#[source] ProcessFailure),
    /// File work in the root failed.
    #[error("file work in the rootdir failed: {0}")]
    Io(String),
    /// The handler has no such action.
    #[error("handler has no action `{0}`")]
    UnsupportedAction(String),
    /// Anything else that the handler said.
    #[error("handler failed: {0}")]
    Failed(String),

    /// The guest panicked or trapped.
    #[error("handler `{handler}` crashed: {message}")]
    Trap {
        /// The handler.
        handler: String,
        /// The guest's own panic text in one line, or what the trap was.
        message: String,
    },
    /// No end within the time limit.
    #[error("handler `{handler}` did not end within {} ms", .limit.as_millis())]
    Timeout {
        /// The handler.
        handler: String,
        /// The limit.
        limit: Duration,
    },
    /// The caller cancelled the call.
    #[error("the call was cancelled")]
    Cancelled,
    /// The guest ran into a limit.
    #[error("handler `{handler}` passed its limit of {}", .limit.as_str())]
    LimitExceeded {
        /// The handler.
        handler: String,
        /// The limit.
        limit: LimitKind,
    },
    /// The RootDir's limit or the disk's ended the handler's work.
    #[error("handler `{handler}` found no room: {reason}")]
    NoRoom {
        /// The handler.
        handler: String,
        /// Which limit it was.
        reason: String,
        /// What the handler made of it.
        source: Box<Self>,
    },
    /// The handler returned metadata that a Descriptor cannot hold.
    #[error("handler `{handler}` returned bad metadata")]
    BadMetadata {
        /// The handler.
        handler: String,
        /// What is wrong with it.
        source: MetadataError,
    },
    /// The handler says that content is saved; no capability has seen it saved.
    #[error("handler `{handler}` did not prove that the content is saved")]
    SuspendUnproven {
        /// The handler.
        handler: String,
    },
    /// The RootDir cannot be opened.
    #[error("the rootdir cannot be opened")]
    Root(#[source] std::io::Error),
    /// What the handler wanted to do could not be recorded, and was refused.
    #[error("the audit log cannot be written")]
    Audit(#[source] AuditError),
    /// A component, or the runtime itself, could not be loaded.
    #[error(transparent)]
    Load(#[from] Box<LoadError>),
    /// A fault of the host.
    #[error("the host failed: {0}")]
    Internal(String),
}

impl From<LoadError> for PluginError {
    fn from(error: LoadError) -> Self {
        Self::Load(Box::new(error))
    }
}

impl PluginError {
    /// Stable name of the error.
    pub fn code(&self) -> &'static str {
        match self {
            Self::InvalidMetadata { .. } => "InvalidMetadata",
            Self::SuspendNotConfigured(_) => "WorkspaceSuspendNotConfigured",
            Self::ProgramMissing(_) => "ProgramMissing",
            Self::ProgramFailed(_) => "ProgramFailed",
            Self::EnvironmentBroken(_) => "EnvironmentBroken",
            Self::Git(failure) => failure.code(),
            Self::Process(failure) => failure.code(),
            Self::Io(_) => "HandlerIo",
            Self::UnsupportedAction(_) => "UnsupportedAction",
            Self::Failed(_) => "HandlerFailed",
            Self::Trap { .. } => "HandlerTrapped",
            Self::Timeout { .. } => "HandlerTimeout",
            Self::Cancelled => "HandlerCancelled",
            Self::LimitExceeded { .. } => "HandlerLimit",
            Self::NoRoom { .. } => "WorkspaceQuotaExceeded",
            Self::BadMetadata { .. } => "HandlerBadMetadata",
            Self::SuspendUnproven { .. } => "SuspendUnproven",
            Self::Root(_) => "RootUnavailable",
            Self::Audit(_) => "AuditUnavailable",
            Self::Load(error) => error.code(),
            Self::Internal(_) => "Internal",
        }
    }

    /// What can be done about it.
    pub fn hint(&self) -> Option<String> {
        Some(match self {
            Self::InvalidMetadata { .. } => {
                "docs/cli.md lists the metadata of each handler; `--repo` gives `repoUrl`, `--branch` gives `branch`".into()
            }
            Self::SuspendNotConfigured(_) => {
                "give the rootdir a remote (`repoUrl`), or dispose it before suspend".into()
            }
            Self::ProgramMissing(_) => "install it, or name another one in the configuration".into(),
            Self::EnvironmentBroken(_) => "rebuild it: `warren python rebuild PROJECT DIRNAME`".into(),
            Self::Git(failure) => failure.hint()?.into(),
            Self::Audit(error) => return error.hint(),
            Self::Load(error) => return error.hint(),
            Self::Process(ProcessFailure::NotFound(_)) => {
                "install it, or name another one in the configuration".into()
            }
            Self::Trap { handler, .. } => {
                format!("this is a fault of the handler `{handler}`; its log at level debug has the backtrace")
            }
            Self::NoRoom { .. } => {
                "make room in the rootdir or on the disk, or raise the limit in the policy".into()
            }
            Self::Timeout { .. } => "repeat the call; every call may be repeated".into(),
            Self::SuspendUnproven { .. } => {
                "nothing was deleted; update the handler, or dispose the rootdir if its content is not needed".into()
            }
            _ => return None,
        })
    }
}

impl GitFailure {
    /// Stable name of the error.
    pub fn code(&self) -> &'static str {
        match self {
            Self::Denied(_) => "GitDenied",
            Self::InvalidArgument(_) => "GitInvalidArgument",
            Self::NotARepository => "GitNotARepository",
            Self::UnsafeRepository(_) => "GitUnsafeRepository",
            Self::UnsupportedFormat(_) => "GitUnsupportedFormat",
            Self::OperationInProgress(_) => "GitOperationInProgress",
            Self::NestedRepository(_) => "GitNestedRepository",
            Self::Locked(_) => "GitLocked",
            Self::AuthenticationFailed(_) => "GitAuthenticationFailed",
            Self::HostKeyUnknown(_) => "GitHostKeyUnknown",
            Self::HostKeyChanged(_) => "GitHostKeyChanged",
            Self::Unreachable(_) => "GitUnreachable",
            Self::Timeout(_) => "GitTimeout",
            Self::Rejected { .. } => "GitRejected",
            Self::Missing(_) => "GitMissing",
            Self::Conflict { .. } => "GitConflict",
            Self::TooLarge(_) => "GitTooLarge",
            Self::NoSpace(_) => "GitNoSpace",
            Self::Io(_) => "GitIo",
        }
    }

    fn hint(&self) -> Option<&'static str> {
        Some(match self {
            Self::Denied(_) => {
                "both `[git] allow` of the configuration and the plugin's policy must allow it: `warren plugin report` shows what they do"
            }
            Self::Missing(_) => "look at what the remote has; nothing was changed",
            Self::OperationInProgress(_) => "finish or abort it, then try again",
            Self::NestedRepository(_) => "move or remove the inner repositories, then try again",
            Self::Locked(_) => {
                "wait for the other git program; if there is none, remove the lock file"
            }
            Self::AuthenticationFailed(_) => "check the credential in the configuration",
            Self::HostKeyUnknown(_) => {
                "compare the fingerprint with the server's, then add its key to the known_hosts file"
            }
            Self::HostKeyChanged(_) => {
                "somebody may be listening in; ask the server's operator before you replace the key"
            }
            Self::Unreachable(_) => "nothing was changed; check the URL, or try again later",
            Self::Timeout(_) => "nothing was changed; try again later",
            Self::Rejected { .. } => {
                "nothing was changed; a hook or a rule of the remote refuses this ref"
            }
            Self::Conflict { .. } => "someone else changed the ref; look at it, then try again",
            _ => return None,
        })
    }
}

impl ProcessFailure {
    /// Stable name of the error.
    pub fn code(&self) -> &'static str {
        match self {
            Self::Denied(_) => "ProcessDenied",
            Self::InvalidArgument(_) => "ProcessInvalidArgument",
            Self::NotFound(_) => "ProgramMissing",
            Self::Timeout(_) => "ProcessTimeout",
            Self::Killed(_) => "ProcessKilled",
            Self::Failed(_) => "ProcessFailed",
        }
    }
}
