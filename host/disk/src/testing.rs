//! What several tests need.

use crate::Dir;
use std::fs::File;
use std::io::Write as _;
use std::os::fd::OwnedFd;
use std::path::{Path, PathBuf};
use std::process::Command;
use std::sync::atomic::{AtomicBool, Ordering};
use tempfile::TempDir;

/// Tells a test that runs in a process of its own where to work.
const PLACE: &str = "WARREN_DISK_TEST_PLACE";

/// A directory in memory where there is one.
pub(crate) fn scratch() -> TempDir {
    let memory = Path::new("/dev/shm");
    if memory.is_dir() {
        tempfile::tempdir_in(memory).unwrap()
    } else {
        tempfile::tempdir().unwrap()
    }
}

pub(crate) fn open(path: &Path) -> Dir {
    crate::open_root(path).unwrap()
}

/// Says past the capture of the test runner that a test does not run here.
pub(crate) fn skipped(what: &str, why: impl std::fmt::Display) {
    writeln!(std::io::stderr(), "SKIPPED {what}: {why}").unwrap();
}

pub(crate) fn is_root() -> bool {
    rustix::process::geteuid().is_root()
}

/// Runs `work` without the rights of root, in a thread of its own; user and group 65534.
///
/// # Panics
/// When `work` does.
pub(crate) fn as_nobody(work: impl FnOnce() + Send) {
    std::thread::scope(|scope| {
        let run = || {
            if is_root() {
                let gid = rustix::fs::Gid::from_raw(65534);
                let uid = rustix::fs::Uid::from_raw(65534);
                // Of this thread only: they are the plain system calls.
                rustix::thread::set_thread_groups(&[]).unwrap();
                rustix::thread::set_thread_res_gid(gid, gid, gid).unwrap();
                rustix::thread::set_thread_res_uid(uid, uid, uid).unwrap();
            }
            work();
        };
        scope.spawn(run).join().unwrap();
    });
}

/// Runs an ignored test of this binary in a process of its own.
pub(crate) fn child(test: &str, place: &Path) -> Command {
    let mut command = Command::new(std::env::current_exe().unwrap());
    command
        .args([test, "--exact", "--ignored", "--nocapture"])
        .env_clear()
        .env(PLACE, place);
    command
}

/// Where the test of a child works; nothing when nobody sent it.
pub(crate) fn place() -> Option<PathBuf> {
    std::env::var_os(PLACE).map(PathBuf::from)
}

/// Tells a thread to stop, also when the test fails.
pub(crate) struct Stop<'a>(pub(crate) &'a AtomicBool);

impl Drop for Stop<'_> {
    fn drop(&mut self) {
        self.0.store(true, Ordering::Relaxed);
    }
}

/// A mount that ends with the test.
pub(crate) struct Mount(PathBuf);

impl Mount {
    pub(crate) fn bind(from: &Path, to: &Path) -> Option<Self> {
        Self::checked(rustix::mount::mount_bind(from, to), to)
    }

    pub(crate) fn tmpfs(to: &Path, options: &std::ffi::CStr) -> Option<Self> {
        let flags = rustix::mount::MountFlags::empty();
        let done = rustix::mount::mount("tmpfs", to, "tmpfs", flags, Some(options));
        Self::checked(done, to)
    }

    /// A file of `bytes` bytes with a fresh ext4, mounted at `to`.
    pub(crate) fn ext4(image: &Path, bytes: u64, options: &[&str], to: &Path) -> Option<Self> {
        File::create(image).unwrap().set_len(bytes).unwrap();
        let made = Command::new("mkfs.ext4")
            .env_clear()
            .env("PATH", "/usr/sbin:/usr/bin:/sbin:/bin")
            .args(["-q", "-F"])
            .args(options)
            .arg(image)
            .output();
        let mounted = made.and_then(|_| {
            Command::new("mount")
                .env_clear()
                .env("PATH", "/usr/sbin:/usr/bin:/sbin:/bin")
                .args(["-o", "loop"])
                .args([image, to])
                .output()
        });
        match mounted {
            Ok(done) if done.status.success() => Some(Self(to.into())),
            Ok(done) => {
                let why = crate::text::excerpt(&done.stderr, 200);
                skipped("a test on a loop mount", why);
                None
            }
            Err(e) => {
                skipped("a test on a loop mount", e);
                None
            }
        }
    }

    fn checked(done: rustix::io::Result<()>, to: &Path) -> Option<Self> {
        match done {
            Ok(()) => Some(Self(to.into())),
            Err(e) => {
                skipped("a test with a mount", e);
                None
            }
        }
    }
}

impl Drop for Mount {
    fn drop(&mut self) {
        rustix::mount::unmount(&self.0, rustix::mount::UnmountFlags::DETACH).unwrap();
    }
}

/// Makes `levels` nested directories with names of 200 bytes, with a file in the last.
pub(crate) fn make_deep(root: &Path, levels: usize) {
    use rustix::fs::{Mode, OFlags};
    let name = "x".repeat(200);
    let mut dir = OwnedFd::from(File::open(root).unwrap());
    for _ in 0..levels {
        rustix::fs::mkdirat(&dir, &name, Mode::RWXU).unwrap();
        let flags = OFlags::RDONLY | OFlags::DIRECTORY;
        dir = rustix::fs::openat(&dir, &name, flags, Mode::empty()).unwrap();
    }
    let flags = OFlags::WRONLY | OFlags::CREATE;
    rustix::fs::openat(&dir, "last", flags, Mode::RUSR).unwrap();
}
