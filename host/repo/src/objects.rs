//! Objects on their way from a RootDir into an outbox.

use std::collections::HashSet;
use std::io::Write as _;

use git2::{Commit, ErrorCode, ObjectType, Odb, OdbLookupFlags, Oid, Repository, Tree};

use crate::{Bounds, RepoError};

/// Most objects that one snapshot copies.
const OBJECTS_MAX: usize = 5_000_000;

/// Longest commit, tree or tag. A few KB on disk can stand for gigabytes of zeros.
pub(crate) const META_BYTES_MAX: usize = 64 << 20;

/// Refuses an object that is missing, of another kind, or too long to be read into memory.
pub(crate) fn check(odb: &Odb<'_>, id: Oid, kind: ObjectType) -> Result<(), RepoError> {
    let (size, found) = odb.read_header(id).map_err(missing(id))?;
    if found != kind {
        return Err(RepoError::Missing(format!("{kind} {id}")));
    }
    if size > META_BYTES_MAX {
        return Err(RepoError::TooLarge(format!("{kind} {id} of {size} bytes")));
    }
    Ok(())
}

/// Reads a commit of a RootDir.
pub(crate) fn commit<'r>(
    repo: &'r Repository,
    odb: &Odb<'_>,
    id: Oid,
) -> Result<Commit<'r>, RepoError> {
    check(odb, id, ObjectType::Commit)?;
    repo.find_commit(id).map_err(missing(id))
}

/// Reads a tree of a RootDir.
pub(crate) fn tree<'r>(
    repo: &'r Repository,
    odb: &Odb<'_>,
    id: Oid,
) -> Result<Tree<'r>, RepoError> {
    check(odb, id, ObjectType::Tree)?;
    repo.find_tree(id).map_err(missing(id))
}

/// A host-owned bare repository whose alternates name the mirror.
pub(crate) struct Outbox<'a> {
    repo: &'a Repository,
    odb: Odb<'a>,
    bounds: &'a Bounds,
}

impl<'a> Outbox<'a> {
    pub(crate) fn new(repo: &'a Repository, bounds: &'a Bounds) -> Result<Self, RepoError> {
        let odb = repo.odb().map_err(RepoError::git("open the outbox"))?;
        Ok(Self { repo, odb, bounds })
    }

    pub(crate) fn repo(&self) -> &'a Repository {
        self.repo
    }

    /// Whether an object is here or in the mirror. Nobody else writes to either meanwhile, so the
    /// list of packs is not read again for every new object.
    pub(crate) fn has(&self, id: Oid) -> bool {
        self.odb.exists_ext(id, OdbLookupFlags::NO_REFRESH)
    }

    /// Writes an object unless it is there.
    pub(crate) fn put(&self, kind: ObjectType, data: &[u8]) -> Result<Oid, RepoError> {
        let fail = RepoError::git("write an object");
        let id = Oid::hash_object(kind, data).map_err(&fail)?;
        if self.has(id) {
            return Ok(id);
        }
        self.bounds.take_store(data.len() as u64, 1)?;
        self.odb.write(kind, data).map_err(fail)
    }

    /// Writes a blob of `size` bytes from a stream that says when it ends early.
    pub(crate) fn put_stream(
        &self,
        size: u64,
        copy: impl FnOnce(&mut dyn std::io::Write) -> Result<(), RepoError>,
    ) -> Result<Oid, RepoError> {
        let fail = RepoError::git("write an object");
        let length = usize::try_from(size)
            .map_err(|_| RepoError::TooLarge(format!("a file of {size} bytes")))?;
        self.bounds.take_store(size, 1)?;
        let mut writer = self.odb.writer(length, ObjectType::Blob).map_err(&fail)?;
        copy(&mut writer)?;
        writer.finalize().map_err(fail)
    }
}

/// Collects what a RootDir has and an outbox lacks, and copies it as one pack.
///
/// The outbox is closed: whoever has a commit or tree has all that it names. That holds for the
/// mirror, and here because everything goes in bottom up or as one pack.
pub(crate) struct Transfer<'a> {
    from: &'a Repository,
    from_odb: Odb<'a>,
    to: &'a Outbox<'a>,
    blob_bytes_max: u64,
    seen: HashSet<Oid>,
    wanted: Vec<Oid>,
}

