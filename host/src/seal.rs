//! Proof that a file was written by this host: an HMAC under a key that only the host's user can
//! read. It binds the very bytes, and what they are; it does not tell a newer file from an older
//! one of ours.

use std::fs::{self, File};
use std::io::{self, Read};
use std::os::unix::fs::{MetadataExt, OpenOptionsExt};
use std::path::Path;

use hmac::{Hmac, KeyInit, Mac};
use rustix::fs::OFlags;
use sha2::Sha256;
use warren_disk::Dir;
use warren_disk::atomic::{self, Durable};

/// File of the key in the state directory.
const KEY: &str = "host.key";

const KEY_BYTES: usize = 32;

/// Bytes of a MAC.
pub(crate) const MAC_BYTES: usize = 32;

/// The key of one state directory.
#[derive(Clone)]
pub(crate) struct Seal([u8; KEY_BYTES]);

impl Seal {
    /// Reads the key of a state directory, or makes one. A key that others could read or write is
    /// replaced: nothing that was sealed with it counts any more.
    ///
    /// # Errors
    ///
    /// Fails when the key cannot be read or made.
    pub(crate) fn open(state_dir: &Path) -> io::Result<Self> {
        let path = state_dir.join(KEY);
        match read_key(&path)? {
            Some(key) => return Ok(Self(key)),
            None => match fs::remove_file(&path) {
                Err(error) if error.kind() != io::ErrorKind::NotFound => return Err(error),
                _ => {}
            },
        }
        let state: Dir = warren_disk::open_root(state_dir)?;
        let mut key = [0; KEY_BYTES];
        getrandom::fill(&mut key).map_err(io::Error::other)?;
        match atomic::create_new(&state, KEY, &key, Durable::Yes) {
            Ok(()) => Ok(Self(key)),
            // Another process was first: its key counts.
            Err(error) if error.kind() == io::ErrorKind::AlreadyExists => read_key(&path)?
                .map(Self)
                .ok_or_else(|| io::Error::other("the host's key is unusable")),
            Err(error) => Err(error),
        }
    }

    /// The MAC of some bytes. `purpose` says what they are, so that one kind never passes for
    /// another; `name` which one.
    pub(crate) fn mac(&self, purpose: &str, name: &str, bytes: &[u8]) -> [u8; MAC_BYTES] {
        self.hmac(purpose, name, bytes)
            .finalize()
            .into_bytes()
            .into()
    }

    /// Whether a MAC is the one of these bytes, in constant time.
    pub(crate) fn verify(&self, purpose: &str, name: &str, bytes: &[u8], mac: &[u8]) -> bool {
        self.hmac(purpose, name, bytes).verify_slice(mac).is_ok()
    }

    fn hmac(&self, purpose: &str, name: &str, bytes: &[u8]) -> Hmac<Sha256> {
        let mut mac = Hmac::<Sha256>::new_from_slice(&self.0)
            .unwrap_or_else(|_| unreachable!("HMAC takes keys of any length"));
        for part in [purpose.as_bytes(), name.as_bytes(), bytes] {
            mac.update(&(part.len() as u64).to_le_bytes());
            mac.update(part);
        }
        mac
    }
}

impl std::fmt::Debug for Seal {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str("Seal")
    }
}

/// Opens a regular file without following a link or waiting for a FIFO.
pub(crate) fn open_plain(path: &Path) -> io::Result<File> {
    let flags = (OFlags::NOFOLLOW | OFlags::NONBLOCK).bits().cast_signed();
    let file = File::options().read(true).custom_flags(flags).open(path)?;
    if file.metadata()?.is_file() {
        Ok(file)
    } else {
        Err(io::Error::other("it is not a regular file"))
    }
}

fn read_key(path: &Path) -> io::Result<Option<[u8; KEY_BYTES]>> {
    let mut file = match open_plain(path) {
        Ok(file) => file,
        Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(None),
        Err(error) => return Err(error),
    };
    let found = file.metadata()?;
    let own = found.uid() == rustix::process::geteuid().as_raw();
    if !own || found.mode() & 0o077 != 0 || found.len() != KEY_BYTES as u64 {
        tracing::warn!("the host's key could be known to others; replacing it");
        return Ok(None);
    }
    let mut key = [0; KEY_BYTES];
    file.read_exact(&mut key)?;
    Ok(Some(key))
}

#[cfg(test)]
mod tests {
    use std::os::unix::fs::PermissionsExt;

    use super::*;

    #[test]
    fn a_mac_holds_for_these_bytes_this_purpose_and_this_name_only() {
        let dir = tempfile::tempdir().unwrap();
        let seal = Seal::open(dir.path()).unwrap();
        let mac = seal.mac("a", "n", b"x");
        assert!(seal.verify("a", "n", b"x", &mac));
        for (purpose, name, bytes) in [("b", "n", "x"), ("a", "m", "x"), ("a", "n", "y")] {
            assert!(!seal.verify(purpose, name, bytes.as_bytes(), &mac));
        }
        assert!(
            !seal.verify("a", "nx", b"", &mac),
            "parts do not run together"
        );
        assert!(!seal.verify("a", "n", b"x", &mac[..31]));
        // The key lasts.
        assert!(Seal::open(dir.path()).unwrap().verify("a", "n", b"x", &mac));
    }

    #[test]
    fn a_key_that_others_could_know_is_replaced() {
        let dir = tempfile::tempdir().unwrap();
        let mac = Seal::open(dir.path()).unwrap().mac("a", "n", b"x");
        let path = dir.path().join(KEY);
        assert_eq!(fs::metadata(&path).unwrap().mode() & 0o777, 0o600);
        fs::set_permissions(&path, fs::Permissions::from_mode(0o640)).unwrap();
        assert!(!Seal::open(dir.path()).unwrap().verify("a", "n", b"x", &mac));
        fs::write(&path, "short").unwrap();
        Seal::open(dir.path()).unwrap();
        // A link in its place is not followed.
        fs::remove_file(&path).unwrap();
        std::os::unix::fs::symlink("/etc/passwd", &path).unwrap();
        assert!(Seal::open(dir.path()).is_err());
    }
}
