//! Files that are there whole or not at all, whatever happens meanwhile.

use crate::{Dir, beneath, name};
use rustix::fs::{AtFlags, RenameFlags};
use rustix::io::Errno;
use std::fs::File;
use std::io::{self, Write as _};
use std::path::Path;
use std::sync::atomic::{AtomicU64, Ordering};

/// Whether the bytes must survive a loss of power once the call has returned.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Durable {
    /// Yes: file and directory are flushed.
    Yes,
    /// No: the file is still whole or absent for every reader.
    No,
}

const TEMP_PREFIX: &str = ".warren-";
const TEMP_SUFFIX: &str = ".tmp";

/// Whether a crash of ours may have left a file of this name; such a file is garbage.
pub fn is_temp_name(name: &str) -> bool {
    name.strip_prefix(TEMP_PREFIX)
        .and_then(|rest| rest.strip_suffix(TEMP_SUFFIX))
        .is_some_and(|id| id.len() == 32 && id.bytes().all(|b| b.is_ascii_hexdigit()))
}

/// Puts `bytes` under `name`, in place of what was there; mode 0600.
///
/// # Errors
/// What the system says; then the old file is as it was and nothing of ours is left.
pub fn write(dir: &Dir, name: &str, bytes: &[u8], durable: Durable) -> io::Result<()> {
    place(dir, name, bytes, durable, |temp| {
        rustix::fs::renameat(dir, temp, dir, name)
    })
}

/// Puts `bytes` under `name` if nothing has that name yet; mode 0600.
///
/// # Errors
/// `AlreadyExists` when something has; else as [`write`].
pub fn create_new(dir: &Dir, name: &str, bytes: &[u8], durable: Durable) -> io::Result<()> {
    place(dir, name, bytes, durable, |temp| {
        match rustix::fs::renameat_with(dir, temp, dir, name, RenameFlags::NOREPLACE) {
            // A file system that can not do it, NFS for one.
            Err(Errno::INVAL | Errno::NOSYS) => link_new(dir, temp, name),
            done => done,
        }
    })
}

fn link_new(dir: &Dir, temp: &str, name: &str) -> rustix::io::Result<()> {
    rustix::fs::linkat(dir, temp, dir, name, AtFlags::empty())?;
    rustix::fs::unlinkat(dir, temp, AtFlags::empty())
}

fn place(
    dir: &Dir,
    name: &str,
    bytes: &[u8],
    durable: Durable,
    publish: impl FnOnce(&str) -> rustix::io::Result<()>,
) -> io::Result<()> {
    name::check(name)?;
    let (temp, file) = create_temp(dir)?;
    let done = fill(file, bytes, durable).and_then(|()| Ok(publish(&temp)?));
    if let Err(error) = done {
        // The first error says more than one from here would.
        let _ = rustix::fs::unlinkat(dir, &temp, AtFlags::empty());
        return Err(error);
    }
    match durable {
        Durable::Yes => sync_dir(dir),
        Durable::No => Ok(()),
    }
}

fn create_temp(dir: &Dir) -> io::Result<(String, File)> {
    loop {
        let temp = temp_name();
        match beneath::create_file(dir, Path::new(&temp), 0o600) {
            Ok(file) => return Ok((temp, file)),
            Err(e) if e.kind() == io::ErrorKind::AlreadyExists => {}
            Err(e) => return Err(e),
        }
    }
}

/// Short whatever the name in the end, and unlike those of other processes, Pods included.
fn temp_name() -> String {
    static COUNT: AtomicU64 = AtomicU64::new(0);
    let now = rustix::time::clock_gettime(rustix::time::ClockId::Realtime);
    let mix = (u64::from(std::process::id()) << 32) ^ COUNT.fetch_add(1, Ordering::Relaxed);
    let nanos = (now.tv_sec as u64)
        .wrapping_mul(1_000_000_000)
        .wrapping_add(now.tv_nsec as u64);
    format!("{TEMP_PREFIX}{nanos:016x}{mix:016x}{TEMP_SUFFIX}")
}

fn fill(mut file: File, bytes: &[u8], durable: Durable) -> io::Result<()> {
    file.write_all(bytes)?;
    if durable == Durable::Yes {
        file.sync_all()?;
    }
    Ok(())
}

/// Makes the names in `dir` survive a loss of power.
///
/// # Errors
/// What the system says.
pub fn sync_dir(dir: &Dir) -> io::Result<()> {
    Ok(rustix::fs::fsync(dir)?)
}
