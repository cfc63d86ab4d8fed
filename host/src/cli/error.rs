//! Why a command failed.

use warren::Error;
use warren::config::{ConfigError, OpenError};
use warren::plugin::{LoadError, LockError};
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
    /// The approvals cannot be read or changed.
    #[error(transparent)]
    Approvals(#[from] LockError),
    /// A person has to say yes, and none is there.
    #[error("`{what}` needs a yes, and there is no terminal to ask on")]
    ConfirmationNeeded {
        /// The command.
        what: String,
    },
    /// A person said no.
    #[error("not approved; nothing was changed")]
    Declined,
    /// RootDirs need the plugin.
    #[error("there are RootDirs of type `{handler}`: {}", .places.join(", "))]
    PluginInUse {
        /// The type.
        handler: String,
        /// Where, escaped.
        places: Vec<String>,
    },
    /// There is no component of the type in the plugin directory.
    #[error("there is no plugin for type `{0}` in the plugin directory")]
    PluginNotFound(String),
    /// A file that cannot be used.
    #[error("cannot use `{file}`: {reason}")]
    Unusable {
        /// Which file, escaped.
        file: String,
        /// Why.
        reason: String,
    },
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
            Self::Approvals(error) => error.code(),
            Self::ConfirmationNeeded { .. } => "ConfirmationNeeded",
            Self::Declined => "Declined",
            Self::PluginInUse { .. } => "PluginInUse",
            Self::PluginNotFound(_) => "PluginNotFound",
            Self::Unusable { .. } => "InvalidArgument",
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
            Self::Approvals(error) => error.hint(),
            Self::ConfirmationNeeded { .. } => Some("say it with `--yes`".into()),
            Self::PluginInUse { .. } => Some(
                "dispose of them or suspend their Workspaces first; `--force` leaves them without a handler".into(),
            ),
            Self::PluginNotFound(_) => Some(
                "`warren plugin list` shows what there is; a shipped plugin goes with `[plugins] shipped` or `warren plugin revoke`".into(),
            ),
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
