use std::io;
use std::path::PathBuf;

use crate::Layer;

/// Why a layer is not in force.
#[derive(Debug, thiserror::Error)]
pub enum ConfineError {
    /// This kernel does not give it, or not in full.
    #[error("this kernel does not enforce {layer} in full")]
    Unavailable {
        /// The layer.
        layer: Layer,
        /// What was missing.
        #[source]
        source: Box<dyn std::error::Error + Send + Sync>,
    },
    /// The kernel knows it but refused.
    #[error("{layer} could not be put in force")]
    Failed {
        /// The layer.
        layer: Layer,
        /// What the kernel says.
        #[source]
        source: io::Error,
    },
    /// A place that a rule names could not be opened or examined.
    #[error("`{}` can not be named in a rule", path.display())]
    Place {
        /// The place, or what is open there.
        path: PathBuf,
        /// What the kernel says.
        #[source]
        source: io::Error,
    },
}

impl ConfineError {
    /// The layer that is missing.
    pub fn layer(&self) -> Layer {
        match self {
            Self::Unavailable { layer, .. } | Self::Failed { layer, .. } => *layer,
            Self::Place { .. } => Layer::Landlock,
        }
    }

    /// Stable name of the variant for machines.
    pub fn code(&self) -> &'static str {
        match self {
            Self::Unavailable { .. } => "ConfinementUnavailable",
            Self::Failed { .. } => "ConfinementFailed",
            Self::Place { .. } => "ConfinementPlace",
        }
    }

    /// What a person can do next.
    pub fn hint(&self) -> Option<String> {
        let hint = match self {
            Self::Unavailable {
                layer: Layer::Landlock,
                ..
            } => "Linux 6.12 or newer with Landlock enabled is needed; see `warren doctor`",
            Self::Unavailable { .. } | Self::Failed { .. } => {
                "`warren doctor` says what this machine can enforce"
            }
            Self::Place { .. } => return None,
        };
        Some(hint.to_owned())
    }
}
