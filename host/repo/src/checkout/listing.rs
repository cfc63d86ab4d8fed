//! All entries of a tree, checked as hostile input, in the order of the index.

use std::collections::HashSet;

use git2::{ObjectType, Odb, Oid};
use warren_disk::text::escape;

use super::names;
use crate::objects::META_BYTES_MAX;
use crate::{Bounds, RepoError};

/// Most entries and trees: a few KB of nested trees can stand for 10^10 files.
const ENTRIES_MAX: usize = 2_000_000;
/// Longest path the kernel takes.
const PATH_BYTES_MAX: usize = 4095;
const EMPTY_TREE: &str = "4b825dc642cb6eb9a060e54bf8d69288fbee4904";

/// What an entry becomes on disk.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Kind {
    File,
    Executable,
    Symlink,
    /// A commit of another repository: an empty directory.
    Submodule,
}

impl Kind {
    fn of(mode: u32) -> Option<Self> {
        // Old tools wrote group-writable modes; git reads them by the owner's bit.
        Some(match mode {
            0o100_000..=0o100_777 if mode & 0o100 != 0 => Self::Executable,
            0o100_000..=0o100_777 => Self::File,
            0o120_000 => Self::Symlink,
            0o160_000 => Self::Submodule,
            _ => return None,
        })
    }

    /// Mode in trees and in the index.
    pub(crate) fn mode(self) -> u32 {
        match self {
            Self::File => 0o100_644,
            Self::Executable => 0o100_755,
            Self::Symlink => 0o120_000,
            Self::Submodule => 0o160_000,
        }
    }
}

/// One entry of a tree.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Entry {
    /// From the root, `/` between parts.
    pub(crate) path: Vec<u8>,
    pub(crate) kind: Kind,
    pub(crate) id: Oid,
}

impl Entry {
    pub(crate) fn name(&self) -> &[u8] {
        self.path.rsplit(|b| *b == b'/').next().unwrap_or_default()
    }
}

/// One tree, as the index remembers it.
#[derive(Debug, Clone)]
pub(crate) struct Subtree {
    pub(crate) name: Vec<u8>,
    pub(crate) id: Oid,
    /// Entries below it, at any depth.
    pub(crate) entries: usize,
    /// Trees directly below it.
    pub(crate) children: usize,
}

/// The entries of a tree by path, and its trees in pre-order.
#[derive(Debug, Default)]
pub(crate) struct Listing {
    pub(crate) entries: Vec<Entry>,
    /// Empty when the index could not remember them truthfully.
    pub(crate) subtrees: Vec<Subtree>,
}

impl Listing {
    pub(crate) fn position(&self, path: &[u8]) -> Option<usize> {
        let order = |entry: &Entry| entry.path.as_slice().cmp(path);
        self.entries.binary_search_by(order).ok()
    }
}

struct Raw {
    name: Vec<u8>,
    mode: u32,
    id: Oid,
}

struct Open {
    path: Vec<u8>,
    rest: std::vec::IntoIter<Raw>,
    subtree: usize,
    first: usize,
}

/// Reads a tree with everything below it.
pub(crate) fn read(odb: &Odb<'_>, root: Oid, bounds: &Bounds) -> Result<Listing, RepoError> {
    read_within(odb, root, ENTRIES_MAX, bounds)
}

/// The same with another limit on entries and trees.
pub(crate) fn read_within(
    odb: &Odb<'_>,
    root: Oid,
    entries_max: usize,
    bounds: &Bounds,
) -> Result<Listing, RepoError> {
    let mut out = Listing::default();
    let mut has_empty = false;
    let mut stack = vec![enter(odb, &mut out, Vec::new(), Vec::new(), root)?];
    while let Some(top) = stack.last_mut() {
        bounds.check()?;
        let Some(raw) = top.rest.next() else {
            let entries = out.entries.len() - top.first;
            has_empty |= entries == 0 && top.subtree > 0;
            out.subtrees[top.subtree].entries = entries;
            stack.pop();
            continue;
        };
        if out.entries.len() + out.subtrees.len() >= entries_max {
            return Err(RepoError::TooLarge(format!(
                "a tree with more than {entries_max} entries"
            )));
        }
        let mut path = top.path.clone();
        path.extend_from_slice(&raw.name);
        if raw.mode == 0o40_000 {
            out.subtrees[top.subtree].children += 1;
            path.push(b'/');
            check_length(&path)?;
            let open = enter(odb, &mut out, path, raw.name, raw.id)?;
            stack.push(open);
            continue;
        }
        check_length(&path)?;
        let kind = Kind::of(raw.mode).ok_or_else(|| unsafe_path(&path, "has an unknown mode"))?;
        if kind == Kind::Symlink && names::is_gitmodules(&raw.name) {
            return Err(unsafe_path(&path, "is a symlink"));
        }
        let id = raw.id;
        out.entries.push(Entry { path, kind, id });
    }
    if has_empty {
        out.subtrees.clear();
    }
    Ok(out)
}

