//! Files that are there whole or not at all, whatever happens meanwhile.

use crate::{Dir, beneath, name};
use rustix::fs::{AtFlags, FileType, Mode, OFlags, RenameFlags, ResolveFlags};
use rustix::io::Errno;
use std::fs::File;
use std::io::{self, Write as _};
use std::os::fd::AsFd as _;
use std::path::Path;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Duration;

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

/// Deletes what writers that died have left in `dir`; returns how many files that were.
///
/// Only files that nobody has changed for `age`: more than zero wherever others may be writing.
///
/// # Errors
/// What the system says.
pub fn sweep(dir: &Dir, age: Duration) -> io::Result<u64> {
    let mut removed = 0;
    for entry in dir.entries()? {
        let name = entry?.file_name();
        if !name.to_str().is_some_and(is_temp_name) {
            continue;
        }
        let stat = match rustix::fs::statat(dir, &name, AtFlags::SYMLINK_NOFOLLOW) {
            Ok(stat) => stat,
            Err(Errno::NOENT) => continue,
            Err(error) => return Err(error.into()),
        };
        let is_file = FileType::from_raw_mode(stat.st_mode) == FileType::RegularFile;
        if !is_file || !is_older(stat.st_mtime, age) {
            continue;
        }
        match rustix::fs::unlinkat(dir, &name, AtFlags::empty()) {
            Ok(()) => removed += 1,
            // Somebody else sweeps too.
            Err(Errno::NOENT) => {}
            Err(error) => return Err(error.into()),
        }
    }
    Ok(removed)
}

fn is_older(changed_seconds: i64, age: Duration) -> bool {
    let now = rustix::time::clock_gettime(rustix::time::ClockId::Realtime).tv_sec;
    age.is_zero() || u64::try_from(now - changed_seconds).is_ok_and(|passed| passed > age.as_secs())
}

/// Puts `bytes` under `name`, in place of what was there; mode 0600.
///
/// # Errors
/// What the system says; then the old file is as it was and nothing of ours is left. Only when the
/// directory could not be flushed at the end, the new file is there, and maybe not for good.
pub fn write(dir: &Dir, name: &str, bytes: &[u8], durable: Durable) -> io::Result<()> {
    place(dir, name, bytes, durable, |temp| {
        rustix::fs::renameat(dir, temp, dir, name)
    })
}

/// Puts `bytes` under `name` if nothing has that name yet; mode 0600.
///
/// # Errors
/// `AlreadyExists` when something has; else as [`write()`].
pub fn create_new(dir: &Dir, name: &str, bytes: &[u8], durable: Durable) -> io::Result<()> {
    place(dir, name, bytes, durable, |temp| {
        match rustix::fs::renameat_with(dir, temp, dir, name, RenameFlags::NOREPLACE) {
            // A file system that can not do it, NFS for one.
            Err(Errno::INVAL | Errno::NOSYS) => link_new(dir, temp, name),
            done => done,
        }
    })
}

