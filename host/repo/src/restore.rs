//! A RootDir brought back from a snapshot.

mod modes;
mod snapshot;
mod state;
mod tree;

use std::path::Path;

use git2::{Oid, Repository};
use warren_disk::Dir;

use crate::checkout::Place;
use crate::fork::Layout;
use crate::init::write_file;
use crate::{Bounds, Head, RepoError, checkout, setup};
use snapshot::Saved;

/// What to bring back, and from where.
#[derive(Debug)]
pub struct RestoreSpec<'a> {
    /// Bare scratch repository of ours that holds the snapshot; its alternates name `upstream`.
    pub inbox: &'a Path,
    /// The snapshot's commit.
    pub snapshot: Oid,
    /// Git directory of the mirror: bare, complete, ours.
    pub upstream: &'a Path,
    /// The empty directory.
    pub root: &'a Dir,
    /// Where it lies, for messages.
    pub root_path: &'a Path,
    /// URL of `origin`, without credentials.
    pub origin_url: &'a str,
    /// Branches of the remote today, by full name (`refs/heads/…`).
    pub remote_refs: Vec<(String, Oid)>,
    /// Tags of the remote today, by full name (`refs/tags/…`); used with `as_branch`.
    pub tags: Vec<(String, Oid)>,
    /// Full or short name of the remote's default branch today, for `origin/HEAD`.
    pub default_branch: Option<String>,
    /// Leave HEAD on a clean local branch of this name at the snapshot's own commit, instead of
    /// everything as it was.
    pub as_branch: Option<String>,
    /// How long it may take, and what it may take up.
    pub bounds: Bounds,
}

impl RestoreSpec<'_> {
    fn place(&self) -> Place<'_> {
        Place {
            git_dir: self.inbox,
            root: self.root,
            bounds: &self.bounds,
        }
    }
}

/// Fills an empty directory from a snapshot.
///
/// HEAD, refs, stash, index and working tree are as `snapshot` found them; permissions and empty
/// directories come last. `progress` gets files written and files in all. After an error the
/// directory may hold a part.
///
/// # Errors
/// `BadSnapshot` for what is no snapshot of format 1 or contradicts itself; `Missing` for a ref
/// whose object is in neither repository; `UnsafePath` and `TooLarge` for a tree that must not be
/// written; `InvalidArgument` as [`crate::fork`] has it.
pub fn restore(
    spec: RestoreSpec<'_>,
    progress: &mut dyn FnMut(u64, u64),
) -> Result<Head, RepoError> {
    setup::init()?;
    let repo = Repository::open_bare(spec.inbox).map_err(RepoError::git("open the inbox"))?;
    let odb = repo.odb().map_err(RepoError::git("open the objects"))?;
    let saved = Saved::read(&repo, &odb, spec.snapshot)?;
    saved.write_objects(&odb)?;
    let mut layout = Layout::default();
    layout.config.origin_url = Some(spec.origin_url.to_owned());
    state::fill(&mut layout, &repo, &odb, &saved, &spec)?;
    let head = match &spec.as_branch {
        Some(branch) => state::set_head_on(&mut layout, &repo, &saved, branch)?,
        None => state::set_head(&mut layout, &saved)?,
    };
    let git = layout.write(
        spec.root,
        spec.root_path,
        &[spec.upstream, spec.inbox],
        &spec.bounds,
    )?;
    let index = if spec.as_branch.is_some() {
        let (items, subtrees) = checkout::plan(spec.inbox, &odb, saved.tree, &spec.bounds)?;
        let dirs = saved.empty_dirs()?;
        let mut stats = checkout::write(spec.place(), &items, &dirs, progress)?;
        modes::apply(spec.root, &saved, &items, &mut stats)?;
        checkout::clean_index(items, stats, &subtrees)
    } else {
        tree::lay(&spec, &odb, &saved, progress)?
    };
    spec.bounds.take(index.len() as u64, 1)?;
    write_file(&git, "index", &index)?;
    Ok(head)
}
