//! How long work may go on, and how much it may put on the disk.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Instant;

use warren_disk::budget::Budget;

use crate::RepoError;

/// What file systems give room in, in bytes.
const BLOCK_BYTES: u64 = 4096;

/// What work on a repository looks at on its way. Cheap to clone; nothing is bounded by default.
#[derive(Debug, Clone)]
pub struct Bounds {
    /// When it must have ended.
    pub deadline: Option<Instant>,
    /// Set by a caller that gives up.
    pub cancel: Option<Arc<AtomicBool>>,
    /// Asked before something is written into the RootDir.
    pub root: Budget,
    /// Asked before something is written into a repository of the host's.
    pub store: Budget,
}

impl Default for Bounds {
    fn default() -> Self {
        Self {
            deadline: None,
            cancel: None,
            root: Budget::unlimited(),
            store: Budget::unlimited(),
        }
    }
}

impl Bounds {
    /// Whether the work may go on. Asked for every entry, file and object: it costs a look at the
    /// clock.
    ///
    /// # Errors
    ///
    /// `Cancelled`, `Timeout`.
    pub fn check(&self) -> Result<(), RepoError> {
        if let Some(cancel) = &self.cancel
            && cancel.load(Ordering::Relaxed)
        {
            return Err(RepoError::Cancelled);
        }
        match self.deadline {
            Some(deadline) if Instant::now() >= deadline => Err(RepoError::Timeout),
            _ => Ok(()),
        }
    }

    /// Takes room for one file or folder, or more of them, in the RootDir.
    ///
    /// # Errors
    ///
    /// `NoSpace`; those of [`Self::check`].
    pub(crate) fn take(&self, bytes: u64, inodes: u64) -> Result<(), RepoError> {
        self.check()?;
        ask(&self.root, bytes, inodes)
    }

    /// Takes room in the host's own store.
    ///
    /// # Errors
    ///
    /// As [`Self::take`].
    pub fn take_store(&self, bytes: u64, inodes: u64) -> Result<(), RepoError> {
        self.check()?;
        ask(&self.store, bytes, inodes)
    }
}

fn ask(budget: &Budget, bytes: u64, inodes: u64) -> Result<(), RepoError> {
    let blocks = bytes.div_ceil(BLOCK_BYTES).saturating_mul(BLOCK_BYTES);
    budget
        .take(blocks, inodes)
        .map_err(|short| RepoError::io("measure the disk", short))
}

#[cfg(test)]
mod tests;
