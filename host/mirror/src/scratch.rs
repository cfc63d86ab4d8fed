//! In- and outboxes: bare repositories of one session, whose alternates name a mirror.

use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicU64, Ordering};

use git2::Repository;
use warren_disk::Dir;
use warren_disk::scratch::{self, ScratchError};

use crate::MirrorError;
use crate::mirror::make_bare;

/// The folder of one session, with its boxes. Deleted when dropped.
#[derive(Debug)]
pub(crate) struct Folder {
    folder: scratch::Scratch,
    dir: Dir,
    boxes: AtomicU64,
}

impl Folder {
    /// Makes a folder below `scratch`, which lies at `path`.
    pub(crate) fn new(scratch: &Dir, path: &Path) -> Result<Self, MirrorError> {
        let folder = scratch::Scratch::new(scratch, path)?;
        let dir = warren_disk::open_root(folder.path())
            .map_err(|error| MirrorError::io("open a scratch folder", error))?;
        Ok(Self {
            folder,
            dir,
            boxes: AtomicU64::new(0),
        })
    }

    /// The folder itself, for a rule that lets work in.
    pub(crate) fn dir(&self) -> &Dir {
        &self.dir
    }

    /// Makes a box over the objects of `upstream`.
    pub(crate) fn make(&self, upstream: Option<&Path>) -> Result<Scratch, MirrorError> {
        let number = self.boxes.fetch_add(1, Ordering::Relaxed);
        let name = format!("{number}.git");
        let made = Scratch {
            path: self.folder.path().join(&name),
            name,
            dir: self
                .dir
                .try_clone()
                .map_err(|error| MirrorError::io("open a scratch folder", error))?,
        };
        let repo = make_bare(&made.path)?;
        if let Some(upstream) = upstream {
            let line = alternate(upstream)?;
            let file = repo.path().join("objects/info/alternates");
            std::fs::write(file, line)
                .map_err(|error| MirrorError::io("make a scratch repository", error))?;
        }
        Ok(made)
    }
}

impl Drop for Folder {
    fn drop(&mut self) {
        if let Err(error) = self.folder.close() {
            // The next start takes it away.
            tracing::warn!(path = %self.folder.path().display(), %error, "scratch folder left behind");
        }
    }
}

/// One box. Deleted when dropped.
#[derive(Debug)]
pub(crate) struct Scratch {
    dir: Dir,
    name: String,
    path: PathBuf,
}

impl Scratch {
    /// Path of the bare repository.
    pub(crate) fn repository(&self) -> &Path {
        &self.path
    }

    /// Opens the bare repository.
    pub(crate) fn open(&self) -> Result<Repository, MirrorError> {
        Repository::open_bare(&self.path)
            .map_err(|error| MirrorError::git("open a scratch repository", error))
    }
}

impl Drop for Scratch {
    fn drop(&mut self) {
        if let Err(error) = warren_disk::remove::remove_tree(&self.dir, &self.name) {
            // It goes with its folder.
            tracing::debug!(path = %self.path.display(), %error, "scratch repository left behind");
        }
    }
}

impl From<ScratchError> for MirrorError {
    fn from(error: ScratchError) -> Self {
        match error {
            ScratchError::Io { doing, source } => Self::io(doing, source),
            ScratchError::Lock(error) => error.into(),
            ScratchError::Remove(error) => Self::Io {
                doing: "take away a stale scratch repository".to_owned(),
                source: error.into(),
            },
        }
    }
}

fn alternate(upstream: &Path) -> Result<Vec<u8>, MirrorError> {
    let objects = upstream.join("objects");
    let mut line = objects.as_os_str().as_encoded_bytes().to_vec();
    // One path a line, `#` comments, `"` quotes: the operator's state directory has none of these.
    if line.contains(&b'\n') || line.first() != Some(&b'/') {
        return Err(MirrorError::invalid(
            "state directory",
            "its path is not absolute or holds a line break",
        ));
    }
    line.push(b'\n');
    Ok(line)
}

#[cfg(test)]
mod tests {
    use super::*;
    use warren_testkit::Work;

    #[test]
    fn a_box_stands_on_its_mirror_and_goes_with_its_owner() {
        warren_repo::setup::init().unwrap();
        let work = Work::new();
        let dir = warren_disk::open_root(&work.dir("scratch")).unwrap();
        let path = work.join("scratch");
        let folder = Folder::new(&dir, &path).unwrap();
        let alive = folder.make(Some(&work.join("m.git"))).unwrap();
        let alternates = alive.repository().join("objects/info/alternates");
        assert!(
            std::fs::read_to_string(alternates)
                .unwrap()
                .ends_with("/m.git/objects\n")
        );
        let second = folder.make(None).unwrap();
        let gone = alive.repository().to_owned();
        drop(alive);
        assert!(!gone.exists());
        assert!(second.open().is_ok());
        let gone = second.repository().to_owned();
        drop(folder);
        assert!(!gone.exists());
        drop(second);
    }
}
