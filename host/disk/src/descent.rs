//! Where a depth-first run stands: a stack on the heap with few open descriptors.
//!
//! Only the lowest [`OPEN_MAX`] directories and the first stay open. On the way back a closed one is
//! opened as `..` of its child and must then be the directory it was: who moves a directory
//! meanwhile can stop the run, but not lead it elsewhere.

use crate::beneath;
use crate::stat::Identity;
use rustix::fs::{FileType, Mode, OFlags, RawDir, ResolveFlags, SeekFrom};
use rustix::io::Errno;
use std::ffi::{CStr, CString};
use std::io;
use std::mem::MaybeUninit;
use std::os::fd::{AsFd, BorrowedFd, OwnedFd};

/// How many of the lowest directories stay open.
const OPEN_MAX: usize = 16;

/// Room for one read of a directory; bounds what is remembered of each level.
const BATCH_BYTES: usize = 16 * 1024;

/// A stack of directories, each with data `T` of the caller.
pub(crate) struct Descent<T> {
    frames: Vec<Frame<T>>,
    path: Vec<u8>,
    buffer: Vec<MaybeUninit<u8>>,
}

struct Frame<T> {
    fd: Option<OwnedFd>,
    identity: Identity,
    /// Where reading went on when `fd` was closed.
    position: u64,
    /// Length of the path of the directory above.
    above: usize,
    deferred: Vec<CString>,
    data: T,
}

/// One entry as the directory lists it.
pub(crate) struct Item {
    pub(crate) name: CString,
    pub(crate) listed_as: FileType,
}

/// The directory that was left.
pub(crate) struct Left<T> {
    pub(crate) name: CString,
    pub(crate) data: T,
}

/// What became of leaving a directory.
pub(crate) enum Leave<T> {
    /// Back in the directory above.
    Left(Left<T>),
    /// Somebody moved the directory, so that there is no way back.
    Moved,
}

impl<T> Descent<T> {
    /// Starts in `dir`, with a reading position of its own.
    pub(crate) fn new(dir: BorrowedFd<'_>, data: T) -> io::Result<Self> {
        let fd = open_subdir(dir, c".")?;
        let first = Frame {
            identity: Identity::of(&fd)?,
            fd: Some(fd),
            position: 0,
            above: 0,
            deferred: Vec::new(),
            data,
        };
        Ok(Self {
            frames: vec![first],
            path: Vec::new(),
            buffer: vec![MaybeUninit::uninit(); BATCH_BYTES],
        })
    }

    /// How many directories below the first this one is.
    pub(crate) fn depth(&self) -> usize {
        self.frames.len() - 1
    }

    /// Path of the current directory below the first.
    pub(crate) fn path(&self) -> &[u8] {
        &self.path
    }

    /// Path of the entry `name` of the current directory.
    pub(crate) fn path_of(&self, name: &CStr) -> Vec<u8> {
        let mut path = self.path.clone();
        append(&mut path, name);
        path
    }

