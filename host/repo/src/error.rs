//! Why work on a repository failed.

use std::io::ErrorKind;

use warren_disk::text;

/// One variant per thing a caller can do about it.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum RepoError {
    /// No `.git` directory.
    #[error("there is no git repository in the RootDir")]
    NotARepository,
    /// Layout or config reaches outside the RootDir, or runs something.
    #[error("the repository leaves its RootDir: {0}")]
    Unsafe(String),
    /// An object format or extension that libgit2 cannot handle.
    #[error("unsupported repository format: {0}")]
    UnsupportedFormat(String),
    /// A merge, rebase, cherry-pick, revert or bisect is under way.
    #[error("operation in progress: {0}")]
    OperationInProgress(String),
    /// Repositories inside the repository, or submodules with content, by escaped path.
    #[error("nested repositories cannot be saved whole: {}", .0.join(", "))]
    Nested(Vec<String>),
    /// A path in the repository that must never be written to disk.
    #[error("unsafe path in the repository: `{0}`")]
    UnsafePath(String),
    /// A lock file in `.git` that may belong to a living process.
    #[error("the repository is locked by `{0}`")]
    Locked(String),
    /// A name or id that is not valid.
    #[error("invalid {what} `{value}`")]
    InvalidArgument {
        /// What it was meant for, `branch` say.
        what: &'static str,
        /// The text, escaped.
        value: String,
    },
    /// A commit, ref or object is not there.
    #[error("`{0}` is missing")]
    Missing(String),
    /// A snapshot that this version cannot read.
    #[error("the snapshot is damaged: {0}")]
    BadSnapshot(String),
    /// Too many, too big or too deep.
    #[error("too large: {0}")]
    TooLarge(String),
    /// The disk is full, or a quota is used up.
    #[error("no space left")]
    NoSpace(#[source] std::io::Error),
    /// The time was up before the work was done.
    #[error("the time is up")]
    Timeout,
    /// The caller gave up.
    #[error("cancelled")]
    Cancelled,
    /// File work failed.
    #[error("cannot {doing}")]
    Io {
        /// What was being done, with the path.
        doing: String,
        /// Why it failed.
        #[source]
        source: std::io::Error,
    },
    /// libgit2 failed.
    #[error("cannot {doing}")]
    Git {
        /// What was being done.
        doing: &'static str,
        /// Why it failed.
        #[source]
        source: git2::Error,
    },
}

impl RepoError {
    /// Wraps a failure of file work.
    pub(crate) fn io(doing: impl Into<String>, source: impl Into<std::io::Error>) -> Self {
        let source = source.into();
        match source.kind() {
            ErrorKind::StorageFull | ErrorKind::QuotaExceeded => Self::NoSpace(source),
            _ => Self::Io {
                doing: doing.into(),
                source,
            },
        }
    }

    /// Wraps a failure of libgit2.
    pub(crate) fn git(doing: &'static str) -> impl Fn(git2::Error) -> Self {
        move |source| {
            // libgit2 hands out no errno; its text is strerror's.
            let message = source.message();
            if source.code() == git2::ErrorCode::Locked {
                Self::Locked(text::escape(message.as_bytes()))
            } else if message.contains("No space left on device")
                || message.contains("Disk quota exceeded")
            {
                Self::NoSpace(std::io::Error::other(source))
            } else if is_too_much_memory(&source) {
                if let Some(ended) = crate::ended() {
                    return ended;
                }
                Self::TooLarge(format!("an object that takes too much memory to {doing}"))
            } else if message.contains("unsupported mandatory extension") {
                Self::UnsupportedFormat("split or sparse index".to_owned())
            } else {
                Self::Git { doing, source }
            }
        }
    }

    /// Stable name for machines.
    pub fn code(&self) -> &'static str {
        match self {
            Self::NotARepository => "NotARepository",
            Self::Unsafe(_) => "UnsafeRepository",
            Self::UnsupportedFormat(_) => "UnsupportedFormat",
            Self::OperationInProgress(_) => "OperationInProgress",
            Self::Nested(_) => "NestedRepository",
            Self::UnsafePath(_) => "UnsafePath",
            Self::Locked(_) => "RepositoryLocked",
            Self::InvalidArgument { .. } => "InvalidArgument",
            Self::Missing(_) => "MissingObject",
            Self::BadSnapshot(_) => "BadSnapshot",
            Self::TooLarge(_) => "TooLarge",
            Self::NoSpace(_) => "NoSpace",
            Self::Timeout => "Timeout",
            Self::Cancelled => "Cancelled",
            Self::Io { .. } => "Io",
            Self::Git { .. } => "GitFailed",
        }
    }

    /// What the user can do next.
    pub fn hint(&self) -> Option<String> {
        let hint = match self {
            Self::OperationInProgress(_) => "finish or abort it in the RootDir, then try again",
            Self::Nested(_) => {
                "push the nested repositories and remove them, or add them to `.gitignore`"
            }
            Self::Locked(_) => "stop the process that works in the RootDir, then try again",
            Self::UnsafePath(_) => "rename the file",
            Self::TooLarge(_) => "remove the file, add it to `.gitignore`, or raise the limit",
            Self::NoSpace(_) => "free space on the disk or raise the quota",
            Self::Unsafe(_) => "undo the setting in `.git`",
            _ => return None,
        };
        Some(hint.to_owned())
    }
}

/// Whether libgit2 wanted a buffer longer than [`crate::setup`] lets it have.
pub fn is_too_much_memory(error: &git2::Error) -> bool {
    let says = |text| error.message().contains(text);
    error.class() == git2::ErrorClass::NoMemory
        || says("out of memory")
        // Longer than a delta can say.
        || says("overly large object")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_full_disk_is_told_from_other_failures() {
        let full = std::io::Error::from(ErrorKind::StorageFull);
        assert_eq!(RepoError::io("write `x`", full).code(), "NoSpace");
        let quota = std::io::Error::from(ErrorKind::QuotaExceeded);
        assert_eq!(RepoError::io("write `x`", quota).code(), "NoSpace");
        let libgit2 = git2::Error::from_str("failed to write: No space left on device");
        assert_eq!(RepoError::git("write")(libgit2).code(), "NoSpace");
        let other = RepoError::io("write `x`", std::io::Error::from(ErrorKind::NotFound));
        assert_eq!(other.code(), "Io");
        assert_eq!(other.to_string(), "cannot write `x`");
        assert!(std::error::Error::source(&other).is_some());
    }
}
