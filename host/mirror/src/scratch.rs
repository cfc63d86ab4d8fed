//! In- and outboxes: bare repositories of one operation, whose alternates name a mirror.

use std::path::{Path, PathBuf};

use git2::Repository;
use warren_disk::Dir;
use warren_disk::scratch::{self, ScratchError};

use crate::MirrorError;
use crate::mirror::make_bare;

const REPOSITORY: &str = "repo.git";

/// One box. Deleted when dropped.
#[derive(Debug)]
pub(crate) struct Scratch(scratch::Scratch);

impl Scratch {
    /// Makes a box below `scratch`, which lies at `path`, over the objects of `upstream`.
    pub(crate) fn new(
        scratch: &Dir,
        path: &Path,
        upstream: Option<&Path>,
    ) -> Result<Self, MirrorError> {
        let made = Self(scratch::Scratch::new(scratch, path)?);
        let repo = make_bare(&made.repository())?;
        if let Some(upstream) = upstream {
            let line = alternate(upstream)?;
            let file = repo.path().join("objects/info/alternates");
            std::fs::write(file, line)
                .map_err(|error| MirrorError::io("make a scratch repository", error))?;
        }
        Ok(made)
    }

    /// Path of the bare repository.
    pub(crate) fn repository(&self) -> PathBuf {
        self.0.path().join(REPOSITORY)
    }

    /// Opens the bare repository.
    pub(crate) fn open(&self) -> Result<Repository, MirrorError> {
        Repository::open_bare(self.repository())
            .map_err(|error| MirrorError::git("open a scratch repository", error))
    }
}

impl Drop for Scratch {
    fn drop(&mut self) {
        if let Err(error) = self.0.close() {
            // The next start takes it away.
            tracing::warn!(path = %self.0.path().display(), %error, "scratch repository left behind");
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
        let alive = Scratch::new(&dir, &path, Some(&work.join("m.git"))).unwrap();
        let alternates = alive.repository().join("objects/info/alternates");
        assert!(
            std::fs::read_to_string(alternates)
                .unwrap()
                .ends_with("/m.git/objects\n")
        );
        let gone = alive.repository();
        drop(alive);
        assert!(!gone.exists());
    }
}
