//! Why work on a repository failed.

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
    /// The disk is full.
    #[error("no space left")]
    NoSpace(#[source] std::io::Error),
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
