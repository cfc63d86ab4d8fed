//! The file of approvals: `plugins.lock` in the state directory, sealed by the host.

use std::io::{self, Read};
use std::path::{Path, PathBuf};
use std::time::Duration;

use warren_disk::atomic::{self, Durable};
use warren_disk::lock as file_lock;
use warren_policy::{DocumentError, Lock};

use super::inspect::{from_hex, hex};
use crate::seal::{Seal, open_plain};

const FILE: &str = "plugins.lock";

/// Held while the file is changed.
const GUARD: &str = "plugins.lock.guard";

const PURPOSE: &str = "warren approvals 1";

/// Starts the last line, which holds the seal of all before it.
const SEAL_LINE: &str = "# sealed: ";

const BYTES_MAX: u64 = 4 * 1024 * 1024;

const GUARD_WAIT: Duration = Duration::from_secs(10);

/// Why approvals cannot be read or noted.
#[derive(Debug, thiserror::Error)]
pub enum LockError {
    /// The file cannot be read.
    #[error("cannot read `{FILE}`")]
    Read(#[source] io::Error),
    /// The file was not written by this host.
    #[error("`{FILE}` was changed by somebody else than this host")]
    Unsealed,
    /// The host wrote what it cannot read.
    #[error("`{FILE}` is damaged")]
    Damaged(#[source] DocumentError),
    /// Somebody else is changing it.
    #[error("`{FILE}` is being changed")]
    Busy(#[source] file_lock::LockError),
    /// The file cannot be written.
    #[error("cannot write `{FILE}`")]
    Write(#[source] io::Error),
}

impl LockError {
    /// Stable code of the error.
    pub fn code(&self) -> &'static str {
        "PluginLock"
    }

    /// What can be done about it.
    pub fn hint(&self) -> Option<String> {
        Some(match self {
            Self::Unsealed | Self::Damaged(_) => {
                "find out who wrote it; then delete it and approve each plugin again".into()
            }
            Self::Busy(_) => "try again when the other command has ended".into(),
            _ => return None,
        })
    }
}

/// The approvals of one state directory.
#[derive(Debug, Clone)]
pub struct LockFile {
    state_dir: PathBuf,
    seal: Seal,
}

impl LockFile {
    /// Of a state directory, which must exist.
    ///
    /// # Errors
    ///
    /// Fails when the host's key cannot be read or made.
    pub fn open(state_dir: &Path) -> io::Result<Self> {
        Ok(Self {
            state_dir: state_dir.to_owned(),
            seal: Seal::open(state_dir)?,
        })
    }

    /// Reads the approvals; without a file there are none.
    ///
    /// # Errors
    ///
    /// Fails when the file cannot be read, or was not written by this host.
    pub fn read(&self) -> Result<Lock, LockError> {
        let mut bytes = Vec::new();
        match open_plain(&self.state_dir.join(FILE)) {
            Ok(file) => file.take(BYTES_MAX).read_to_end(&mut bytes),
            Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(Lock::default()),
            Err(error) => Err(error),
        }
        .map_err(LockError::Read)?;
        let text = self.unsealed(&bytes).ok_or(LockError::Unsealed)?;
        Lock::parse(text).map_err(LockError::Damaged)
    }

    /// Changes the approvals; nobody else does meanwhile.
    ///
    /// # Errors
    ///
    /// As for [`Self::read`], and when the file cannot be written.
    pub fn change<T>(&self, change: impl FnOnce(&mut Lock) -> T) -> Result<T, LockError> {
        let dir = warren_disk::open_root(&self.state_dir).map_err(LockError::Write)?;
        let _guard =
            file_lock::Lock::exclusive(&dir, GUARD, GUARD_WAIT).map_err(LockError::Busy)?;
        let mut lock = self.read()?;
        let said = change(&mut lock);
        let text = lock.to_toml().map_err(LockError::Damaged)?;
        let mac = hex(&self.seal.mac(PURPOSE, FILE, text.as_bytes()));
        let sealed = format!("{text}{SEAL_LINE}{mac}\n");
        atomic::write(&dir, FILE, sealed.as_bytes(), Durable::Yes).map_err(LockError::Write)?;
        Ok(said)
    }

    /// What stands before a last line that proves it.
    fn unsealed<'a>(&self, bytes: &'a [u8]) -> Option<&'a [u8]> {
        let line = SEAL_LINE.as_bytes();
        let body = bytes.strip_suffix(b"\n")?;
        let at = body.windows(line.len()).rposition(|part| part == line)?;
        let (text, last) = body.split_at(at);
        let mac = from_hex(last.strip_prefix(line)?)?;
        self.seal.verify(PURPOSE, FILE, text, &mac).then_some(text)
    }
}

#[cfg(test)]
mod tests {
    use std::fs;
    use std::os::unix::fs::PermissionsExt;

    use super::*;

    fn revoke(lock: &mut Lock, handler: &str) {
        lock.revoke(&handler.parse().unwrap(), "me", jiff::Timestamp::UNIX_EPOCH);
    }

    #[test]
    fn what_the_host_wrote_is_read_and_what_it_did_not_is_refused() {
        let dir = tempfile::tempdir().unwrap();
        let file = LockFile::open(dir.path()).unwrap();
        assert_eq!(file.read().unwrap(), Lock::default());
        file.change(|lock| revoke(lock, "git")).unwrap();
        file.change(|lock| revoke(lock, "temp")).unwrap();
        assert_eq!(file.read().unwrap().revoked.len(), 2);
        let path = dir.path().join(FILE);
        let mode = fs::metadata(&path).unwrap().permissions().mode();
        assert_eq!(mode & 0o777, 0o600);

        let written = fs::read_to_string(&path).unwrap();
        let last = written.lines().last().unwrap().to_owned();
        for tampered in [
            written.replace("revoked.temp", "revoked.tump"),
            written.replace(&last, ""),
            written.replace(&last, &format!("{last}0")),
            written.replace(&last, &format!("x = 1\n{last}")),
            format!("{written}# more\n"),
            String::new(),
        ] {
            assert_ne!(tampered, written);
            fs::write(&path, &tampered).unwrap();
            let error = file.read().unwrap_err();
            assert!(
                matches!(error, LockError::Unsealed),
                "{error:?}: {tampered}"
            );
            assert!(
                file.change(|lock| revoke(lock, "git")).is_err(),
                "nor is it written over"
            );
            assert_eq!(fs::read_to_string(&path).unwrap(), tampered);
        }
        // Another host's lock is not ours.
        let other = tempfile::tempdir().unwrap();
        let theirs = LockFile::open(other.path()).unwrap();
        theirs.change(|lock| revoke(lock, "git")).unwrap();
        fs::copy(other.path().join(FILE), &path).unwrap();
        assert!(matches!(file.read(), Err(LockError::Unsealed)));
        // A link is not followed.
        fs::remove_file(&path).unwrap();
        std::os::unix::fs::symlink(other.path().join(FILE), &path).unwrap();
        assert!(matches!(file.read(), Err(LockError::Read(_))));
    }
}
