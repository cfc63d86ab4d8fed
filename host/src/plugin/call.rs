//! What a call is given and what comes back.

use std::path::PathBuf;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

use cap_std::fs::Dir;
use tokio::sync::watch;
use tokio::time::Instant;
use warren_model::{DirName, Loss, Metadata, ProjectId, Receipt, TenantId};

pub use super::capabilities::progress::ProgressSink;

/// Whether a call may change anything.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum CallMode {
    /// As the grants say.
    #[default]
    ReadWrite,
    /// Nothing: the root is read-only, and capabilities only say what they would do.
    DryRun,
}

/// Asks a call to end. Clones are one.
#[derive(Debug, Clone)]
pub struct Cancel(Arc<watch::Sender<bool>>);

impl Default for Cancel {
    fn default() -> Self {
        Self(Arc::new(watch::Sender::new(false)))
    }
}

impl Cancel {
    /// Ends the calls that hold this, now or as soon as they start.
    pub fn cancel(&self) {
        self.0.send_replace(true);
    }

    /// Waits until [`Self::cancel`] was called.
    pub(crate) async fn cancelled(&self) {
        // An error means that the sender is gone, and `self` holds it.
        let _ = self.0.subscribe().wait_for(|cancelled| *cancelled).await;
    }
}

/// What one call is about.
pub struct CallContext {
    /// Tenant that owns the Project.
    pub tenant: TenantId,
    /// Project that owns the RootDir.
    pub project: ProjectId,
    /// Folder name of the RootDir.
    pub dir_name: DirName,
    /// The name a person gave.
    pub label: Option<String>,
    /// The RootDir, opened: what the guest sees as `/`.
    pub root: Dir,
    /// Its absolute path, for children of `process`.
    pub root_path: PathBuf,
    /// Whether anything may change.
    pub mode: CallMode,
    /// When the call must have ended; the plugin's own limit holds when it is earlier.
    pub deadline: Option<Instant>,
    /// Takes reports of progress.
    pub progress: ProgressSink,
    /// Ends the call early.
    pub cancel: Cancel,
}

/// What a suspend has given.
#[derive(Debug, Clone, PartialEq)]
pub struct Suspended {
    /// What `recover` will need.
    pub metadata: Metadata,
    /// What will not come back.
    pub loss: Vec<Loss>,
    /// Where the host itself saw the content saved.
    pub receipts: Vec<Receipt>,
}

/// The five exports that work on a RootDir. Metadata is an alias of `String` in the bindings.
#[derive(Debug, Clone, Copy)]
pub(crate) enum Request<'a> {
    Init {
        spec: &'a String,
    },
    Suspend {
        current: &'a String,
    },
    Recover {
        saved: &'a String,
    },
    Close {
        current: &'a String,
    },
    Perform {
        action: &'a str,
        arguments: &'a String,
        current: &'a String,
    },
}

impl Request<'_> {
    pub(crate) fn name(&self) -> &'static str {
        match self {
            Self::Init { .. } => "init",
            Self::Suspend { .. } => "suspend",
            Self::Recover { .. } => "recover",
            Self::Close { .. } => "close",
            Self::Perform { .. } => "perform",
        }
    }
}

/// What the guest returned, before the host has checked it.
#[derive(Debug, Default)]
pub(crate) struct Returned {
    pub(crate) metadata: Option<String>,
    pub(crate) loss: Vec<Loss>,
}

/// Tells host work on other threads to end when the call has, also when its future is dropped.
pub(crate) struct StopOnDrop(pub(crate) Arc<AtomicBool>);

impl Drop for StopOnDrop {
    fn drop(&mut self) {
        self.0.store(true, Ordering::Relaxed);
    }
}
