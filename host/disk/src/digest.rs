//! One digest for the content of a tree.

use crate::Dir;
use crate::stat::Kind;
use crate::walk::{Entry, Event, Flow, WalkError, WalkLimits, events};
use sha2::{Digest, Sha256};
use std::ffi::CStr;
use std::io::{self, Read as _};
use std::os::unix::ffi::OsStrExt;

/// First bytes of what is digested for each directory; another number means another format.
const FORMAT: &[u8] = b"warren-tree-1\n";

/// Digest of all below `dir` as lowercase hex; equal exactly when the trees are.
///
/// Counted are names, kinds, permission bits, targets of links and contents; not times, owners,
/// hard links, the order of creation, the place, and the permissions of `dir` itself. An entry for
/// whose path below `dir` `skip` is true is left out, with all below it.
///
/// Format 1: a directory is SHA-256 over the line `warren-tree-1` and, in the order of their names
/// as bytes, for each entry: kind (`f`, `d`, `l`, `o`), permission bits (4 bytes, big endian), length
/// of the name (8), name, and SHA-256 of the content, the target, the directory, or of nothing.
///
/// # Errors
/// What stops a walk: mount points, directories that are moved meanwhile, what can not be read.
pub fn tree_digest(dir: &Dir, skip: impl Fn(&[u8]) -> bool) -> Result<String, WalkError> {
    let mut open = vec![Vec::new()];
    let mut buffer = vec![0; 64 * 1024];
    events(dir, WalkLimits::NONE, |event| {
        let (record, flow) = match event {
            Event::Entry(entry) if skip(entry.path()) => return Ok(Flow::Skip),
            Event::Entry(entry) if entry.stat().kind == Kind::Dir => return Ok(Flow::Go),
            Event::Enter => {
                open.push(Vec::new());
                return Ok(Flow::Go);
            }
            Event::Entry(entry) => {
                let digest =
                    content(entry, &mut buffer).map_err(|e| WalkError::io(entry.path(), e))?;
                let name = entry.name().to_vec();
                let stat = entry.stat();
                (Record::new(stat.kind, stat.mode, name, digest), Flow::Go)
            }
            Event::Leave(name, stat) => {
                let digest = directory(open.pop().unwrap_or_default());
                (Record::dir(name, stat.mode, digest), Flow::Go)
            }
        };
        if let Some(records) = open.last_mut() {
            records.push(record);
        }
        Ok::<_, WalkError>(flow)
    })?;
    let root = directory(open.pop().unwrap_or_default());
    Ok(root.iter().map(|byte| format!("{byte:02x}")).collect())
}

struct Record {
    kind: u8,
    mode: u32,
    name: Vec<u8>,
    digest: [u8; 32],
}

impl Record {
    fn new(kind: Kind, mode: u32, name: Vec<u8>, digest: [u8; 32]) -> Self {
        let kind = match kind {
            Kind::File => b'f',
            Kind::Dir => b'd',
            Kind::Symlink => b'l',
            Kind::Other => b'o',
        };
        Self {
            kind,
            mode,
            name,
            digest,
        }
    }

    fn dir(name: &CStr, mode: u32, digest: [u8; 32]) -> Self {
        Self::new(Kind::Dir, mode, name.to_bytes().to_vec(), digest)
    }
}

fn directory(mut records: Vec<Record>) -> [u8; 32] {
    records.sort_unstable_by(|a, b| a.name.cmp(&b.name));
    let mut hash = Sha256::new();
    hash.update(FORMAT);
    for record in records {
        hash.update([record.kind]);
        hash.update(record.mode.to_be_bytes());
        hash.update((record.name.len() as u64).to_be_bytes());
        hash.update(&record.name);
        hash.update(record.digest);
    }
    hash.finalize().into()
}

fn content(entry: &Entry<'_>, buffer: &mut [u8]) -> io::Result<[u8; 32]> {
    let mut hash = Sha256::new();
    match entry.stat().kind {
        Kind::File => {
            // No further than the length it had, or a file that grows would hold us for ever.
            let mut file = entry.open_file()?.take(entry.stat().size);
            loop {
                match file.read(buffer) {
                    Ok(0) => break,
                    Ok(n) => hash.update(buffer.get(..n).unwrap_or_default()),
                    Err(e) if e.kind() == io::ErrorKind::Interrupted => {}
                    Err(e) => return Err(e),
                }
            }
        }
        Kind::Symlink => hash.update(entry.read_link()?.as_os_str().as_bytes()),
        Kind::Dir | Kind::Other => {}
    }
    Ok(hash.finalize().into())
}
