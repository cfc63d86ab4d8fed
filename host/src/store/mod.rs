//! What outlives a Pod's folders: Workspace records, Snapshots and working directories.

mod embedded;

pub use embedded::{Change, EmbeddedStore};

use warren_model::{ProjectId, TenantId};

/// The key of everything: a Project of a tenant.
#[derive(Debug, Clone, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct ProjectKey {
    /// The tenant.
    pub tenant: TenantId,
    /// The Project.
    pub project: ProjectId,
}

impl std::fmt::Display for ProjectKey {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "{}/{}", self.tenant, self.project)
    }
}

/// Why the store refused or failed.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum StoreError {
    /// The record changed since it was read: status and generation are not what was expected.
    #[error("the record of `{0}` was changed by someone else")]
    Conflict(String),
    /// A row that cannot be read.
    #[error("the store holds a damaged row `{key}`")]
    Damaged {
        /// Which row.
        key: String,
        /// What is wrong with it.
        #[source]
        source: serde_json::Error,
    },
    /// Another process kept the store for too long.
    #[error("the store is in use by another process")]
    Busy(#[source] warren_disk::lock::LockError),
    /// The database failed.
    #[error("the store failed")]
    Database(#[source] Box<redb::Error>),
    /// The work on the store did not end.
    #[error("the store stopped working")]
    Stopped(#[source] tokio::task::JoinError),
}

impl StoreError {
    /// Stable code of the error.
    pub fn code(&self) -> &'static str {
        match self {
            Self::Conflict(_) => "StoreConflict",
            Self::Damaged { .. } => "StoreDamaged",
            Self::Busy(_) => "StoreBusy",
            Self::Database(_) | Self::Stopped(_) => "StoreFailed",
        }
    }

    /// What the user can do next.
    pub fn hint(&self) -> Option<String> {
        match self {
            Self::Conflict(_) => Some("read the Workspace again and repeat the operation".into()),
            Self::Busy(_) => Some("another Warren process holds it; try again".into()),
            _ => None,
        }
    }
}

/// One page of a listing.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Page<T> {
    /// The entries, in key order.
    pub items: Vec<T>,
    /// Where the next page starts; none: this was the last.
    pub next: Option<String>,
}