fn enter(
    odb: &Odb<'_>,
    out: &mut Listing,
    path: Vec<u8>,
    name: Vec<u8>,
    id: Oid,
) -> Result<Open, RepoError> {
    let rest = read_one(odb, &path, id)?.into_iter();
    let (subtree, first) = (out.subtrees.len(), out.entries.len());
    out.subtrees.push(Subtree {
        name,
        id,
        entries: 0,
        children: 0,
    });
    Ok(Open {
        path,
        rest,
        subtree,
        first,
    })
}

fn read_one(odb: &Odb<'_>, path: &[u8], id: Oid) -> Result<Vec<Raw>, RepoError> {
    if id.to_string() == EMPTY_TREE {
        return Ok(Vec::new());
    }
    let (size, kind) = odb.read_header(id).map_err(|e| missing(id, e))?;
    if size > META_BYTES_MAX {
        return Err(RepoError::TooLarge(format!("tree {id} of {size} bytes")));
    }
    let object = odb.read(id).map_err(|e| missing(id, e))?;
    if kind != ObjectType::Tree {
        return Err(unsafe_path(path, "is not a tree"));
    }
    let entries = parse(object.data()).ok_or_else(|| unsafe_path(path, "is a broken tree"))?;
    check_entries(path, &entries)?;
    Ok(entries)
}

/// `<mode> <name>\0<20 bytes>`, again and again.
fn parse(mut data: &[u8]) -> Option<Vec<Raw>> {
    let mut entries = Vec::new();
    while !data.is_empty() {
        let space = data.iter().position(|b| *b == b' ')?;
        let mode = std::str::from_utf8(&data[..space]).ok()?;
        let mode = u32::from_str_radix(mode, 8).ok()?;
        data = &data[space + 1..];
        let end = data.iter().position(|b| *b == 0)?;
        let name = data[..end].to_vec();
        let id = Oid::from_bytes(data.get(end + 1..end + 21)?).ok()?;
        data = &data[end + 21..];
        entries.push(Raw { name, mode, id });
    }
    Some(entries)
}

fn check_entries(path: &[u8], entries: &[Raw]) -> Result<(), RepoError> {
    let mut seen = HashSet::with_capacity(entries.len());
    let mut last: Option<Vec<u8>> = None;
    for raw in entries {
        let full = || [path, &raw.name].concat();
        if !names::is_safe_name(&raw.name) {
            return Err(RepoError::UnsafePath(escape(&full())));
        }
        if !seen.insert(raw.name.as_slice()) {
            return Err(unsafe_path(&full(), "is there twice"));
        }
        let mut key = raw.name.clone();
        if raw.mode == 0o40_000 {
            key.push(b'/');
        }
        if last.is_some_and(|last| last >= key) {
            return Err(unsafe_path(&full(), "is out of order"));
        }
        last = Some(key);
    }
    Ok(())
}

fn check_length(path: &[u8]) -> Result<(), RepoError> {
    if path.len() > PATH_BYTES_MAX {
        let start = escape(&path[..100]);
        return Err(RepoError::TooLarge(format!(
            "a path of more than {PATH_BYTES_MAX} bytes, `{start}…`"
        )));
    }
    Ok(())
}

pub(crate) fn unsafe_path(path: &[u8], why: &str) -> RepoError {
    RepoError::UnsafePath(format!("{} ({why})", escape(path)))
}

/// An object that can not be read: missing, or something worse.
pub(crate) fn missing(id: Oid, error: git2::Error) -> RepoError {
    if error.code() == git2::ErrorCode::NotFound {
        RepoError::Missing(id.to_string())
    } else {
        RepoError::git("read an object")(error)
    }
}
