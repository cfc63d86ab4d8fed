//! One record as one line, and its hash.
//!
//! The line is a JSON object whose last member is `hash`: SHA-256, as lowercase hex, over
//! [`FORMAT`] and the bytes of the line before `,"hash":`. `prev`, the member before it, is the
//! hash of the record before. So a line is checked as it stands, without writing it anew.

use std::borrow::Cow;

use jiff::Timestamp;
use serde::Serialize;
use serde::ser::SerializeMap;
use sha2::{Digest, Sha256};

use crate::entry::{Entry, Outcome, Record};
use crate::redact;

/// First bytes of what is hashed for each record; another number means another format.
const FORMAT: &[u8] = b"warren-audit-1\n";

/// Longest line, its newline included.
pub(crate) const LINE_BYTES_MAX: usize = 64 * 1024;

/// Longest text of one field in bytes; JSON makes at most six of one.
const FIELD_BYTES_MAX: usize = 256;

/// Longest target and detail.
const TEXT_BYTES_MAX: usize = 1024;

/// Longest name of a number.
const NAME_BYTES_MAX: usize = 64;

/// Most numbers in one record.
const COUNTS_MAX: usize = 32;

const HASH_MEMBER: &[u8] = b",\"hash\":\"";
const HASH_HEX: usize = 64;
const SUFFIX: usize = HASH_MEMBER.len() + HASH_HEX + b"\"}".len();

/// Hash of a record.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Hash([u8; HASH_HEX]);

impl Hash {
    /// What the first record follows.
    pub(crate) const GENESIS: Self = Self([b'0'; HASH_HEX]);

    pub(crate) fn as_str(&self) -> &str {
        // Only ever hex digits.
        std::str::from_utf8(&self.0).unwrap_or_default()
    }

    /// Of a record that was read.
    pub(crate) fn parse(text: &str) -> Option<Self> {
        let bytes: [u8; HASH_HEX] = text.as_bytes().try_into().ok()?;
        let hex = |b: &u8| matches!(b, b'0'..=b'9' | b'a'..=b'f');
        bytes.iter().all(hex).then_some(Self(bytes))
    }

    fn of(body: &[u8]) -> Self {
        Self::of_state(Sha256::new().chain_update(FORMAT).chain_update(body))
    }

    /// Of bytes that are no record.
    pub(crate) fn of_torn(bytes: &[u8]) -> Self {
        Self::of_state(Sha256::new().chain_update(bytes))
    }

    pub(crate) fn of_state(state: Sha256) -> Self {
        const DIGITS: &[u8; 16] = b"0123456789abcdef";
        let mut hex = [0; HASH_HEX];
        for (pair, byte) in hex.chunks_exact_mut(2).zip(state.finalize()) {
            pair[0] = DIGITS[usize::from(byte >> 4)];
            pair[1] = DIGITS[usize::from(byte & 15)];
        }
        Self(hex)
    }
}

/// Where a record stands in the chain.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Link {
    pub(crate) seq: u64,
    pub(crate) hash: Hash,
}

impl Link {
    /// Before the first record.
    pub(crate) const GENESIS: Self = Self {
        seq: 0,
        hash: Hash::GENESIS,
    };
}

/// The members in their order; `hash` is put behind them.
#[derive(Serialize)]
#[serde(rename_all = "camelCase")]
struct Body<'a> {
    seq: u64,
    at: Timestamp,
    #[serde(skip_serializing_if = "Option::is_none")]
    tenant: Option<Cow<'a, str>>,
    #[serde(skip_serializing_if = "Option::is_none")]
    project: Option<Cow<'a, str>>,
    #[serde(skip_serializing_if = "Option::is_none")]
    dir_name: Option<Cow<'a, str>>,
    #[serde(skip_serializing_if = "Option::is_none")]
    handler: Option<Cow<'a, str>>,
    #[serde(skip_serializing_if = "Option::is_none")]
    plugin: Option<Cow<'a, str>>,
    #[serde(skip_serializing_if = "Option::is_none")]
    grant: Option<Cow<'a, str>>,
    #[serde(skip_serializing_if = "Option::is_none")]
    call: Option<Cow<'a, str>>,
    capability: Cow<'a, str>,
    verb: Cow<'a, str>,
    #[serde(skip_serializing_if = "Option::is_none")]
    target: Option<Cow<'a, str>>,
    outcome: Outcome,
    #[serde(skip_serializing_if = "Option::is_none")]
    code: Option<Cow<'a, str>>,
    #[serde(skip_serializing_if = "Option::is_none")]
    duration_us: Option<u64>,
    #[serde(skip_serializing_if = "Counts::is_empty")]
    counts: Counts<'a>,
    #[serde(skip_serializing_if = "Option::is_none")]
    detail: Option<Cow<'a, str>>,
    prev: &'a str,
}

struct Counts<'a>(&'a [(&'a str, u64)]);

impl Counts<'_> {
    fn is_empty(&self) -> bool {
        self.0.is_empty()
    }
}

impl Serialize for Counts<'_> {
    fn serialize<S: serde::Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        let mut map = serializer.serialize_map(None)?;
        for (name, number) in self.0.iter().take(COUNTS_MAX) {
            map.serialize_entry(cut(name, NAME_BYTES_MAX).as_ref(), number)?;
        }
        map.end()
    }
}

