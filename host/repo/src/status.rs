//! What a working tree holds beside its commits.

use git2::Oid;

use crate::content::{Keep, settle};
use crate::index::Index;
use crate::scan::{ScanOptions, scan};
use crate::{Head, Limits, Repo, RepoError};

/// Counts of what is not committed and not pushed.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Status {
    /// Where HEAD is.
    pub head: Head,
    /// Paths staged.
    pub staged: u32,
    /// Tracked paths that differ from the index, deleted ones among them.
    pub modified: u32,
    /// Files neither tracked nor ignored.
    pub untracked: u32,
    /// Commits on local refs that no remote-tracking ref reaches.
    pub unpushed: u32,
}

impl Repo {
    /// Looks at HEAD, index, working tree and refs. Writes nothing.
    ///
    /// # Errors
    ///
    /// `OperationInProgress` while conflicts are unresolved; `Nested`; `UnsafePath`; `TooLarge`;
    /// `Missing`; `Io`; `Git`.
    pub fn status(&self, limits: Limits) -> Result<Status, RepoError> {
        let (_, commit) = self.head_raw()?;
        let index = Index::load(self)?;
        let options = ScanOptions {
            keep: &[],
            count_loss: false,
            limits,
        };
        let scan = scan(self, &index, &options)?;
        let settled = settle(self, &index, &scan, Keep::Nothing)?;
        let mut status = Status {
            head: self.head()?,
            staged: self.count_staged(commit)?,
            unpushed: self.count_unpushed(commit)?,
            ..Status::default()
        };
        let mut is_found = vec![false; index.entries.len()];
        for (found, settled) in scan.files.iter().zip(&settled) {
            match found.tracked {
                Some(at) => {
                    is_found[at] = true;
                    status.modified += u32::from(settled.is_changed);
                }
                None => status.untracked += 1,
            }
        }
        for (entry, is_found) in index.entries.iter().zip(is_found) {
            let may_miss = entry.skip_worktree || entry.assume_unchanged;
            status.modified += u32::from(!is_found && !may_miss);
        }
        Ok(status)
    }

    fn count_staged(&self, commit: Option<Oid>) -> Result<u32, RepoError> {
        let fail = RepoError::git("compare HEAD and index");
        let tree = match commit {
            Some(id) => Some(
                self.git
                    .find_commit(id)
                    .and_then(|commit| commit.tree())
                    .map_err(&fail)?,
            ),
            None => None,
        };
        let index = self.git.index().map_err(&fail)?;
        let diff = self
            .git
            .diff_tree_to_index(tree.as_ref(), Some(&index), None)
            .map_err(fail)?;
        Ok(u32::try_from(diff.deltas().len()).unwrap_or(u32::MAX))
    }

    fn count_unpushed(&self, commit: Option<Oid>) -> Result<u32, RepoError> {
        let fail = RepoError::git("walk the commits");
        let mut walk = self.git.revwalk().map_err(&fail)?;
        if let Some(id) = commit {
            walk.push(id).map_err(&fail)?;
        }
        // Refs whose objects are gone, or are no commits, have nothing to push.
        let references = self
            .git
            .references()
            .map_err(RepoError::git("list the refs"))?;
        for reference in references {
            let reference = reference.map_err(RepoError::git("list the refs"))?;
            let name = reference.name_bytes();
            let is_remote = name.starts_with(b"refs/remotes/");
            let Ok(commit) = reference.peel_to_commit() else {
                continue;
            };
            if is_remote {
                walk.hide(commit.id()).map_err(&fail)?;
            } else {
                walk.push(commit.id()).map_err(&fail)?;
            }
        }
        let mut count = 0_u32;
        for id in walk {
            id.map_err(&fail)?;
            count = count.saturating_add(1);
        }
        Ok(count)
    }
}

#[cfg(test)]
mod tests;
