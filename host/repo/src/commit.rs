//! An ordinary commit of a whole working tree, made in an outbox.

use git2::{Oid, Repository};

use crate::content::{Keep, Settled, settle};
use crate::index::Index;
use crate::objects::{Outbox, Transfer};
use crate::scan::{Found, Scan, ScanOptions, scan};
use crate::snapshot::commit;
use crate::trees::Trees;
use crate::{Limits, Repo, RepoError};

impl Repo {
    /// Commits the whole working tree on top of HEAD, as `git add -A` and `git commit` would, into
    /// `outbox` (see [`Repo::snapshot`]). Nothing in the RootDir changes. None: there is no change.
    ///
    /// Its time is HEAD's, so that the same content gives the same commit.
    ///
    /// # Errors
    ///
    /// Those of [`Repo::snapshot`]; `UnsupportedFormat` names a changed file that git would store
    /// through a filter (LFS, say), and `InvalidArgument` a message without text.
    pub fn commit_all(
        &self,
        outbox: &Repository,
        message: &str,
        limits: Limits,
    ) -> Result<Option<Oid>, RepoError> {
        let message = message.trim();
        if message.is_empty() || message.contains('\0') {
            return Err(RepoError::InvalidArgument {
                what: "commit message",
                value: crate::files::show(message.as_bytes()),
            });
        }
        self.check_idle()?;
        let outbox = Outbox::new(outbox, &self.bounds)?;
        let (_, head) = self.head_raw()?;
        let index = self.staged_index(head)?;
        let options = ScanOptions {
            keep: &[],
            count_loss: false,
            limits,
        };
        let mut scan = scan(self, &index, &options)?;
        let settled = settle(self, &index, &mut scan, Keep::Cleaned(&outbox))?;
        let files = added(&index, &scan, &settled);
        let trees = Trees::plan(files.into_iter())?;
        if trees.root == self.head_tree(head)? {
            return Ok(None);
        }
        let mut transfer = Transfer::new(&self.git, &outbox, limits.blob_bytes_max)?;
        if let Some(head) = head {
            transfer.commit(head)?;
        }
        trees.want(&mut transfer, &outbox)?;
        transfer.run()?;
        trees.write(&outbox)?;
        let time = self.head_time(head)?;
        let text = format!("{message}\n");
        commit(&outbox, trees.root, head.into_iter(), time, &text).map(Some)
    }
}

/// What the index would hold after `git add -A`: the working tree, but for entries that git was
/// told not to look at.
fn added<'a>(index: &'a Index, scan: &'a Scan, settled: &[Settled]) -> Vec<(&'a [u8], u32, Oid)> {
    let is_frozen = |at: usize| {
        let entry = &index.entries[at];
        !entry.intent_to_add && (entry.assume_unchanged || entry.skip_worktree)
    };
    let looked_at = |found: &&Found| !found.tracked.is_some_and(is_frozen);
    let mut files: Vec<_> = scan
        .files
        .iter()
        .zip(settled)
        .filter(|(found, _)| looked_at(found))
        .map(|(found, settled)| (&found.path[..], found.mode, settled.id))
        .collect();
    // What stands in the way of a frozen entry replaces it.
    let is_covered = |path: &[u8]| {
        let below = [path, b"/"].concat();
        let at = scan.files.partition_point(|found| found.path < below);
        let next = scan.files.get(at);
        next.is_some_and(|found| found.path.starts_with(&below))
    };
    let frozen = (0..index.entries.len())
        .filter(|&at| is_frozen(at) && !is_covered(&index.entries[at].path));
    files.extend(frozen.map(|at| {
        let entry = &index.entries[at];
        (&entry.path[..], entry.mode, entry.id)
    }));
    files.sort_by(|a, b| a.0.cmp(b.0));
    files
}

#[cfg(test)]
mod tests;
