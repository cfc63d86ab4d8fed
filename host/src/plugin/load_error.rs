//! Why a component did not load.

use std::fmt;
use std::path::PathBuf;
use std::sync::Arc;

use warren_model::HandlerType;
use warren_policy::{Change, Direction, DocumentError, SectionError};

use super::error::PluginError;
use super::lock::LockError;

/// Where a component comes from.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Origin {
    /// It is part of the host; holds its name.
    Shipped(String),
    /// A file.
    File(PathBuf),
}

impl Origin {
    /// The name that logs have of it.
    pub fn name(&self) -> String {
        match self {
            Self::Shipped(name) => name.clone(),
            Self::File(path) => path
                .file_stem()
                .unwrap_or_default()
                .to_string_lossy()
                .into_owned(),
        }
    }
}

impl fmt::Display for Origin {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Shipped(name) => write!(f, "shipped `{name}`"),
            Self::File(path) => write!(f, "`{}`", path.display()),
        }
    }
}

/// Why a component did not load: one variant per thing its author or the operator can do.
#[derive(Debug, thiserror::Error)]
pub enum LoadError {
    /// The file cannot be read.
    #[error("the component cannot be read")]
    Read(#[source] std::io::Error),
    /// The file is empty.
    #[error("the file is empty")]
    Empty,
    /// The file is no WebAssembly at all.
    #[error("this is no WebAssembly: the file starts with `{start}`")]
    NotWasm {
        /// Its first bytes, escaped.
        start: String,
    },
    /// The file is a core module.
    #[error("this is a core WebAssembly module, expected a component")]
    CoreModule,
    /// The binary is too big.
    #[error("the component has {bytes} bytes; the limit is {bytes_max}")]
    TooLarge {
        /// Its size.
        bytes: u64,
        /// The limit.
        bytes_max: u64,
    },
    /// The binary is damaged.
    #[error("the component is damaged: {0}")]
    Malformed(String),
    /// It does not export the handler interface.
    #[error("the component exports no `{expected}`; it exports {}", names(.found))]
    MissingExport {
        /// The interface.
        expected: String,
        /// What it exports.
        found: Vec<String>,
    },
    /// It was built against another version of one of our interfaces.
    #[error("the component needs `{interface}` at version {found}; this host has {expected}")]
    WrongVersion {
        /// Package and interface.
        interface: String,
        /// The version of this host.
        expected: String,
        /// The version that the component names.
        found: String,
    },
    /// It imports interfaces that this host does not have.
    #[error("the component imports what this host does not have: {}", names(.0))]
    UnknownImport(Vec<String>),
    /// It imports interfaces that it was not granted.
    #[error("the component imports what it was not granted: {}", names(.0))]
    UngrantedImport(Vec<String>),
    /// It carries no manifest that can be used.
    #[error("the component's manifest cannot be used")]
    Manifest(#[source] ManifestError),
    /// It imports what its manifest does not ask for.
    #[error("the component imports what its manifest does not ask for: {}", names(.0))]
    UnwantedImport(Vec<String>),
    /// Nobody approved it, or not as it is.
    #[error("{0}")]
    NotApproved(NotApproved),
    /// What was approved cannot be told.
    #[error("the approvals cannot be read")]
    Lock(#[source] Arc<LockError>),
    /// A function or type of an interface is not as this host has it.
    #[error("the component does not fit this host: {0}")]
    Incompatible(String),
    /// It does not compile.
    #[error("the component does not compile: {0}")]
    Compile(String),
    /// Its compilation passed a limit, now or at an earlier start.
    #[error("the component does not compile within its limits: {0}")]
    CompileLimit(String),
    /// `describe` failed.
    #[error("`describe` failed")]
    Describe(#[source] Box<PluginError>),
    /// `describe` said something that cannot be.
    #[error("`describe` returned a bad `{field}`: {reason}")]
    BadDescription {
        /// The field.
        field: &'static str,
        /// What is wrong with it.
        reason: String,
    },
    /// Another component has this type.
    #[error("type `{handler}` is taken by {first}")]
    DuplicateHandlerType {
        /// The type.
        handler: HandlerType,
        /// Who has it.
        first: Origin,
    },
    /// The type belongs to a shipped component.
    #[error("type `{0}` is reserved for the shipped component")]
    ReservedHandlerType(HandlerType),
    /// The cache's key or directory cannot be used.
    #[error("the cache of compiled components cannot be used")]
    Cache(#[source] std::io::Error),
    /// A fault of the host.
    #[error("the host failed: {0}")]
    Internal(String),
}

/// Why a manifest cannot be used.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum ManifestError {
    /// There is none, or more than one.
    #[error(transparent)]
    Section(SectionError),
    /// It is not what a manifest must be.
    #[error(transparent)]
    Document(DocumentError),
    /// It asks for something that cannot be.
    #[error("{0}")]
    Wish(String),
    /// `describe` and the manifest name two types.
    #[error("it names the type `{manifest}`, and `describe` says `{described}`")]
    Type {
        /// What the manifest says.
        manifest: HandlerType,
        /// What `describe` says.
        described: HandlerType,
    },
}

/// What is missing for an approval.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum NotApproved {
    /// Nobody approved a component of the type.
    #[error("nobody approved a plugin for type `{0}`")]
    Unknown(HandlerType),
    /// Somebody revoked the type.
    #[error("the plugin for type `{0}` was revoked")]
    Revoked(HandlerType),
    /// It is not what was approved, or would get more.
    #[error("the plugin for type `{handler}` is not what was approved: {}", shown(.changes))]
    Differs {
        /// Its type.
        handler: HandlerType,
        /// What is different.
        changes: Vec<Change>,
    },
}

impl NotApproved {
    /// The type that needs an approval.
    pub fn handler(&self) -> &HandlerType {
        match self {
            Self::Unknown(handler) | Self::Revoked(handler) | Self::Differs { handler, .. } => {
                handler
            }
        }
    }
}

/// How many differences an error lists.
const CHANGES_SHOWN: usize = 8;

/// The differences in a line, what widens first.
fn shown(changes: &[Change]) -> String {
    let mut sorted: Vec<&Change> = changes.iter().collect();
    sorted.sort_by_key(|change| change.direction != Direction::Widens);
    let first = sorted.iter().take(CHANGES_SHOWN).map(ToString::to_string);
    let mut shown: Vec<String> = first.collect();
    if changes.len() > CHANGES_SHOWN {
        shown.push(format!("and {} more", changes.len() - CHANGES_SHOWN));
    }
    shown.join("; ")
}

fn names(names: &[String]) -> String {
    if names.is_empty() {
        return "nothing".to_owned();
    }
    let quoted: Vec<_> = names.iter().map(|name| format!("`{name}`")).collect();
    quoted.join(", ")
}

impl LoadError {
    /// Stable name of the error.
    pub fn code(&self) -> &'static str {
        match self {
            Self::Read(_) => "PluginUnreadable",
            Self::Empty | Self::NotWasm { .. } | Self::Malformed(_) => "PluginMalformed",
            Self::CoreModule => "PluginCoreModule",
            Self::TooLarge { .. } => "PluginTooLarge",
            Self::MissingExport { .. } | Self::WrongVersion { .. } | Self::Incompatible(_) => {
                "PluginIncompatible"
            }
            Self::UnknownImport(_) => "UnknownImport",
            Self::UngrantedImport(_) => "UngrantedImport",
            Self::Manifest(_) => "PluginManifest",
            Self::UnwantedImport(_) => "UnwantedImport",
            Self::NotApproved(_) => "PluginNotApproved",
            Self::Lock(_) => "PluginLock",
            Self::Compile(_) | Self::CompileLimit(_) => "PluginCompile",
            Self::Describe(_) | Self::BadDescription { .. } => "PluginDescription",
            Self::DuplicateHandlerType { .. } => "DuplicateHandlerType",
            Self::ReservedHandlerType(_) => "ReservedHandlerType",
            Self::Cache(_) => "PluginCache",
            Self::Internal(_) => "Internal",
        }
    }

    /// What can be done about it.
    pub fn hint(&self) -> Option<String> {
        Some(match self {
            Self::Empty | Self::NotWasm { .. } | Self::Malformed(_) => {
                "build it again and copy the whole file".into()
            }
            Self::CoreModule => {
                "build it for the target `wasm32-wasip2`, or wrap it with `wasm-tools component new`".into()
            }
            Self::MissingExport { expected, .. } => {
                format!("a handler exports `{expected}`; does it call the SDK's export macro?")
            }
            Self::WrongVersion { expected, .. } => {
                format!("build it against version {expected} of the SDK")
            }
            Self::Manifest(ManifestError::Section(SectionError::Missing)) => {
                "the SDK's `export_handler!` puts one in; `warren plugin stamp` adds one to any component".into()
            }
            Self::Manifest(ManifestError::Document(error)) => return error.hint(),
            Self::UnwantedImport(_) => {
                "its author adds a `[wants]` table with a reason for each to the manifest".into()
            }
            Self::NotApproved(what) => {
                format!("`warren plugin approve {}` shows it and asks", what.handler())
            }
            Self::Lock(error) => return error.hint(),
            Self::UngrantedImport(_) => {
                "grant them to its type in the policy, or remove the plugin; `warren policy show` prints the policy".into()
            }
            Self::CompileLimit(_) => {
                "build it smaller; it is not tried again until it or the host has changed".into()
            }
            Self::DuplicateHandlerType { .. } => "remove one of the two".into(),
            Self::ReservedHandlerType(_) => {
                "give it another type, or leave the shipped component out in the configuration".into()
            }
            _ => return None,
        })
    }
}
