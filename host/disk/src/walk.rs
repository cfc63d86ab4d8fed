//! Walks of a tree: no link followed, no mount point crossed, bounded in everything.

use crate::descent::{Descent, Leave, append, open_subdir};
use crate::stat::{Kind, Stat};
use crate::{Dir, beneath, text};
use rustix::fs::{AtFlags, Gid, Uid, chownat};
use rustix::io::Errno;
use std::ffi::{CStr, OsString};
use std::fs::File;
use std::io;
use std::os::fd::{AsFd, BorrowedFd};
use std::os::unix::ffi::OsStringExt;
use std::path::PathBuf;

/// Length of a path in an error, in bytes.
pub(crate) const PATH_SHOWN_MAX: usize = 1024;

/// How much a walk may meet.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct WalkLimits {
    /// Entries in all.
    pub entries_max: u64,
    /// Levels; an entry right in the directory is on level 1.
    pub depth_max: u32,
}

impl WalkLimits {
    /// No limit; a walk needs no more memory or descriptors for that.
    pub const NONE: Self = Self {
        entries_max: u64::MAX,
        depth_max: u32::MAX,
    };
}

/// Why a walk ended early. Paths are escaped and relative to where it began.
#[derive(Debug, thiserror::Error)]
pub enum WalkError {
    /// There are more levels than allowed.
    #[error("the tree is deeper than {depth_max} levels at `{path}`")]
    TooDeep {
        /// Entry below the last allowed level.
        path: String,
        /// The limit.
        depth_max: u32,
    },
    /// There are more entries than allowed.
    #[error("the tree has more than {entries_max} entries")]
    TooMany {
        /// The limit.
        entries_max: u64,
    },
    /// Another file system, or another part of this one, is mounted there.
    #[error("`{path}` is a mount point")]
    MountPoint {
        /// The mount point.
        path: String,
    },
    /// Somebody moved directories during the walk.
    #[error("the tree was moved during the walk, at `{path}`")]
    Moved {
        /// Directory that we were in.
        path: String,
    },
    /// An entry can not be read.
    #[error("can not read `{path}`")]
    Io {
        /// The entry.
        path: String,
        /// What the system says.
        source: io::Error,
    },
}

impl WalkError {
    /// Stable code for machines.
    pub fn code(&self) -> &'static str {
        match self {
            Self::TooDeep { .. } => "TreeTooDeep",
            Self::TooMany { .. } => "TreeTooLarge",
            Self::MountPoint { .. } => "MountPoint",
            Self::Moved { .. } => "TreeMoved",
            Self::Io { .. } => "TreeUnreadable",
        }
    }

    /// What to do next.
    pub fn hint(&self) -> Option<String> {
        match self {
            Self::TooDeep { .. } | Self::TooMany { .. } => None,
            Self::MountPoint { path } => Some(format!("unmount `{path}`, then try again")),
            Self::Moved { .. } => Some("stop what changes the tree, then try again".into()),
            Self::Io { .. } => None,
        }
    }

    pub(crate) fn io(path: &[u8], source: io::Error) -> Self {
        let path = shown(path);
        Self::Io { path, source }
    }
}

/// A path for people: escaped and not too long.
pub(crate) fn shown(path: &[u8]) -> String {
    match path.get(..PATH_SHOWN_MAX) {
        Some(head) if path.len() > PATH_SHOWN_MAX => format!("{}…", text::escape(head)),
        _ if path.is_empty() => ".".into(),
        _ => text::escape(path),
    }
}

/// What a visitor wants next.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Flow {
    /// Go on; into the entry if it is a directory.
    Go,
    /// Go on, but not into this directory.
    Skip,
    /// End the walk without an error.
    Stop,
}

/// One entry that a walk met.
#[derive(Debug)]
pub struct Entry<'a> {
    dir: BorrowedFd<'a>,
    name: &'a CStr,
    path: &'a [u8],
    stat: Stat,
}

impl Entry<'_> {
    /// Path below the directory where the walk began, with `/` between the names.
    pub fn path(&self) -> &[u8] {
        self.path
    }

    /// Last component of the path.
    pub fn name(&self) -> &[u8] {
        self.name.to_bytes()
    }

    /// What it was when the walk met it.
    pub fn stat(&self) -> &Stat {
        &self.stat
    }

    /// Opens it for reading; a regular file only.
    ///
    /// # Errors
    /// As [`beneath::open_file`].
    pub fn open_file(&self) -> io::Result<File> {
        beneath::open_file_at(self.dir, self.name)
    }

    /// Gives the entry itself to somebody.
    pub(crate) fn change_owner(&self, user: Uid, group: Gid) -> Result<(), Errno> {
        let (user, group) = (Some(user), Some(group));
        chownat(self.dir, self.name, user, group, AtFlags::SYMLINK_NOFOLLOW)
    }

    /// Target of the symlink, verbatim.
    ///
    /// # Errors
    /// What the system says.
    pub fn read_link(&self) -> io::Result<PathBuf> {
        let target = beneath::read_link_at(self.dir, self.name)?;
        Ok(OsString::from_vec(target).into())
    }
}

