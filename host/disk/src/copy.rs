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
