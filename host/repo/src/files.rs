//! Reads of a RootDir's files, all beneath its handle.

use std::ffi::OsStr;
use std::fs::File;
use std::io::{self, Read};
use std::os::fd::AsFd;
use std::os::unix::ffi::OsStrExt;
use std::path::Path;

use rustix::fs::{AtFlags, FileType, Stat};
use warren_disk::{Dir, beneath, text};

use crate::RepoError;

/// A path as the system wants it.
pub(crate) fn as_path(bytes: &[u8]) -> &Path {
    Path::new(OsStr::from_bytes(bytes))
}

/// One entry of a directory.
pub(crate) struct Entry {
    pub(crate) name: Vec<u8>,
    pub(crate) stat: Stat,
}

impl Entry {
    pub(crate) fn kind(&self) -> FileType {
        FileType::from_raw_mode(self.stat.st_mode)
    }
}

/// Names and kinds of a directory's entries, `.` and `..` left out.
pub(crate) fn names(dir: &Dir) -> io::Result<Vec<(Vec<u8>, FileType)>> {
    let mut names = Vec::new();
    for entry in rustix::fs::Dir::read_from(dir.as_fd())? {
        let entry = entry?;
        let name = entry.file_name().to_bytes();
        if name == b"." || name == b".." {
            continue;
        }
        let kind = match entry.file_type() {
            FileType::Unknown => match lstat(dir, name) {
                Ok(stat) => FileType::from_raw_mode(stat.st_mode),
                Err(error) if error.kind() == io::ErrorKind::NotFound => continue,
                Err(error) => return Err(error),
            },
            kind => kind,
        };
        names.push((name.to_vec(), kind));
    }
    Ok(names)
}

/// Entries of a directory with what `lstat` says. One that went away meanwhile is left out.
pub(crate) fn entries(dir: &Dir) -> io::Result<Vec<Entry>> {
    let mut entries = Vec::new();
    for entry in rustix::fs::Dir::read_from(dir.as_fd())? {
        let entry = entry?;
        let name = entry.file_name().to_bytes();
        if name == b"." || name == b".." {
            continue;
        }
        match lstat(dir, name) {
            Ok(stat) => entries.push(Entry {
                name: name.to_vec(),
                stat,
            }),
            Err(error) if error.kind() == io::ErrorKind::NotFound => {}
            Err(error) => return Err(error),
        }
    }
    Ok(entries)
}

fn lstat(dir: &Dir, name: &[u8]) -> io::Result<Stat> {
    Ok(rustix::fs::statat(dir, name, AtFlags::SYMLINK_NOFOLLOW)?)
}

/// Opens a directory of the RootDir; the empty path is the RootDir itself.
pub(crate) fn open_dir(root: &Dir, path: &[u8]) -> io::Result<Dir> {
    beneath::open_dir(root, as_path(if path.is_empty() { b"." } else { path }))
}

/// Opens a regular file and says how big it is.
pub(crate) fn open_file(root: &Dir, path: &[u8]) -> io::Result<(File, u64)> {
    let file = beneath::open_file(root, as_path(path))?;
    let size = file.metadata()?.len();
    Ok((file, size))
}

/// The content of a small file; none: there is no such file.
///
/// # Errors
///
/// `TooLarge` past `bytes_max`; `Io` when it is no regular file or cannot be read.
pub(crate) fn read_small(
    root: &Dir,
    path: &[u8],
    bytes_max: u64,
) -> Result<Option<Vec<u8>>, RepoError> {
    let fail = |error| RepoError::io(format!("read `{}`", show(path)), error);
    let (file, size) = match open_file(root, path) {
        Ok(opened) => opened,
        Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(None),
        Err(error) => return Err(fail(error)),
    };
    let mut bytes = Vec::new();
    if size <= bytes_max {
        file.take(bytes_max + 1)
            .read_to_end(&mut bytes)
            .map_err(fail)?;
    }
    if size.max(bytes.len() as u64) > bytes_max {
        return Err(RepoError::TooLarge(format!(
            "`{}` is longer than {bytes_max} bytes",
            show(path)
        )));
    }
    Ok(Some(bytes))
}

/// A path for people.
pub(crate) fn show(path: &[u8]) -> String {
    text::escape(path)
}
