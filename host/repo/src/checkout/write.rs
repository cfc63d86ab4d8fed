//! Files written in parallel, each relative to a handle of its directory.

use std::collections::BTreeSet;
use std::fs::File;
use std::io::{self, Write as _};
use std::num::NonZero;
use std::os::fd::{AsFd as _, OwnedFd};
use std::path::Path;
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use std::sync::mpsc::{self, Sender};
use std::sync::{Mutex, PoisonError};
use std::time::{Duration, SystemTime};

use git2::{ObjectType, Odb, Oid, Repository};
use rustix::fs::{AtFlags, Mode, OFlags, Timespec, Timestamps};
use rustix::io::Errno;
use warren_disk::Dir;
use warren_disk::text::escape;

use super::listing::{Kind, missing, unsafe_path};
use super::smudge::Smudge;
use crate::files;
use crate::snapshot::BLOB_BYTES_MAX;
use crate::{Bounds, RepoError};

/// Blobs longer than this are held in memory one at a time.
const BIG_BYTES: usize = 32 << 20;
/// Files of one directory that one thread takes at a time.
const CHUNK: usize = 256;
/// More threads only queue for the same directories.
const THREADS_MAX: usize = 8;
/// Below this, a second thread costs more than it gives.
const FILES_PER_THREAD: usize = 64;

/// What the index keeps of a file.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub(crate) struct Stat {
    /// Seconds and nanoseconds.
    pub(crate) ctime: (i64, u32),
    /// Seconds and nanoseconds.
    pub(crate) mtime: (i64, u32),
    pub(crate) dev: u64,
    pub(crate) ino: u64,
    pub(crate) uid: u32,
    pub(crate) gid: u32,
    /// In bytes.
    pub(crate) size: u64,
}

/// One thing to write.
#[derive(Debug, Clone)]
pub(crate) struct Item {
    /// From the root; checked.
    pub(crate) path: Vec<u8>,
    pub(crate) kind: Kind,
    pub(crate) id: Oid,
    pub(crate) smudge: Smudge,
}

impl Item {
    fn parent(&self) -> &[u8] {
        parent(&self.path)
    }

    fn name(&self) -> &[u8] {
        let parent = self.parent();
        &self.path[if parent.is_empty() {
            0
        } else {
            parent.len() + 1
        }..]
    }
}

fn parent(path: &[u8]) -> &[u8] {
    let slash = path.iter().rposition(|b| *b == b'/');
    &path[..slash.unwrap_or(0)]
}

/// Writes all items and makes the empty directories `dirs`, in a root that holds nothing of these
/// names; returns what the index should know of each item.
///
/// Files get a time two seconds ago: a
/// change right after this has another one, so git need not read what has not changed.
pub(crate) fn write(
    place: Place<'_>,
    items: &[Item],
    dirs: &[Vec<u8>],
    progress: &mut dyn FnMut(u64, u64),
) -> Result<Vec<Option<Stat>>, RepoError> {
    make_dirs(&place, items, dirs)?;
    let files: Vec<usize> = (0..items.len())
        .filter(|i| items[*i].kind != Kind::Submodule)
        .collect();
    // Neighbours share a directory: items come by path.
    let units: Vec<&[usize]> = files
        .chunk_by(|a, b| items[*a].parent() == items[*b].parent())
        .flat_map(|same| same.chunks(CHUNK))
        .collect();
    let shared = Shared {
        place,
        items,
        units: &units,
        big: Mutex::new(()),
        next: AtomicUsize::new(0),
        stop: AtomicBool::new(false),
        mtime: two_seconds_ago(),
    };
    let cores = std::thread::available_parallelism().map_or(1, NonZero::get);
    let useful = files.len().div_ceil(FILES_PER_THREAD).max(1);
    shared.run(cores.min(THREADS_MAX).min(useful), files.len(), progress)
}

fn two_seconds_ago() -> Timespec {
    let now = SystemTime::now().duration_since(SystemTime::UNIX_EPOCH);
    let since = now
        .unwrap_or_default()
        .saturating_sub(Duration::from_secs(2));
    Timespec {
        tv_sec: i64::try_from(since.as_secs()).unwrap_or(0),
        tv_nsec: i64::from(since.subsec_nanos()),
    }
}

