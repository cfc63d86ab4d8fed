//! Reading line by line, a file after the other, up to where the log ended when it began.

use std::fs::File;
use std::io::{self, BufRead, BufReader, Read, Take};
use std::os::unix::fs::FileExt;
use std::time::Duration;

use rustix::fs::FlockOperation;
use warren_disk::{Dir, beneath};

use crate::entry::Record;
use crate::error::{AuditError, io};
use crate::files;
use crate::line::{self, LINE_BYTES_MAX};
use crate::log::lock;
use crate::tail::{self, Tail};

/// Longest wait of a reader for writers.
const WAIT_MAX: Duration = Duration::from_secs(5);

/// Where a line stands.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Place {
    pub(crate) index: u32,
    /// From 1.
    pub(crate) line: u64,
}

impl Place {
    pub(crate) fn file(&self) -> String {
        files::name(self.index)
    }
}

/// One line.
#[derive(Debug)]
pub(crate) enum Line {
    /// A record as it was written.
    Record(Box<Record>),
    /// Anything else; its bytes with the newline, if it has one.
    Other(Vec<u8>),
}

/// All lines of a log.
pub(crate) struct Scan {
    /// The files that are still to come, the next one last. All are open: the oldest may be deleted
    /// meanwhile.
    rest: Vec<(u32, File)>,
    /// Where the newest one ends.
    end_length: u64,
    open: Option<(BufReader<Take<File>>, Place)>,
}

impl Scan {
    /// Begins at the first record that is still there; none: there is no log.
    pub(crate) fn begin(state: &Dir) -> Result<Option<Self>, AuditError> {
        let dir = match files::open(state) {
            Ok(dir) => dir,
            Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(None),
            Err(error) => return Err(io("open")(error)),
        };
        // A copy of a log has no lock, or none that can be used; nobody writes to it.
        let held = files::open_lock(&dir, false).ok();
        if let Some(file) = &held {
            lock(file, FlockOperation::NonBlockingLockShared, WAIT_MAX)?;
        }
        let mut rest = Vec::new();
        for index in files::list(&dir).map_err(io("list"))? {
            let name = files::name(index);
            let file = beneath::open_file(&dir, name.as_ref()).map_err(io("open"))?;
            rest.push((index, file));
        }
        let end_length = match rest.last() {
            Some((_, file)) => file.metadata().map_err(io("look at"))?.len(),
            None => 0,
        };
        drop(held);
        rest.reverse();
        Ok(Some(Self {
            rest,
            end_length,
            open: None,
        }))
    }

    /// Leaves out the files whose records all come before number `seq`.
    pub(crate) fn skip_to(&mut self, seq: u64) -> Result<(), AuditError> {
        while let [.., (_, next), _] = &self.rest[..] {
            match first_seq(next)? {
                Some(first) if first <= seq => self.rest.pop(),
                _ => break,
            };
        }
        Ok(())
    }

    /// Leaves out all files but those that hold the last `records`.
    pub(crate) fn skip_to_last(&mut self, records: u64) -> Result<(), AuditError> {
        let Some((_, newest)) = self.rest.first() else {
            return Ok(());
        };
        let end = tail::of(newest, self.end_length).map_err(io("read"))?;
        let last = match end {
            Tail::Whole(last) | Tail::Torn { last, .. } => last.map(|link| link.seq),
            Tail::Damaged => None,
        };
        match last {
            Some(last) => self.skip_to(last.saturating_sub(records) + 1),
            // The newest file is empty or damaged: all are read.
            None => Ok(()),
        }
    }

    /// The next line, in whatever file.
    pub(crate) fn next(&mut self) -> Result<Option<(Place, Line)>, AuditError> {
        loop {
            if let Some((lines, place)) = &mut self.open {
                place.line += 1;
                if let Some(line) = next_line(lines).map_err(io("read"))? {
                    return Ok(Some((*place, line)));
                }
                self.open = None;
            }
            let Some((index, file)) = self.rest.pop() else {
                return Ok(None);
            };
            let limit = match self.rest.is_empty() {
                true => self.end_length,
                false => u64::MAX,
            };
            self.open = Some((BufReader::new(file.take(limit)), Place { index, line: 0 }));
        }
    }
}

/// Number of the first record of a file.
fn first_seq(file: &File) -> Result<Option<u64>, AuditError> {
    // Read from a place of its own: the file is still to be read.
    let mut bytes = vec![0; 2 * LINE_BYTES_MAX];
    let length = file.read_at(&mut bytes, 0).map_err(io("read"))?;
    let mut lines = bytes[..length].split(|&b| b == b'\n');
    Ok(lines.find_map(line::parse).map(|record| record.seq))
}

/// One line of bounded length: what is longer comes in parts, none of which is a record.
fn next_line(lines: &mut BufReader<Take<File>>) -> io::Result<Option<Line>> {
    let mut bytes = Vec::with_capacity(1024);
    let part = lines.by_ref();
    part.take(LINE_BYTES_MAX as u64)
        .read_until(b'\n', &mut bytes)?;
    if bytes.is_empty() {
        return Ok(None);
    }
    let record = bytes.strip_suffix(b"\n").and_then(line::parse);
    Ok(Some(match record {
        Some(record) => Line::Record(Box::new(record)),
        None => Line::Other(bytes),
    }))
}
