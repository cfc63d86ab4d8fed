//! In- and outboxes: bare repositories of one operation, whose alternates name a mirror.

use std::path::{Path, PathBuf};
use std::time::Duration;

use git2::Repository;
use warren_disk::Dir;
use warren_disk::lock::Lock;

use crate::MirrorError;
use crate::mirror::make_bare;

/// Held shared while a box is made, alone while stale ones are looked for.
const GATE: &str = ".lock";

/// In each box; held by its owner.
const LOCK: &str = "lock";

const REPOSITORY: &str = "repo.git";

/// Longest wait for the gate.
const GATE_TIMEOUT: Duration = Duration::from_secs(60);

/// One box. Deleted when dropped.
#[derive(Debug)]
pub(crate) struct Scratch {
    parent: Dir,
    name: String,
    path: PathBuf,
    _lock: Lock,
}

impl Scratch {
    /// Makes a box below `scratch`, which lies at `path`, over the objects of `upstream`.
    pub(crate) fn new(
        scratch: &Dir,
        path: &Path,
        upstream: Option<&Path>,
    ) -> Result<Self, MirrorError> {
        let failed = |error| MirrorError::io("make a scratch repository", error);
        let name = uuid::Uuid::now_v7().to_string();
        let _gate = Lock::shared(scratch, GATE, GATE_TIMEOUT)?;
        scratch.create_dir(&name).map_err(failed)?;
        let dir = scratch.open_dir(&name).map_err(failed)?;
        let made = Self {
            parent: scratch.try_clone().map_err(failed)?,
            path: path.join(&name),
            name,
            _lock: Lock::exclusive(&dir, LOCK, GATE_TIMEOUT)?,
        };
        let repo = make_bare(&made.repository())?;
        if let Some(upstream) = upstream {
            let line = alternate(upstream)?;
            let file = repo.path().join("objects/info/alternates");
            std::fs::write(file, line).map_err(failed)?;
        }
        Ok(made)
    }

    /// Path of the bare repository.
    pub(crate) fn repository(&self) -> PathBuf {
        self.path.join(REPOSITORY)
    }

    /// Opens the bare repository.
    pub(crate) fn open(&self) -> Result<Repository, MirrorError> {
        Repository::open_bare(self.repository())
            .map_err(|error| MirrorError::git("open a scratch repository", error))
    }
}

impl Drop for Scratch {
    fn drop(&mut self) {
        if let Err(error) = warren_disk::remove::remove_tree(&self.parent, &self.name) {
            // The next start takes it away.
            tracing::warn!(name = self.name, %error, "scratch repository left behind");
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

/// Deletes the boxes that no living process holds; returns how many.
pub(crate) fn clean(scratch: &Dir) -> Result<u64, MirrorError> {
    let failed = |error| MirrorError::io("look for stale scratch repositories", error);
    let _gate = Lock::exclusive(scratch, GATE, GATE_TIMEOUT)?;
    let mut removed = 0;
    for entry in scratch.entries().map_err(failed)? {
        let name = entry.map_err(failed)?.file_name();
        let Some(name) = name.to_str().filter(|name| *name != GATE) else {
            continue;
        };
        let Ok(dir) = scratch.open_dir(name) else {
            continue;
        };
        let Some(_lock) = Lock::try_exclusive(&dir, LOCK)? else {
            continue;
        };
        warren_disk::remove::remove_tree(scratch, name).map_err(|error| MirrorError::Io {
            doing: "take away a stale scratch repository".to_owned(),
            source: error.into(),
        })?;
        removed += 1;
    }
    Ok(removed)
}

#[cfg(test)]
mod tests {
    use super::*;
    use warren_testkit::Work;

    #[test]
    fn a_box_goes_with_its_owner_and_only_stale_ones_are_cleaned() {
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
        work.dir("scratch/stale/repo.git");
        assert_eq!(clean(&dir).unwrap(), 1);
        assert!(!path.join("stale").exists());
        assert!(alive.repository().is_dir());
        let gone = alive.repository();
        drop(alive);
        assert!(!gone.exists());
        assert_eq!(clean(&dir).unwrap(), 0);
    }
}
