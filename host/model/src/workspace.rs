//! The Workspace of a Project: its file on disk and its record in the store.

use jiff::Timestamp;
use serde::{Deserialize, Serialize};
use serde_json::{Map, Value};

use crate::{ProjectId, TenantId};

/// Status of a Workspace: `INIT → RUNNING → DISPOSED`, the others while they last.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "UPPERCASE")]
pub enum WorkspaceStatus {
    /// Known, but not on disk: new, or suspended with Snapshots in the store.
    Init,
    /// On disk and in use.
    Running,
    /// Being put away; the folder is the truth until the suspend is committed.
    Suspending,
    /// Being brought back; the Snapshots are the truth of each RootDir that is not `ready`.
    Recovering,
    /// Gone for good.
    Disposed,
}

/// `workspace.json` in the Project's folder. Unknown fields are kept.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct WorkspaceFile {
    /// Tenant that owns the Project.
    pub tenant: TenantId,
    /// The Project.
    pub project_id: ProjectId,
    /// When the Workspace was made.
    pub created_at: Timestamp,
    /// Status when last written.
    pub status: WorkspaceStatus,
    /// Suspend generation that the status belongs to, while it lasts.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub generation: Option<u64>,
    /// Fields that this version does not know.
    #[serde(flatten)]
    pub extra: Map<String, Value>,
}

/// How far the last suspend has come.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum SuspendState {
    /// Handlers are saving; nothing is committed.
    Pending,
    /// All Snapshots of the generation are the truth.
    Committed,
    /// Recovered but for some RootDirs, whose Snapshots are kept.
    Partial,
}

/// The last suspend of a Workspace.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
pub struct SuspendStatus {
    /// Its generation.
    pub generation: u64,
    /// How far it has come.
    pub state: SuspendState,
}

/// One row of `workspaces`.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct WorkspaceRecord {
    /// Tenant, a part of the key.
    pub tenant: TenantId,
    /// Project, a part of the key.
    pub project_id: ProjectId,
    /// Status; changed only as compare-and-set together with `generation`.
    pub status: WorkspaceStatus,
    /// Counts status changes.
    pub generation: u64,
    /// The last suspend, while its Snapshots matter.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub suspend: Option<SuspendStatus>,
    /// The highest suspend generation that was ever committed: a folder that was being suspended
    /// under it, or an older one, is garbage.
    #[serde(default)]
    pub committed: u64,
    /// Workspace root that holds the folder, while there is one; escaped.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub root: Option<String>,
    /// Suspend generations that were rolled back: a folder that says it was being suspended under
    /// one of them was never saved, however late it is found.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub rolled_back: Vec<u64>,
    /// Whether the files in the folder must carry the host's seal: false for a Workspace of a host
    /// that wrote none, until the next init.
    #[serde(default)]
    pub sealed: bool,
    /// When the Workspace was made.
    pub created_at: Timestamp,
    /// Fields that this version does not know.
    #[serde(flatten)]
    pub extra: Map<String, Value>,
}
