//! What several tests need.

use crate::Dir;
use std::path::Path;
use tempfile::TempDir;

/// A directory in memory where there is one.
pub(crate) fn scratch() -> TempDir {
    let memory = Path::new("/dev/shm");
    if memory.is_dir() {
        tempfile::tempdir_in(memory).unwrap()
    } else {
        tempfile::tempdir().unwrap()
    }
}

pub(crate) fn open(path: &Path) -> Dir {
    crate::open_root(path).unwrap()
}
