//! The folder of a call's children: `HOME`, `TMPDIR` and caches, gone with the call.

use std::io;
use std::path::{Path, PathBuf};

use cap_std::fs::Dir;
use warren_disk::scratch::Scratch;
use warren_disk::usage::usage;
use warren_process::{Environment, ProcessError};

/// The children's folder in a scratch folder: the lock beside it is out of their way.
const HOME: &str = "home";

/// Temporary files, in the same folder.
const TEMPORARY: &str = "tmp";

/// Made for the first child, deleted when dropped.
pub(super) struct Home {
    dir: Dir,
    path: PathBuf,
    _scratch: Scratch,
}

impl Home {
    /// Makes one in the host's scratch directory.
    pub(super) fn new(scratch: &Path) -> Result<Self, ProcessError> {
        let failed = |source| ProcessError::Failed {
            what: "the scratch directory could not be made".to_owned(),
            source: Some(source),
        };
        let parent = warren_disk::open_root(scratch).map_err(failed)?;
        let made =
            Scratch::new(&parent, scratch).map_err(|error| failed(io::Error::other(error)))?;
        let path = made.path().join(HOME);
        std::fs::create_dir(&path).map_err(failed)?;
        let dir = warren_disk::open_root(&path).map_err(failed)?;
        dir.create_dir(TEMPORARY).map_err(failed)?;
        Ok(Self {
            dir,
            path,
            _scratch: made,
        })
    }

    /// What the children may write.
    pub(super) fn dir(&self) -> &Dir {
        &self.dir
    }

    /// The fixed variables of every child.
    pub(super) fn environment(&self) -> Result<Environment, ProcessError> {
        Environment::new(&self.path, &self.path.join(TEMPORARY))
    }

    /// Bytes and inodes in it.
    pub(super) fn used(&self) -> Result<(u64, u64), warren_disk::walk::WalkError> {
        let usage = usage(&self.dir)?;
        Ok((usage.bytes, usage.files.saturating_add(usage.dirs)))
    }
}