impl<'a> Transfer<'a> {
    pub(crate) fn new(
        from: &'a Repository,
        to: &'a Outbox<'a>,
        blob_bytes_max: u64,
    ) -> Result<Self, RepoError> {
        let from_odb = from.odb().map_err(RepoError::git("open the objects"))?;
        Ok(Self {
            from,
            from_odb,
            to,
            blob_bytes_max,
            seen: HashSet::new(),
            wanted: Vec::new(),
        })
    }

    /// Whether an object has to be copied; asked once for each.
    fn wants(&mut self, id: Oid) -> Result<bool, RepoError> {
        self.to.bounds.check()?;
        if self.seen.contains(&id) || self.to.has(id) {
            return Ok(false);
        }
        if self.seen.len() >= OBJECTS_MAX {
            return Err(RepoError::TooLarge(format!(
                "more than {OBJECTS_MAX} objects"
            )));
        }
        self.seen.insert(id);
        self.wanted.push(id);
        Ok(true)
    }

    /// Takes a commit with its history and trees.
    pub(crate) fn commit(&mut self, id: Oid) -> Result<(), RepoError> {
        let mut pending = vec![id];
        while let Some(id) = pending.pop() {
            if !self.wants(id)? {
                continue;
            }
            let commit = commit(self.from, &self.from_odb, id)?;
            pending.extend(commit.parent_ids());
            self.tree(commit.tree_id())?;
        }
        Ok(())
    }

    fn tree(&mut self, id: Oid) -> Result<(), RepoError> {
        let mut pending = vec![id];
        while let Some(id) = pending.pop() {
            if !self.wants(id)? {
                continue;
            }
            let tree = tree(self.from, &self.from_odb, id)?;
            for entry in &tree {
                match entry.kind() {
                    Some(ObjectType::Tree) => pending.push(entry.id()),
                    Some(ObjectType::Blob) => self.blob(entry.id())?,
                    // A submodule's commit is in another repository.
                    _ => {}
                }
            }
        }
        Ok(())
    }

    /// Takes a blob.
    pub(crate) fn blob(&mut self, id: Oid) -> Result<(), RepoError> {
        if self.wants(id)? {
            // Asked now, for an error that names it.
            let (size, kind) = self.from_odb.read_header(id).map_err(missing(id))?;
            if kind != ObjectType::Blob {
                return Err(RepoError::Missing(format!("blob {id}")));
            }
            if size as u64 > self.blob_bytes_max {
                return Err(RepoError::TooLarge(format!("blob {id} of {size} bytes")));
            }
        }
        Ok(())
    }

    /// Copies. Every object is hashed again on its way in.
    pub(crate) fn run(self) -> Result<(), RepoError> {
        if self.wanted.is_empty() {
            return Ok(());
        }
        let fail = RepoError::git("copy objects");
        let bounds = self.to.bounds;
        let mut builder = self.from.packbuilder().map_err(&fail)?;
        for &id in &self.wanted {
            bounds.check()?;
            builder.insert_object(id, None).map_err(missing(id))?;
        }
        let mut writer = self.to.odb.packwriter().map_err(&fail)?;
        builder
            .set_progress_callback(|_, _, _| bounds.check().is_ok())
            .map_err(&fail)?;
        let mut broken = None;
        let done = builder.foreach(|bytes| {
            let taken = bounds.take_store(bytes.len() as u64, 0);
            let written = taken.and_then(|()| {
                let written = writer.write_all(bytes);
                written.map_err(|error| RepoError::io("write a pack", error))
            });
            broken = written.err();
            broken.is_none()
        });
        if let Some(error) = broken {
            return Err(error);
        }
        // What stopped the search for deltas.
        bounds.check()?;
        done.map_err(&fail)?;
        writer.commit().map_err(&fail)?;
        drop(writer);
        self.to.odb.refresh().map_err(fail)?;
        match self.wanted.iter().find(|&&id| !self.to.has(id)) {
            Some(id) => Err(RepoError::Missing(id.to_string())),
            None => Ok(()),
        }
    }
}

/// An object that cannot be read.
pub(crate) fn missing(id: Oid) -> impl Fn(git2::Error) -> RepoError {
    move |error| match error.code() {
        ErrorCode::NotFound => RepoError::Missing(id.to_string()),
        _ => RepoError::git("read an object")(error),
    }
}
