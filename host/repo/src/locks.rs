//! Lock files that a killed git left in `.git`.

use std::collections::HashSet;
use std::io;
use std::os::fd::AsFd;
use std::os::unix::ffi::OsStrExt;
use std::path::Path;
use std::time::{Duration, Instant};

use rustix::fs::{AtFlags, FileType, Stat};
use warren_disk::Dir;

use crate::RepoError;
use crate::files::{self, as_path, show};
use crate::layout;

/// How often a lock that is held is looked at.
const POLL: Duration = Duration::from_millis(50);

/// Removes lock files (`index.lock`, `HEAD.lock`, `refs/**.lock`…) that no living process holds,
/// with a line in the log, and waits up to `wait` for those that one does.
///
/// A process holds a lock when it has the file open, or when it works in the RootDir: its current
/// directory or an open file lies in it. `path` is where the RootDir is. Only processes that `/proc`
/// shows to the host are seen.
///
/// # Errors
///
/// `Locked` names a lock still held after `wait`; `Io` when `.git` or `/proc` cannot be read.
pub fn clear_stale_locks(root: &Dir, path: &Path, wait: Duration) -> Result<(), RepoError> {
    let git = layout::open_git(root)?;
    // `/proc` shows where things really are.
    let path = &std::fs::canonicalize(path)
        .map_err(|error| RepoError::io("find the RootDir's place", error))?;
    let deadline = Instant::now() + wait;
    loop {
        let locks = find(&git)?;
        if locks.is_empty() {
            return Ok(());
        }
        let Some(held) = held(root, path, &git, &locks)? else {
            return remove(&git, &locks);
        };
        if Instant::now() >= deadline {
            return Err(RepoError::Locked(show(held)));
        }
        std::thread::sleep(POLL.min(deadline.saturating_duration_since(Instant::now())));
    }
}

/// Lock files by path in `.git`.
fn find(git: &Dir) -> Result<Vec<Vec<u8>>, RepoError> {
    let mut locks = Vec::new();
    let mut pending = vec![Vec::new(), b"refs".to_vec(), b"logs".to_vec()];
    while let Some(path) = pending.pop() {
        let fail = |error| RepoError::io(format!("list `.git/{}`", show(&path)), error);
        let names = match files::open_dir(git, &path).and_then(|dir| files::names(&dir)) {
            Ok(names) => names,
            Err(error) if error.kind() == io::ErrorKind::NotFound => continue,
            Err(error) => return Err(fail(error)),
        };
        for (name, kind) in names {
            let child = if path.is_empty() {
                name
            } else {
                [path.as_slice(), b"/", &name].concat()
            };
            match kind {
                FileType::RegularFile if child.ends_with(b".lock") => locks.push(child),
                FileType::Directory if !path.is_empty() => pending.push(child),
                _ => {}
            }
        }
    }
    locks.sort();
    Ok(locks)
}

/// The first lock, when a living process may hold any of them.
fn held<'a>(
    root: &Dir,
    path: &Path,
    git: &Dir,
    locks: &'a [Vec<u8>],
) -> Result<Option<&'a [u8]>, RepoError> {
    let identity = |stat: &Stat| (stat.st_dev, stat.st_ino);
    let fail = |error: rustix::io::Errno| RepoError::io("look at the lock files", error);
    let mut files = HashSet::new();
    for lock in locks {
        match rustix::fs::statat(git, as_path(lock), AtFlags::SYMLINK_NOFOLLOW) {
            Ok(stat) => {
                files.insert(identity(&stat));
            }
            Err(rustix::io::Errno::NOENT) => {}
            Err(error) => return Err(fail(error)),
        }
    }
    for dir in [root, git] {
        files.insert(identity(&rustix::fs::fstat(dir.as_fd()).map_err(fail)?));
    }
    let uses = |link: &Path| {
        let is_below = std::fs::read_link(link).is_ok_and(|target| target.starts_with(path));
        is_below || rustix::fs::stat(link).is_ok_and(|stat| files.contains(&identity(&stat)))
    };
    let processes =
        std::fs::read_dir("/proc").map_err(|error| RepoError::io("list `/proc`", error))?;
    let own = std::process::id().to_string();
    for process in processes.flatten() {
        let name = process.file_name();
        if !name.as_bytes().iter().all(u8::is_ascii_digit) || name.as_bytes() == own.as_bytes() {
            continue;
        }
        // A process that ends meanwhile, or that we may not see, cannot be asked.
        let open = std::fs::read_dir(process.path().join("fd"));
        let mut open = open.into_iter().flatten().flatten();
        if uses(&process.path().join("cwd")) || open.any(|fd| uses(&fd.path())) {
            return Ok(locks.first().map(Vec::as_slice));
        }
    }
    Ok(None)
}

fn remove(git: &Dir, locks: &[Vec<u8>]) -> Result<(), RepoError> {
    for lock in locks {
        let (parent, name) = match lock.iter().rposition(|&b| b == b'/') {
            Some(slash) => (&lock[..slash], &lock[slash + 1..]),
            None => (&b""[..], lock.as_slice()),
        };
        let fail = |error| RepoError::io(format!("remove `.git/{}`", show(lock)), error);
        let dir = files::open_dir(git, parent).map_err(fail)?;
        match rustix::fs::unlinkat(&dir, as_path(name), AtFlags::empty()) {
            Ok(()) => tracing::warn!(lock = %show(lock), "removed a stale lock of a dead process"),
            Err(rustix::io::Errno::NOENT) => {}
            Err(error) => return Err(fail(error.into())),
        }
    }
    Ok(())
}

#[cfg(test)]
mod tests;
