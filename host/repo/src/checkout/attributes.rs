//! Which paths of a tree its `.gitattributes` want converted.

use std::ffi::OsStr;
use std::os::unix::ffi::OsStrExt as _;
use std::path::Path;

use git2::{AttrCheckFlags, AttrValue, Index, IndexEntry, IndexTime, Odb, Repository};

use super::listing::{self, Kind, Listing};
use super::smudge::{Crlf, Encoding, Smudge};
use crate::{Bounds, RepoError};

/// Largest `.gitattributes` that git reads.
const BYTES_MAX: usize = 100 * 1024 * 1024;

/// Which of the converting attributes some `.gitattributes` mentions at all.
#[derive(Debug, Clone, Copy, Default)]
struct Mentioned {
    crlf: bool,
    ident: bool,
    encoding: bool,
}

/// How to convert each entry, in the order of the listing; nothing: no entry is converted.
///
/// The objects are those of the bare repository at `git_dir`.
pub(super) fn smudges(
    git_dir: &Path,
    tree: &Listing,
    bounds: &Bounds,
) -> Result<Vec<Smudge>, RepoError> {
    let is_rules = |e: &&listing::Entry| {
        e.name() == b".gitattributes" && matches!(e.kind, Kind::File | Kind::Executable)
    };
    let rules: Vec<_> = tree.entries.iter().filter(is_rules).collect();
    if rules.is_empty() {
        return Ok(Vec::new());
    }
    let repo = Repository::open_bare(git_dir).map_err(RepoError::git("open the mirror"))?;
    let mentioned = {
        let odb = repo.odb().map_err(RepoError::git("open the objects"))?;
        mentioned(&odb, &rules)?
    };
    if !(mentioned.crlf || mentioned.ident || mentioned.encoding) {
        return Ok(Vec::new());
    }
    let mut index = Index::new().map_err(RepoError::git("make an index"))?;
    for entry in rules {
        index
            .add(&bare_entry(entry))
            .map_err(RepoError::git("read `.gitattributes`"))?;
    }
    repo.set_index(&mut index)
        .map_err(RepoError::git("read `.gitattributes`"))?;
    let one = |entry: &listing::Entry| {
        bounds.check()?;
        match entry.kind {
            Kind::File | Kind::Executable => smudge(&repo, &entry.path, mentioned),
            Kind::Symlink | Kind::Submodule => Ok(Smudge::default()),
        }
    };
    tree.entries.iter().map(one).collect()
}

fn mentioned(odb: &Odb<'_>, rules: &[&listing::Entry]) -> Result<Mentioned, RepoError> {
    let mut found = Mentioned::default();
    for entry in rules {
        let failed = |e| listing::missing(entry.id, e);
        // Asked before it is read into memory.
        let (size, _) = odb.read_header(entry.id).map_err(failed)?;
        if size > BYTES_MAX {
            return Err(RepoError::TooLarge("a `.gitattributes`".into()));
        }
        let object = odb.read(entry.id).map_err(failed)?;
        let has = |word: &[u8]| object.data().windows(word.len()).any(|part| part == word);
        found.crlf |= has(b"eol=crlf");
        found.ident |= has(b"ident");
        found.encoding |= has(b"working-tree-encoding");
    }
    Ok(found)
}

fn bare_entry(entry: &listing::Entry) -> IndexEntry {
    let zero = IndexTime::new(0, 0);
    IndexEntry {
        ctime: zero,
        mtime: zero,
        dev: 0,
        ino: 0,
        mode: entry.kind.mode(),
        uid: 0,
        gid: 0,
        file_size: 0,
        id: entry.id,
        flags: 0,
        flags_extended: 0,
        path: entry.path.clone(),
    }
}

fn smudge(repo: &Repository, path: &[u8], mentioned: Mentioned) -> Result<Smudge, RepoError> {
    let path = Path::new(OsStr::from_bytes(path));
    let flags = AttrCheckFlags::INDEX_ONLY | AttrCheckFlags::NO_SYSTEM;
    let get = |name| {
        let value = repo.get_attr_bytes(path, name, flags);
        value.map_err(RepoError::git("read the attributes"))
    };
    let mut out = Smudge::default();
    if mentioned.ident {
        out.ident = AttrValue::from_bytes(get("ident")?) == AttrValue::True;
    }
    if mentioned.encoding
        && let AttrValue::Bytes(name) = AttrValue::always_bytes(get("working-tree-encoding")?)
    {
        out.encoding = Encoding::named(name);
        if out.encoding.is_none() && !name.eq_ignore_ascii_case(b"utf-8") {
            let path = warren_disk::text::escape(path.as_os_str().as_bytes());
            tracing::warn!(path, "unknown working-tree-encoding; the file stays UTF-8");
        }
    }
    if mentioned.crlf && get("eol")? == Some(b"crlf") {
        out.crlf = match text(get("text")?) {
            Some(crlf) => crlf,
            // The older name of the same attribute.
            None => text(get("crlf")?).unwrap_or(Crlf::Always),
        };
    }
    Ok(out)
}

/// What `text` says where `eol=crlf` is set; none: nothing.
fn text(value: Option<&[u8]>) -> Option<Crlf> {
    match AttrValue::always_bytes(value) {
        AttrValue::True | AttrValue::Bytes(b"input") => Some(Crlf::Always),
        AttrValue::False => Some(Crlf::Never),
        AttrValue::Bytes(b"auto") => Some(Crlf::Auto),
        _ => None,
    }
}
