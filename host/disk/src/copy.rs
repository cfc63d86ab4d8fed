//! Copies of files that share their blocks where the file system can.

use crate::{Dir, beneath, name};
use std::fs::File;
use std::io::{self, Read as _, Seek as _};
use std::path::Path;

/// Copies all of `from` to the new file `name`; returns its length in bytes.
///
/// By reference where the file system can (btrfs, XFS), else within the kernel. What is appended to
/// `from` meanwhile is left out. `mode` as the umask leaves it. The position of `from` moves.
///
/// # Errors
/// `AlreadyExists` when something has that name; after any error nothing of ours is left.
pub fn copy_file(from: &File, to_dir: &Dir, name: &str, mode: u32) -> io::Result<u64> {
    name::check(name)?;
    let to = beneath::create_file(to_dir, Path::new(name), mode)?;
    let done = fill(from, &to);
    if done.is_err() {
        // The first error says more than one from here would.
        let _ = rustix::fs::unlinkat(to_dir, name, rustix::fs::AtFlags::empty());
    }
    done
}

fn fill(mut from: &File, mut to: &File) -> io::Result<u64> {
    // Any refusal means only that this pair of files can not share blocks.
    if rustix::fs::ioctl_ficlone(to, from).is_ok() {
        return Ok(to.metadata()?.len());
    }
    from.rewind()?;
    let bytes = from.metadata()?.len();
    io::copy(&mut from.take(bytes), &mut to)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::testing::{open, scratch};
    use std::fs::{self, OpenOptions};
    use std::os::unix::fs::MetadataExt as _;

    #[test]
    fn copies_all_from_any_position() {
        let tmp = scratch();
        let bytes: Vec<u8> = (0..300_000u32).map(|i| (i % 251) as u8).collect();
        fs::write(tmp.path().join("a"), &bytes).unwrap();
        let mut from = File::open(tmp.path().join("a")).unwrap();
        from.seek(io::SeekFrom::Start(1000)).unwrap();
        let length = copy_file(&from, &open(tmp.path()), "b", 0o400).unwrap();
        assert_eq!(length, 300_000);
        assert_eq!(fs::read(tmp.path().join("b")).unwrap(), bytes);
        let mode = fs::metadata(tmp.path().join("b")).unwrap().mode();
        assert_eq!(mode & 0o777, 0o400);
    }

    #[test]
    fn replaces_nothing_and_leaves_nothing() {
        let tmp = scratch();
        fs::write(tmp.path().join("a"), "new").unwrap();
        fs::write(tmp.path().join("b"), "old").unwrap();
        let dir = open(tmp.path());
        let from = File::open(tmp.path().join("a")).unwrap();
        let error = copy_file(&from, &dir, "b", 0o600).unwrap_err();
        assert_eq!(error.kind(), io::ErrorKind::AlreadyExists);
        assert_eq!(fs::read(tmp.path().join("b")).unwrap(), b"old");
        assert!(copy_file(&from, &dir, "../c", 0o600).is_err());
        let unreadable = OpenOptions::new().write(true).open(tmp.path().join("a"));
        assert!(copy_file(&unreadable.unwrap(), &dir, "c", 0o600).is_err());
        assert_eq!(fs::read_dir(tmp.path()).unwrap().count(), 2);
    }
}