/// Puts the line of the next record into `buffer`, in place of what is there.
pub(crate) fn write(
    buffer: &mut Vec<u8>,
    entry: &Entry<'_>,
    at: Timestamp,
    last: &Link,
) -> Result<Link, serde_json::Error> {
    let body = Body {
        seq: last.seq + 1,
        at,
        tenant: field(entry.tenant),
        project: field(entry.project),
        dir_name: field(entry.dir_name),
        handler: field(entry.handler),
        plugin: field(entry.plugin),
        grant: field(entry.grant),
        call: field(entry.call),
        capability: cut(entry.capability, FIELD_BYTES_MAX),
        verb: cut(entry.verb, FIELD_BYTES_MAX),
        target: entry.target.map(text),
        outcome: entry.outcome,
        code: field(entry.code),
        duration_us: entry.duration_us,
        counts: Counts(entry.counts),
        detail: entry.detail.map(text),
        prev: last.hash.as_str(),
    };
    buffer.clear();
    serde_json::to_writer(&mut *buffer, &body)?;
    // The brace of the end comes behind the hash.
    buffer.pop();
    let hash = Hash::of(buffer);
    buffer.extend_from_slice(HASH_MEMBER);
    buffer.extend_from_slice(&hash.0);
    buffer.extend_from_slice(b"\"}\n");
    Ok(Link {
        seq: body.seq,
        hash,
    })
}

fn field(text: Option<&str>) -> Option<Cow<'_, str>> {
    text.map(|text| cut(text, FIELD_BYTES_MAX))
}

fn text(text: &str) -> Cow<'_, str> {
    match redact::redact(text) {
        Cow::Borrowed(text) => cut(text, TEXT_BYTES_MAX),
        Cow::Owned(text) => Cow::Owned(cut(&text, TEXT_BYTES_MAX).into_owned()),
    }
}

fn cut(text: &str, bytes_max: usize) -> Cow<'_, str> {
    if text.len() <= bytes_max {
        return Cow::Borrowed(text);
    }
    let end = text.floor_char_boundary(bytes_max);
    Cow::Owned(format!("{}…", &text[..end]))
}

/// Whether a line, without its newline, looks like a whole record, be it a right one or not. A torn
/// one does not: inside a text the quotes have a backslash before them.
pub(crate) fn looks_whole(line: &[u8]) -> bool {
    split(line).is_some()
}

/// The record of a line without its newline; none when it is not as it was written.
pub(crate) fn parse(line: &[u8]) -> Option<Record> {
    let (body, hash) = split(line)?;
    if Hash::of(body).0 != hash {
        return None;
    }
    let record: Record = serde_json::from_slice(line).ok()?;
    Hash::parse(&record.prev)?;
    Some(record)
}

/// The link of a right record.
pub(crate) fn link(record: &Record) -> Option<Link> {
    let hash = Hash::parse(&record.hash)?;
    Some(Link {
        seq: record.seq,
        hash,
    })
}

fn split(line: &[u8]) -> Option<(&[u8], &[u8])> {
    let (body, suffix) = line.split_at_checked(line.len().checked_sub(SUFFIX)?)?;
    let rest = suffix.strip_prefix(HASH_MEMBER)?;
    Some((body, rest.strip_suffix(b"\"}")?))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn at() -> Timestamp {
        "2026-01-02T03:04:05.678901Z".parse().unwrap()
    }

    fn entry() -> Entry<'static> {
        Entry {
            project: Some("shop"),
            handler: Some("git"),
            target: Some("https://me:s3cret@git.example/shop.git"),
            duration_us: Some(7),
            counts: &[("bytes", 5), ("files", 2)],
            ..Entry::new("git", "push", Outcome::Ok)
        }
    }

    #[test]
    fn the_bytes_of_a_record_are_fixed() {
        let mut line = Vec::new();
        let link = write(&mut line, &entry(), at(), &Link::GENESIS).unwrap();
        let zeros = "0".repeat(64);
        let body = format!(
            r#"{{"seq":1,"at":"2026-01-02T03:04:05.678901Z","project":"shop","handler":"git","capability":"git","verb":"push","target":"https://***@git.example/shop.git","outcome":"ok","durationUs":7,"counts":{{"bytes":5,"files":2}},"prev":"{zeros}""#
        );
        let hash = link.hash.as_str();
        let text = String::from_utf8(line.clone()).unwrap();
        assert_eq!(text, format!("{body},\"hash\":\"{hash}\"}}\n"));
        let record = parse(line.strip_suffix(b"\n").unwrap()).unwrap();
        assert_eq!(super::link(&record), Some(link));
        assert_eq!(record.counts["bytes"], 5);
    }

    #[test]
    fn a_long_text_is_cut_and_the_line_fits() {
        let long = "\u{1}".repeat(5000);
        let counts = [(long.as_str(), u64::MAX); 100];
        let all = Some(long.as_str());
        let entry = Entry {
            tenant: all,
            project: all,
            dir_name: all,
            handler: all,
            plugin: all,
            grant: all,
            call: all,
            target: all,
            code: all,
            detail: all,
            counts: &counts,
            ..Entry::new(&long, &long, Outcome::Denied)
        };
        let mut line = Vec::new();
        write(&mut line, &entry, at(), &Link::GENESIS).unwrap();
        assert!(line.len() < LINE_BYTES_MAX - 4096, "{}", line.len());
        let record = parse(&line[..line.len() - 1]).unwrap();
        assert!(record.target.unwrap().ends_with('…'));
    }

    #[test]
    fn a_part_of_a_line_never_looks_whole() {
        let tricky =
            r#"x,"hash":"0000000000000000000000000000000000000000000000000000000000000000"}"#;
        let mut line = Vec::new();
        let entry = Entry {
            target: Some(tricky),
            ..entry()
        };
        write(&mut line, &entry, at(), &Link::GENESIS).unwrap();
        line.pop();
        assert!(looks_whole(&line));
        for end in 0..line.len() {
            assert!(!looks_whole(&line[..end]), "{end}");
        }
    }
}