/// Puts `bytes` over what `name` holds, where a full disk leaves no room for a second file.
///
/// Only for what can be found damaged: a crash in the middle leaves a mix of both.
///
/// # Errors
/// What the system says; `InvalidInput` when it is no regular file.
pub fn overwrite(dir: &Dir, name: &str, bytes: &[u8]) -> io::Result<()> {
    use std::os::unix::fs::FileExt as _;
    name::check(name)?;
    let flags = OFlags::WRONLY | OFlags::NONBLOCK | OFlags::NOCTTY;
    let none = ResolveFlags::empty();
    let file = File::from(beneath::open_at(
        dir.as_fd(),
        name,
        flags,
        Mode::empty(),
        none,
    )?);
    if !file.metadata()?.is_file() {
        return Err(io::ErrorKind::InvalidInput.into());
    }
    file.write_all_at(bytes, 0)?;
    file.set_len(bytes.len() as u64)?;
    file.sync_all()
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

#[cfg(test)]
mod tests {
    use super::*;
    use crate::testing::{Mount, open, scratch};
    use std::fs;
    use std::os::unix::fs::{MetadataExt as _, symlink};

    fn names(path: &Path) -> Vec<String> {
        let entries = fs::read_dir(path).unwrap();
        let mut names: Vec<_> = entries
            .map(|e| e.unwrap().file_name().into_string().unwrap())
            .collect();
        names.sort();
        names
    }

    #[test]
    fn writes_and_replaces() {
        let tmp = scratch();
        let dir = open(tmp.path());
        let longest = "n".repeat(255);
        for durable in [Durable::Yes, Durable::No] {
            for bytes in [&b"one"[..], b"", b"two"] {
                write(&dir, &longest, bytes, durable).unwrap();
                assert_eq!(fs::read(tmp.path().join(&longest)).unwrap(), bytes);
            }
        }
        let meta = fs::metadata(tmp.path().join(&longest)).unwrap();
        assert_eq!(meta.mode() & 0o7777, 0o600);
        assert_eq!(names(tmp.path()), [longest]);
    }

    #[test]
    fn replaces_a_link_and_not_its_target() {
        let tmp = scratch();
        fs::write(tmp.path().join("target"), "old").unwrap();
        symlink("target", tmp.path().join("f")).unwrap();
        write(&open(tmp.path()), "f", b"new", Durable::No).unwrap();
        assert_eq!(fs::read(tmp.path().join("target")).unwrap(), b"old");
        assert!(tmp.path().join("f").symlink_metadata().unwrap().is_file());
    }

    #[test]
    fn new_ones_replace_nothing() {
        let tmp = scratch();
        let dir = open(tmp.path());
        create_new(&dir, "f", b"one", Durable::Yes).unwrap();
        symlink("gone", tmp.path().join("l")).unwrap();
        fs::create_dir(tmp.path().join("d")).unwrap();
        for name in ["f", "l", "d"] {
            let error = create_new(&dir, name, b"two", Durable::Yes).unwrap_err();
            assert_eq!(error.kind(), io::ErrorKind::AlreadyExists);
        }
        assert_eq!(fs::read(tmp.path().join("f")).unwrap(), b"one");
        assert_eq!(names(tmp.path()), ["d", "f", "l"]);
    }

    #[test]
    fn new_ones_without_help_of_the_file_system() {
        let tmp = scratch();
        let dir = open(tmp.path());
        for name in ["t1", "t2"] {
            fs::write(tmp.path().join(name), name).unwrap();
        }
        link_new(&dir, "t1", "f").unwrap();
        assert_eq!(link_new(&dir, "t2", "f"), Err(Errno::EXIST));
        assert_eq!(fs::read(tmp.path().join("f")).unwrap(), b"t1");
        assert_eq!(names(tmp.path()), ["f", "t2"]);
    }

    #[test]
    fn errors_leave_the_old_file_and_nothing_else() {
        let tmp = scratch();
        let Some(_mount) = Mount::tmpfs(tmp.path(), c"size=64k") else {
            return;
        };
        let dir = open(tmp.path());
        write(&dir, "f", b"old", Durable::Yes).unwrap();
        fs::create_dir(tmp.path().join("d")).unwrap();
        let error = write(&dir, "f", &[1; 100_000], Durable::Yes).unwrap_err();
        assert_eq!(error.kind(), io::ErrorKind::StorageFull);
        assert!(write(&dir, "d", b"x", Durable::Yes).is_err());
        for bad in ["", "..", "a/b", &"n".repeat(256)] {
            assert!(write(&dir, bad, b"x", Durable::No).is_err(), "{bad}");
        }
        assert_eq!(fs::read(tmp.path().join("f")).unwrap(), b"old");
        assert_eq!(names(tmp.path()), ["d", "f"]);

        // In place there is room all the same.
        fs::write(tmp.path().join("fill"), [1; 100_000]).unwrap_err();
        assert!(write(&dir, "f", b"x", Durable::Yes).is_err());
        for bytes in [&b"longer than old"[..], b"x"] {
            overwrite(&dir, "f", bytes).unwrap();
            assert_eq!(fs::read(tmp.path().join("f")).unwrap(), bytes);
        }
        symlink("f", tmp.path().join("l")).unwrap();
        for bad in ["d", "l", "nowhere", ".."] {
            assert!(overwrite(&dir, bad, b"x").is_err(), "{bad}");
        }
    }

    #[test]
    fn readers_see_whole_files() {
        let tmp = scratch();
        let dir = open(tmp.path());
        let path = tmp.path().join("f");
        write(&dir, "f", &[0; 5000], Durable::No).unwrap();
        std::thread::scope(|scope| {
            for byte in 1..4u8 {
                let dir = &dir;
                scope.spawn(move || {
                    for _ in 0..200 {
                        write(dir, "f", &[byte; 5000], Durable::No).unwrap();
                    }
                });
            }
            for _ in 0..500 {
                let bytes = fs::read(&path).unwrap();
                assert_eq!(bytes.len(), 5000);
                assert!(bytes.iter().all(|b| *b == bytes[0]));
            }
        });
        assert_eq!(names(tmp.path()), ["f"]);
    }

    #[test]
    fn names_of_leftovers_are_known() {
        assert!(is_temp_name(&temp_name()) && temp_name().starts_with('.'));
        for other in [".warren-.tmp", "x.tmp", ".warren-a.tmp", "workspace.json"] {
            assert!(!is_temp_name(other), "{other}");
        }
    }

    #[test]
    fn leftovers_are_swept_and_nothing_else() {
        let tmp = scratch();
        let at = |name: &str| tmp.path().join(name);
        let [young, old, folder, link] = std::array::from_fn(|_| temp_name());
        for name in [&young, &old, "f", ".warren-a.tmp"] {
            fs::write(at(name), "x").unwrap();
        }
        fs::create_dir(at(&folder)).unwrap();
        symlink("f", at(&link)).unwrap();
        let file = File::options().write(true).open(at(&old)).unwrap();
        let then = std::time::SystemTime::now() - Duration::from_secs(100);
        file.set_modified(then).unwrap();
        let dir = open(tmp.path());
        assert_eq!(sweep(&dir, Duration::from_secs(60)).unwrap(), 1);
        assert!(at(&young).exists() && !at(&old).exists());
        assert_eq!(sweep(&dir, Duration::ZERO).unwrap(), 1);
        let mut left = [folder, link, "f".into(), ".warren-a.tmp".into()];
        left.sort();
        assert_eq!(names(tmp.path()), left);
    }
}
