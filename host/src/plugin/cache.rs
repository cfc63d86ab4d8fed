//! Compiled components on disk.
//!
//! An entry is native code that the host will run, so it is only loaded when it is proved to be
//! the host's own: each carries an HMAC under a key that only the host's user can read, checked on
//! the very bytes that are then loaded.

use std::fs::{self, DirBuilder, File, Permissions};
use std::hash::{Hash, Hasher};
use std::io::{self, Read};
use std::os::unix::fs::{DirBuilderExt, MetadataExt, OpenOptionsExt, PermissionsExt};
use std::path::{Path, PathBuf};
use std::time::Duration;

use hmac::{Hmac, KeyInit, Mac};
use sha2::{Digest, Sha256};
use warren_disk::Dir;
use warren_disk::atomic::{self, Durable};
use wasmtime::Engine;
use wasmtime::component::Component;

use super::inspect::hex;

/// Changes when the layout of an entry does.
const FORMAT: &str = "warren compiled component 1";

const KEY: &str = "cache.key";
const KEY_BYTES: usize = 32;
const MAC_BYTES: usize = 32;

/// Most bytes of an entry; native code is a few times the size of its component.
const ENTRY_BYTES_MAX: u64 = 1024 * 1024 * 1024;

/// Nobody writes an entry for as long as this: what is older was left by a process that died.
const LEFTOVER_AGE: Duration = Duration::from_secs(3600);

/// What is kept of a component.
pub(crate) struct Entry {
    /// The compiled component.
    pub(crate) component: Component,
    /// What `describe` returned, as JSON.
    pub(crate) description: Vec<u8>,
}

/// The cache in one directory.
pub(crate) struct Cache {
    dir: PathBuf,
    key: [u8; KEY_BYTES],
}

impl Cache {
    /// Opens the cache in `<state_dir>/cache`; makes it and its key when they are missing.
    ///
    /// # Errors
    ///
    /// Fails when the directory or the key cannot be made or read.
    pub(crate) fn open(state_dir: &Path) -> io::Result<Self> {
        let dir = state_dir.join("cache");
        DirBuilder::new().recursive(true).mode(0o700).create(&dir)?;
        let found = fs::symlink_metadata(&dir)?;
        if !found.is_dir() {
            return Err(io::Error::new(
                io::ErrorKind::NotADirectory,
                dir.display().to_string(),
            ));
        }
        if found.mode() & 0o077 != 0 {
            fs::set_permissions(&dir, Permissions::from_mode(0o700))?;
        }
        let state = warren_disk::open_root(state_dir)?;
        for dir in [&state, &warren_disk::open_root(&dir)?] {
            atomic::sweep(dir, LEFTOVER_AGE)?;
        }
        let key = key(&state, state_dir)?;
        Ok(Self { dir, key })
    }

    /// Loads an entry; none when there is none that can be trusted.
    pub(crate) fn load(&self, engine: &Engine, digest: &str) -> Option<Entry> {
        let name = name(engine, digest);
        let bytes = match read(&self.dir.join(&name)) {
            Ok(bytes) => bytes,
            Err(error) if error.kind() == io::ErrorKind::NotFound => return None,
            Err(error) => {
                tracing::warn!(entry = name, %error, "cannot read a compiled component; compiling it again");
                return None;
            }
        };
        let Some(payload) = self.verify(&name, &bytes) else {
            tracing::warn!(
                entry = name,
                "a compiled component is not the host's own; compiling it again"
            );
            return None;
        };
        let (description, code) = split(payload)?;
        // SAFETY: these very bytes were made by `store` from what this engine's compiler returned:
        // their MAC is valid under a key that only the host's user can read.
        #[expect(
            unsafe_code,
            reason = "loads native code that the host itself has compiled"
        )]
        let component = unsafe { Component::deserialize(engine, code) };
        match component {
            Ok(component) => Some(Entry {
                component,
                description: description.to_vec(),
            }),
            Err(error) => {
                tracing::warn!(entry = name, %error, "cannot load a compiled component; compiling it again");
                None
            }
        }
    }

    /// Keeps a component; an entry appears whole or not at all.
    ///
    /// # Errors
    ///
    /// Fails when it cannot be serialised or written. The component can be used all the same.
    pub(crate) fn store(&self, engine: &Engine, digest: &str, entry: &Entry) -> io::Result<()> {
        let name = name(engine, digest);
        let code = entry.component.serialize().map_err(io::Error::other)?;
        let length = u32::try_from(entry.description.len()).map_err(io::Error::other)?;
        let mut payload = length.to_le_bytes().to_vec();
        payload.extend(&entry.description);
        payload.extend(code);
        let mut bytes = self.mac(&name, &payload).finalize().into_bytes().to_vec();
        bytes.append(&mut payload);
        atomic::write(
            &warren_disk::open_root(&self.dir)?,
            &name,
            &bytes,
            Durable::No,
        )
    }

    /// The payload of an entry whose MAC is valid for this name.
    fn verify<'a>(&self, name: &str, bytes: &'a [u8]) -> Option<&'a [u8]> {
        let (mac, payload) = bytes.split_at_checked(MAC_BYTES)?;
        self.mac(name, payload).verify_slice(mac).ok()?;
        Some(payload)
    }

    /// Binds the payload to its name, so that an entry cannot be moved to another component.
    fn mac(&self, name: &str, payload: &[u8]) -> Hmac<Sha256> {
        let mut mac = Hmac::<Sha256>::new_from_slice(&self.key)
            .unwrap_or_else(|_| unreachable!("HMAC takes keys of any length"));
        for part in [FORMAT.as_bytes(), name.as_bytes(), payload] {
            mac.update(&(part.len() as u64).to_le_bytes());
            mac.update(part);
        }
        mac
    }
}

