//! The log's files: numbered, one after the other, the newest is written to.

use std::fs::File;
use std::io;
use std::os::fd::OwnedFd;
use std::path::Path;

use rustix::fs::{AtFlags, Mode, OFlags};
use rustix::io::Errno;
use warren_disk::{Dir, beneath};

use crate::DIR;

/// The file whose lock writers hold.
pub(crate) const LOCK: &str = "lock";

const PREFIX: &str = "audit-";
const SUFFIX: &str = ".jsonl";

/// Name of the file with a number.
pub(crate) fn name(index: u32) -> String {
    format!("{PREFIX}{index:06}{SUFFIX}")
}

fn index(name: &str) -> Option<u32> {
    let digits = name.strip_prefix(PREFIX)?.strip_suffix(SUFFIX)?;
    let index = digits.parse().ok()?;
    (self::name(index) == name).then_some(index)
}

/// The log's directory; it is made when missing.
pub(crate) fn make(state: &Dir) -> io::Result<Dir> {
    match rustix::fs::mkdirat(state, DIR, Mode::from_raw_mode(0o700)) {
        Ok(()) | Err(Errno::EXIST) => {}
        Err(error) => return Err(error.into()),
    }
    open(state)
}

/// The log's directory.
pub(crate) fn open(state: &Dir) -> io::Result<Dir> {
    beneath::open_dir(state, Path::new(DIR))
}

/// The numbers of the files, in their order.
pub(crate) fn list(dir: &Dir) -> io::Result<Vec<u32>> {
    let mut found = Vec::new();
    for entry in dir.entries()? {
        found.extend(entry?.file_name().to_str().and_then(index));
    }
    found.sort_unstable();
    Ok(found)
}

/// Opens a file of the log for appending and reading.
pub(crate) fn open_append(dir: &Dir, name: &str) -> io::Result<File> {
    let flags = OFlags::RDWR | OFlags::APPEND | OFlags::NOFOLLOW | OFlags::CLOEXEC;
    let flags = flags | OFlags::NONBLOCK | OFlags::NOCTTY;
    regular(rustix::fs::openat(dir, name, flags, Mode::empty())?)
}

/// Makes a file of the log.
pub(crate) fn create(dir: &Dir, name: &str) -> io::Result<File> {
    let flags = OFlags::RDWR | OFlags::APPEND | OFlags::NOFOLLOW | OFlags::CLOEXEC;
    let flags = flags | OFlags::CREATE | OFlags::EXCL;
    let fd = rustix::fs::openat(dir, name, flags, Mode::from_raw_mode(0o600))?;
    Ok(File::from(fd))
}

/// Opens the lock; writers make it when it is missing.
pub(crate) fn open_lock(dir: &Dir, make: bool) -> io::Result<File> {
    let flags = OFlags::RDWR | OFlags::NOFOLLOW | OFlags::CLOEXEC;
    let flags = flags | OFlags::NONBLOCK | OFlags::NOCTTY;
    let (flags, mode) = match make {
        true => (flags | OFlags::CREATE, Mode::from_raw_mode(0o600)),
        false => (flags, Mode::empty()),
    };
    regular(rustix::fs::openat(dir, LOCK, flags, mode)?)
}

fn regular(fd: OwnedFd) -> io::Result<File> {
    let file = File::from(fd);
    if !file.metadata()?.is_file() {
        let why = "a file of the log is no regular file";
        return Err(io::Error::new(io::ErrorKind::InvalidInput, why));
    }
    Ok(file)
}

/// Which file has a name, and its length; none: there is none.
pub(crate) fn stat(dir: &Dir, name: &str) -> io::Result<Option<(Identity, u64)>> {
    match rustix::fs::statat(dir, name, AtFlags::SYMLINK_NOFOLLOW) {
        Ok(stat) => {
            let length = u64::try_from(stat.st_size).unwrap_or_default();
            Ok(Some(((stat.st_dev, stat.st_ino), length)))
        }
        Err(Errno::NOENT) => Ok(None),
        Err(error) => Err(error.into()),
    }
}

/// Device and inode.
pub(crate) type Identity = (u64, u64);

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_and_numbers_are_one_to_one() {
        assert_eq!(name(7), "audit-000007.jsonl");
        for number in [1, 999_999, 1_000_000, u32::MAX] {
            assert_eq!(index(&name(number)), Some(number));
        }
        for bad in [
            "audit-7.jsonl",
            "audit-000007",
            "audit-+00007.jsonl",
            "lock",
        ] {
            assert_eq!(index(bad), None, "{bad}");
        }
    }
}
