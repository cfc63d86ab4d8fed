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
    fd: OwnedFd,
    level: Level<T>,
    above: Vec<(Option<OwnedFd>, Level<T>)>,
    path: Vec<u8>,
    buffer: Vec<MaybeUninit<u8>>,
}

struct Level<T> {
    identity: Identity,
    /// Where reading goes on, from when the directory was closed.
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
    /// This is the first directory.
    End,
    /// Somebody moved the directory, so that there is no way back.
    Moved,
}

impl<T> Descent<T> {
    /// Starts in `dir`, with a reading position of its own.
    pub(crate) fn new(dir: BorrowedFd<'_>, data: T) -> io::Result<Self> {
        let fd = open_subdir(dir, c".")?;
        Ok(Self {
            level: Level::new(&fd, 0, data)?,
            fd,
            above: Vec::new(),
            path: Vec::new(),
            buffer: vec![MaybeUninit::uninit(); BATCH_BYTES],
        })
    }

    /// How many directories below the first this one is.
    pub(crate) fn depth(&self) -> usize {
        self.above.len()
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
        self.fd.as_fd()
    }

    pub(crate) fn data(&mut self) -> &mut T {
        &mut self.level.data
    }

    /// Remembers a subdirectory for later.
    pub(crate) fn defer(&mut self, name: CString) {
        self.level.deferred.push(name);
    }

    /// One of the subdirectories that wait.
    pub(crate) fn next_deferred(&mut self) -> Option<CString> {
        self.level.deferred.pop()
    }

    /// Reads on in the current directory; nothing at its end.
    pub(crate) fn read(&mut self) -> io::Result<Vec<Item>> {
        match read_batch(self.fd.as_fd(), &mut self.buffer) {
            // The directory was removed while we are in it.
            Err(Errno::NOENT) => Ok(Vec::new()),
            items => Ok(items?),
        }
    }

    /// Goes down into `fd`, which was opened as `name`.
    pub(crate) fn enter(&mut self, name: &CStr, fd: OwnedFd, data: T) -> io::Result<()> {
        let level = Level::new(&fd, self.path.len(), data)?;
        append(&mut self.path, name);
        let level = std::mem::replace(&mut self.level, level);
        let fd = std::mem::replace(&mut self.fd, fd);
        self.above.push((Some(fd), level));
        // Never the first: it is what a new pass starts from.
        if let Some(at @ 1..) = self.above.len().checked_sub(OPEN_MAX)
            && let Some((fd, level)) = self.above.get_mut(at)
            && let Some(fd) = fd.take()
        {
            level.position = rustix::fs::tell(fd)?;
        }
        Ok(())
    }

    /// Goes up again.
    pub(crate) fn leave(&mut self) -> io::Result<Leave<T>> {
        let Some((fd, level)) = self.above.pop() else {
            return Ok(Leave::End);
        };
        let fd = match fd {
            Some(fd) => fd,
            None => match reopen(&level, self.fd.as_fd())? {
                Some(fd) => fd,
                None => return Ok(Leave::Moved),
            },
        };
        self.fd = fd;
        let child = std::mem::replace(&mut self.level, level);
        let start = child.above + usize::from(child.above > 0);
        let name = self.path.get(start..).unwrap_or_default();
        let name = CString::new(name).map_err(io::Error::from)?;
        self.path.truncate(child.above);
        let data = child.data;
        Ok(Leave::Left(Left { name, data }))
    }
}

impl<T> Level<T> {
    fn new(fd: &OwnedFd, above: usize, data: T) -> io::Result<Self> {
        Ok(Self {
            identity: Identity::of(fd)?,
            position: 0,
            above,
            deferred: Vec::new(),
            data,
        })
    }
}

/// Opens the directory above `child` again; nothing when that is another one by now.
fn reopen<T>(level: &Level<T>, child: BorrowedFd<'_>) -> io::Result<Option<OwnedFd>> {
    let flags = OFlags::RDONLY | OFlags::DIRECTORY | OFlags::NOFOLLOW | OFlags::CLOEXEC;
    let fd = match rustix::fs::openat(child, c"..", flags, Mode::empty()) {
        Ok(fd) => fd,
        Err(Errno::NOENT | Errno::ACCESS) => return Ok(None),
        Err(e) => return Err(e.into()),
    };
    if Identity::of(&fd)? != level.identity {
        return Ok(None);
    }
    rustix::fs::seek(&fd, SeekFrom::Start(level.position))?;
    Ok(Some(fd))
}

pub(crate) fn append(path: &mut Vec<u8>, name: &CStr) {
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

#[cfg(test)]
mod tests {
    use super::*;
    use crate::testing::{open, scratch};
    use std::path::Path;

    /// Goes down `levels` directories named `d` below `root`.
    fn down(root: &Path, levels: usize) -> Descent<usize> {
        std::fs::create_dir_all(root.join("d/".repeat(levels))).unwrap();
        let mut descent = Descent::new(open(root).as_fd(), 0).unwrap();
        for level in 1..=levels {
            let fd = open_subdir(descent.dir(), c"d").unwrap();
            descent.enter(c"d", fd, level).unwrap();
        }
        descent
    }

    fn count_open<T>(descent: &Descent<T>) -> usize {
        descent.above.iter().filter(|(fd, _)| fd.is_some()).count() + 1
    }

    #[test]
    fn finds_its_way_back_with_few_descriptors() {
        let tmp = scratch();
        let mut descent = down(tmp.path(), 60);
        assert_eq!(descent.depth(), 60);
        assert_eq!(descent.path().len(), 60 * 2 - 1);
        for level in (1..=60).rev() {
            assert!(count_open(&descent) <= OPEN_MAX + 1);
            match descent.leave().unwrap() {
                Leave::Left(left) => assert_eq!((left.data, &*left.name), (level, c"d")),
                Leave::End | Leave::Moved => panic!("no way back at {level}"),
            }
        }
        assert_eq!(descent.path(), b"");
        assert!(matches!(descent.leave().unwrap(), Leave::End));
    }

    #[test]
    fn is_not_led_elsewhere() {
        let tmp = scratch();
        let root = tmp.path().join("root");
        let mut descent = down(&root, 40);
        std::fs::create_dir(tmp.path().join("out")).unwrap();
        let moved = root.join("d/".repeat(10));
        std::fs::rename(moved, tmp.path().join("out/x")).unwrap();
        let mut left = 0;
        while let Leave::Left(_) = descent.leave().unwrap() {
            left += 1;
        }
        // From level 40 to level 10, whose `..` is now `out`.
        assert_eq!(left, 30);
    }

    #[test]
    fn reading_goes_on_where_it_was() {
        let tmp = scratch();
        for i in 0..3000 {
            std::fs::create_dir(tmp.path().join(format!("{i:020}"))).unwrap();
        }
        std::fs::create_dir_all(tmp.path().join("d").join("d/".repeat(40))).unwrap();
        let mut descent = Descent::new(open(tmp.path()).as_fd(), ()).unwrap();
        let fd = open_subdir(descent.dir(), c".").unwrap();
        descent.enter(c".", fd, ()).unwrap();
        let mut seen = std::collections::BTreeSet::new();
        loop {
            let items = descent.read().unwrap();
            if items.is_empty() {
                break;
            }
            seen.extend(items.into_iter().map(|item| item.name));
            for _ in 0..40 {
                let fd = open_subdir(descent.dir(), c"d").unwrap();
                descent.enter(c"d", fd, ()).unwrap();
            }
            for _ in 0..40 {
                descent.leave().unwrap();
            }
        }
        assert_eq!(seen.len(), 3001);
    }
}
