//! What must hold for a file before it may be executed. Each file is opened first and looked at
//! through its handle.

use std::fs::{File, read_link};
use std::io::Read;
use std::os::fd::{AsFd, AsRawFd, BorrowedFd, OwnedFd};
use std::path::{Component, Path, PathBuf};

use cap_std::fs::Dir;
use rustix::fs::{CWD, FileType, Mode, OFlags, ResolveFlags, Stat, fstat, openat2, stat};
use rustix::io::Errno;
use rustix::process::geteuid;

use crate::ProcessError;

/// Permission bits.
const ANY_EXECUTE: u32 = 0o111;
const GROUP_WRITE: u32 = 0o020;
const OTHERS_WRITE: u32 = 0o002;

/// A regular file that may be executed.
pub(super) struct Found {
    /// Opened as a path only.
    pub(super) file: OwnedFd,
    /// Its path without links.
    pub(super) real: PathBuf,
    stat: Stat,
}

/// Where a program that was found through a root is.
#[derive(Debug, PartialEq, Eq)]
pub(super) enum Origin {
    /// In that root.
    Root,
    /// Outside of every root; it passed the checks of a trusted file.
    Outside,
}

impl Found {
    fn new(file: OwnedFd, name: &str) -> Result<Self, ProcessError> {
        let stat = fstat(&file).map_err(ProcessError::failed("a program could not be examined"))?;
        let regular = FileType::from_raw_mode(stat.st_mode) == FileType::RegularFile;
        if !regular || stat.st_mode & ANY_EXECUTE == 0 {
            return Err(ProcessError::InvalidArgument(format!(
                "`{name}` is not a file that may be executed"
            )));
        }
        let real = path_of(file.as_fd())?;
        Ok(Self { file, real, stat })
    }

    /// Whether the path leads to this very file.
    pub(super) fn is_same(&self, path: &Path) -> bool {
        let same =
            |other: Stat| (other.st_dev, other.st_ino) == (self.stat.st_dev, self.stat.st_ino);
        stat(path).is_ok_and(same)
    }

    /// Whether the kernel loads it itself; a script is handed to an interpreter by path.
    pub(super) fn is_binary(&self) -> Result<bool, ProcessError> {
        let failed = "a program could not be read";
        let mut start = [0; 4];
        let mut file =
            File::open(descriptor_path(self.file.as_fd())).map_err(ProcessError::failed(failed))?;
        match file.read(&mut start) {
            Ok(read) => Ok(&start[..read] == b"\x7fELF"),
            Err(error) => Err(ProcessError::failed(failed)(error)),
        }
    }

    /// Refuses a file that somebody else than root or the host's user could have made or changed.
    fn check_owner(&self, name: &str) -> Result<(), ProcessError> {
        let stat = &self.stat;
        let ours = stat.st_uid == 0 || stat.st_uid == geteuid().as_raw();
        let group_may_write = stat.st_mode & GROUP_WRITE != 0 && stat.st_gid != 0;
        if !ours || group_may_write || stat.st_mode & OTHERS_WRITE != 0 {
            return Err(ProcessError::InvalidArgument(format!(
                "`{name}` belongs to or may be written by somebody else"
            )));
        }
        Ok(())
    }
}

/// Refuses paths that are not absolute and plain.
pub(super) fn absolute(path: &Path) -> Result<(), ProcessError> {
    let plain = path
        .components()
        .all(|part| matches!(part, Component::RootDir | Component::Normal(_)));
    if path.is_absolute() && plain {
        return Ok(());
    }
    Err(ProcessError::InvalidArgument(format!(
        "`{}` is not an absolute path",
        path.display().to_string().escape_debug()
    )))
}