/// What happens in a walk.
pub(crate) enum Event<'a> {
    /// An entry; a directory before what is in it.
    Entry(&'a Entry<'a>),
    /// Now come the entries of a directory.
    Enter,
    /// All entries of a directory were seen; its name and what it was when it was entered.
    Leave(&'a CStr, Stat),
}

/// Visits every entry below `dir`, a directory before its entries, else in no order.
///
/// Entries that vanish meanwhile are left out. Stack, open descriptors and memory do not grow with
/// the number of entries, and only by their names with the depth.
///
/// # Errors
/// Those of `visit`, and [`WalkError`]. A directory that is a mount point is an error unless
/// `visit` skips it (see [`Stat::mount_point`]).
pub fn walk<E: From<WalkError>>(
    dir: &Dir,
    limits: WalkLimits,
    mut visit: impl FnMut(&Entry<'_>) -> Result<Flow, E>,
) -> Result<(), E> {
    events(dir, limits, |event| match event {
        Event::Entry(entry) => visit(entry),
        Event::Enter | Event::Leave(..) => Ok(Flow::Go),
    })
}

/// As [`walk`], and tells when directories are entered and left.
pub(crate) fn events<E: From<WalkError>>(
    dir: &Dir,
    limits: WalkLimits,
    mut visit: impl FnMut(Event<'_>) -> Result<Flow, E>,
) -> Result<(), E> {
    let unreadable = |e| WalkError::io(b"", e);
    let stat = Stat::of(dir).map_err(unreadable)?;
    let mut descent = Descent::new(dir.as_fd(), stat).map_err(unreadable)?;
    let mut entries = 0;
    loop {
        if let Some(name) = descent.next_deferred() {
            if enter(&mut descent, &name)? && visit(Event::Enter)? == Flow::Stop {
                return Ok(());
            }
            continue;
        }
        let batch = descent
            .read()
            .map_err(|e| WalkError::io(descent.path(), e))?;
        if batch.is_empty() && !leave(&mut descent, &mut visit)? {
            return Ok(());
        }
        let mut path = descent.path().to_vec();
        let above = path.len();
        for item in batch {
            path.truncate(above);
            append(&mut path, &item.name);
            let Some(stat) = look(&descent, &item.name, &path)? else {
                continue;
            };
            entries += 1;
            check(limits, entries, descent.depth(), &path)?;
            let entry = Entry {
                dir: descent.dir(),
                name: &item.name,
                path: &path,
                stat,
            };
            match visit(Event::Entry(&entry))? {
                Flow::Stop => return Ok(()),
                Flow::Go if stat.kind == Kind::Dir => descent.defer(item.name),
                Flow::Go | Flow::Skip => {}
            }
        }
    }
}

fn check(limits: WalkLimits, entries: u64, depth: usize, path: &[u8]) -> Result<(), WalkError> {
    if entries > limits.entries_max {
        let entries_max = limits.entries_max;
        return Err(WalkError::TooMany { entries_max });
    }
    if depth >= limits.depth_max as usize {
        return Err(WalkError::TooDeep {
            path: shown(path),
            depth_max: limits.depth_max,
        });
    }
    Ok(())
}

fn look(descent: &Descent<Stat>, name: &CStr, path: &[u8]) -> Result<Option<Stat>, WalkError> {
    match Stat::at(descent.dir(), name) {
        Ok(stat) => Ok(Some(stat)),
        Err(e) if e.kind() == io::ErrorKind::NotFound => Ok(None),
        Err(e) => Err(WalkError::io(path, e)),
    }
}

/// Goes into a directory; false when it is none any more.
fn enter(descent: &mut Descent<Stat>, name: &CStr) -> Result<bool, WalkError> {
    let fail = |descent: &Descent<Stat>, e| WalkError::io(&descent.path_of(name), e);
    let fd = match open_subdir(descent.dir(), name) {
        Ok(fd) => fd,
        Err(e) => {
            return match Errno::from_io_error(&e) {
                Some(Errno::NOENT | Errno::NOTDIR | Errno::LOOP) => Ok(false),
                Some(Errno::XDEV) => Err(WalkError::MountPoint {
                    path: shown(&descent.path_of(name)),
                }),
                _ => Err(fail(descent, e)),
            };
        }
    };
    let stat = Stat::of(&fd).map_err(|e| fail(descent, e))?;
    let entered = descent.enter(name, fd, stat);
    entered.map_err(|e| WalkError::io(descent.path(), e))?;
    Ok(true)
}

/// Goes up; false at the end of the first directory.
fn leave<E: From<WalkError>>(
    descent: &mut Descent<Stat>,
    visit: &mut impl FnMut(Event<'_>) -> Result<Flow, E>,
) -> Result<bool, E> {
    match descent.leave() {
        Ok(Leave::Left(left)) => visit(Event::Leave(&left.name, left.data)).map(|_| true),
        Ok(Leave::End) => Ok(false),
        Ok(Leave::Moved) => {
            let path = shown(descent.path());
            Err(WalkError::Moved { path }.into())
        }
        Err(e) => Err(WalkError::io(descent.path(), e).into()),
    }
}

#[cfg(test)]
mod tests;
