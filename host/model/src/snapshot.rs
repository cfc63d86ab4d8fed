//! What suspend leaves in the store.

use jiff::Timestamp;
use serde::{Deserialize, Serialize};
use serde_json::{Map, Value};

use crate::{Descriptor, DirName, ProjectId, TenantId};

/// What a lost entry is.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum LossKind {
    /// Matched by an ignore rule.
    Ignored,
    /// A directory without files.
    EmptyDirectory,
    /// A socket, FIFO or device.
    SpecialFile,
    /// A ref or object that the format does not carry.
    Ref,
    /// Content of a handler that keeps nothing by design.
    Ephemeral,
    /// Rebuilt on recover.
    Rebuilt,
}

/// One entry of a loss manifest: something that suspend does not save.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Loss {
    /// What it is.
    pub kind: LossKind,
    /// Path from the root, or name of a ref. Bytes that are not UTF-8 are escaped.
    pub path: String,
    /// Bytes on disk, where counted.
    pub bytes: u64,
}

/// Proof by a capability that content is saved, as the host saw it: independent of what the
/// handler says.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct Receipt {
    /// Remote URL, without credentials.
    pub url: String,
    /// Full name of the ref, when something was pushed.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub ref_name: Option<String>,
    /// Commit that holds the content.
    pub commit: String,
}

/// One row of `workspace_snapshots`.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct Snapshot {
    /// Tenant, a part of the key.
    pub tenant: TenantId,
    /// Project, a part of the key.
    pub project_id: ProjectId,
    /// RootDir, a part of the key.
    pub dir_name: DirName,
    /// The Descriptor, complete.
    pub descriptor: Descriptor,
    /// When.
    pub suspended_at: Timestamp,
    /// Suspend generation, a part of the key.
    #[serde(default)]
    pub generation: u64,
    /// Where the host saw the content saved.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub receipts: Vec<Receipt>,
    /// What does not come back.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub loss: Vec<Loss>,
    /// Why the last recover failed.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub recover_error: Option<String>,
    /// Fields that this version does not know.
    #[serde(flatten)]
    pub extra: Map<String, Value>,
}