/// File name of an entry: everything that decides whether the code fits.
fn name(engine: &Engine, digest: &str) -> String {
    let mut hasher = Sha256Hasher(Sha256::new());
    FORMAT.hash(&mut hasher);
    env!("CARGO_PKG_VERSION").hash(&mut hasher);
    // Version, target, CPU features and every setting of the compiler.
    engine.precompile_compatibility_hash().hash(&mut hasher);
    let engine = hex(&hasher.0.finalize()[..16]);
    format!("{digest}-{engine}.cwasm")
}

/// Payload: length of the description, the description, code.
fn split(payload: &[u8]) -> Option<(&[u8], &[u8])> {
    let (length, rest) = payload.split_first_chunk::<4>()?;
    rest.split_at_checked(u32::from_le_bytes(*length) as usize)
}

struct Sha256Hasher(Sha256);

impl Hasher for Sha256Hasher {
    fn write(&mut self, bytes: &[u8]) {
        self.0.update(bytes);
    }

    fn finish(&self) -> u64 {
        let digest = self.0.clone().finalize();
        digest
            .first_chunk()
            .map_or(0, |bytes| u64::from_le_bytes(*bytes))
    }
}

fn read(path: &Path) -> io::Result<Vec<u8>> {
    let mut bytes = Vec::new();
    let file = open(path)?;
    let length = file.metadata()?.len();
    if length > ENTRY_BYTES_MAX {
        return Err(io::ErrorKind::FileTooLarge.into());
    }
    file.take(ENTRY_BYTES_MAX).read_to_end(&mut bytes)?;
    Ok(bytes)
}

/// Opens a regular file without following a link or waiting for a FIFO.
fn open(path: &Path) -> io::Result<File> {
    let flags = libc_flags();
    let file = File::options().read(true).custom_flags(flags).open(path)?;
    if file.metadata()?.is_file() {
        Ok(file)
    } else {
        Err(io::Error::other("it is not a regular file"))
    }
}

fn libc_flags() -> i32 {
    use rustix::fs::OFlags;
    (OFlags::NOFOLLOW | OFlags::NONBLOCK).bits().cast_signed()
}

/// Reads the key, or makes one. A key that others could read or write is replaced: the entries
/// made with it are compiled again.
fn key(state: &Dir, state_dir: &Path) -> io::Result<[u8; KEY_BYTES]> {
    let path = state_dir.join(KEY);
    match read_key(&path)? {
        Some(key) => return Ok(key),
        None => match fs::remove_file(&path) {
            Err(error) if error.kind() != io::ErrorKind::NotFound => return Err(error),
            _ => {}
        },
    }
    let mut key = [0; KEY_BYTES];
    getrandom::fill(&mut key).map_err(io::Error::other)?;
    match atomic::create_new(state, KEY, &key, Durable::Yes) {
        Ok(()) => Ok(key),
        // Another process was first: its key counts.
        Err(error) if error.kind() == io::ErrorKind::AlreadyExists => {
            read_key(&path)?.ok_or_else(|| io::Error::other("the cache key is unusable"))
        }
        Err(error) => Err(error),
    }
}

fn read_key(path: &Path) -> io::Result<Option<[u8; KEY_BYTES]>> {
    let mut file = match open(path) {
        Ok(file) => file,
        Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(None),
        Err(error) => return Err(error),
    };
    let found = file.metadata()?;
    let own = found.uid() == rustix::process::geteuid().as_raw();
    if !own || found.mode() & 0o077 != 0 || found.len() != KEY_BYTES as u64 {
        tracing::warn!("the key of the component cache could be known to others; replacing it");
        return Ok(None);
    }
    let mut key = [0; KEY_BYTES];
    file.read_exact(&mut key)?;
    Ok(Some(key))
}
