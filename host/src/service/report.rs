//! What operations report.

use std::sync::Arc;

use serde::Serialize;
use warren_disk::space::{Limits, Resource, Space};
use warren_disk::usage::Usage;
use warren_model::{
    Descriptor, DirName, HandlerType, Loss, Receipt, SuspendStatus, WorkspaceStatus,
};

use crate::error::{self, Error};
use crate::plugin::Suspended;

/// How far long work in one RootDir has come.
#[derive(Debug, Clone, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct Progress {
    /// Which RootDir.
    pub dir_name: DirName,
    /// What is being done, `fetch` say.
    pub stage: String,
    /// How much of it is done, in any unit.
    pub done: u64,
    /// How much there is to do, where known.
    pub total: Option<u64>,
}

/// Where progress goes. Called from any thread; must not block.
pub type ProgressSink = Arc<dyn Fn(Progress) + Send + Sync>;

pub(super) fn silent() -> ProgressSink {
    Arc::new(|_| {})
}

/// A Workspace as callers see it.
#[derive(Debug, Clone, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct WorkspaceView {
    /// Tenant that owns the Project.
    pub tenant: String,
    /// The Project.
    pub project_id: String,
    /// Status in the store.
    pub status: WorkspaceStatus,
    /// Count of status changes.
    pub generation: u64,
    /// The last suspend, while its Snapshots matter.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub suspend: Option<SuspendStatus>,
    /// When the Workspace was made, ISO-8601.
    pub created_at: String,
    /// RootDirs on disk.
    pub root_dirs: usize,
    /// Snapshots in the store.
    pub snapshots: usize,
}

/// A RootDir for which an operation failed, with the others untouched by that.
#[derive(Debug, Clone, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct RootFailure {
    /// Which RootDir.
    pub dir_name: DirName,
    /// Stable code.
    pub code: &'static str,
    /// The error and its causes.
    pub message: String,
    /// What to do next.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub hint: Option<String>,
}

impl RootFailure {
    pub(super) fn new(dir_name: &DirName, error: &Error) -> Self {
        Self {
            dir_name: dir_name.clone(),
            code: error.code(),
            message: error::chain(error),
            hint: error.hint(),
        }
    }
}

/// What init or recover did.
#[derive(Debug, Clone, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct InitReport {
    /// The Workspace after it.
    pub workspace: WorkspaceView,
    /// RootDirs that came back.
    pub recovered: Vec<Descriptor>,
    /// RootDirs that did not; their Snapshots are kept, and the next init tries again.
    pub failed: Vec<RootFailure>,
}

/// One RootDir of a suspend.
#[derive(Debug, Clone, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct SuspendedRoot {
    /// Which RootDir.
    pub dir_name: DirName,
    /// Its type.
    #[serde(rename = "type")]
    pub handler_type: HandlerType,
    /// Where the host saw the content saved.
    pub receipts: Vec<Receipt>,
    /// What does not come back.
    pub loss: Vec<Loss>,
}

/// What suspend did, or would do.
#[derive(Debug, Clone, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct SuspendReport {
    /// Whether nothing was changed.
    pub dry_run: bool,
    /// Generation of the suspend; none for a dry run.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub generation: Option<u64>,
    /// Every RootDir.
    pub roots: Vec<SuspendedRoot>,
    /// RootDirs that would fail; only in a dry run, a real one changes nothing then.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub failed: Vec<RootFailure>,
    /// Entries that could not be deleted after the commit, or were not ours to delete.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub left: Vec<String>,
}

/// How to dispose.
#[derive(Debug, Clone, Copy, Default)]
pub struct DisposeOptions {
    /// Only say what would be lost.
    pub dry_run: bool,
    /// Dispose even of what its handler fails to close.
    pub force: bool,
}

/// What dispose did, or would do.
#[derive(Debug, Clone, Default, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct DisposeReport {
    /// Whether nothing was changed.
    pub dry_run: bool,
    /// RootDirs that are gone, or would be.
    pub disposed: Vec<DirName>,
    /// RootDirs of the creator that stay: they do not go when it closes.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub kept: Vec<DirName>,
    /// What goes with them that is saved nowhere else, by RootDir; only in a dry run.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub lost: Vec<LostRoot>,
    /// RootDirs that failed and stay.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub failed: Vec<RootFailure>,
}

