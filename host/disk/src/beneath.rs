//! Opens that stay beneath a directory: no symlink, no magic link, no `..` out of it.

pub use crate::stat::{Kind, Stat, Time};

use crate::Dir;
use rustix::fs::{Mode, OFlags, ResolveFlags};
use rustix::io::Errno;
use std::ffi::{CStr, OsString};
use std::fs::File;
use std::io;
use std::os::fd::{AsFd, BorrowedFd, OwnedFd};
use std::os::unix::ffi::OsStringExt;
use std::path::{Path, PathBuf};

/// How often a resolution that a concurrent rename disturbed is tried.
const ATTEMPTS_MAX: u32 = 128;

/// Opens `rel` for reading; a regular file only.
///
/// A FIFO or device can not hold the caller: it is refused.
///
/// # Errors
/// `InvalidInput` when it is no regular file; [`is_refused`] tells links and escapes apart.
pub fn open_file(dir: &Dir, rel: &Path) -> io::Result<File> {
    open_file_at(dir.as_fd(), rel)
}

pub(crate) fn open_file_at<P: rustix::path::Arg + Copy>(
    dir: BorrowedFd<'_>,
    rel: P,
) -> io::Result<File> {
    let flags = OFlags::RDONLY | OFlags::NONBLOCK | OFlags::NOCTTY;
    let fd = open_at(dir, rel, flags, Mode::empty(), ResolveFlags::empty())?;
    if Stat::of(&fd)?.kind != Kind::File {
        return Err(not_a_file());
    }
    Ok(File::from(fd))
}

fn not_a_file() -> io::Error {
    io::Error::new(io::ErrorKind::InvalidInput, "not a regular file")
}

/// Opens the directory `rel`; `.` is `dir` itself.
///
/// # Errors
/// What the system says; [`is_refused`] tells links and escapes apart.
pub fn open_dir(dir: &Dir, rel: &Path) -> io::Result<Dir> {
    let flags = OFlags::RDONLY | OFlags::DIRECTORY;
    let none = ResolveFlags::empty();
    open_at(dir.as_fd(), rel, flags, Mode::empty(), none).map(Dir::from)
}

/// Opens the directory `rel` unless a mount point lies on the way (`EXDEV`).
///
/// # Errors
/// What the system says; [`is_refused`] tells links, escapes and mount points apart.
pub fn open_dir_same_mount(dir: &Dir, rel: &Path) -> io::Result<Dir> {
    let flags = OFlags::RDONLY | OFlags::DIRECTORY;
    let fd = open_at(
        dir.as_fd(),
        rel,
        flags,
        Mode::empty(),
        ResolveFlags::NO_XDEV,
    )?;
    Ok(Dir::from(fd))
}

/// Makes the file `rel`, open for reading and writing; `mode` as the umask leaves it.
///
/// # Errors
/// `AlreadyExists` when anything has that name, a dangling link too.
pub fn create_file(dir: &Dir, rel: &Path, mode: u32) -> io::Result<File> {
    let flags = OFlags::RDWR | OFlags::CREATE | OFlags::EXCL;
    let mode = Mode::from_raw_mode(mode & 0o7777);
    let fd = open_at(dir.as_fd(), rel, flags, mode, ResolveFlags::empty())?;
    Ok(File::from(fd))
}

/// Target of the symlink `rel`, verbatim.
///
/// # Errors
/// `InvalidInput` when it is no symlink; else what the system says.
pub fn read_link(dir: &Dir, rel: &Path) -> io::Result<PathBuf> {
    let fd = open_path(dir, rel)?;
    match rustix::fs::readlinkat(&fd, c"", Vec::new()) {
        Ok(target) => Ok(OsString::from_vec(target.into_bytes()).into()),
        // What the kernel says of an open file that is no link.
        Err(Errno::NOENT) => Err(Errno::INVAL.into()),
        Err(e) => Err(e.into()),
    }
}

pub(crate) fn read_link_at(dir: BorrowedFd<'_>, name: &CStr) -> io::Result<Vec<u8>> {
    Ok(rustix::fs::readlinkat(dir, name, Vec::new())?.into_bytes())
}

/// What `rel` is; a symlink is not followed.
///
/// # Errors
/// What the system says; [`is_refused`] tells links on the way and escapes apart.
pub fn stat(dir: &Dir, rel: &Path) -> io::Result<Stat> {
    Stat::of(open_path(dir, rel)?)
}

/// Whether an open was refused because of a symlink, an escape or a mount point on the way.
pub fn is_refused(error: &io::Error) -> bool {
    matches!(Errno::from_io_error(error), Some(Errno::LOOP | Errno::XDEV))
}

