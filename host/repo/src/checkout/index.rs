//! The index file: format 2, or 3 where a flag needs it, with the trees it stands for.

use git2::Oid;
use sha1::{Digest as _, Sha1};

use super::listing::{Kind, Subtree};
use super::write::Stat;

const ASSUME_VALID: u16 = 0x8000;
const EXTENDED: u16 = 0x4000;
const NAME_MAX: u16 = 0x0fff;
const SKIP_WORKTREE: u16 = 0x4000;
const INTENT_TO_ADD: u16 = 0x2000;

/// What the index says of one path.
#[derive(Debug, Clone)]
pub(crate) struct IndexEntry {
    pub(crate) path: Vec<u8>,
    pub(crate) kind: Kind,
    pub(crate) id: Oid,
    /// Of the file that has this content; none: git must look.
    pub(crate) stat: Option<Stat>,
    pub(crate) assume_unchanged: bool,
    pub(crate) skip_worktree: bool,
    pub(crate) intent_to_add: bool,
}

/// The bytes of an index. Entries by path; `subtrees` in pre-order, or empty.
pub(crate) fn encode(entries: &[IndexEntry], subtrees: &[Subtree]) -> Vec<u8> {
    let extended = |e: &IndexEntry| e.skip_worktree || e.intent_to_add;
    let version: u32 = if entries.iter().any(extended) { 3 } else { 2 };
    let mut out = Vec::with_capacity(entries.len() * 120 + 64);
    out.extend_from_slice(b"DIRC");
    out.extend(version.to_be_bytes());
    out.extend(narrow(entries.len() as u64).to_be_bytes());
    for entry in entries {
        push_entry(&mut out, entry, extended(entry));
    }
    if !subtrees.is_empty() {
        push_subtrees(&mut out, subtrees);
    }
    let sum = Sha1::digest(&out);
    out.extend_from_slice(&sum);
    out
}

fn push_entry(out: &mut Vec<u8>, entry: &IndexEntry, extended: bool) {
    let start = out.len();
    let stat = entry.stat.unwrap_or_default();
    for word in [
        narrow(stat.ctime.0.cast_unsigned()),
        stat.ctime.1,
        narrow(stat.mtime.0.cast_unsigned()),
        stat.mtime.1,
        narrow(stat.dev),
        narrow(stat.ino),
        entry.kind.mode(),
        stat.uid,
        stat.gid,
        narrow(stat.size),
    ] {
        out.extend(word.to_be_bytes());
    }
    out.extend_from_slice(entry.id.as_bytes());
    let length = u16::try_from(entry.path.len())
        .unwrap_or(NAME_MAX)
        .min(NAME_MAX);
    let flag = |on: bool, bit: u16| if on { bit } else { 0 };
    let flags = length | flag(entry.assume_unchanged, ASSUME_VALID) | flag(extended, EXTENDED);
    out.extend(flags.to_be_bytes());
    if extended {
        let more =
            flag(entry.skip_worktree, SKIP_WORKTREE) | flag(entry.intent_to_add, INTENT_TO_ADD);
        out.extend(more.to_be_bytes());
    }
    out.extend_from_slice(&entry.path);
    // One to eight NULs, so that the length is a multiple of eight.
    let padded = (out.len() - start + 8) & !7;
    out.resize(start + padded, 0);
}

fn push_subtrees(out: &mut Vec<u8>, subtrees: &[Subtree]) {
    let mut data = Vec::with_capacity(subtrees.len() * 48);
    for tree in subtrees {
        data.extend_from_slice(&tree.name);
        let counts = format!("\0{} {}\n", tree.entries, tree.children);
        data.extend_from_slice(counts.as_bytes());
        data.extend_from_slice(tree.id.as_bytes());
    }
    out.extend_from_slice(b"TREE");
    out.extend(narrow(data.len() as u64).to_be_bytes());
    out.extend(data);
}

/// The index keeps the low 32 bits of everything.
fn narrow(value: u64) -> u32 {
    (value & 0xffff_ffff) as u32
}
