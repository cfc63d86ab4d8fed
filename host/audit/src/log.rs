//! Writing: one record at a time, whoever else writes.

use std::fs::File;
use std::io::{self, Write};
use std::os::unix::fs::MetadataExt;
use std::sync::{Arc, Mutex, PoisonError};
use std::time::{Duration, Instant};

use jiff::Timestamp;
use rustix::fs::{AtFlags, FallocateFlags, FlockOperation};
use rustix::io::Errno;
use warren_disk::Dir;

use crate::entry::{Entry, Outcome, capability};
use crate::error::{AuditError, io};
use crate::files::{self, Identity};
use crate::line::{self, Link};
use crate::tail::{self, Tail, Torn};

/// How big the log may become, and how long a writer waits.
#[derive(Debug, Clone)]
pub struct Settings {
    /// Bytes of one file; the next one is begun when it has so many.
    pub file_bytes_max: u64,
    /// Number of files; the oldest goes when there are more.
    pub files_max: u32,
    /// Bytes that are kept free for the log behind the end of its newest file, so that a full disk
    /// does not stop it at once.
    pub reserve_bytes: u64,
    /// Longest wait for another writer.
    pub wait_max: Duration,
}

impl Default for Settings {
    fn default() -> Self {
        Self {
            file_bytes_max: 16 * 1024 * 1024,
            files_max: 64,
            reserve_bytes: 512 * 1024,
            wait_max: Duration::from_secs(5),
        }
    }
}

/// A log to append to. Clones are one.
#[derive(Debug, Clone)]
pub struct AuditLog(Arc<Shared>);

#[derive(Debug)]
struct Shared {
    dir: Dir,
    lock: File,
    settings: Settings,
    writer: Mutex<Writer>,
}

/// What this process knows of the log's end.
#[derive(Debug, Default)]
struct Writer {
    current: Option<Current>,
    /// The file and record where it last stood: the log can only have grown since.
    known: Option<(u32, Link)>,
    line: Vec<u8>,
}

#[derive(Debug)]
struct Current {
    index: u32,
    name: String,
    next_name: String,
    file: Arc<File>,
    identity: Identity,
    length: u64,
    last: Link,
    /// Up to where the disk has room set aside.
    reserved_to: u64,
}

impl AuditLog {
    /// Opens the log of a state directory; it is made when missing. What a crash tore is noted.
    ///
    /// # Errors
    /// When it cannot be used, or its end was changed.
    pub fn open(state: &Dir, settings: Settings) -> Result<Self, AuditError> {
        let dir = files::make(state).map_err(io("open"))?;
        let lock = files::open_lock(&dir, true).map_err(io("lock"))?;
        let log = Self(Arc::new(Shared {
            dir,
            lock,
            settings,
            writer: Mutex::default(),
        }));
        log.0.locked(|shared, writer| shared.find_end(writer))?;
        Ok(log)
    }

    /// Appends a record; returns its number. When this returns, other processes see it, and a crash
    /// of this one loses nothing.
    ///
    /// # Errors
    /// When the record could not be written; then what it is about must not happen.
    pub fn append(&self, entry: &Entry<'_>) -> Result<u64, AuditError> {
        self.put(entry).map(|(seq, _)| seq)
    }

    /// Appends a record that also survives a loss of power: for what is about to happen outside of
    /// this machine.
    ///
    /// # Errors
    /// Those of [`AuditLog::append`].
    pub fn append_durable(&self, entry: &Entry<'_>) -> Result<u64, AuditError> {
        let (seq, file) = self.put(entry)?;
        // Others may write meanwhile.
        file.sync_data().map_err(io("flush"))?;
        Ok(seq)
    }

    fn put(&self, entry: &Entry<'_>) -> Result<(u64, Arc<File>), AuditError> {
        self.0.locked(|shared, writer| {
            shared.find_end(writer)?;
            shared.rotate_if_due(writer)?;
            shared.put(writer, entry, None)?;
            let current = writer.current.as_ref().ok_or_else(lost)?;
            Ok((current.last.seq, Arc::clone(&current.file)))
        })
    }
}

fn lost() -> AuditError {
    AuditError::Io {
        doing: "find the end of",
        source: io::ErrorKind::NotFound.into(),
    }
}

impl Shared {
    /// Runs `work` alone, among threads and processes.
    fn locked<T>(
        &self,
        work: impl FnOnce(&Self, &mut Writer) -> Result<T, AuditError>,
    ) -> Result<T, AuditError> {
        let mut writer = self.writer.lock().unwrap_or_else(PoisonError::into_inner);
        lock(
            &self.lock,
            FlockOperation::NonBlockingLockExclusive,
            self.settings.wait_max,
        )?;
        let done = work(self, &mut writer);
        if done.is_err() {
            // Found anew the next time.
            writer.current = None;
        }
        // Closing the file would let go too; until then nobody could write.
        rustix::fs::flock(&self.lock, FlockOperation::Unlock)
            .map_err(|error| io("unlock")(error.into()))?;
        done
    }

