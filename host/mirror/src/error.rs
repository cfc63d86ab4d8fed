//! Why a verb of the `git` capability failed.

use std::error::Error as StdError;

use warren_repo::RepoError;

type Source = Box<dyn StdError + Send + Sync>;

/// One variant per case of the contract's `git-error`, host keys and cancelling told apart.
///
/// No text holds a known secret, and what a server said is cleaned and cut.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum MirrorError {
    /// The policy does not grant it; says what was asked.
    #[error("not allowed: {0}")]
    Denied(String),
    /// The work cannot be confined here, and the policy does not let it go unconfined.
    #[error("git work cannot be confined on this machine")]
    Unconfined(#[source] warren_confine::ConfineError),
    /// A URL, ref, branch, commit or alias that is not valid.
    #[error("invalid {what}: {why}")]
    InvalidArgument {
        /// What it was meant for, `url` say.
        what: &'static str,
        /// What is wrong with it.
        why: String,
    },
    /// The RootDir holds no repository.
    #[error("there is no git repository in the RootDir")]
    NotARepository,
    /// The repository's layout or config reaches outside its RootDir.
    #[error("the repository leaves its RootDir: {0}")]
    UnsafeRepository(String),
    /// A format that cannot be handled.
    #[error("unsupported repository format: {0}")]
    UnsupportedFormat(String),
    /// A merge, rebase, cherry-pick, revert or bisect is under way.
    #[error("operation in progress: {0}")]
    OperationInProgress(String),
    /// Repositories inside the repository, by path.
    #[error("nested repositories cannot be saved whole: {}", .0.join(", "))]
    NestedRepository(Vec<String>),
    /// A lock that another one holds; names it.
    #[error("locked: {0}")]
    Locked(String),
    /// The remote wants credentials, or refused those given.
    #[error("authentication failed: {0}")]
    AuthenticationFailed(String),
    /// The ssh server's key is not in the known_hosts file.
    #[error("the ssh host key of `{host}` is unknown ({fingerprint})")]
    HostKeyUnknown {
        /// Host, with the port when it is not 22.
        host: String,
        /// Kind and SHA-256 of the key that was shown.
        fingerprint: String,
    },
    /// The ssh server shows another key than the known_hosts file has for it.
    #[error("the ssh host key of `{host}` has changed ({fingerprint})")]
    HostKeyChanged {
        /// Host, with the port when it is not 22.
        host: String,
        /// Kind and SHA-256 of the key that was shown.
        fingerprint: String,
    },
    /// The remote cannot be reached, is gone or answered nonsense.
    #[error("the remote cannot be reached: {0}")]
    Unreachable(String),
    /// No answer within the time limit.
    #[error("timed out: {0}")]
    Timeout(String),
    /// The caller gave up.
    #[error("cancelled: {0}")]
    Cancelled(String),
    /// The remote refused the push.
    #[error("the remote rejected `{ref_name}`: {message}")]
    Rejected {
        /// Full name of the ref.
        ref_name: String,
        /// What the server said.
        message: String,
    },
    /// A ref or commit is missing on the remote, or an object here, by name.
    #[error("`{0}` is missing")]
    Missing(String),
    /// A ref points elsewhere than expected.
    #[error("`{ref_name}` points at {}, expected {}", shown(.found), shown(.expected))]
    Conflict {
        /// Full name of the ref.
        ref_name: String,
        /// Commit it should point at; none: it should not exist.
        expected: Option<String>,
        /// Commit it points at; none: it does not exist.
        found: Option<String>,
    },
    /// A limit on size or count was passed.
    #[error("too large: {0}")]
    TooLarge(String),
    /// The disk is full.
    #[error("no space left: {0}")]
    NoSpace(String),
    /// File work, or git's own work on files, failed.
    #[error("cannot {doing}")]
    Io {
        /// What was being done.
        doing: String,
        /// Why it failed.
        #[source]
        source: Source,
    },
}

fn shown(id: &Option<String>) -> String {
    id.as_ref()
        .map_or_else(|| "nothing".to_owned(), |id| format!("`{id}`"))
}