/// Makes every directory there will be, before the first symlink: a path can not lead through one.
fn make_dirs(place: &Place<'_>, items: &[Item], dirs: &[Vec<u8>]) -> Result<(), RepoError> {
    let root = place.root;
    let mut wanted: BTreeSet<&[u8]> = dirs.iter().map(Vec::as_slice).collect();
    let mut last: &[u8] = b"";
    for item in items {
        if item.kind == Kind::Submodule {
            wanted.insert(&item.path);
        }
        if item.parent() != last {
            last = item.parent();
            wanted.insert(last);
        }
    }
    for dir in wanted.clone() {
        let mut up = parent(dir);
        while !up.is_empty() && wanted.insert(up) {
            up = parent(up);
        }
    }
    wanted.remove(b"".as_slice());
    let mode = Mode::from_raw_mode(0o755);
    let mut masked = false;
    for (n, dir) in wanted.into_iter().enumerate() {
        place.bounds.take(0, 1)?;
        rustix::fs::mkdirat(root, dir, mode).map_err(|e| cannot_make(dir, e.into()))?;
        // The umask, or a default ACL, shows with the first one.
        if n == 0 {
            let stat = rustix::fs::statat(root, dir, AtFlags::SYMLINK_NOFOLLOW);
            let stat = stat.map_err(|e| cannot_make(dir, e.into()))?;
            masked = stat.st_mode & 0o777 != 0o755;
        }
        if masked {
            let done = rustix::fs::chmodat(root, dir, mode, AtFlags::empty());
            done.map_err(|e| cannot_make(dir, e.into()))?;
        }
    }
    Ok(())
}

/// Where files come from and go.
#[derive(Clone, Copy)]
pub(crate) struct Place<'a> {
    /// Bare repository with the objects.
    pub(crate) git_dir: &'a Path,
    /// Holds nothing of the names to come.
    pub(crate) root: &'a Dir,
    pub(crate) bounds: &'a Bounds,
}

struct Shared<'a> {
    place: Place<'a>,
    /// Held while a big blob is in memory.
    big: Mutex<()>,
    items: &'a [Item],
    units: &'a [&'a [usize]],
    next: AtomicUsize,
    stop: AtomicBool,
    mtime: Timespec,
}

type Written = Result<Vec<(usize, Stat)>, RepoError>;

