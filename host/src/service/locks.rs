//! One lock a Project across processes; smaller ones for its names and its RootDirs.

use std::sync::Arc;
use std::time::Duration;

use sha2::{Digest, Sha256};
use warren_disk::Dir;
use warren_disk::lock::Lock;
use warren_model::DirName;

use crate::error::Error;
use crate::store::ProjectKey;

/// How long an operation waits for another one.
const WAIT: Duration = Duration::from_secs(60);

/// A Project's lock, shared with all work that is done under it: when an operation is given up in
/// the middle, what it has running in the background keeps others out until it has ended.
pub(super) type Held = Arc<Lock>;

/// The locks of one state directory.
#[derive(Debug, Clone)]
pub(super) struct Locks {
    dir: Arc<Dir>,
}

impl Locks {
    pub(super) fn new(dir: Dir) -> Self {
        Self { dir: dir.into() }
    }

    /// For operations that leave the Workspace as a whole as it is.
    pub(super) async fn shared(&self, key: &ProjectKey) -> Result<Held, Error> {
        let name = format!("{}.lock", stem(key));
        // Mostly nobody waits: a try costs no change of thread.
        if let Ok(Some(lock)) = Lock::try_shared(&self.dir, &name) {
            return Ok(lock.into());
        }
        let lock = self.wait(key.to_string(), move |dir| Lock::shared(dir, &name, WAIT));
        Ok(lock.await?.into())
    }

    /// For operations on the Workspace as a whole.
    pub(super) async fn exclusive(&self, key: &ProjectKey) -> Result<Held, Error> {
        let name = format!("{}.lock", stem(key));
        let lock = self.wait(key.to_string(), move |dir| {
            Lock::exclusive(dir, &name, WAIT)
        });
        Ok(lock.await?.into())
    }

    /// The exclusive lock, if nobody is at work.
    pub(super) fn try_exclusive(&self, key: &ProjectKey) -> Result<Option<Held>, Error> {
        Lock::try_exclusive(&self.dir, &format!("{}.lock", stem(key)))
            .map(|lock| lock.map(Held::from))
            .map_err(|error| Error::WorkspaceBusy(key.to_string(), error))
    }

    /// While a name is chosen.
    pub(super) async fn names(&self, key: &ProjectKey) -> Result<Lock, Error> {
        let name = format!("{}.names", stem(key));
        self.wait(key.to_string(), move |dir| {
            Lock::exclusive(dir, &name, WAIT)
        })
        .await
    }

    /// While a creator's temp RootDir is looked for or made.
    pub(super) async fn temp(&self, key: &ProjectKey) -> Result<Lock, Error> {
        let name = format!("{}.temp", stem(key));
        self.wait(key.to_string(), move |dir| {
            Lock::exclusive(dir, &name, WAIT)
        })
        .await
    }

    /// While one RootDir is acted on or disposed of.
    pub(super) async fn root(&self, key: &ProjectKey, dir_name: &DirName) -> Result<Lock, Error> {
        let name = root_name(key, dir_name);
        self.wait(dir_name.to_string(), move |dir| {
            Lock::exclusive(dir, &name, WAIT)
        })
        .await
    }

    /// Ends the lock of a RootDir that is gone: nobody else would take its file away.
    pub(super) fn retire_root(&self, lock: Lock, key: &ProjectKey, dir_name: &DirName) {
        if let Err(error) = lock.retire(&self.dir, &root_name(key, dir_name)) {
            tracing::warn!(%dir_name, error = crate::error::chain(&error), "the file of a lock stays behind");
        }
    }

    async fn wait(
        &self,
        what: String,
        lock: impl FnOnce(&Dir) -> Result<Lock, warren_disk::lock::LockError> + Send + 'static,
    ) -> Result<Lock, Error> {
        let dir = self.dir.clone();
        tokio::task::spawn_blocking(move || lock(&dir))
            .await
            .map_err(|error| Error::io("wait for a lock")(error.into()))?
            .map_err(|error| Error::WorkspaceBusy(what, error))
    }
}

/// Ids may be longer than a file name allows once escaped; a digest is not.
fn stem(key: &ProjectKey) -> String {
    hash(&[key.tenant.as_str(), key.project.as_str()])
}

fn root_name(key: &ProjectKey, dir_name: &DirName) -> String {
    format!("{}.{}", stem(key), &hash(&[dir_name.as_str()])[..16])
}

fn hash(parts: &[&str]) -> String {
    let mut digest = Sha256::new();
    for part in parts {
        digest.update((part.len() as u64).to_le_bytes());
        digest.update(part.as_bytes());
    }
    digest.finalize()[..16]
        .iter()
        .map(|byte| format!("{byte:02x}"))
        .collect()
}
