//! The one place that deletes trees.

use crate::descent::{Descent, Item, Leave, Left, open_subdir};
use crate::stat::{Kind, Stat};
use crate::walk::shown;
use crate::{Dir, beneath, name};
use rustix::fs::{AtFlags, FileType, Mode, OFlags, ResolveFlags};
use rustix::io::Errno;
use std::ffi::{CStr, CString};
use std::io;
use std::os::fd::{AsFd, AsRawFd, BorrowedFd, OwnedFd};

/// How many entries that stayed are named.
const KEPT_NAMED_MAX: usize = 20;

/// How often one directory is emptied again when it got new entries meanwhile.
const REFILLS_MAX: u32 = 8;

/// How often all begins anew after directories were moved.
const PASSES_MAX: u32 = 16;

/// What was deleted.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct Removed {
    /// Entries that were no directories.
    pub files: u64,
    /// Directories.
    pub dirs: u64,
    /// Allocated bytes of files whose last name went.
    pub bytes: u64,
}

/// An entry that could not be deleted.
#[derive(Debug)]
pub struct Kept {
    /// Escaped path; its first component is the name that was to be removed.
    pub path: String,
    /// What the system says.
    pub source: io::Error,
}

/// Why a tree is not gone. Paths are escaped; their first component is the name given.
#[derive(Debug, thiserror::Error)]
pub enum RemoveError {
    /// Something is mounted there; nothing behind it was touched.
    #[error("`{path}` is a mount point")]
    MountPoint {
        /// The mount point.
        path: String,
    },
    /// Some entries can not be deleted; all others are gone.
    #[error("{total} entries can not be deleted, among them {}", named(kept))]
    Kept {
        /// The first of them.
        kept: Vec<Kept>,
        /// How many there are; directories that only hold such entries do not count.
        total: u64,
        /// What was deleted.
        removed: Removed,
    },
    /// Somebody keeps moving directories of the tree.
    #[error("`{name}` keeps being changed while it is deleted")]
    Moving {
        /// The name given.
        name: String,
    },
    /// The deletion could not go on.
    #[error("can not delete `{path}`")]
    Io {
        /// Where it stopped.
        path: String,
        /// What the system says.
        source: io::Error,
    },
}

fn named(kept: &[Kept]) -> String {
    let first = kept.first();
    first.map_or_else(String::new, |k| format!("`{}` ({})", k.path, k.source))
}

impl RemoveError {
    /// Stable code for machines.
    pub fn code(&self) -> &'static str {
        match self {
            Self::MountPoint { .. } => "MountPoint",
            Self::Kept { .. } => "DeleteIncomplete",
            Self::Moving { .. } => "TreeMoved",
            Self::Io { .. } => "DeleteFailed",
        }
    }

    /// What to do next.
    pub fn hint(&self) -> Option<String> {
        Some(match self {
            Self::MountPoint { path } => format!("unmount `{path}`, then try again"),
            Self::Kept { .. } => {
                "clear what protects these entries (owner, `chattr -i`), then try again".into()
            }
            Self::Moving { .. } => "stop what changes the tree, then try again".into(),
            Self::Io { .. } => return None,
        })
    }
}

/// Deletes `name` of `parent` with all below it; a name that is not there is fine.
///
/// Links go, not what they point to. Directories that we may not write get their owner bits first.
/// After an error or a crash it can simply be called again.
///
/// # Errors
/// [`RemoveError`]; the deletion goes on past entries that can not be deleted, but stops at a mount
/// point.
pub fn remove_tree(parent: &Dir, name: &str) -> Result<Removed, RemoveError> {
    let fail = |source| RemoveError::Io {
        path: shown(name.as_bytes()),
        source,
    };
    name::check(name).map_err(fail)?;
    let first = CString::new(name).map_err(|e| fail(e.into()))?;
    let mut work = Work::default();
    for _ in 0..PASSES_MAX {
        work.kept.clear();
        work.total = 0;
        if work.pass(parent.as_fd(), first.clone())? {
            return work.finish();
        }
    }
    Err(RemoveError::Moving {
        name: shown(name.as_bytes()),
    })
}

/// State of a directory that is being emptied.
#[derive(Default)]
struct Emptying {
    /// Something in it stays, so it stays too.
    kept: bool,
    refills: u32,
}

type Place = Descent<Emptying>;

#[derive(Default)]
struct Work {
    removed: Removed,
    kept: Vec<Kept>,
    total: u64,
}

impl Work {
    fn finish(self) -> Result<Removed, RemoveError> {
        if self.total == 0 {
            return Ok(self.removed);
        }
        Err(RemoveError::Kept {
            kept: self.kept,
            total: self.total,
            removed: self.removed,
        })
    }

    /// One run; false when directories were moved, so that another one is needed.
    fn pass(&mut self, parent: BorrowedFd<'_>, first: CString) -> Result<bool, RemoveError> {
        let path = shown(first.to_bytes());
        let start = Place::new(parent, Emptying::default());
        let mut place = start.map_err(|source| RemoveError::Io { path, source })?;
        // The parent is on the stack too, but never read: only `first` of it is ours.
        place.defer(first);
        loop {
            if let Some(name) = place.next_deferred() {
                self.enter(&mut place, &name, 0)?;
                continue;
            }
            if place.depth() == 0 {
                return Ok(true);
            }
            let batch = match place.read() {
                Ok(batch) => batch,
                Err(e) => return Err(stop(place.path(), e)),
            };
            if batch.is_empty() {
                match place.leave() {
                    Ok(Leave::Left(left)) => self.remove_dir(&mut place, left)?,
                    Ok(Leave::Moved | Leave::End) => return Ok(false),
                    Err(e) => return Err(stop(place.path(), e)),
                }
            }
            for item in batch {
                self.remove_item(&mut place, item)?;
            }
        }
    }

