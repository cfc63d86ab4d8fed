//! `listRootDirs`, `getRootDir`.

use warren_model::{Descriptor, DirName, RootState};

use super::folder::Folder;
use super::{Damaged, RootDirs, Service};
use crate::error::Error;
use crate::store::ProjectKey;

impl Service {
    /// The RootDirs of a running Workspace, by dirName, from behind `after` on; at most `limit`.
    ///
    /// Shows those that are not `ready` too: `state` says so.
    pub async fn list_root_dirs(
        &self,
        key: &ProjectKey,
        after: Option<&str>,
        limit: usize,
    ) -> Result<RootDirs, Error> {
        let listing = self.running(key).await?.list()?;
        let mut items: Vec<Descriptor> = listing
            .descriptors
            .into_iter()
            .filter(|d| after.is_none_or(|after| d.dir_name.as_str() > after))
            .collect();
        items.sort_by(|a, b| a.dir_name.cmp(&b.dir_name));
        let more = items.len() > limit;
        items.truncate(limit);
        let mut missing_handlers: Vec<_> = items
            .iter()
            .map(|d| d.handler_type.clone())
            .filter(|handler_type| self.plugin(handler_type).is_err())
            .collect();
        missing_handlers.sort();
        missing_handlers.dedup();
        Ok(RootDirs {
            next: more
                .then(|| items.last().map(|d| d.dir_name.to_string()))
                .flatten(),
            items,
            damaged: listing
                .damaged
                .into_iter()
                .map(|damage| Damaged {
                    file: damage.file,
                    reason: damage.reason,
                })
                .collect(),
            orphans: listing.orphans,
            missing_handlers,
        })
    }

    /// One RootDir, in whatever state.
    pub async fn get_root_dir(
        &self,
        key: &ProjectKey,
        dir_name: &DirName,
    ) -> Result<Descriptor, Error> {
        self.running(key).await?.descriptor(dir_name)
    }

    /// Path of a RootDir on the host.
    pub async fn root_dir_path(
        &self,
        key: &ProjectKey,
        dir_name: &DirName,
    ) -> Result<std::path::PathBuf, Error> {
        let folder = self.running(key).await?;
        ready(&folder, dir_name)?;
        Ok(folder.path().join(dir_name.as_str()))
    }
}

/// The Descriptor of a RootDir that is in use.
pub(super) fn ready(folder: &Folder, dir_name: &DirName) -> Result<Descriptor, Error> {
    let descriptor = folder.descriptor(dir_name)?;
    let state = match descriptor.state {
        RootState::Ready | RootState::Suspending => return Ok(descriptor),
        RootState::Initializing => "being made, or was when its host stopped",
        RootState::Recovering => "waiting to be recovered; its snapshot is kept",
        RootState::Deleting => "being deleted",
    };
    Err(Error::RootDirNotReady {
        dir_name: dir_name.clone(),
        state,
    })
}
