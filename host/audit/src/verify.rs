//! Whether the log is as it was written.

use std::fmt;
use std::str::FromStr;

use serde::Serialize;
use sha2::{Digest, Sha256};
use warren_disk::Dir;

use crate::entry::{Record, capability};
use crate::error::AuditError;
use crate::line::{self, Hash, Link};
use crate::scan::{Line, Place, Scan};

/// A record by number and hash: kept elsewhere, it also shows what was cut off at the end.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct Pin {
    /// Number of the record.
    pub seq: u64,
    /// Its hash, as hex.
    pub hash: String,
}

impl fmt::Display for Pin {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}:{}", self.seq, self.hash)
    }
}

impl FromStr for Pin {
    type Err = &'static str;

    fn from_str(text: &str) -> Result<Self, Self::Err> {
        const WANTED: &str = "expected a number, `:` and 64 lowercase hex digits";
        let (seq, hash) = text.split_once(':').ok_or(WANTED)?;
        let hash = Hash::parse(hash).ok_or(WANTED)?;
        Ok(Self {
            seq: seq.parse().map_err(|_| WANTED)?,
            hash: hash.as_str().to_owned(),
        })
    }
}

/// What is wrong with a record.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
#[serde(rename_all = "lowercase")]
pub enum Fault {
    /// It is not as it was written.
    Changed,
    /// It, and maybe more after it, is missing.
    Removed,
    /// It comes too late: others were put before it.
    Reordered,
    /// It does not belong here.
    Inserted,
    /// It was never completed, as a crash leaves it, and no writer has noted that yet.
    Torn,
}

impl fmt::Display for Fault {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::Changed => "was changed",
            Self::Removed => "was removed",
            Self::Reordered => "was moved",
            Self::Inserted => "was inserted",
            Self::Torn => "was never completed",
        })
    }
}

/// The first place where the chain does not hold.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct Break {
    /// Name of the file.
    pub file: String,
    /// Line in the file, from 1.
    pub line: u64,
    /// Number that the record has, or should have had.
    pub seq: u64,
    /// What is wrong with it.
    pub fault: Fault,
}

/// What was found.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct Verified {
    /// Number of the first record that is there; the older ones are gone.
    pub from: Option<u64>,
    /// Whether the log itself has let the older ones go, by rotation; also when there are none.
    pub begins_by_rotation: bool,
    /// How many records hold.
    pub records: u64,
    /// The last record that holds: to be pinned elsewhere.
    pub head: Option<Pin>,
    /// Records that a crash tore and the log noted.
    pub torn: u64,
    /// The first place that does not hold.
    pub broken: Option<Break>,
    /// Whether the given pin is in the log; none: none was given, or its record is older than the log.
    pub pin_holds: Option<bool>,
}

/// The answer in one word.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
#[serde(rename_all = "lowercase")]
pub enum Verdict {
    /// Every record holds.
    Intact,
    /// One does not, or the pinned one is missing.
    Broken,
}

impl Verified {
    /// The answer in one word.
    pub fn verdict(&self) -> Verdict {
        match (&self.broken, self.pin_holds) {
            (None, None | Some(true)) => Verdict::Intact,
            _ => Verdict::Broken,
        }
    }
}

/// Checks every record of a log, up to the first that does not hold.
///
/// # Errors
/// When the log cannot be read. One that is not there holds.
pub fn verify(state: &Dir, pin: Option<&Pin>) -> Result<Verified, AuditError> {
    let Some(scan) = Scan::begin(state)? else {
        return Ok(Verified {
            begins_by_rotation: true,
            pin_holds: pin.map(|_| false),
            ..Verified::default()
        });
    };
    let mut chain = Chain::new(scan, pin);
    while let Some((place, line)) = chain.next()? {
        let broken = match line {
            Line::Record(record) => chain.record(place, *record)?,
            Line::Other(bytes) => chain.other(place, bytes)?,
        };
        if let Some(broken) = broken {
            chain.found.broken = Some(broken);
            break;
        }
    }
    Ok(chain.finish())
}

struct Chain<'a> {
    scan: Scan,
    /// A line that was looked at ahead of its turn.
    ahead: Option<(Place, Line)>,
    pin: Option<&'a Pin>,
    /// The record before the last one, and the last one.
    before: Option<Link>,
    last: Option<(Place, Link)>,
    pruned_to: Option<u64>,
    found: Verified,
}

impl<'a> Chain<'a> {
    fn new(scan: Scan, pin: Option<&'a Pin>) -> Self {
        Self {
            scan,
            ahead: None,
            pin,
            before: None,
            last: None,
            pruned_to: None,
            found: Verified::default(),
        }
    }

    fn next(&mut self) -> Result<Option<(Place, Line)>, AuditError> {
        match self.ahead.take() {
            Some(line) => Ok(Some(line)),
            None => self.scan.next(),
        }
    }