/// What a dispose loses of one RootDir.
#[derive(Debug, Clone, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct LostRoot {
    /// Which RootDir.
    pub dir_name: DirName,
    /// Files in it.
    pub files: u64,
    /// Bytes on disk.
    pub bytes: u64,
    /// Whether a remote already has all that suspend would save.
    pub saved: bool,
    /// Where the host saw it saved.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub receipts: Vec<Receipt>,
    /// Entries that are saved nowhere, where they are known one by one.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub loss: Vec<Loss>,
    /// Why it is not saved, in a line.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub reason: Option<String>,
}

impl LostRoot {
    pub(super) fn new(dir_name: &DirName, usage: &Usage, saved: Result<Suspended, Error>) -> Self {
        let mut lost = Self {
            dir_name: dir_name.clone(),
            files: usage.files,
            bytes: usage.bytes,
            saved: false,
            receipts: Vec::new(),
            loss: Vec::new(),
            reason: None,
        };
        match saved {
            Err(error) => lost.reason = Some(error::chain(&error)),
            Ok(suspended) => {
                // A receipt without a ref: nothing had to be pushed.
                lost.saved = !suspended.receipts.is_empty()
                    && suspended.receipts.iter().all(|r| r.ref_name.is_none());
                lost.loss = suspended.loss;
                if lost.saved {
                    lost.receipts = suspended.receipts;
                } else if suspended.receipts.is_empty() {
                    lost.reason = Some("its handler keeps nothing".into());
                } else {
                    lost.reason =
                        Some("it holds work that no remote has; suspend would save it".into());
                }
            }
        }
        lost
    }

    /// A RootDir that is only in the store.
    pub(super) fn waiting(dir_name: &DirName) -> Self {
        Self::unseen(dir_name, "its snapshot waits to be recovered".into())
    }

    /// A RootDir that cannot be opened.
    pub(super) fn unreadable(dir_name: &DirName, error: &Error) -> Self {
        Self::unseen(dir_name, error::chain(error))
    }

    fn unseen(dir_name: &DirName, reason: String) -> Self {
        Self {
            dir_name: dir_name.clone(),
            files: 0,
            bytes: 0,
            saved: false,
            receipts: Vec::new(),
            loss: Vec::new(),
            reason: Some(reason),
        }
    }
}

/// A Descriptor that cannot be read; its content is untouched.
#[derive(Debug, Clone, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct Damaged {
    /// File name.
    pub file: String,
    /// What is wrong with it.
    pub reason: String,
}

/// A page of RootDirs.
#[derive(Debug, Clone, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct RootDirs {
    /// The Descriptors, by dirName.
    pub items: Vec<Descriptor>,
    /// Where the next page starts.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub next: Option<String>,
    /// Descriptors that cannot be read.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub damaged: Vec<Damaged>,
    /// Entries that no Descriptor knows, escaped.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub orphans: Vec<String>,
    /// Types without a handler on this host, of the RootDirs above.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub missing_handlers: Vec<HandlerType>,
}

/// How full the workspace disk is.
#[derive(Debug, Clone, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct QuotaReport {
    /// Bytes of the file system.
    pub bytes_total: u64,
    /// Bytes in use.
    pub bytes_used: u64,
    /// Bytes that we may still use.
    pub bytes_available: u64,
    /// used / (used + available), rounded up, as `df` prints it.
    pub bytes_used_percent: u8,
    /// The same for inodes; 0 where the file system does not count them.
    pub inodes_used_percent: u8,
    /// Where warnings start.
    pub soft_limit_percent: u8,
    /// Where creates are refused.
    pub hard_limit_percent: u8,
    /// `ok`, `soft` or `hard`.
    pub verdict: &'static str,
}

impl QuotaReport {
    pub(super) fn new(space: &Space, limits: Limits) -> Self {
        use warren_disk::space::Verdict;
        Self {
            bytes_total: space.bytes_total,
            bytes_used: space.bytes_used,
            bytes_available: space.bytes_available,
            bytes_used_percent: space.percent_used(),
            inodes_used_percent: space.inodes_percent_used(),
            soft_limit_percent: limits.soft_percent,
            hard_limit_percent: limits.hard_percent,
            verdict: match limits.judge(space) {
                Verdict::Fine => "ok",
                Verdict::Soft { .. } => "soft",
                Verdict::Hard { .. } => "hard",
            },
        }
    }
}

pub(super) fn resource_name(resource: Resource) -> &'static str {
    match resource {
        Resource::Bytes => "bytes",
        Resource::Inodes => "inodes",
    }
}