    fn remove_item(&mut self, place: &mut Place, item: Item) -> Result<(), RemoveError> {
        if item.listed_as == FileType::Directory {
            place.defer(item.name);
            return Ok(());
        }
        match Stat::at(place.dir(), &item.name) {
            Ok(stat) if stat.kind == Kind::Dir => place.defer(item.name),
            Ok(stat) if stat.mount_point => return Err(mount_point(place, &item.name)),
            Ok(stat) => self.unlink(place, &item.name, &stat),
            Err(e) => self.keep(place, &item.name, e),
        }
        Ok(())
    }

    fn unlink(&mut self, place: &mut Place, name: &CStr, stat: &Stat) {
        match rustix::fs::unlinkat(place.dir(), name, AtFlags::empty()) {
            Ok(()) => {
                self.removed.files += 1;
                if stat.nlink <= 1 {
                    self.removed.bytes += stat.bytes_allocated();
                }
            }
            // Exchanged for a directory just now: found when the directory above is not empty.
            Err(Errno::ISDIR) => {}
            Err(e) => self.keep(place, name, e.into()),
        }
    }

    /// Goes into the directory `name`; or deletes it when it is none, or an empty one of others.
    fn enter(&mut self, place: &mut Place, name: &CStr, refills: u32) -> Result<(), RemoveError> {
        let fd = match open_writable(place.dir(), name) {
            Ok(fd) => fd,
            Err(e) => return self.not_entered(place, name, e),
        };
        let emptying = Emptying {
            kept: false,
            refills,
        };
        let entered = place.enter(name, fd, emptying);
        entered.map_err(|e| stop(place.path(), e))
    }

    fn not_entered(
        &mut self,
        place: &mut Place,
        name: &CStr,
        error: io::Error,
    ) -> Result<(), RemoveError> {
        match Errno::from_io_error(&error) {
            Some(Errno::XDEV) => Err(mount_point(place, name)),
            Some(Errno::NOTDIR | Errno::LOOP) => {
                match Stat::at(place.dir(), name) {
                    Ok(stat) if stat.mount_point => return Err(mount_point(place, name)),
                    Ok(stat) => self.unlink(place, name, &stat),
                    Err(e) => self.keep(place, name, e),
                }
                Ok(())
            }
            Some(Errno::ACCESS | Errno::PERM) => {
                match rustix::fs::unlinkat(place.dir(), name, AtFlags::REMOVEDIR) {
                    Ok(()) => self.removed.dirs += 1,
                    Err(_) => self.keep(place, name, error),
                }
                Ok(())
            }
            Some(Errno::NOENT) => Ok(()),
            _ => Err(stop(&place.path_of(name), error)),
        }
    }

    fn remove_dir(&mut self, place: &mut Place, left: Left<Emptying>) -> Result<(), RemoveError> {
        if left.data.kept {
            place.data().kept = true;
            return Ok(());
        }
        match rustix::fs::unlinkat(place.dir(), &left.name, AtFlags::REMOVEDIR) {
            Ok(()) => self.removed.dirs += 1,
            Err(Errno::NOTEMPTY | Errno::EXIST | Errno::NOTDIR)
                if left.data.refills < REFILLS_MAX =>
            {
                self.enter(place, &left.name, left.data.refills + 1)?;
            }
            Err(e) => self.keep(place, &left.name, e.into()),
        }
        Ok(())
    }

    fn keep(&mut self, place: &mut Place, name: &CStr, source: io::Error) {
        if source.kind() == io::ErrorKind::NotFound {
            return;
        }
        place.data().kept = true;
        self.total += 1;
        if self.kept.len() < KEPT_NAMED_MAX {
            let path = shown(&place.path_of(name));
            self.kept.push(Kept { path, source });
        }
    }
}

fn mount_point(place: &Place, name: &CStr) -> RemoveError {
    RemoveError::MountPoint {
        path: shown(&place.path_of(name)),
    }
}

fn stop(path: &[u8], source: io::Error) -> RemoveError {
    RemoveError::Io {
        path: shown(path),
        source,
    }
}

/// Opens a directory and sees to it that its owner may change it.
fn open_writable(dir: BorrowedFd<'_>, name: &CStr) -> io::Result<OwnedFd> {
    let fd = match open_subdir(dir, name) {
        Err(e) if e.kind() == io::ErrorKind::PermissionDenied => {
            grant_closed(dir, name)?;
            open_subdir(dir, name)?
        }
        opened => opened?,
    };
    let mode = Stat::of(&fd)?.mode;
    if mode & 0o700 != 0o700 {
        // One of others refuses; then so do its entries, and they are told.
        let _ = rustix::fs::fchmod(&fd, Mode::from_raw_mode(mode | 0o700));
    }
    Ok(fd)
}

/// Gives its owner all rights on a directory that can not even be opened for reading.
fn grant_closed(dir: BorrowedFd<'_>, name: &CStr) -> io::Result<()> {
    let flags = OFlags::PATH | OFlags::DIRECTORY;
    let fd = beneath::open_at(dir, name, flags, Mode::empty(), ResolveFlags::NO_XDEV)?;
    let mode = Stat::of(&fd)?.mode | 0o700;
    // Such a handle refuses `fchmod`; through this name the kernel reaches the very same directory.
    let itself = format!("/proc/self/fd/{}", fd.as_raw_fd());
    Ok(rustix::fs::chmod(itself, Mode::from_raw_mode(mode))?)
}

#[cfg(test)]
mod tests;
