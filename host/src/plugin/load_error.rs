//! Why a component did not load.

use std::fmt;
use std::path::PathBuf;

use warren_model::HandlerType;

use super::error::PluginError;

/// Where a component comes from.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Origin {
    /// It is part of the host; holds its name.
    Shipped(String),
    /// A file.
    File(PathBuf),
}

impl Origin {
    /// The name by which grants are looked up.
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
    /// A function or type of an interface is not as this host has it.
    #[error("the component does not fit this host: {0}")]
    Incompatible(String),
    /// It does not compile.
    #[error("the component does not compile: {0}")]
    Compile(String),
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
            Self::Compile(_) => "PluginCompile",
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
            Self::UngrantedImport(_) => "grant them to the plugin, or remove the plugin".into(),
            Self::DuplicateHandlerType { .. } => "remove one of the two".into(),
            Self::ReservedHandlerType(_) => {
                "give it another type, or leave the shipped component out in the configuration".into()
            }
            _ => return None,
        })
    }
}
