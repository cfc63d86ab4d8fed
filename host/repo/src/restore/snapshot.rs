//! A snapshot as it lies in the inbox. Anyone who may push can have written it.

use git2::{Commit, ObjectType, Odb, Oid, Repository, Tree};
use warren_disk::text::unescape;

use crate::checkout::{is_safe_path, missing};
use crate::manifest::FORMAT;
use crate::{Manifest, RepoError};

/// Largest manifest.
const MANIFEST_BYTES_MAX: usize = 256 << 20;

/// The parts of a snapshot.
pub(super) struct Saved {
    pub(super) id: Oid,
    /// Tree of the working directory.
    pub(super) tree: Oid,
    /// Tree of the index; none: it was empty.
    pub(super) index: Option<Oid>,
    /// HEAD's commit.
    pub(super) head: Option<Oid>,
    pub(super) manifest: Manifest,
    /// Raw annotated tags.
    tags: Vec<(Oid, Vec<u8>)>,
}

impl Saved {
    /// Reads and checks what one commit holds.
    pub(super) fn read(repo: &Repository, odb: &Odb<'_>, id: Oid) -> Result<Self, RepoError> {
        let commit = find(repo, id)?;
        let parents: Vec<Oid> = commit.parent_ids().collect();
        let (head, meta) = match parents[..] {
            [meta] => (None, meta),
            [head, meta] => (Some(head), meta),
            _ => return Err(bad("its commit does not have one or two parents")),
        };
        let meta = find(repo, meta)?
            .tree()
            .map_err(RepoError::git("read the snapshot"))?;
        let manifest = read_manifest(odb, &meta)?;
        let recorded = manifest.head.commit.as_deref().map(parse_id).transpose()?;
        if recorded != head {
            return Err(bad("its parent is not the commit HEAD was at"));
        }
        Ok(Self {
            id,
            tree: commit.tree_id(),
            index: entry(&meta, "index", ObjectType::Tree)?,
            head,
            tags: read_tags(repo, odb, &meta)?,
            manifest,
        })
    }

    /// Puts what no tree or commit names where the inbox's other objects are: annotated tags, and
    /// the empty blob that stands for files only meant to be added.
    pub(super) fn write_objects(&self, odb: &Odb<'_>) -> Result<(), RepoError> {
        for (id, bytes) in &self.tags {
            let written = odb.write(ObjectType::Tag, bytes);
            if written.map_err(RepoError::git("write a tag"))? != *id {
                return Err(bad("a tag does not have its id"));
            }
        }
        if !self.manifest.flags.intent_to_add.is_empty() {
            let written = odb.write(ObjectType::Blob, b"");
            written.map_err(RepoError::git("write the empty blob"))?;
        }
        Ok(())
    }

    /// Directories without files, checked.
    pub(super) fn empty_dirs(&self) -> Result<Vec<Vec<u8>>, RepoError> {
        self.manifest
            .empty_dirs
            .iter()
            .map(|text| path(text))
            .collect()
    }
}

fn find(repo: &Repository, id: Oid) -> Result<Commit<'_>, RepoError> {
    repo.find_commit(id).map_err(|e| missing(id, e))
}

fn entry(tree: &Tree<'_>, name: &str, kind: ObjectType) -> Result<Option<Oid>, RepoError> {
    match tree.get_name(name) {
        Some(entry) if entry.kind() == Some(kind) => Ok(Some(entry.id())),
        Some(_) => Err(bad(&format!("`{name}` is of another kind"))),
        None => Ok(None),
    }
}

fn read_manifest(odb: &Odb<'_>, meta: &Tree<'_>) -> Result<Manifest, RepoError> {
    let id = entry(meta, "manifest.json", ObjectType::Blob)?;
    let id = id.ok_or_else(|| bad("it has no manifest"))?;
    let (size, _) = odb.read_header(id).map_err(|e| missing(id, e))?;
    if size > MANIFEST_BYTES_MAX {
        return Err(RepoError::TooLarge(format!("a manifest of {size} bytes")));
    }
    let blob = odb.read(id).map_err(|e| missing(id, e))?;
    let manifest: Manifest =
        serde_json::from_slice(blob.data()).map_err(|e| bad(&format!("its manifest: {e}")))?;
    if manifest.format != FORMAT {
        let format = manifest.format;
        return Err(bad(&format!("it has format {format}, not {FORMAT}")));
    }
    Ok(manifest)
}

fn read_tags(
    repo: &Repository,
    odb: &Odb<'_>,
    meta: &Tree<'_>,
) -> Result<Vec<(Oid, Vec<u8>)>, RepoError> {
    let Some(objects) = entry(meta, "objects", ObjectType::Tree)? else {
        return Ok(Vec::new());
    };
    let objects = repo.find_tree(objects).map_err(|e| missing(objects, e))?;
    let one = |entry: git2::TreeEntry<'_>| {
        let name = std::str::from_utf8(entry.name_bytes());
        let id = parse_id(name.map_err(|_| bad("an object's name is no id"))?)?;
        let blob = odb.read(entry.id()).map_err(|e| missing(entry.id(), e))?;
        let hash = Oid::hash_object(ObjectType::Tag, blob.data());
        if hash.map_err(RepoError::git("hash a tag"))? != id {
            return Err(bad("a tag does not have its id"));
        }
        Ok((id, blob.data().to_vec()))
    };
    objects.iter().map(one).collect()
}

/// An id in full, lower-case hex.
pub(super) fn parse_id(text: &str) -> Result<Oid, RepoError> {
    let id = Oid::from_str(text).ok().filter(|id| id.to_string() == text);
    id.ok_or_else(|| bad("an id is no id"))
}

/// A relative path whose every name may be written.
pub(super) fn path(text: &str) -> Result<Vec<u8>, RepoError> {
    let path = bytes(text)?;
    if !is_safe_path(&path) || path.len() > 4095 {
        return Err(RepoError::UnsafePath(text.escape_default().to_string()));
    }
    Ok(path)
}

/// The bytes of an escaped name.
pub(super) fn bytes(text: &str) -> Result<Vec<u8>, RepoError> {
    unescape(text).map_err(|_| bad("a name is not escaped as it should be"))
}

pub(super) fn bad(why: &str) -> RepoError {
    RepoError::BadSnapshot(why.to_owned())
}
