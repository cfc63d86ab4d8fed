//! Folders for the length of one operation. What a process that died has left is told from what is
//! in use by a lock in each of them.

use crate::lock::{Lock, LockError};
use crate::remove::{self, RemoveError};
use crate::{Dir, beneath};
use rustix::fs::Mode;
use std::io;
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Duration;

/// Held shared while a folder is made, alone while stale ones are looked for.
const GATE: &str = ".lock";

/// In each folder; held by its owner.
const LOCK: &str = "lock";

/// Longest wait for the gate.
const GATE_TIMEOUT: Duration = Duration::from_secs(60);

/// Why a folder could not be made or taken away.
#[derive(Debug, thiserror::Error)]
pub enum ScratchError {
    /// The system says no.
    #[error("can not {doing}")]
    Io {
        /// What was being done.
        doing: &'static str,
        /// What the system says.
        source: io::Error,
    },
    /// A lock was not got.
    #[error(transparent)]
    Lock(#[from] LockError),
    /// A stale folder can not be deleted.
    #[error("can not take away a stale scratch folder")]
    Remove(#[source] RemoveError),
}

fn io(doing: &'static str) -> impl Fn(io::Error) -> ScratchError {
    move |source| ScratchError::Io { doing, source }
}

/// One folder. Deleted when dropped, or by [`clean`] when its process has died.
#[derive(Debug)]
pub struct Scratch {
    parent: Dir,
    name: String,
    path: PathBuf,
    _lock: Lock,
}

impl Scratch {
    /// Makes a folder that only we can read below `parent`, which lies at `path`.
    ///
    /// # Errors
    /// When it can not be made or locked.
    pub fn new(parent: &Dir, path: &Path) -> Result<Self, ScratchError> {
        let failed = io("make a scratch folder");
        let _gate = Lock::shared(parent, GATE, GATE_TIMEOUT)?;
        let name = create(parent).map_err(&failed)?;
        let dir = beneath::open_dir(parent, Path::new(&name)).map_err(&failed)?;
        Ok(Self {
            parent: parent.try_clone().map_err(&failed)?,
            path: path.join(&name),
            name,
            _lock: Lock::exclusive(&dir, LOCK, GATE_TIMEOUT)?,
        })
    }

    /// Path of the folder. The name `lock` in it is taken.
    pub fn path(&self) -> &Path {
        &self.path
    }

    /// Deletes the folder; without this call it goes when dropped, and errors are not told.
    ///
    /// # Errors
    /// When something in it can not be deleted.
    pub fn close(&self) -> Result<(), RemoveError> {
        remove::remove_tree(&self.parent, &self.name).map(drop)
    }
}

impl Drop for Scratch {
    fn drop(&mut self) {
        // What resists is found again by `clean`.
        let _ = self.close();
    }
}

fn create(parent: &Dir) -> io::Result<String> {
    static COUNT: AtomicU64 = AtomicU64::new(0);
    loop {
        let count = COUNT.fetch_add(1, Ordering::Relaxed);
        let name = format!("{:x}-{count:x}", std::process::id());
        match rustix::fs::mkdirat(parent, &name, Mode::RWXU) {
            Ok(()) => return Ok(name),
            // A process of that id has died, or lives on another Pod.
            Err(rustix::io::Errno::EXIST) => {}
            Err(error) => return Err(error.into()),
        }
    }
}

/// Deletes the folders that no living process holds; returns how many. Does nothing while one is
/// being made.
///
/// # Errors
/// When something can not be deleted.
pub fn clean(parent: &Dir) -> Result<u64, ScratchError> {
    let failed = io("look for stale scratch folders");
    let Some(_gate) = Lock::try_exclusive(parent, GATE)? else {
        return Ok(0);
    };
    let mut removed = 0;
    for entry in parent.entries().map_err(&failed)? {
        let name = entry.map_err(&failed)?.file_name();
        let Some(name) = name.to_str().filter(|name| *name != GATE) else {
            continue;
        };
        // A file, or gone already.
        let Ok(dir) = beneath::open_dir(parent, Path::new(name)) else {
            continue;
        };
        let Some(_lock) = Lock::try_exclusive(&dir, LOCK)? else {
            continue;
        };
        remove::remove_tree(parent, name).map_err(ScratchError::Remove)?;
        removed += 1;
    }
    Ok(removed)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::testing::{open, scratch};
    use std::fs;

    #[test]
    fn a_folder_goes_with_its_owner_and_only_stale_ones_are_cleaned() {
        let tmp = scratch();
        let dir = open(tmp.path());
        let alive = Scratch::new(&dir, tmp.path()).unwrap();
        let other = Scratch::new(&dir, tmp.path()).unwrap();
        assert_ne!(alive.path(), other.path());
        fs::create_dir_all(tmp.path().join("stale/repo.git")).unwrap();
        fs::write(tmp.path().join("stale/lock"), "").unwrap();
        assert_eq!(clean(&dir).unwrap(), 1);
        assert!(!tmp.path().join("stale").exists());
        assert!(alive.path().is_dir());
        let gone = alive.path().to_owned();
        drop(alive);
        assert!(!gone.exists());
        assert_eq!(clean(&dir).unwrap(), 0);
        assert!(other.path().is_dir());
    }

    #[test]
    fn nothing_is_taken_from_one_who_is_just_making_a_folder() {
        let tmp = scratch();
        let dir = open(tmp.path());
        fs::create_dir(tmp.path().join("fresh")).unwrap();
        let gate = Lock::shared(&dir, GATE, GATE_TIMEOUT).unwrap();
        assert_eq!(clean(&dir).unwrap(), 0);
        drop(gate);
        assert_eq!(clean(&dir).unwrap(), 1);
    }
}
