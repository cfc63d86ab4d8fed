//! Opens that stay beneath a directory: no symlink, no magic link, no `..` out of it.

pub use crate::stat::{Kind, Stat, Time};

use crate::Dir;
use rustix::fs::{Mode, OFlags, ResolveFlags};
use rustix::io::Errno;
use std::ffi::{CStr, OsString};
use std::fs::File;
use std::io;
use std::os::fd::{AsFd, BorrowedFd, OwnedFd};
use std::os::unix::ffi::OsStringExt;
use std::path::{Path, PathBuf};

/// How often a resolution that a concurrent rename disturbed is tried.
const ATTEMPTS_MAX: u32 = 128;

/// Opens `rel` for reading; a regular file only.
///
/// A FIFO or device can not hold the caller: it is refused.
///
/// # Errors
/// `InvalidInput` when it is no regular file; [`is_refused`] tells links and escapes apart.
pub fn open_file(dir: &Dir, rel: &Path) -> io::Result<File> {
    open_file_at(dir.as_fd(), rel)
}

pub(crate) fn open_file_at<P: rustix::path::Arg + Copy>(
    dir: BorrowedFd<'_>,
    rel: P,
) -> io::Result<File> {
    let flags = OFlags::RDONLY | OFlags::NONBLOCK | OFlags::NOCTTY;
    let fd = open_at(dir, rel, flags, Mode::empty(), ResolveFlags::empty())?;
    if Stat::of(&fd)?.kind != Kind::File {
        return Err(not_a_file());
    }
    Ok(File::from(fd))
}

fn not_a_file() -> io::Error {
    io::Error::new(io::ErrorKind::InvalidInput, "not a regular file")
}

/// Opens the directory `rel`; `.` is `dir` itself.
///
/// # Errors
/// What the system says; [`is_refused`] tells links and escapes apart.
pub fn open_dir(dir: &Dir, rel: &Path) -> io::Result<Dir> {
    let flags = OFlags::RDONLY | OFlags::DIRECTORY;
    let none = ResolveFlags::empty();
    open_at(dir.as_fd(), rel, flags, Mode::empty(), none).map(Dir::from)
}

/// Opens the directory `rel` unless a mount point lies on the way (`EXDEV`).
///
/// # Errors
/// What the system says; [`is_refused`] tells links, escapes and mount points apart.
pub fn open_dir_same_mount(dir: &Dir, rel: &Path) -> io::Result<Dir> {
    let flags = OFlags::RDONLY | OFlags::DIRECTORY;
    let fd = open_at(
        dir.as_fd(),
        rel,
        flags,
        Mode::empty(),
        ResolveFlags::NO_XDEV,
    )?;
    Ok(Dir::from(fd))
}

/// Makes the file `rel`, open for reading and writing; `mode` as the umask leaves it.
///
/// # Errors
/// `AlreadyExists` when anything has that name, a dangling link too.
pub fn create_file(dir: &Dir, rel: &Path, mode: u32) -> io::Result<File> {
    let flags = OFlags::RDWR | OFlags::CREATE | OFlags::EXCL;
    let mode = Mode::from_raw_mode(mode & 0o7777);
    let fd = open_at(dir.as_fd(), rel, flags, mode, ResolveFlags::empty())?;
    Ok(File::from(fd))
}

/// Target of the symlink `rel`, verbatim.
///
/// # Errors
/// `InvalidInput` when it is no symlink; else what the system says.
pub fn read_link(dir: &Dir, rel: &Path) -> io::Result<PathBuf> {
    let fd = open_path(dir, rel)?;
    match rustix::fs::readlinkat(&fd, c"", Vec::new()) {
        Ok(target) => Ok(OsString::from_vec(target.into_bytes()).into()),
        // What the kernel says of an open file that is no link.
        Err(Errno::NOENT) => Err(Errno::INVAL.into()),
        Err(e) => Err(e.into()),
    }
}

pub(crate) fn read_link_at(dir: BorrowedFd<'_>, name: &CStr) -> io::Result<Vec<u8>> {
    Ok(rustix::fs::readlinkat(dir, name, Vec::new())?.into_bytes())
}

/// What `rel` is; a symlink is not followed.
///
/// # Errors
/// What the system says; [`is_refused`] tells links on the way and escapes apart.
pub fn stat(dir: &Dir, rel: &Path) -> io::Result<Stat> {
    Stat::of(open_path(dir, rel)?)
}

/// Whether an open was refused because of a symlink, an escape or a mount point on the way.
pub fn is_refused(error: &io::Error) -> bool {
    matches!(Errno::from_io_error(error), Some(Errno::LOOP | Errno::XDEV))
}

/// A handle on the entry itself, whatever it is, that can be asked but not read.
fn open_path(dir: &Dir, rel: &Path) -> io::Result<OwnedFd> {
    let none = ResolveFlags::empty();
    open_at(dir.as_fd(), rel, OFlags::PATH, Mode::empty(), none)
}

/// `openat2` beneath `dir` without any kind of link; never follows, never leaks to a child.
pub(crate) fn open_at<P: rustix::path::Arg + Copy>(
    dir: BorrowedFd<'_>,
    rel: P,
    flags: OFlags,
    mode: Mode,
    more: ResolveFlags,
) -> io::Result<OwnedFd> {
    let flags = flags | OFlags::NOFOLLOW | OFlags::CLOEXEC;
    let resolve =
        ResolveFlags::BENEATH | ResolveFlags::NO_SYMLINKS | ResolveFlags::NO_MAGICLINKS | more;
    let mut attempts = 0;
    loop {
        attempts += 1;
        match rustix::fs::openat2(dir, rel, flags, mode, resolve) {
            // A rename somewhere while `..` was resolved, or a signal.
            Err(Errno::AGAIN | Errno::INTR) if attempts < ATTEMPTS_MAX => {}
            done => return Ok(done?),
        }
    }
}