    pub(crate) fn dir(&self) -> BorrowedFd<'_> {
        match self.frames.last().and_then(|f| f.fd.as_ref()) {
            Some(fd) => fd.as_fd(),
            None => unreachable!("the current directory is open"),
        }
    }

    pub(crate) fn data(&mut self) -> &mut T {
        &mut self.top().data
    }

    fn top(&mut self) -> &mut Frame<T> {
        match self.frames.last_mut() {
            Some(frame) => frame,
            None => unreachable!("the first directory is never left"),
        }
    }

    /// Remembers a subdirectory for later.
    pub(crate) fn defer(&mut self, name: CString) {
        self.top().deferred.push(name);
    }

    /// One of the subdirectories that wait.
    pub(crate) fn next_deferred(&mut self) -> Option<CString> {
        self.top().deferred.pop()
    }

    /// Reads on in the current directory; nothing at its end.
    pub(crate) fn read(&mut self) -> io::Result<Vec<Item>> {
        let mut buffer = std::mem::take(&mut self.buffer);
        let items = read_batch(self.dir(), &mut buffer);
        self.buffer = buffer;
        match items {
            // The directory was removed while we are in it.
            Err(Errno::NOENT) => Ok(Vec::new()),
            items => Ok(items?),
        }
    }

    /// Goes down into `fd`, which was opened as `name`.
    pub(crate) fn enter(&mut self, name: &CStr, fd: OwnedFd, data: T) -> io::Result<()> {
        let identity = Identity::of(&fd)?;
        let above = self.path.len();
        append(&mut self.path, name);
        self.frames.push(Frame {
            fd: Some(fd),
            identity,
            position: 0,
            above,
            deferred: Vec::new(),
            data,
        });
        let spare = self.frames.len().saturating_sub(1 + OPEN_MAX);
        if spare > 0 {
            self.close(spare)?;
        }
        Ok(())
    }

    fn close(&mut self, at: usize) -> io::Result<()> {
        if let Some(frame) = self.frames.get_mut(at)
            && let Some(fd) = frame.fd.take()
        {
            frame.position = rustix::fs::tell(&fd)?;
        }
        Ok(())
    }

    /// Goes up again; not from the first directory.
    pub(crate) fn leave(&mut self) -> io::Result<Leave<T>> {
        debug_assert!(self.depth() > 0, "the first directory is never left");
        let Some(child) = self.frames.pop() else {
            return Ok(Leave::Moved);
        };
        if let Some(fd) = &child.fd
            && !reopen(self.top(), fd.as_fd())?
        {
            return Ok(Leave::Moved);
        }
        let start = child.above + usize::from(child.above > 0);
        let name = self.path.get(start..).unwrap_or_default();
        let name = CString::new(name).map_err(io::Error::from)?;
        self.path.truncate(child.above);
        let data = child.data;
        Ok(Leave::Left(Left { name, data }))
    }
}

/// Opens `frame` through its child if it was closed; false when it is not there any more.
fn reopen<T>(frame: &mut Frame<T>, child: BorrowedFd<'_>) -> io::Result<bool> {
    if frame.fd.is_some() {
        return Ok(true);
    }
    let flags = OFlags::RDONLY | OFlags::DIRECTORY | OFlags::NOFOLLOW | OFlags::CLOEXEC;
    let fd = match rustix::fs::openat(child, c"..", flags, Mode::empty()) {
        Ok(fd) => fd,
        Err(Errno::NOENT | Errno::ACCESS) => return Ok(false),
        Err(e) => return Err(e.into()),
    };
    if Identity::of(&fd)? != frame.identity {
        return Ok(false);
    }
    rustix::fs::seek(&fd, SeekFrom::Start(frame.position))?;
    frame.fd = Some(fd);
    Ok(true)
}

fn append(path: &mut Vec<u8>, name: &CStr) {
    if !path.is_empty() {
        path.push(b'/');
    }
    path.extend_from_slice(name.to_bytes());
}

fn read_batch(dir: BorrowedFd<'_>, buffer: &mut [MaybeUninit<u8>]) -> Result<Vec<Item>, Errno> {
    let mut items = Vec::new();
    // A read may hold nothing but `.` and `..`, which is not the end yet.
    while items.is_empty() {
        let mut raw = RawDir::new(dir, buffer);
        let Some(first) = raw.next() else {
            break;
        };
        push(&mut items, &first?);
        while !raw.is_buffer_empty() {
            match raw.next() {
                Some(entry) => push(&mut items, &entry?),
                None => break,
            }
        }
    }
    Ok(items)
}

fn push(items: &mut Vec<Item>, entry: &rustix::fs::RawDirEntry<'_>) {
    let name = entry.file_name();
    if name != c"." && name != c".." {
        items.push(Item {
            name: name.to_owned(),
            listed_as: entry.file_type(),
        });
    }
}

/// Opens a subdirectory of `dir` for reading: no link, no mount point (`EXDEV`).
pub(crate) fn open_subdir(dir: BorrowedFd<'_>, name: &CStr) -> io::Result<OwnedFd> {
    let flags = OFlags::RDONLY | OFlags::DIRECTORY;
    beneath::open_at(dir, name, flags, Mode::empty(), ResolveFlags::NO_XDEV)
}
