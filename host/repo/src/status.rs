//! What a working tree holds beside its commits.

use git2::{ObjectType, Oid};

use crate::ahead::count_unpushed;
use crate::content::{Keep, settle};
use crate::index::Index;
use crate::scan::{ScanOptions, scan};
use crate::trees::Trees;
use crate::{Head, Limits, Repo, RepoError, objects};

/// Most entries of HEAD's trees.
const TREE_ENTRIES_MAX: usize = 2_000_000;

/// Longest path the kernel takes.
const PATH_BYTES_MAX: usize = 4095;

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
        let mut scan = scan(self, &index, &options)?;
        let settled = settle(self, &index, &mut scan, Keep::Nothing)?;
        let mut status = Status {
            head: self.head()?,
            staged: cut(self.count_staged(&index, commit)?),
            unpushed: cut(count_unpushed(self, commit)?),
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

    /// Paths that differ between HEAD's tree and the index.
    fn count_staged(&self, index: &Index, head: Option<Oid>) -> Result<usize, RepoError> {
        let staged: Vec<_> = index.staged().collect();
        let tree = self.head_tree(head)?;
        if Trees::plan(staged.iter().copied())?.root == tree {
            return Ok(0);
        }
        let committed = match head {
            Some(_) => tree_files(self, tree)?,
            None => Vec::new(),
        };
        let mut old = committed.iter().peekable();
        let mut differ = 0;
        for &(path, mode, id) in &staged {
            while old.next_if(|old| old.0.as_slice() < path).is_some() {
                differ += 1;
            }
            let same = old.next_if(|old| old.0 == path);
            differ += usize::from(same.is_none_or(|old| (old.1, old.2) != (mode, id)));
        }
        Ok(differ + old.count())
    }
}

fn cut(number: usize) -> u32 {
    u32::try_from(number).unwrap_or(u32::MAX)
}

/// Files of a tree by path. A few KB of nested trees can stand for billions of files: bounded.
fn tree_files(repo: &Repo, root: Oid) -> Result<Vec<(Vec<u8>, u32, Oid)>, RepoError> {
    let odb = repo.odb()?;
    let mut files = Vec::new();
    let mut pending = vec![(Vec::new(), root)];
    let mut left = TREE_ENTRIES_MAX;
    while let Some((prefix, id)) = pending.pop() {
        let tree = objects::tree(&repo.git, &odb, id)?;
        for entry in &tree {
            left -= 1;
            repo.bounds.check()?;
            let path = [prefix.as_slice(), entry.name_bytes()].concat();
            if left == 0 || path.len() > PATH_BYTES_MAX {
                return Err(RepoError::TooLarge("HEAD's tree".to_owned()));
            }
            if entry.kind() == Some(ObjectType::Tree) {
                pending.push(([path.as_slice(), b"/"].concat(), entry.id()));
            } else {
                files.push((path, entry.filemode() as u32, entry.id()));
            }
        }
    }
    files.sort();
    Ok(files)
}

#[cfg(test)]
mod tests;
