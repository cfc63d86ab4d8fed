//! Locks between processes, and between threads of one, on a file that stays.

use crate::{Dir, beneath, name, text};
use rustix::fs::{AtFlags, FlockOperation, Mode, OFlags, ResolveFlags};
use rustix::io::Errno;
use std::io;
use std::os::fd::{AsFd, OwnedFd};
use std::time::{Duration, Instant};

/// Pause between two attempts, doubled up to [`PAUSE_MAX`].
///
/// `flock` knows no deadline. A thread that blocks in it could only be left behind when the time is
/// up, so that waiters would pile up behind a stuck holder; asking 40 times a second costs less.
const PAUSE_FIRST: Duration = Duration::from_millis(1);
const PAUSE_MAX: Duration = Duration::from_millis(25);

/// How often the file may be exchanged under us before that is an error.
const EXCHANGES_MAX: u32 = 64;

/// Why a lock was not got.
#[derive(Debug, thiserror::Error)]
pub enum LockError {
    /// Another one held it all the time.
    #[error("`{name}` is still locked by another after {} ms", waited.as_millis())]
    TimedOut {
        /// Name of the lock's file, escaped.
        name: String,
        /// How long we waited.
        waited: Duration,
    },
    /// The lock's file can not be used.
    #[error("can not lock `{name}`")]
    Io {
        /// Name of the lock's file, escaped.
        name: String,
        /// What the system says.
        source: io::Error,
    },
}

impl LockError {
    /// Stable code for machines.
    pub fn code(&self) -> &'static str {
        match self {
            Self::TimedOut { .. } => "LockTimedOut",
            Self::Io { .. } => "LockUnusable",
        }
    }

    /// What to do next.
    pub fn hint(&self) -> Option<String> {
        match self {
            Self::TimedOut { .. } => Some("wait for the other operation, then try again".into()),
            Self::Io { .. } => None,
        }
    }
}

/// A held lock; dropping it lets go, and so does the end of the process.
#[derive(Debug)]
#[must_use = "a lock that is dropped at once protects nothing"]
pub struct Lock {
    // Closing the one descriptor of this open file releases it.
    _file: OwnedFd,
}

impl Lock {
    /// Waits up to `timeout` to share the lock `name` of `dir`; the file is made when missing.
    ///
    /// # Errors
    /// [`LockError::TimedOut`] when an exclusive holder stayed, else [`LockError::Io`].
    pub fn shared(dir: &Dir, name: &str, timeout: Duration) -> Result<Self, LockError> {
        wait(dir, name, FlockOperation::NonBlockingLockShared, timeout)
    }

    /// Waits up to `timeout` to hold the lock alone.
    ///
    /// Sharers that come later do not queue behind this wait.
    ///
    /// # Errors
    /// [`LockError::TimedOut`] when another holder stayed, else [`LockError::Io`].
    pub fn exclusive(dir: &Dir, name: &str, timeout: Duration) -> Result<Self, LockError> {
        wait(dir, name, FlockOperation::NonBlockingLockExclusive, timeout)
    }

    /// Shares the lock if that is possible right now.
    ///
    /// # Errors
    /// [`LockError::Io`].
    pub fn try_shared(dir: &Dir, name: &str) -> Result<Option<Self>, LockError> {
        attempt(dir, name, FlockOperation::NonBlockingLockShared).map_err(|e| unusable(name, e))
    }

    /// Takes the lock alone if that is possible right now.
    ///
    /// # Errors
    /// [`LockError::Io`].
    pub fn try_exclusive(dir: &Dir, name: &str) -> Result<Option<Self>, LockError> {
        attempt(dir, name, FlockOperation::NonBlockingLockExclusive).map_err(|e| unusable(name, e))
    }

    /// Lets go of a lock that is held alone and deletes its file, for a thing that is gone. Whoever
    /// waits for it finds out and makes it anew.
    ///
    /// # Errors
    /// [`LockError::Io`].
    pub fn retire(self, dir: &Dir, name: &str) -> Result<(), LockError> {
        match rustix::fs::unlinkat(dir, name, AtFlags::empty()) {
            Ok(()) | Err(Errno::NOENT) => Ok(()),
            Err(error) => Err(unusable(name, error.into())),
        }
    }
}

fn unusable(name: &str, source: io::Error) -> LockError {
    let name = text::escape(name.as_bytes());
    LockError::Io { name, source }
}

fn wait(
    dir: &Dir,
    name: &str,
    operation: FlockOperation,
    timeout: Duration,
) -> Result<Lock, LockError> {
    let start = Instant::now();
    let mut pause = PAUSE_FIRST;
    loop {
        if let Some(lock) = attempt(dir, name, operation).map_err(|e| unusable(name, e))? {
            return Ok(lock);
        }
        let waited = start.elapsed();
        if waited >= timeout {
            let name = text::escape(name.as_bytes());
            return Err(LockError::TimedOut { name, waited });
        }
        std::thread::sleep(pause.min(timeout - waited));
        pause = (pause * 2).min(PAUSE_MAX);
    }
}

fn attempt(dir: &Dir, name: &str, operation: FlockOperation) -> io::Result<Option<Lock>> {
    name::check(name)?;
    for _ in 0..EXCHANGES_MAX {
        let file = open(dir, name)?;
        match rustix::fs::flock(&file, operation) {
            Ok(()) => {}
            Err(Errno::WOULDBLOCK) => return Ok(None),
            Err(Errno::INTR) => continue,
            Err(e) => return Err(e.into()),
        }
        // A lock on a file that somebody took away would exclude nobody.
        if still_there(dir, name, &file)? {
            return Ok(Some(Lock { _file: file }));
        }
    }
    Err(io::Error::other(
        "the file of the lock keeps being replaced",
    ))
}

fn open(dir: &Dir, name: &str) -> io::Result<OwnedFd> {
    let flags = OFlags::RDWR | OFlags::CREATE | OFlags::NONBLOCK | OFlags::NOCTTY;
    let mode = Mode::from_raw_mode(0o600);
    let file = beneath::open_at(dir.as_fd(), name, flags, mode, ResolveFlags::empty())?;
    if beneath::Stat::of(&file)?.kind != beneath::Kind::File {
        let why = "the lock is not a regular file";
        return Err(io::Error::new(io::ErrorKind::InvalidInput, why));
    }
    Ok(file)
}

fn still_there(dir: &Dir, name: &str, file: &OwnedFd) -> io::Result<bool> {
    let held = rustix::fs::fstat(file)?;
    match rustix::fs::statat(dir, name, AtFlags::SYMLINK_NOFOLLOW) {
        Ok(named) => Ok((named.st_dev, named.st_ino) == (held.st_dev, held.st_ino)),
        Err(Errno::NOENT) => Ok(false),
        Err(e) => Err(e.into()),
    }
}

#[cfg(test)]
mod tests;
