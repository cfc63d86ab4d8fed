//! Why a command failed.

use warren::Error;
use warren::config::{ConfigError, OpenError};
use warren::plugin::LoadError;
use warren_audit::AuditError;

/// What a command can fail with.
#[derive(Debug, thiserror::Error)]
pub(crate) enum CliError {
    /// An operation failed.
    #[error(transparent)]
    Service(#[from] Error),
    /// The configuration cannot be used.
    #[error(transparent)]
    Config(#[from] ConfigError),
    /// The host cannot start.
    #[error(transparent)]
    Open(#[from] OpenError),
    /// A component cannot be read.
    #[error("cannot inspect `{subject}`")]
    Inspect {
        /// What was to be inspected.
        subject: String,
        #[source]
        source: LoadError,
    },
    /// The audit log cannot be read.
    #[error(transparent)]
    Audit(#[from] AuditError),
    /// An argument cannot be used.
    #[error("{0}")]
    Argument(String),
    /// File work of the program itself.
    #[error("cannot {doing}")]
    Io {
        /// What was being done.
        doing: String,
        #[source]
        source: std::io::Error,
    },
    /// A result that cannot be printed.
    #[error("cannot print the result")]
    Print(#[from] serde_json::Error),
    /// The demo found a difference.
    #[error("the demo failed: {0}")]
    Demo(String),
    /// A signal came; carries the exit code.
    #[error("stopped by a signal")]
    Stopped(u8),
}

impl CliError {
    pub(crate) fn io(doing: impl Into<String>) -> impl FnOnce(std::io::Error) -> Self {
        let doing = doing.into();
        move |source| Self::Io { doing, source }
    }

    pub(crate) fn code(&self) -> &'static str {
        match self {
            Self::Service(error) => error.code(),
            Self::Config(error) => error.code(),
            Self::Open(error) => error.code(),
            Self::Inspect { source, .. } => source.code(),
            Self::Audit(AuditError::Damaged { .. }) => "AuditDamaged",
            Self::Audit(_) => "AuditUnavailable",
            Self::Argument(_) => "InvalidArgument",
            Self::Io { .. } => "Io",
            Self::Print(_) => "Internal",
            Self::Demo(_) => "DemoFailed",
            Self::Stopped(_) => "Interrupted",
        }
    }

    pub(crate) fn hint(&self) -> Option<String> {
        match self {
            Self::Service(error) => error.hint(),
            Self::Config(error) => error.hint(),
            Self::Open(error) => error.hint(),
            Self::Inspect { source, .. } => source.hint(),
            Self::Audit(error) => error.hint(),
            Self::Stopped(_) => {
                Some("`warren workspace init` finishes or rolls back what was interrupted".into())
            }
            _ => None,
        }
    }

    /// The exit code.
    pub(crate) fn exit(&self) -> u8 {
        match self {
            Self::Stopped(exit) => *exit,
            _ => super::exit::of(self.code()),
        }
    }
}

impl From<warren_model::InvalidName> for CliError {
    fn from(error: warren_model::InvalidName) -> Self {
        Self::Service(error.into())
    }
}