/// The file at a path of the operator's or of the system.
pub(super) fn trusted(path: &Path, forbidden: &[PathBuf]) -> Result<Found, ProcessError> {
    absolute(path)?;
    let name = path.display().to_string();
    let file = open(
        CWD,
        path,
        &name,
        OFlags::empty(),
        ResolveFlags::NO_MAGICLINKS,
    )?;
    let found = Found::new(file, &name)?;
    // The path itself, too: a link in a root is still the root's to change.
    let folder = path.parent().unwrap_or(path);
    let folder = open(
        CWD,
        folder,
        &name,
        OFlags::DIRECTORY,
        ResolveFlags::NO_MAGICLINKS,
    )?;
    for place in [path, &path_of(folder.as_fd())?, &found.real] {
        outside(place, forbidden, &name)?;
    }
    found.check_owner(&name)?;
    Ok(found)
}

/// The file at a path in a root.
pub(super) fn in_root(
    root: &Dir,
    path: &str,
    forbidden: &[PathBuf],
) -> Result<(Found, Origin), ProcessError> {
    let relative = Path::new(path);
    let mut parts = relative.components();
    let plain = !path.contains('\0') && parts.all(|part| matches!(part, Component::Normal(_)));
    let (Some(folder), Some(file), true) = (relative.parent(), relative.file_name(), plain) else {
        return Err(ProcessError::InvalidArgument(format!(
            "`{}` is not a path in a root",
            path.escape_debug()
        )));
    };
    let folder = if folder.as_os_str().is_empty() {
        Path::new(".")
    } else {
        folder
    };
    let beneath = ResolveFlags::BENEATH | ResolveFlags::NO_SYMLINKS | ResolveFlags::NO_MAGICLINKS;
    let folder = open(root.as_fd(), folder, path, OFlags::DIRECTORY, beneath)?;
    // The kernel follows the file's links, in one step; `/proc/…/fd` and the like do not count.
    let file = Path::new(file);
    let file = open(
        folder.as_fd(),
        file,
        path,
        OFlags::empty(),
        ResolveFlags::NO_MAGICLINKS,
    )?;
    let found = Found::new(file, path)?;
    let home = path_of(root.as_fd())?;
    if found.real.starts_with(&home) {
        return Ok((found, Origin::Root));
    }
    outside(&found.real, forbidden, path)?;
    found.check_owner(path)?;
    Ok((found, Origin::Outside))
}

fn outside(place: &Path, forbidden: &[PathBuf], name: &str) -> Result<(), ProcessError> {
    if forbidden.iter().any(|folder| place.starts_with(folder)) {
        return Err(ProcessError::Denied(format!(
            "program `{name}` in a folder of Workspaces"
        )));
    }
    Ok(())
}

fn open(
    at: BorrowedFd<'_>,
    path: &Path,
    name: &str,
    flags: OFlags,
    resolve: ResolveFlags,
) -> Result<OwnedFd, ProcessError> {
    let flags = flags | OFlags::PATH | OFlags::CLOEXEC;
    let invalid = |why: &str| ProcessError::InvalidArgument(format!("`{name}` {why}"));
    openat2(at, path, flags, Mode::empty(), resolve).map_err(|error| match error {
        Errno::NOENT => ProcessError::NotFound(name.to_owned()),
        Errno::LOOP => invalid("leads over a link that is not followed"),
        Errno::NOTDIR => invalid("leads over a file that is not a folder"),
        Errno::XDEV => invalid("leads out of its root"),
        Errno::NAMETOOLONG => invalid("is too long"),
        error => ProcessError::failed("a program could not be opened")(error),
    })
}

/// The path of what is open. Something without a name any more has none.
fn path_of(fd: BorrowedFd<'_>) -> Result<PathBuf, ProcessError> {
    let path = read_link(descriptor_path(fd)).map_err(ProcessError::failed(
        "the path of a program could not be read",
    ))?;
    // The kernel marks what was deleted at the end of the path.
    if path.as_os_str().as_encoded_bytes().ends_with(b" (deleted)") {
        return Err(ProcessError::NotFound(path.display().to_string()));
    }
    Ok(path)
}

fn descriptor_path(fd: BorrowedFd<'_>) -> PathBuf {
    Path::new("/proc/self/fd").join(fd.as_raw_fd().to_string())
}