impl Shared<'_> {
    fn run(
        &self,
        threads: usize,
        total: usize,
        progress: &mut dyn FnMut(u64, u64),
    ) -> Result<Vec<Option<Stat>>, RepoError> {
        let mut stats = vec![None; self.items.len()];
        let (sender, results) = mpsc::channel();
        std::thread::scope(|scope| {
            for _ in 0..threads {
                let sender = sender.clone();
                scope.spawn(move || self.work(&sender));
            }
            drop(sender);
            let mut done = 0;
            let mut first = Ok(());
            for result in results {
                match result {
                    Ok(written) => {
                        done += written.len() as u64;
                        for (item, stat) in written {
                            stats[item] = Some(stat);
                        }
                        progress(done, total as u64);
                    }
                    Err(e) if first.is_ok() => first = Err(e),
                    Err(_) => {}
                }
            }
            first
        })?;
        Ok(stats)
    }

    fn work(&self, sender: &Sender<Written>) {
        let result = crate::within(self.place.bounds, || self.work_on(sender));
        if let Err(error) = result {
            self.stop.store(true, Ordering::Relaxed);
            // Nobody listens: then nobody waits for it either.
            let _ = sender.send(Err(error));
        }
    }

    fn work_on(&self, sender: &Sender<Written>) -> Result<(), RepoError> {
        let repo =
            Repository::open_bare(self.place.git_dir).map_err(RepoError::git("open the mirror"))?;
        let odb = repo.odb().map_err(RepoError::git("open the objects"))?;
        while let Some(unit) = self.units.get(self.next.fetch_add(1, Ordering::Relaxed)) {
            let _ = sender.send(self.write_unit(&odb, unit));
            if self.stop.load(Ordering::Relaxed) {
                break;
            }
        }
        Ok(())
    }

    fn write_unit(&self, odb: &Odb<'_>, unit: &[usize]) -> Written {
        let path = self.items[unit[0]].parent();
        let dir = files::open_dir(self.place.root, path);
        let dir = dir.map_err(|e| RepoError::io(format!("open `{}`", escape(path)), e))?;
        let one = |i: &usize| Ok((*i, self.write_item(odb, &dir, &self.items[*i])?));
        unit.iter().map(one).collect()
    }

    fn write_item(&self, odb: &Odb<'_>, dir: &Dir, item: &Item) -> Result<Stat, RepoError> {
        let (size, kind) = odb.read_header(item.id).map_err(|e| missing(item.id, e))?;
        if kind != ObjectType::Blob {
            return Err(unsafe_path(&item.path, "is not a blob"));
        }
        if size as u64 > BLOB_BYTES_MAX {
            let path = escape(&item.path);
            return Err(RepoError::TooLarge(format!("`{path}` with {size} bytes")));
        }
        self.place.bounds.take(size as u64, 1)?;
        let _alone =
            (size > BIG_BYTES).then(|| self.big.lock().unwrap_or_else(PoisonError::into_inner));
        let object = odb.read(item.id).map_err(|e| missing(item.id, e))?;
        let stat = if item.kind == Kind::Symlink {
            self.write_link(dir, item.name(), object.data())
        } else if item.smudge.is_none() {
            self.write_file(dir, item, object.data())
        } else {
            self.write_file(dir, item, &item.smudge.apply(object.data(), item.id))
        };
        stat.map_err(|e| cannot_make(&item.path, e))
    }

    fn write_file(&self, dir: &Dir, item: &Item, bytes: &[u8]) -> io::Result<Stat> {
        let mode = Mode::from_raw_mode(item.kind.mode() & 0o777);
        let flags = OFlags::WRONLY | OFlags::CREATE | OFlags::EXCL;
        let flags = flags | OFlags::NOFOLLOW | OFlags::CLOEXEC;
        let fd: OwnedFd = rustix::fs::openat(dir, item.name(), flags, mode)?;
        let mut file = File::from(fd);
        file.write_all(bytes)?;
        rustix::fs::futimens(&file, &self.times())?;
        let mut stat = rustix::fs::fstat(&file)?;
        if stat.st_mode & 0o777 != mode.as_raw_mode() {
            rustix::fs::fchmod(&file, mode)?;
            stat = rustix::fs::fstat(&file)?;
        }
        Ok(stat_of(&stat))
    }

    fn write_link(&self, dir: &Dir, name: &[u8], target: &[u8]) -> io::Result<Stat> {
        rustix::fs::symlinkat(target, dir.as_fd(), name)?;
        rustix::fs::utimensat(dir, name, &self.times(), AtFlags::SYMLINK_NOFOLLOW)?;
        let stat = rustix::fs::statat(dir, name, AtFlags::SYMLINK_NOFOLLOW)?;
        Ok(stat_of(&stat))
    }

    fn times(&self) -> Timestamps {
        Timestamps {
            last_access: self.mtime,
            last_modification: self.mtime,
        }
    }
}

/// What the index keeps of what the system says.
pub(crate) fn stat_of(stat: &rustix::fs::Stat) -> Stat {
    Stat {
        ctime: (stat.st_ctime, stat.st_ctime_nsec as u32),
        mtime: (stat.st_mtime, stat.st_mtime_nsec as u32),
        dev: stat.st_dev,
        ino: stat.st_ino,
        uid: stat.st_uid,
        gid: stat.st_gid,
        size: stat.st_size.cast_unsigned(),
    }
}

/// A name of the tree that the file system does not take.
fn cannot_make(path: &[u8], error: io::Error) -> RepoError {
    match Errno::from_io_error(&error) {
        // Names of a tree are unique, so here the file system folds two into one.
        Some(Errno::EXIST) => unsafe_path(path, "collides with another name on this file system"),
        Some(Errno::NAMETOOLONG) => unsafe_path(path, "is too long for this file system"),
        Some(Errno::INVAL | Errno::ILSEQ) => unsafe_path(path, "is refused by this file system"),
        _ => RepoError::io(format!("write `{}`", escape(path)), error),
    }
}
