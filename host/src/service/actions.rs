//! Actions that a handler offers beside the lifecycle; `rebuildVenv` is one of `python`.

use serde_json::{Map, Value};
use warren_disk::atomic::Durable;
use warren_model::{Descriptor, DirName, Metadata};

use super::{Service, roots};
use crate::error::Error;
use crate::store::ProjectKey;

impl Service {
    /// Runs an action of the RootDir's handler and keeps the metadata that it returns.
    pub async fn perform(
        &self,
        key: &ProjectKey,
        dir_name: &DirName,
        action: &str,
        arguments: &Metadata,
    ) -> Result<Descriptor, Error> {
        let project = self.inner.locks.shared(key).await?;
        let folder = self.running(key).await?.under(&project);
        let lock = self.inner.locks.root(key, dir_name).await?;
        let descriptor = match roots::ready(&folder, dir_name) {
            Err(error @ Error::RootDirNotFound(_)) => {
                self.inner.locks.retire_root(lock, key, dir_name);
                return Err(error);
            }
            other => other?,
        };
        self.check_quota()?;
        let metadata = self.act(&folder, &descriptor, action, arguments).await?;
        let next = Descriptor {
            metadata,
            ..descriptor
        };
        folder.put(&next, Durable::Yes)?;
        Ok(next)
    }

    /// Makes the Python environment of a RootDir anew, with another interpreter when one is given.
    pub async fn rebuild_venv(
        &self,
        key: &ProjectKey,
        dir_name: &DirName,
        python: Option<&str>,
    ) -> Result<Descriptor, Error> {
        let mut arguments = Map::new();
        if let Some(python) = python {
            arguments.insert("pythonPath".into(), Value::from(python));
        }
        let arguments = Metadata::new(arguments)?;
        self.perform(key, dir_name, "rebuild-venv", &arguments)
            .await
    }
}