    fn record(&mut self, place: Place, record: Record) -> Result<Option<Break>, AuditError> {
        // Both were checked when the line was parsed.
        let (Some(prev), Some(link)) = (Hash::parse(&record.prev), line::link(&record)) else {
            return Ok(Some(broken(place, record.seq, Fault::Changed)));
        };
        let Some((last_place, last)) = self.last else {
            return Ok(self.begin(place, &record, prev, link));
        };
        if link.seq == last.seq + 1 && prev == last.hash {
            self.accept(place, &record, link);
            return Ok(None);
        }
        if link == last {
            return Ok(Some(broken(place, link.seq, Fault::Inserted)));
        }
        // It follows the one before the last: the last was put between them.
        if self
            .before
            .is_some_and(|before| prev == before.hash && link.seq == before.seq + 1)
        {
            return Ok(Some(broken(last_place, last.seq, Fault::Inserted)));
        }
        if link.seq <= last.seq {
            return Ok(Some(broken(place, link.seq, Fault::Inserted)));
        }
        if link.seq == last.seq + 1 {
            return Ok(Some(broken(last_place, last.seq, Fault::Changed)));
        }
        let missing = last.seq + 1;
        let fault = match self.comes_later(missing)? {
            true => Fault::Reordered,
            false => Fault::Removed,
        };
        Ok(Some(broken(place, missing, fault)))
    }

    /// The first record of what is left of the log.
    fn begin(&mut self, place: Place, record: &Record, prev: Hash, link: Link) -> Option<Break> {
        if place.index == 1 && link.seq > 1 {
            return Some(broken(place, 1, Fault::Removed));
        }
        if link.seq == 1 && prev != Hash::GENESIS {
            return Some(broken(place, 1, Fault::Changed));
        }
        self.found.from = Some(link.seq);
        self.accept(place, record, link);
        None
    }

    fn accept(&mut self, place: Place, record: &Record, link: Link) {
        self.before = self.last.map(|(_, last)| last);
        self.last = Some((place, link));
        self.found.records += 1;
        if record.capability == capability::AUDIT && record.verb == "prune" {
            self.pruned_to = record.counts.get("lastSeq").copied().max(self.pruned_to);
        }
        if self.pin.is_some_and(|pin| pin.seq == link.seq) {
            self.found.pin_holds = self.pin.map(|pin| pin.hash == record.hash);
        }
    }

    /// Lines that are no records: torn ones if the next record says so.
    fn other(&mut self, place: Place, bytes: Vec<u8>) -> Result<Option<Break>, AuditError> {
        let (mut length, mut digest) = (bytes.len() as u64, Sha256::new_with_prefix(&bytes));
        let mut closed = bytes.ends_with(b"\n");
        let next = loop {
            match self.next()? {
                Some((next, Line::Other(more))) if next.index == place.index => {
                    length += more.len() as u64;
                    digest.update(&more);
                    closed = more.ends_with(b"\n");
                }
                next => break next,
            }
        };
        let expected = self.last.map_or(1, |(_, last)| last.seq + 1);
        let fault = match &next {
            Some((_, Line::Record(record))) => {
                let follows = self.last.map_or(Hash::GENESIS, |(_, last)| last.hash);
                let fits = record.seq == expected && record.prev == follows.as_str();
                if fits && notes_torn(record, length, Hash::of_state(digest)) {
                    self.found.torn += 1;
                    self.ahead = next;
                    return Ok(None);
                }
                match fits {
                    true => Fault::Inserted,
                    false => Fault::Changed,
                }
            }
            None if !closed => Fault::Torn,
            _ => Fault::Changed,
        };
        Ok(Some(broken(place, expected, fault)))
    }

    fn comes_later(&mut self, seq: u64) -> Result<bool, AuditError> {
        while let Some((_, line)) = self.next()? {
            if matches!(line, Line::Record(record) if record.seq == seq) {
                return Ok(true);
            }
        }
        Ok(false)
    }

    fn finish(self) -> Verified {
        let mut found = self.found;
        found.head = self.last.map(|(_, last)| Pin {
            seq: last.seq,
            hash: last.hash.as_str().to_owned(),
        });
        found.begins_by_rotation = match found.from {
            None | Some(1) => true,
            Some(from) => self.pruned_to == Some(from - 1),
        };
        if let (Some(pin), None) = (self.pin, found.pin_holds) {
            let older = found.from.is_some_and(|from| pin.seq < from);
            found.pin_holds = (!older).then_some(false);
        }
        found
    }
}

fn notes_torn(record: &Record, length: u64, digest: Hash) -> bool {
    record.capability == capability::AUDIT
        && record.verb == "torn"
        && record.counts.get("bytes") == Some(&length)
        && record.detail.as_deref() == Some(digest.as_str())
}

fn broken(place: Place, seq: u64, fault: Fault) -> Break {
    Break {
        file: place.file(),
        line: place.line,
        seq,
        fault,
    }
}