    /// Makes sure that `writer` stands at the end, whoever wrote or rotated since.
    fn find_end(&self, writer: &mut Writer) -> Result<(), AuditError> {
        if let Some(current) = &mut writer.current {
            match self.still_current(current).map_err(io("look at"))? {
                Some(length) if length == current.length => return Ok(()),
                Some(_) | None => writer.current = None,
            }
        }
        let index = files::list(&self.dir).map_err(io("list"))?.pop();
        let (mut current, torn) = match (index, writer.known) {
            (Some(index), _) => self.open_end(index)?,
            // Taken away under us: the gap must show.
            (None, Some((index, last))) => (self.create(index.saturating_add(1), last)?, None),
            (None, None) => (self.create(1, Link::GENESIS)?, None),
        };
        if writer
            .known
            .is_some_and(|(_, known)| current.last.seq < known.seq)
        {
            return Err(AuditError::Damaged { file: current.name });
        }
        self.reserve(&mut current);
        writer.current = Some(current);
        match torn {
            Some(torn) => self.note_torn(writer, &torn),
            None => Ok(()),
        }
    }

    /// The length of the file if it is still the one to write to.
    fn still_current(&self, current: &Current) -> io::Result<Option<u64>> {
        let found = files::stat(&self.dir, &current.name)?;
        let Some((identity, length)) = found else {
            return Ok(None);
        };
        let rotated = files::stat(&self.dir, &current.next_name)?.is_some();
        Ok((identity == current.identity && !rotated).then_some(length))
    }

    fn open_end(&self, index: u32) -> Result<(Current, Option<Torn>), AuditError> {
        let name = files::name(index);
        let file = files::open_append(&self.dir, &name).map_err(io("open"))?;
        let (mut current, tail) = current(index, name, file)?;
        let (last, torn) = match tail {
            Tail::Whole(last) => (last, None),
            Tail::Torn { last, torn } => (last, Some(torn)),
            Tail::Damaged => return Err(AuditError::Damaged { file: current.name }),
        };
        current.last = match last {
            Some(last) => last,
            // Begun, and nothing was written to it yet.
            None => self.end_before(index)?,
        };
        Ok((current, torn))
    }

    /// The last record of the file before; a file is only left when its end is whole.
    fn end_before(&self, index: u32) -> Result<Link, AuditError> {
        if index <= 1 {
            return Ok(Link::GENESIS);
        }
        let name = files::name(index - 1);
        let file = files::open_append(&self.dir, &name).map_err(io("open"))?;
        match current(index - 1, name, file)? {
            (_, Tail::Whole(Some(last))) => Ok(last),
            (before, _) => Err(AuditError::Damaged { file: before.name }),
        }
    }

    fn create(&self, index: u32, last: Link) -> Result<Current, AuditError> {
        let name = files::name(index);
        let file = files::create(&self.dir, &name).map_err(no_room_or("make a file of"))?;
        let (mut current, _) = current(index, name, file)?;
        current.last = last;
        warren_disk::atomic::sync_dir(&self.dir).map_err(io("flush"))?;
        Ok(current)
    }

    /// Says in the chain that there are bytes in it that are no record. They stay where they are.
    fn note_torn(&self, writer: &mut Writer, torn: &Torn) -> Result<(), AuditError> {
        let note = Entry {
            counts: &[("bytes", torn.bytes)],
            detail: Some(torn.sha256.as_str()),
            ..Entry::new(capability::AUDIT, "torn", Outcome::Failed)
        };
        self.put(writer, &note, Some(torn))
    }

    /// Begins the next file when this one is full. On a full disk it goes on in the old one, as long
    /// as that has room.
    fn rotate_if_due(&self, writer: &mut Writer) -> Result<(), AuditError> {
        let Some(old) = &writer.current else {
            return Err(lost());
        };
        if old.length < self.settings.file_bytes_max {
            return Ok(());
        }
        old.file.sync_data().map_err(io("flush"))?;
        let mut next = match self.create(old.index + 1, old.last) {
            Ok(next) => next,
            Err(AuditError::Full) => return Ok(()),
            Err(error) => return Err(error),
        };
        if !self.reserve(&mut next) {
            // Empty, so that nothing is lost with it.
            return remove(&self.dir, &next.name).map_err(io("rotate"));
        }
        writer.current = Some(next);
        self.prune(writer)
    }