impl MirrorError {
    /// Stable code for machines.
    pub fn code(&self) -> &'static str {
        match self {
            Self::Denied(_) => "GitDenied",
            Self::Unconfined(_) => "GitUnconfined",
            Self::InvalidArgument { .. } => "GitInvalidArgument",
            Self::NotARepository => "GitNotARepository",
            Self::UnsafeRepository(_) => "GitUnsafeRepository",
            Self::UnsupportedFormat(_) => "GitUnsupportedFormat",
            Self::OperationInProgress(_) => "GitOperationInProgress",
            Self::NestedRepository(_) => "GitNestedRepository",
            Self::Locked(_) => "GitLocked",
            Self::AuthenticationFailed(_) => "GitAuthenticationFailed",
            Self::HostKeyUnknown { .. } => "GitHostKeyUnknown",
            Self::HostKeyChanged { .. } => "GitHostKeyChanged",
            Self::Unreachable(_) => "GitUnreachable",
            Self::Timeout(_) => "GitTimeout",
            Self::Cancelled(_) => "GitCancelled",
            Self::Rejected { .. } => "GitRejected",
            Self::Missing(_) => "GitMissing",
            Self::Conflict { .. } => "GitConflict",
            Self::TooLarge(_) => "GitTooLarge",
            Self::NoSpace(_) => "GitNoSpace",
            Self::Io { .. } => "GitIo",
        }
    }

    /// What to do next.
    pub fn hint(&self) -> Option<String> {
        let hint = match self {
            Self::Denied(_) => "an operator can list it under `[git] allow` or `[credentials]`",
            Self::Unconfined(error) => return error.hint(),
            Self::AuthenticationFailed(_) => "name a credential alias that may use this remote",
            Self::HostKeyUnknown { .. } => {
                "compare the fingerprint with the server's, then add its key to the known_hosts file"
            }
            Self::HostKeyChanged { .. } => {
                "somebody may be listening in; ask the server's operator before you replace the key"
            }
            Self::OperationInProgress(_) => "finish or abort it, then try again",
            Self::Locked(_) => "wait for the other operation, then try again",
            Self::Unreachable(_) | Self::Timeout(_) => {
                "nothing was lost; try again when the remote answers"
            }
            Self::Rejected { .. } => {
                "the work is still in place; change the remote's rules or the ref, then try again"
            }
            Self::Conflict { .. } => "look at who moved the ref; it is never overwritten",
            Self::NoSpace(_) => "free space, then try again",
            _ => return None,
        };
        Some(hint.to_owned())
    }

    pub(crate) fn invalid(what: &'static str, why: impl Into<String>) -> Self {
        Self::InvalidArgument {
            what,
            why: why.into(),
        }
    }

    /// Wraps an error of file work; a full disk is told apart.
    pub(crate) fn io(doing: impl Into<String>, source: std::io::Error) -> Self {
        let doing = doing.into();
        match source.kind() {
            std::io::ErrorKind::StorageFull | std::io::ErrorKind::QuotaExceeded => {
                Self::NoSpace(doing)
            }
            _ => Self::Io {
                doing,
                source: source.into(),
            },
        }
    }

    /// Wraps an error of libgit2's work on files.
    pub(crate) fn git(doing: impl Into<String>, source: git2::Error) -> Self {
        let doing = doing.into();
        // libgit2 keeps no errno; the text of the system's error is what it gives.
        if source.message().contains("No space left on device")
            || source.message().contains("Disk quota exceeded")
        {
            return Self::NoSpace(doing);
        }
        if warren_repo::is_too_much_memory(&source) {
            if let Some(ended) = warren_repo::ended() {
                return ended.into();
            }
            return Self::TooLarge(format!("an object that takes too much memory to {doing}"));
        }
        if source.code() == git2::ErrorCode::Locked {
            return Self::Locked(doing);
        }
        Self::Io {
            doing,
            source: source.into(),
        }
    }
}

impl From<RepoError> for MirrorError {
    fn from(error: RepoError) -> Self {
        match error {
            RepoError::NotARepository => Self::NotARepository,
            RepoError::Unsafe(how) => Self::UnsafeRepository(how),
            RepoError::UnsafePath(path) => Self::UnsafeRepository(format!("path `{path}`")),
            RepoError::UnsupportedFormat(format) => Self::UnsupportedFormat(format),
            RepoError::OperationInProgress(name) => Self::OperationInProgress(name),
            RepoError::Nested(paths) => Self::NestedRepository(paths),
            RepoError::Locked(name) => Self::Locked(name),
            RepoError::InvalidArgument { what, value } => {
                Self::invalid(what, format!("`{value}` is not valid"))
            }
            RepoError::Missing(name) => Self::Missing(name),
            RepoError::TooLarge(what) => Self::TooLarge(what),
            RepoError::NoSpace(why) => Self::NoSpace(why.to_string()),
            RepoError::Timeout => {
                Self::Timeout("work on the repository took longer than allowed".to_owned())
            }
            RepoError::Cancelled => Self::Cancelled("the work on the repository".to_owned()),
            error => Self::Io {
                doing: "work on the repository".to_owned(),
                source: error.into(),
            },
        }
    }
}

impl From<warren_disk::lock::LockError> for MirrorError {
    fn from(error: warren_disk::lock::LockError) -> Self {
        match error {
            warren_disk::lock::LockError::TimedOut { .. } => {
                Self::Locked("the mirror is in use by another operation".to_owned())
            }
            warren_disk::lock::LockError::Io { .. } => Self::Io {
                doing: "lock the mirror".to_owned(),
                source: error.into(),
            },
        }
    }
}
