//! Compiled components on disk.
//!
//! An entry is native code that the host will run, so it is only loaded when it is proved to be
//! the host's own: each carries an HMAC under a key that only the host's user can read, checked on
//! the very bytes that are then loaded.

use std::fs::{self, DirBuilder, Permissions};
use std::hash::{Hash, Hasher};
use std::io::{self, Read};
use std::os::unix::fs::{DirBuilderExt, MetadataExt, PermissionsExt};
use std::path::{Path, PathBuf};
use std::time::Duration;

use sha2::{Digest, Sha256};
use warren_disk::atomic::{self, Durable};
use wasmtime::Engine;
use wasmtime::component::Component;

use super::inspect::hex;
use crate::seal::{MAC_BYTES, Seal, open_plain};

/// Changes when the layout of an entry does.
const FORMAT: &str = "warren compiled component 1";

/// What a remembered failure is.
const FAILURE: &str = "warren compile failure 1";

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
    seal: Seal,
}

impl Cache {
    /// Opens the cache in `<state_dir>/cache`; makes it when it is missing.
    ///
    /// # Errors
    ///
    /// Fails when the directory or the host's key cannot be made or read.
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
        let seal = Seal::open(state_dir)?;
        Ok(Self { dir, seal })
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
        let mut bytes = self.seal.mac(FORMAT, &name, &payload).to_vec();
        bytes.append(&mut payload);
        atomic::write(
            &warren_disk::open_root(&self.dir)?,
            &name,
            &bytes,
            Durable::No,
        )
    }

    /// Why a component did not compile within `limits` at an earlier start.
    pub(crate) fn failure(&self, engine: &Engine, digest: &str, limits: &str) -> Option<String> {
        let name = failure_name(engine, digest);
        let bytes = read(&self.dir.join(&name)).ok()?;
        let (mac, payload) = bytes.split_at_checked(MAC_BYTES)?;
        if !self.seal.verify(FAILURE, &name, payload, mac) {
            return None;
        }
        let (under, why) = std::str::from_utf8(payload).ok()?.split_once('\n')?;
        (under == limits).then(|| why.to_owned())
    }

    /// Remembers that a component did not compile within `limits`.
    ///
    /// # Errors
    ///
    /// Fails when it cannot be written.
    pub(crate) fn store_failure(
        &self,
        engine: &Engine,
        digest: &str,
        limits: &str,
        why: &str,
    ) -> io::Result<()> {
        let name = failure_name(engine, digest);
        let payload = format!("{limits}\n{why}");
        let mut bytes = self.seal.mac(FAILURE, &name, payload.as_bytes()).to_vec();
        bytes.extend(payload.as_bytes());
        let dir = warren_disk::open_root(&self.dir)?;
        atomic::write(&dir, &name, &bytes, Durable::No)
    }

    /// The payload of an entry whose MAC is valid for this name.
    fn verify<'a>(&self, name: &str, bytes: &'a [u8]) -> Option<&'a [u8]> {
        let (mac, payload) = bytes.split_at_checked(MAC_BYTES)?;
        // Bound to its name, so that an entry cannot be moved to another component.
        self.seal
            .verify(FORMAT, name, payload, mac)
            .then_some(payload)
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

fn failure_name(engine: &Engine, digest: &str) -> String {
    name(engine, digest).replace(".cwasm", ".failed")
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
    let file = open_plain(path)?;
    let length = file.metadata()?.len();
    if length > ENTRY_BYTES_MAX {
        return Err(io::ErrorKind::FileTooLarge.into());
    }
    file.take(ENTRY_BYTES_MAX).read_to_end(&mut bytes)?;
    Ok(bytes)
}