    /// Notes which files go, then deletes them.
    fn prune(&self, writer: &mut Writer) -> Result<(), AuditError> {
        let all = files::list(&self.dir).map_err(io("list"))?;
        let over = all
            .len()
            .saturating_sub(self.settings.files_max.max(2) as usize);
        for &index in &all[..over] {
            let name = files::name(index);
            let file = files::open_append(&self.dir, &name).map_err(io("open"))?;
            let (old, tail) = current(index, name, file)?;
            // Evidence is not deleted.
            let Tail::Whole(Some(last)) = tail else {
                return Err(AuditError::Damaged { file: old.name });
            };
            let note = Entry {
                target: Some(&old.name),
                counts: &[("lastSeq", last.seq)],
                detail: Some(last.hash.as_str()),
                ..Entry::new(capability::AUDIT, "prune", Outcome::Ok)
            };
            self.put(writer, &note, None)?;
            remove(&self.dir, &old.name).map_err(io("prune"))?;
        }
        Ok(())
    }

    /// Writes one record at the end.
    fn put(
        &self,
        writer: &mut Writer,
        entry: &Entry<'_>,
        torn: Option<&Torn>,
    ) -> Result<(), AuditError> {
        let Writer {
            current,
            known,
            line,
        } = writer;
        let current = current.as_mut().ok_or_else(lost)?;
        let last = line::write(line, entry, Timestamp::now(), &current.last)
            .map_err(|error| io("write a record of")(error.into()))?;
        if torn.is_some_and(|torn| torn.open) {
            line.insert(0, b'\n');
        }
        if current.reserved_to
            < current.length + line.len() as u64 + self.settings.reserve_bytes / 2
        {
            self.reserve(current);
        }
        if let Err(error) = (&*current.file).write_all(line) {
            // What was written of it is no record; when this fails, the next writer says so.
            let _ = current.file.set_len(current.length);
            return Err(no_room_or("write")(error));
        }
        current.length += line.len() as u64;
        current.last = last;
        *known = Some((current.index, last));
        Ok(())
    }

    /// Sets room aside; whether the disk has it, or cannot say.
    fn reserve(&self, current: &mut Current) -> bool {
        let bytes = self.settings.reserve_bytes;
        if bytes == 0 {
            return true;
        }
        let flags = FallocateFlags::KEEP_SIZE;
        match rustix::fs::fallocate(&*current.file, flags, current.length, bytes) {
            Ok(()) => {
                current.reserved_to = current.length + bytes;
                true
            }
            Err(Errno::NOSPC | Errno::DQUOT) => false,
            // A file system without that.
            Err(_) => {
                current.reserved_to = u64::MAX;
                true
            }
        }
    }
}

fn current(index: u32, name: String, file: File) -> Result<(Current, Tail), AuditError> {
    let meta = file.metadata().map_err(io("look at"))?;
    let tail = tail::of(&file, meta.len()).map_err(io("read"))?;
    let current = Current {
        next_name: files::name(index.saturating_add(1)),
        index,
        name,
        identity: (meta.dev(), meta.ino()),
        length: meta.len(),
        last: Link::GENESIS,
        reserved_to: 0,
        file: Arc::new(file),
    };
    Ok((current, tail))
}

fn remove(dir: &Dir, name: &str) -> io::Result<()> {
    Ok(rustix::fs::unlinkat(dir, name, AtFlags::empty())?)
}

fn no_room_or(doing: &'static str) -> impl FnOnce(io::Error) -> AuditError {
    move |error| match Errno::from_io_error(&error) {
        Some(Errno::NOSPC | Errno::DQUOT) => AuditError::Full,
        _ => io(doing)(error),
    }
}

/// Takes a lock on the whole log within `wait_max`.
pub(crate) fn lock(
    file: &File,
    operation: FlockOperation,
    wait_max: Duration,
) -> Result<(), AuditError> {
    const PAUSE_FIRST: Duration = Duration::from_micros(20);
    const PAUSE_MAX: Duration = Duration::from_millis(2);
    let mut pause = PAUSE_FIRST;
    let start = Instant::now();
    loop {
        match rustix::fs::flock(file, operation) {
            Ok(()) => return Ok(()),
            Err(Errno::INTR) => continue,
            Err(Errno::WOULDBLOCK) => {}
            Err(error) => return Err(io("lock")(error.into())),
        }
        let waited = start.elapsed();
        if waited >= wait_max {
            return Err(AuditError::Busy { waited });
        }
        std::thread::sleep(pause.min(wait_max - waited));
        pause = (pause * 2).min(PAUSE_MAX);
    }
}