/// A handle on the entry itself, whatever it is, that can be asked but not read.
fn open_path(dir: &Dir, rel: &Path) -> io::Result<OwnedFd> {
    let none = ResolveFlags::empty();
    open_at(dir.as_fd(), rel, OFlags::PATH, Mode::empty(), none)
}

/// `openat2` beneath `dir` without any kind of link; never follows, never leaks to a child.
pub(crate) fn open_at<P: rustix::path::Arg + Copy>(
    dir: BorrowedFd<'_>,
    rel: P,
    flags: OFlags,
    mode: Mode,
    more: ResolveFlags,
) -> io::Result<OwnedFd> {
    let flags = flags | OFlags::NOFOLLOW | OFlags::CLOEXEC;
    let resolve =
        ResolveFlags::BENEATH | ResolveFlags::NO_SYMLINKS | ResolveFlags::NO_MAGICLINKS | more;
    let mut attempts = 0;
    loop {
        attempts += 1;
        match rustix::fs::openat2(dir, rel, flags, mode, resolve) {
            // A rename somewhere while `..` was resolved, or a signal.
            Err(Errno::AGAIN | Errno::INTR) if attempts < ATTEMPTS_MAX => {}
            done => return Ok(done?),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::testing::{Stop, open, scratch};
    use rustix::fs::{CWD, RenameFlags};
    use std::fs;
    use std::io::{Read as _, Write as _};
    use std::os::unix::fs::symlink;
    use std::sync::atomic::{AtomicBool, Ordering};

    fn path(text: &str) -> &Path {
        Path::new(text)
    }

    /// `root` with links that lead out, beside `out`.
    fn traps(root: &Path) {
        fs::create_dir_all(root.join("root/d")).unwrap();
        fs::create_dir(root.join("out")).unwrap();
        fs::create_dir(root.join("root-more")).unwrap();
        fs::write(root.join("out/f"), "secret").unwrap();
        fs::write(root.join("root-more/f"), "secret").unwrap();
        fs::write(root.join("root/d/f"), "mine").unwrap();
        symlink(root.join("out"), root.join("root/abs")).unwrap();
        symlink("../out", root.join("root/rel")).unwrap();
        symlink("../out/f", root.join("root/leak")).unwrap();
        symlink("../out/new", root.join("root/dangling")).unwrap();
        symlink("d", root.join("root/inside")).unwrap();
        symlink("/proc/self/root", root.join("root/magic")).unwrap();
    }

    #[test]
    fn reads_what_is_beneath() {
        let tmp = scratch();
        traps(tmp.path());
        let dir = open(&tmp.path().join("root"));
        for good in ["d/f", "./d/f", "d/../d/f"] {
            let mut text = String::new();
            let mut file = open_file(&dir, path(good)).unwrap();
            file.read_to_string(&mut text).unwrap();
            assert_eq!(text, "mine");
        }
        assert!(open_dir(&dir, path("d")).unwrap().open("f").is_ok());
        assert!(open_dir(&dir, path(".")).unwrap().open("d/f").is_ok());
    }

    #[test]
    fn refuses_links_and_escapes() {
        let tmp = scratch();
        traps(tmp.path());
        let dir = open(&tmp.path().join("root"));
        let absolute = tmp.path().join("root/d/f");
        let absolute = absolute.to_str().unwrap();
        for bad in [
            "leak",
            "dangling",
            "abs/f",
            "rel/f",
            "inside/f",
            "magic/etc/passwd",
            "../out/f",
            "d/../../out/f",
            "../root-more/f",
            absolute,
        ] {
            assert!(
                is_refused(&open_file(&dir, path(bad)).unwrap_err()),
                "{bad}"
            );
            let made = create_file(&dir, path(bad), 0o600);
            let kind = made.as_ref().map_err(io::Error::kind).err();
            let refused = made.is_err_and(|e| is_refused(&e));
            assert!(
                refused || kind == Some(io::ErrorKind::AlreadyExists),
                "{bad}"
            );
        }
        for bad in ["abs", "rel", "inside", "..", "magic", "/"] {
            // A link as the last component is no directory, and says so.
            assert!(open_dir(&dir, path(bad)).is_err(), "{bad}");
        }
        for bad in ["abs/new", "rel/new/deep", "inside/new", "../new"] {
            let made = create_file(&dir, path(bad), 0o600);
            assert!(is_refused(&made.unwrap_err()), "{bad}");
            assert!(stat(&dir, path(bad)).is_err(), "{bad}");
        }
        assert_eq!(fs::read_dir(tmp.path().join("out")).unwrap().count(), 1);
    }

    #[test]
    fn only_regular_files_are_read_and_none_holds_us() {
        let tmp = scratch();
        let dir = open(tmp.path());
        let fifo = tmp.path().join("fifo");
        rustix::fs::mkfifoat(CWD, &fifo, Mode::RWXU).unwrap();
        fs::create_dir(tmp.path().join("d")).unwrap();
        for bad in ["fifo", "d", "."] {
            let error = open_file(&dir, path(bad)).unwrap_err();
            assert_eq!(error.kind(), io::ErrorKind::InvalidInput, "{bad}");
        }
        let missing = open_file(&dir, path("none")).unwrap_err();
        assert_eq!(missing.kind(), io::ErrorKind::NotFound);
        assert!(!is_refused(&missing));
    }

    #[test]
    fn makes_new_files_only() {
        let tmp = scratch();
        let dir = open(tmp.path());
        let mut file = create_file(&dir, path("f"), 0o640).unwrap();
        file.write_all(b"x").unwrap();
        assert_eq!(stat(&dir, path("f")).unwrap().mode & !0o040, 0o600);
        let again = create_file(&dir, path("f"), 0o600).unwrap_err();
        assert_eq!(again.kind(), io::ErrorKind::AlreadyExists);
        assert_eq!(fs::read(tmp.path().join("f")).unwrap(), b"x");
    }

    #[test]
    fn tells_of_entries_without_following() {
        let tmp = scratch();
        traps(tmp.path());
        let dir = open(&tmp.path().join("root"));
        fs::hard_link(tmp.path().join("root/d/f"), tmp.path().join("root/g")).unwrap();
        let file = stat(&dir, path("d/f")).unwrap();
        assert_eq!((file.kind, file.size, file.nlink), (Kind::File, 4, 2));
        let real = std::os::unix::fs::MetadataExt::ino;
        let meta = fs::metadata(tmp.path().join("root/d/f")).unwrap();
        assert_eq!(file.ino, real(&meta));
        use std::os::unix::fs::MetadataExt as _;
        assert_eq!(
            (file.dev, file.uid, file.blocks),
            (meta.dev(), meta.uid(), meta.blocks())
        );
        assert_eq!(
            (file.mtime.seconds, i64::from(file.mtime.nanos)),
            (meta.mtime(), meta.mtime_nsec())
        );
        assert_eq!(
            (file.ctime.seconds, i64::from(file.ctime.nanos)),
            (meta.ctime(), meta.ctime_nsec())
        );
        assert_eq!(stat(&dir, path("leak")).unwrap().kind, Kind::Symlink);
        assert_eq!(stat(&dir, path(".")).unwrap().kind, Kind::Dir);
        assert_eq!(read_link(&dir, path("leak")).unwrap(), path("../out/f"));
        for (bad, kind) in [
            ("d/f", io::ErrorKind::InvalidInput),
            ("d", io::ErrorKind::InvalidInput),
            ("none", io::ErrorKind::NotFound),
        ] {
            assert_eq!(read_link(&dir, path(bad)).unwrap_err().kind(), kind);
        }
        assert!(is_refused(&read_link(&dir, path("inside/x")).unwrap_err()));
    }

    #[test]
    fn a_swapper_gets_no_write_outside() {
        let tmp = scratch();
        traps(tmp.path());
        let root = tmp.path().join("root");
        let dir = open(&root);
        let stop = AtomicBool::new(false);
        let (mut tried, mut made, mut refused) = (0, 0, 0);
        std::thread::scope(|scope| {
            scope.spawn(|| {
                let (a, b) = (root.join("d"), root.join("abs"));
                while !stop.load(Ordering::Relaxed) {
                    rustix::fs::renameat_with(CWD, &a, CWD, &b, RenameFlags::EXCHANGE).unwrap();
                }
            });
            let _stop = Stop(&stop);
            // Often, and until `d` was both a directory and a link.
            while tried < 20_000 || (made == 0 || refused == 0) && tried < 2_000_000 {
                tried += 1;
                match create_file(&dir, path(&format!("d/new{tried}")), 0o600) {
                    Ok(_) => made += 1,
                    Err(e) => {
                        assert!(is_refused(&e), "{e}");
                        refused += 1;
                    }
                }
                if let Ok(mut file) = open_file(&dir, path("d/f")) {
                    let mut text = String::new();
                    file.read_to_string(&mut text).unwrap();
                    assert_eq!(text, "mine");
                }
            }
        });
        assert_eq!(fs::read_dir(tmp.path().join("out")).unwrap().count(), 1);
        assert!(made > 0 && refused > 0);
    }
}
