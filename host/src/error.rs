//! Why an operation failed: one variant per thing a caller can do about it.

use std::sync::Arc;

use warren_disk::lock::LockError;
use warren_disk::remove::RemoveError;
use warren_model::{DirName, HandlerType, InvalidName, MetadataError, WorkspaceStatus};

use crate::plugin::{LoadError, PluginError};
use crate::store::StoreError;

/// What a handler was called for.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Step {
    /// Filling a new RootDir.
    Init,
    /// Saving it.
    Suspend,
    /// Bringing it back.
    Recover,
    /// Closing it before it is deleted.
    Close,
    /// An action of the handler's own.
    Perform,
}

impl std::fmt::Display for Step {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str(match self {
            Self::Init => "fill",
            Self::Suspend => "suspend",
            Self::Recover => "recover",
            Self::Close => "close",
            Self::Perform => "act on",
        })
    }
}

/// Why a service call failed.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum Error {
    /// A name that cannot be used.
    #[error(transparent)]
    InvalidName(#[from] InvalidName),
    /// Metadata that cannot be used.
    #[error(transparent)]
    InvalidMetadata(#[from] MetadataError),
    /// An argument that cannot be used.
    #[error("invalid {what}: {reason}")]
    InvalidArgument {
        /// Which argument.
        what: &'static str,
        /// What is wrong with it.
        reason: String,
    },
    /// No handler claims the type.
    #[error("no handler is registered for type `{0}`")]
    UnknownHandler(HandlerType),
    /// The plugin of the type was not loaded.
    #[error("the plugin for type `{handler}` was not loaded")]
    HandlerRefused {
        /// The type.
        handler: HandlerType,
        /// Why.
        #[source]
        source: Arc<LoadError>,
    },
    /// A handler failed.
    #[error("handler `{handler}` failed to {step} RootDir `{dir_name}`")]
    Handler {
        /// Type of the handler.
        handler: HandlerType,
        /// What it was called for.
        step: Step,
        /// Which RootDir.
        dir_name: DirName,
        /// Why.
        #[source]
        source: Box<PluginError>,
    },
    /// There is no Workspace.
    #[error("project `{0}` has no workspace")]
    WorkspaceNotFound(String),
    /// The Workspace is gone for good.
    #[error("the workspace of project `{0}` is disposed")]
    WorkspaceDisposed(String),
    /// The Workspace is not in use now.
    #[error("the workspace of project `{project}` is {}", status_text(*.status))]
    WorkspaceNotRunning {
        /// Which Project.
        project: String,
        /// Its status.
        status: WorkspaceStatus,
    },
    /// The Workspace is in use in another workspace root.
    #[error("the workspace of project `{project}` is in the workspace root `{root}`")]
    WorkspaceElsewhere {
        /// Which Project.
        project: String,
        /// Where its folder is, escaped.
        root: String,
    },
    /// The folder belongs to another tenant or Project.
    #[error("the folder of project `{project}` belongs to `{owner}`")]
    WorkspaceConflict {
        /// Which Project was asked for.
        project: String,
        /// Whose it is.
        owner: String,
    },
    /// Another operation holds the Project or the RootDir.
    #[error("`{0}` is busy with another operation")]
    WorkspaceBusy(String, #[source] LockError),
    /// There is no such RootDir.
    #[error("there is no RootDir `{0}`")]
    RootDirNotFound(DirName),
    /// The RootDir is not in use: half-made, waiting for recover, or being deleted.
    #[error("RootDir `{dir_name}` is {state}")]
    RootDirNotReady {
        /// Which one.
        dir_name: DirName,
        /// How far it is.
        state: &'static str,
    },
    /// The folder of the RootDir is gone, or is no folder.
    #[error("the folder of RootDir `{dir_name}` cannot be opened")]
    RootDirUnreadable {
        /// Which one.
        dir_name: DirName,
        /// Why.
        #[source]
        source: std::io::Error,
    },
    /// A Descriptor or `workspace.json` that cannot be read.
    #[error("`{file}` is damaged: {reason}")]
    Damaged {
        /// Which file, from the workspace root.
        file: String,
        /// What is wrong with it.
        reason: String,
    },
    /// Files in the Project's folder that no Descriptor knows.
    #[error("the project's folder holds content that no Descriptor knows: {}", .0.join(", "))]
    OrphanedContent(Vec<String>),
    /// The disk is full to the hard limit.
    #[error(
        "{resource} of the workspace disk are {used_percent} % used; the hard limit is {limit_percent} %"
    )]
    WorkspaceQuotaExceeded {
        /// `bytes` or `inodes`.
        resource: &'static str,
        /// How full it is.
        used_percent: u8,
        /// The limit.
        limit_percent: u8,
    },
    /// Several RootDirs of one operation failed; nothing was changed.
    #[error("{} RootDirs failed; nothing was changed", .errors.len())]
    Several {
        /// What the errors say, in one line.
        #[source]
        source: Messages,
        /// The errors.
        errors: Vec<Self>,
    },
    /// A RootDir could not be deleted whole.
    #[error("cannot delete RootDir `{dir_name}`")]
    Delete {
        /// Which one.
        dir_name: DirName,
        /// Why.
        #[source]
        source: RemoveError,
    },
    /// Content that no Descriptor knows could not be deleted.
    #[error("cannot delete `{name}`")]
    DeleteStranger {
        /// Which entry of the Project's folder, escaped.
        name: String,
        /// Why.
        #[source]
        source: RemoveError,
    },
    /// State of the host would lie in the managed region, or the other way round.
    #[error("the state directory `{state}` and the workspace root `{root}` overlap")]
    PersistenceOverlap {
        /// State directory.
        state: String,
        /// Workspace root.
        root: String,
    },
    /// The store refused or failed.
    #[error(transparent)]
    Store(#[from] StoreError),
    /// The plugins could not be loaded.
    #[error("cannot load the plugins")]
    Plugins(#[source] Box<PluginError>),
    /// File work failed.
    #[error("cannot {doing}")]
    Io {
        /// What was being done.
        doing: String,
        /// Why it failed.
        #[source]
        source: std::io::Error,
    },
}

/// What several errors say, as their common source.
#[derive(Debug, thiserror::Error)]
#[error("{0}")]
pub struct Messages(String);

fn status_text(status: WorkspaceStatus) -> &'static str {
    match status {
        WorkspaceStatus::Init => "not on disk: it is new or suspended",
        WorkspaceStatus::Running => "running, but its folder is gone",
        WorkspaceStatus::Suspending => "being suspended, or was when its host stopped",
        WorkspaceStatus::Recovering => "being recovered, or was when its host stopped",
        WorkspaceStatus::Disposed => "disposed",
    }
}

impl Error {
    /// One error as it is, several as one that names the first.
    pub(crate) fn of(mut errors: Vec<Self>) -> Self {
        if errors.len() == 1 {
            return errors.remove(0);
        }
        let message = errors
            .iter()
            .map(|error| crate::error::chain(error))
            .collect::<Vec<_>>()
            .join("; ");
        Self::Several {
            source: Messages(message),
            errors,
        }
    }

    pub(crate) fn io(doing: impl Into<String>) -> impl FnOnce(std::io::Error) -> Self {
        let doing = doing.into();
        move |source| Self::Io { doing, source }
    }

    /// Stable code: documented, the same over every face.
    pub fn code(&self) -> &'static str {
        match self {
            Self::InvalidName(_) => "InvalidName",
            Self::InvalidMetadata(_) => "InvalidMetadata",
            Self::InvalidArgument { .. } => "InvalidArgument",
            Self::UnknownHandler(_) => "UnknownHandler",
            Self::HandlerRefused { source, .. } => source.code(),
            Self::Handler { source, .. } | Self::Plugins(source) => source.code(),
            Self::WorkspaceNotFound(_) => "WorkspaceNotFound",
            Self::WorkspaceDisposed(_) => "WorkspaceDisposed",
            Self::WorkspaceNotRunning { .. } => "WorkspaceNotRunning",
            Self::WorkspaceElsewhere { .. } => "WorkspaceElsewhere",
            Self::WorkspaceConflict { .. } => "WorkspaceConflict",
            Self::WorkspaceBusy(..) => "WorkspaceBusy",
            Self::RootDirNotFound(_) => "RootDirNotFound",
            Self::RootDirNotReady { .. } => "RootDirNotReady",
            Self::RootDirUnreadable { .. } => "RootDirUnreadable",
            Self::Damaged { .. } => "DescriptorDamaged",
            Self::OrphanedContent(_) => "OrphanedContent",
            Self::WorkspaceQuotaExceeded { .. } => "WorkspaceQuotaExceeded",
            Self::Several { errors, .. } => errors.first().map_or("Several", Self::code),
            Self::Delete { .. } | Self::DeleteStranger { .. } => "DeleteIncomplete",
            Self::PersistenceOverlap { .. } => "PersistenceOverlap",
            Self::Store(error) => error.code(),
            Self::Io { .. } => "Io",
        }
    }

    /// What the user can do next, printed as `hint: …`.
    pub fn hint(&self) -> Option<String> {
        let text = match self {
            Self::Handler { source, .. } | Self::Plugins(source) => return source.hint(),
            Self::HandlerRefused { source, .. } => return source.hint(),
            Self::Store(error) => return error.hint(),
            Self::Several { errors, .. } => return errors.first().and_then(Self::hint),
            Self::UnknownHandler(_) => "`warren plugin list` shows the types of this host",
            Self::WorkspaceNotFound(_) => "`warren workspace init` makes it",
            Self::WorkspaceDisposed(_) => "`warren workspace init` starts a fresh one",
            Self::WorkspaceNotRunning { .. } => "`warren workspace init` brings it up",
            Self::WorkspaceElsewhere { .. } => {
                "use `--workspace-root` with that directory; only if it is gone for good, `warren workspace init --take-over` starts here"
            }
            Self::WorkspaceConflict { .. } => {
                "use another project id, or `layout = \"tenant\"` in `[workspace]`"
            }
            Self::WorkspaceBusy(..) => "try again when the other operation has ended",
            Self::RootDirNotFound(_) => "`warren rootdir list` shows those that exist",
            Self::RootDirNotReady { .. } => {
                "`warren workspace init` finishes or rolls back what was interrupted"
            }
            Self::RootDirUnreadable { .. } => {
                "put the folder back, or dispose of the RootDir with `--force`"
            }
            Self::Damaged { .. } => {
                "the content is untouched: mend the file and run `warren workspace reseal`, or dispose of it with `--force`"
            }
            Self::OrphanedContent(_) => "move it into a RootDir, or away",
            Self::WorkspaceQuotaExceeded { .. } => {
                "suspend or dispose of what is not needed; `warren quota` shows the disk"
            }
            Self::Delete { source, .. } | Self::DeleteStranger { source, .. } => {
                let cause = source.hint().unwrap_or_else(|| "mend the cause".to_owned());
                return Some(format!(
                    "{cause}; a RootDir's Descriptor is kept until it is gone"
                ));
            }
            Self::PersistenceOverlap { .. } => "choose two directories beside each other",
            _ => return None,
        };
        Some(text.to_owned())
    }
}

/// An error and its causes in one line.
pub fn chain(error: &dyn std::error::Error) -> String {
    let mut text = error.to_string();
    let mut source = error.source();
    while let Some(cause) = source {
        text.push_str(": ");
        text.push_str(&cause.to_string());
        source = cause.source();
    }
    text
}
