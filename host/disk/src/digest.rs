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

#[cfg(test)]
mod tests {
    use super::*;
    use crate::testing::{open, scratch};
    use std::fs::{self, Permissions};
    use std::os::unix::fs::{PermissionsExt, symlink};
    use std::path::Path;

    /// The same tree, made in one order or the other.
    fn tree(root: &Path, backwards: bool) {
        let mut steps: Vec<&dyn Fn()> = Vec::new();
        let file = |name: &str, text: &str, mode| {
            fs::create_dir_all(root.join(name).parent().unwrap()).unwrap();
            fs::write(root.join(name), text).unwrap();
            fs::set_permissions(root.join(name), Permissions::from_mode(mode)).unwrap();
        };
        let (one, two) = (|| file("d/one", "1", 0o644), || file("d.x", "22", 0o755));
        let link = || symlink("../gone", root.join("link")).unwrap();
        let empty = || fs::create_dir(root.join("empty")).unwrap();
        steps.extend([&one as &dyn Fn(), &two, &link, &empty]);
        if backwards {
            steps.reverse();
        }
        steps.iter().for_each(|step| step());
        for dir in ["d", "empty"] {
            fs::set_permissions(root.join(dir), Permissions::from_mode(0o755)).unwrap();
        }
    }

    fn digest(root: &Path) -> String {
        tree_digest(&open(root), |_| false).unwrap()
    }

    #[test]
    fn the_format_stays() {
        let tmp = scratch();
        tree(tmp.path(), false);
        assert_eq!(
            digest(tmp.path()),
            "b435cb7d07cb3d197fd712c475cb2e3d2ad1111fd4e57d6246765f257170c8cb"
        );
    }

    #[test]
    fn place_time_and_order_do_not_count() {
        let (one, two) = (scratch(), scratch());
        tree(one.path(), false);
        tree(two.path(), true);
        fs::set_permissions(two.path(), Permissions::from_mode(0o711)).unwrap();
        let file = fs::File::open(two.path().join("d/one")).unwrap();
        file.set_modified(std::time::UNIX_EPOCH).unwrap();
        assert_eq!(digest(one.path()), digest(two.path()));
    }

    #[test]
    fn everything_else_counts() {
        let changes: [&dyn Fn(&Path); 8] = [
            &|r| fs::write(r.join("d/one"), "2").unwrap(),
            &|r| fs::set_permissions(r.join("d/one"), Permissions::from_mode(0o600)).unwrap(),
            &|r| fs::set_permissions(r.join("empty"), Permissions::from_mode(0o700)).unwrap(),
            &|r| fs::rename(r.join("d/one"), r.join("d/two")).unwrap(),
            &|r| fs::rename(r.join("d/one"), r.join("one")).unwrap(),
            &|r| fs::remove_dir(r.join("empty")).unwrap(),
            &|r| {
                fs::remove_file(r.join("link")).unwrap();
                symlink("../gone2", r.join("link")).unwrap();
            },
            &|r| {
                fs::remove_file(r.join("link")).unwrap();
                fs::write(r.join("link"), "../gone").unwrap();
                fs::set_permissions(r.join("link"), Permissions::from_mode(0o777)).unwrap();
            },
        ];
        let mut seen = std::collections::BTreeSet::new();
        for change in changes {
            let tmp = scratch();
            tree(tmp.path(), false);
            seen.insert(digest(tmp.path()));
            change(tmp.path());
            seen.insert(digest(tmp.path()));
        }
        assert_eq!(seen.len(), 1 + changes.len());
    }

    #[test]
    fn skipped_paths_do_not_count() {
        let (one, two) = (scratch(), scratch());
        tree(one.path(), false);
        tree(two.path(), false);
        fs::create_dir(two.path().join("d/.git")).unwrap();
        fs::write(two.path().join("d/.git/x"), "").unwrap();
        let skip = |path: &[u8]| path == b"d/.git";
        let two = tree_digest(&open(two.path()), skip).unwrap();
        assert_eq!(digest(one.path()), two);
    }
}
