//! The end of a file: its last record, and what was torn after it.

use std::fs::File;
use std::io;
use std::os::unix::fs::FileExt;

use crate::line::{self, Hash, LINE_BYTES_MAX, Link};

/// How far back the last record may lie: looked at bit by bit, as mostly it is the last line.
const WINDOWS_BYTES: [u64; 2] = [8 * 1024, 8 * LINE_BYTES_MAX as u64];

/// How a file ends.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) enum Tail {
    /// With a record, or there is nothing in it.
    Whole(Option<Link>),
    /// With bytes of a record that was never completed.
    Torn {
        /// The last whole record.
        last: Option<Link>,
        /// What came after it.
        torn: Torn,
    },
    /// With a line that was changed.
    Damaged,
}

/// Bytes that are no record.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Torn {
    /// How many, with the newline at their end.
    pub(crate) bytes: u64,
    /// Of all of them.
    pub(crate) sha256: Hash,
    /// The newline at their end is still to be written.
    pub(crate) open: bool,
}

/// Looks at the end of a file of `length` bytes.
pub(crate) fn of(file: &File, length: u64) -> io::Result<Tail> {
    for window in WINDOWS_BYTES {
        let start = length.saturating_sub(window);
        // At most the window.
        let mut bytes = vec![0; (length - start) as usize];
        file.read_exact_at(&mut bytes, start)?;
        if let Some(tail) = judge(bytes, start == 0) {
            return Ok(tail);
        }
    }
    Ok(Tail::Damaged)
}

/// None: it lies further back.
fn judge(mut bytes: Vec<u8>, from_start: bool) -> Option<Tail> {
    let mut end = bytes.len();
    let (last, good_end) = loop {
        let Some(newline) = bytes[..end].iter().rposition(|&b| b == b'\n') else {
            break (from_start.then_some(None)?, 0);
        };
        let begin = bytes[..newline].iter().rposition(|&b| b == b'\n');
        // The first line of the window may lack its beginning.
        if begin.is_none() && !from_start {
            return None;
        }
        let begin = begin.map_or(0, |at| at + 1);
        let text = &bytes[begin..newline];
        if let Some(link) = line::parse(text).as_ref().and_then(line::link) {
            break (Some(link), newline + 1);
        }
        if line::looks_whole(text) {
            return Some(Tail::Damaged);
        }
        end = begin;
    };
    if good_end == bytes.len() {
        return Some(Tail::Whole(last));
    }
    let open = !bytes.ends_with(b"\n");
    if open {
        bytes.push(b'\n');
    }
    let rest = &bytes[good_end..];
    let torn = Torn {
        bytes: rest.len() as u64,
        sha256: Hash::of_torn(rest),
        open,
    };
    Some(Tail::Torn { last, torn })
}
