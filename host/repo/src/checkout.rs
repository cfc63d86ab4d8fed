//! Filling an empty directory with the files of a tree.
//!
//! An engine of our own: libgit2's checkout takes twice the time of the git program, and gix's adds
//! 77 crates and works on paths; this one writes relative to handles, on all cores, and only git's
//! three in-process conversions need code (the attribute rules are libgit2's).

mod attributes;
mod index;
mod listing;
mod names;
mod smudge;
mod write;

use std::path::Path;

use git2::{Odb, Oid};

pub(crate) use index::{IndexEntry, encode};
#[cfg(test)]
pub(crate) use listing::read_within;
pub(crate) use listing::{Entry, Kind, Listing, Subtree, missing, read};
pub use names::is_safe_name;
pub(crate) use names::{is_gitmodules, is_safe_path};
pub(crate) use smudge::Smudge;
pub(crate) use write::{Item, Place, Stat, stat_of, write};

use crate::{Bounds, RepoError};

/// How to convert each entry of a tree; the default for all when nothing is converted.
pub(crate) fn smudges(
    git_dir: &Path,
    tree: &Listing,
    bounds: &Bounds,
) -> Result<Vec<Smudge>, RepoError> {
    let mut smudges = attributes::smudges(git_dir, tree, bounds)?;
    smudges.resize(tree.entries.len(), Smudge::default());
    Ok(smudges)
}

/// The files of a tree, ready to be written, and what the index remembers of its trees.
///
/// Objects are those of the bare repository at `git_dir`, which `odb` belongs to.
pub(crate) fn plan(
    git_dir: &Path,
    odb: &Odb<'_>,
    tree: Oid,
    bounds: &Bounds,
) -> Result<(Vec<Item>, Vec<Subtree>), RepoError> {
    let listing = read(odb, tree, bounds)?;
    let smudges = smudges(git_dir, &listing, bounds)?;
    let entries = listing.entries.into_iter().zip(smudges);
    let items = entries.map(|(entry, smudge)| Item {
        path: entry.path,
        kind: entry.kind,
        id: entry.id,
        smudge,
    });
    Ok((items.collect(), listing.subtrees))
}

/// The index under which these files, with these stats, are clean.
pub(crate) fn clean_index(
    items: Vec<Item>,
    stats: Vec<Option<Stat>>,
    subtrees: &[Subtree],
) -> Vec<u8> {
    let items = items.into_iter().zip(stats);
    let entries: Vec<_> = items
        .map(|(item, stat)| IndexEntry {
            path: item.path,
            kind: item.kind,
            id: item.id,
            stat,
            assume_unchanged: false,
            skip_worktree: false,
            intent_to_add: false,
        })
        .collect();
    encode(&entries, subtrees)
}
