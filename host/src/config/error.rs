//! Why a configuration cannot be used.

use std::path::PathBuf;

use warren_policy::DocumentError;

use super::Origin;

/// One variant per thing an operator can do about it. No text holds a secret.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum ConfigError {
    /// A file that cannot be read.
    #[error("cannot read the configuration `{}`", path.display())]
    Read {
        /// Which file.
        path: PathBuf,
        /// Why.
        #[source]
        source: std::io::Error,
    },
    /// Not TOML.
    #[error("`{}` line {line}: {message}", path.display())]
    Syntax {
        /// Which file.
        path: PathBuf,
        /// Where, from 1.
        line: usize,
        /// What the parser says.
        message: String,
    },
    /// A key that this version does not know.
    #[error("`{}` line {line}: unknown key `{key}`", path.display())]
    UnknownKey {
        /// Which file.
        path: PathBuf,
        /// Where, from 1.
        line: usize,
        /// The key, with its section.
        key: String,
        /// The known key that is nearest.
        nearest: Option<String>,
    },
    /// A value of another type than the key takes.
    #[error("`{}` line {line}: `{key}` takes {expected}, not {found}", path.display())]
    WrongType {
        /// Which file.
        path: PathBuf,
        /// Where, from 1.
        line: usize,
        /// The key, with its section.
        key: String,
        /// What the key takes.
        expected: &'static str,
        /// What stands there.
        found: &'static str,
    },
    /// A value that cannot be used.
    #[error("`{key}` ({origin}): {reason}")]
    Invalid {
        /// The key, with its section.
        key: String,
        /// Where the value comes from.
        origin: Origin,
        /// What is wrong with it.
        reason: String,
    },
    /// A policy that cannot be used.
    #[error("the policy `{}` cannot be used", path.display())]
    Policy {
        /// Which file.
        path: PathBuf,
        /// What is wrong with it.
        #[source]
        source: DocumentError,
    },
    /// A store that this version does not have.
    #[error("`store.url` ({origin}): there is no store of kind `{scheme}:`")]
    UnsupportedStore {
        /// Where the value comes from.
        origin: Origin,
        /// Scheme of the URL; the rest may hold a password.
        scheme: String,
    },
    /// A default lies in the home directory, and there is none.
    #[error("no home directory is known, so `{key}` has no default")]
    HomeUnknown {
        /// The key, with its section.
        key: &'static str,
    },
}

impl ConfigError {
    /// Stable code of the error.
    pub fn code(&self) -> &'static str {
        match self {
            Self::Read { .. } => "ConfigUnreadable",
            Self::Syntax { .. } => "ConfigSyntax",
            Self::UnknownKey { .. } => "ConfigUnknownKey",
            Self::WrongType { .. } => "ConfigWrongType",
            Self::Invalid { .. } => "ConfigInvalid",
            Self::Policy { .. } => "PolicyInvalid",
            Self::UnsupportedStore { .. } => "StoreUnsupported",
            Self::HomeUnknown { .. } => "HomeUnknown",
        }
    }

    /// What to do next.
    pub fn hint(&self) -> Option<String> {
        match self {
            Self::UnknownKey { key, .. } if key == "plugins.grants" => Some(
                "grants stand in a policy of their own now: `policy.toml` beside this file".to_owned(),
            ),
            Self::UnknownKey { nearest, .. } => {
                nearest.as_ref().map(|key| format!("did you mean `{key}`?"))
            }
            Self::WrongType { key, .. } if key.ends_with(".password") => Some(
                "a secret never stands in the file: `{ env = \"NAME\" }`, `{ file = \"PATH\" }` or \
                 `{ command = [\"PROGRAM\", \"ARGUMENT\"] }`"
                    .to_owned(),
            ),
            Self::Policy { source, .. } => source
                .hint()
                .or_else(|| Some("`warren policy check` tries a file; `warren policy schema` says what may stand in it".to_owned())),
            Self::UnsupportedStore { .. } => {
                Some("use `embedded:`; other stores are not in this version".to_owned())
            }
            Self::HomeUnknown { .. } => Some(
                "give it by flag, variable or file; `warren --help` names them".to_owned(),
            ),
            _ => None,
        }
    }
}
