//! What an entry is, without following links.

use rustix::fs::{AtFlags, FileType, StatxAttributes, StatxFlags, StatxTimestamp};
use std::ffi::CStr;
use std::io;
use std::os::fd::{AsFd, BorrowedFd};

/// What kind of thing an entry is.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum Kind {
    /// A regular file.
    File,
    /// A directory.
    Dir,
    /// A symbolic link.
    Symlink,
    /// A FIFO, socket or device.
    Other,
}

/// A moment as the file system keeps it.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Time {
    /// Seconds since 1970.
    pub seconds: i64,
    /// Nanoseconds within the second.
    pub nanos: u32,
}

/// What `lstat` knows of an entry.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[non_exhaustive]
pub struct Stat {
    /// What it is.
    pub kind: Kind,
    /// Permission bits with set-uid, set-gid and sticky: `mode & 0o7777`.
    pub mode: u32,
    /// Length in bytes.
    pub size: u64,
    /// Allocated blocks of 512 bytes.
    pub blocks: u64,
    /// Last change of the content.
    pub mtime: Time,
    /// Last change of the content or of the inode.
    pub ctime: Time,
    /// Inode number.
    pub ino: u64,
    /// Device of the file system.
    pub dev: u64,
    /// Number of hard links.
    pub nlink: u32,
    /// Owner.
    pub uid: u32,
    /// Group.
    pub gid: u32,
    /// Something is mounted here.
    pub mount_point: bool,
}

impl Stat {
    /// Allocated bytes.
    pub fn bytes_allocated(&self) -> u64 {
        self.blocks.saturating_mul(512)
    }

    /// Of the entry `name` of `dir`; with an empty name, of `dir` itself. One component at most.
    pub(crate) fn at(dir: BorrowedFd<'_>, name: &CStr) -> io::Result<Self> {
        let flags = AtFlags::SYMLINK_NOFOLLOW | AtFlags::EMPTY_PATH | AtFlags::NO_AUTOMOUNT;
        let raw = rustix::fs::statx(dir, name, flags, StatxFlags::BASIC_STATS)?;
        Ok(Self {
            kind: match FileType::from_raw_mode(raw.stx_mode.into()) {
                FileType::RegularFile => Kind::File,
                FileType::Directory => Kind::Dir,
                FileType::Symlink => Kind::Symlink,
                _ => Kind::Other,
            },
            mode: u32::from(raw.stx_mode) & 0o7777,
            size: raw.stx_size,
            blocks: raw.stx_blocks,
            mtime: time(raw.stx_mtime),
            ctime: time(raw.stx_ctime),
            ino: raw.stx_ino,
            dev: rustix::fs::makedev(raw.stx_dev_major, raw.stx_dev_minor),
            nlink: raw.stx_nlink,
            uid: raw.stx_uid,
            gid: raw.stx_gid,
            mount_point: raw.stx_attributes.contains(StatxAttributes::MOUNT_ROOT),
        })
    }

    /// Of what is open.
    ///
    /// # Errors
    /// What the system says.
    pub fn of(fd: impl AsFd) -> io::Result<Self> {
        Self::at(fd.as_fd(), c"")
    }
}

fn time(raw: StatxTimestamp) -> Time {
    Time {
        seconds: raw.tv_sec,
        nanos: raw.tv_nsec,
    }
}

/// Which directory this is, over renames; the birth time tells a reused inode number apart.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Identity {
    dev: (u32, u32),
    ino: u64,
    mount: u64,
    born: Option<(i64, u32)>,
}

impl Identity {
    pub(crate) fn of(fd: impl AsFd) -> io::Result<Self> {
        let mask = StatxFlags::INO | StatxFlags::BTIME | StatxFlags::MNT_ID;
        let raw = rustix::fs::statx(fd, c"", AtFlags::EMPTY_PATH, mask)?;
        let has_born = raw.stx_mask & StatxFlags::BTIME.bits() != 0;
        Ok(Self {
            dev: (raw.stx_dev_major, raw.stx_dev_minor),
            ino: raw.stx_ino,
            mount: raw.stx_mnt_id,
            born: has_born.then_some((raw.stx_btime.tv_sec, raw.stx_btime.tv_nsec)),
        })
    }
}
