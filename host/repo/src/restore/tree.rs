//! Working tree and index of a snapshot.

use std::collections::HashSet;

use git2::{Odb, Oid};

use super::snapshot::{Saved, path};
use super::{RestoreSpec, modes};
use crate::checkout::{self, Entry, IndexEntry, Item, Kind, Listing, Smudge, Stat};
use crate::{Flags, RepoError};

/// Id of the empty blob, which stands for a file that is only meant to be added.
const EMPTY_BLOB: &str = "e69de29bb2d1d6434b8b29ae775ad8c2e48c5391";

/// Writes the working tree; returns the index.
///
/// A file that is what the index has went through the attributes once and does so again; any other
/// one was kept as it lay there.
pub(super) fn lay(
    spec: &RestoreSpec<'_>,
    odb: &Odb<'_>,
    saved: &Saved,
    progress: &mut dyn FnMut(u64, u64),
) -> Result<Vec<u8>, RepoError> {
    let work = checkout::read(odb, saved.tree, &spec.bounds)?;
    let staged = match saved.index {
        Some(tree) => checkout::read(odb, tree, &spec.bounds)?,
        None => Listing::default(),
    };
    let flags = FlagSets::of(&saved.manifest.flags)?;
    let smudges = checkout::smudges(spec.inbox, &staged, &spec.bounds)?;
    let items: Vec<_> = work
        .entries
        .into_iter()
        .map(|e| item(e, &staged, &smudges))
        .collect();
    let dirs = saved.empty_dirs()?;
    let mut stats = checkout::write(spec.place(), &items, &dirs, progress)?;
    modes::apply(spec.root, saved, &items, &mut stats)?;
    let entries = index(&staged, &items, &stats, &flags)?;
    let subtrees: &[_] = if flags.intent_to_add.is_empty() {
        &staged.subtrees
    } else {
        &[]
    };
    Ok(checkout::encode(&entries, subtrees))
}

fn item(entry: Entry, staged: &Listing, smudges: &[Smudge]) -> Item {
    let is_file = |kind| matches!(kind, Kind::File | Kind::Executable);
    let same = staged.position(&entry.path).filter(|at| {
        let other = &staged.entries[*at];
        other.id == entry.id && is_file(other.kind) && is_file(entry.kind)
    });
    Item {
        smudge: same.map_or_else(Smudge::default, |at| smudges[at]),
        path: entry.path,
        kind: entry.kind,
        id: entry.id,
    }
}

struct FlagSets {
    intent_to_add: HashSet<Vec<u8>>,
    assume_unchanged: HashSet<Vec<u8>>,
    skip_worktree: HashSet<Vec<u8>>,
}

impl FlagSets {
    fn of(flags: &Flags) -> Result<Self, RepoError> {
        let set = |paths: &[String]| -> Result<HashSet<_>, _> {
            paths.iter().map(|text| path(text)).collect()
        };
        Ok(Self {
            intent_to_add: set(&flags.intent_to_add)?,
            assume_unchanged: set(&flags.assume_unchanged)?,
            skip_worktree: set(&flags.skip_worktree)?,
        })
    }
}

fn index(
    staged: &Listing,
    items: &[Item],
    stats: &[Option<Stat>],
    flags: &FlagSets,
) -> Result<Vec<IndexEntry>, RepoError> {
    let at = |path: &[u8]| {
        items
            .binary_search_by(|item| item.path.as_slice().cmp(path))
            .ok()
    };
    let entry = |path: &[u8], kind, id| IndexEntry {
        path: path.to_vec(),
        kind,
        id,
        stat: None,
        assume_unchanged: flags.assume_unchanged.contains(path),
        skip_worktree: flags.skip_worktree.contains(path),
        intent_to_add: false,
    };
    let tracked = staged
        .entries
        .iter()
        .filter(|e| !flags.intent_to_add.contains(&e.path));
    let mut entries: Vec<_> = tracked
        .map(|e| {
            let same = at(&e.path).filter(|at| items[*at].id == e.id && items[*at].kind == e.kind);
            IndexEntry {
                stat: same.and_then(|at| stats[at]),
                ..entry(&e.path, e.kind, e.id)
            }
        })
        .collect();
    let empty = Oid::from_str(EMPTY_BLOB).map_err(RepoError::git("name the empty blob"))?;
    for path in &flags.intent_to_add {
        let recorded = staged.position(path).map(|at| staged.entries[at].kind);
        let kind = recorded.or_else(|| at(path).map(|at| items[at].kind));
        entries.push(IndexEntry {
            intent_to_add: true,
            ..entry(path, kind.unwrap_or(Kind::File), empty)
        });
    }
    entries.sort_by(|a, b| a.path.cmp(&b.path));
    Ok(entries)
}
