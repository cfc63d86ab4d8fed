//! Brings a Project that a crash left half-way to a state that the other operations know.
//!
//! For callers that hold the Project's lock exclusively: nobody else is at work, so whatever is
//! unfinished was left behind.

use warren_disk::atomic::Durable;
use warren_model::{
    Descriptor, RootState, SuspendState, SuspendStatus, WorkspaceFile, WorkspaceRecord,
    WorkspaceStatus,
};

use super::folder::Folder;
use super::locks::Held;
use super::{Service, fresh_record};
use crate::error::Error;
use crate::store::ProjectKey;

/// A Project at rest.
pub(super) struct Settled {
    /// Its record; none: nobody has made a Workspace.
    pub(super) record: Option<WorkspaceRecord>,
    /// Its folder.
    pub(super) folder: Option<Folder>,
}

impl Service {
    /// See the module.
    pub(super) async fn settle(&self, key: &ProjectKey, lock: &Held) -> Result<Settled, Error> {
        let record = self.inner.store.workspace(key).await?;
        if let Some(record) = &record
            && let Some(error) = self.elsewhere(record)
        {
            self.clear_garbage(key, record, lock).await?;
            return Err(error);
        }
        let Some(folder) = self.folder(key)?.map(|folder| folder.under(lock)) else {
            let record = match record {
                Some(record) => Some(self.settle_record(key, record).await?),
                None => None,
            };
            return Ok(Settled {
                record,
                folder: None,
            });
        };
        let record = self.settle_seals(&folder, record).await?;
        let file = self.settle_file(&folder, record.as_ref())?;
        let (record, file) = match (record, file) {
            (Some(record), Some(file)) => (record, file),
            (Some(record), None) => return self.settle_bare(key, record, folder).await,
            (None, Some(file)) => (self.adopt(key, &file).await?, file),
            (None, None) => return self.settle_unknown(key, folder).await,
        };
        if is_garbage(&record, &file) {
            let folder = self.finish_delete(key, &record, folder).await?;
            return Ok(Settled {
                record: Some(record),
                folder,
            });
        }
        if matches!(
            record.status,
            WorkspaceStatus::Init | WorkspaceStatus::Disposed
        ) && file.status == WorkspaceStatus::Running
        {
            let listing = folder.list()?;
            let mut names: Vec<String> = listing
                .descriptors
                .iter()
                .map(|d| d.dir_name.to_string())
                .collect();
            names.extend(listing.orphans);
            if !names.is_empty() {
                // The record says that nothing is on disk, the folder that it is in use: neither
                // is ours to throw away.
                return Err(Error::OrphanedContent(names));
            }
        }
        let record = self.settle_record(key, record).await?;
        if record.status == WorkspaceStatus::Running && file.status != WorkspaceStatus::Running {
            folder.put_workspace_file(WorkspaceStatus::Running, None, record.created_at)?;
        }
        self.settle_roots(&folder).await?;
        Ok(Settled {
            record: Some(record),
            folder: Some(folder),
        })
    }

    /// Of a Workspace that the store does not know, or that a host without seals made, the files
    /// are taken as they are: once.
    async fn settle_seals(
        &self,
        folder: &Folder,
        record: Option<WorkspaceRecord>,
    ) -> Result<Option<WorkspaceRecord>, Error> {
        if record.as_ref().is_some_and(|record| record.sealed) {
            return Ok(record);
        }
        let resealed = folder.reseal()?;
        if !resealed.is_empty() {
            tracing::warn!(project = %folder.key(), ?resealed, "took over files that this host had not written");
        }
        match record {
            Some(record) => Ok(Some(self.flip(&record, |next| next.sealed = true).await?)),
            None => Ok(None),
        }
    }

    /// Accepts the Descriptors of a Workspace as they stand, whoever wrote them; the names of the
    /// files that this host had not written. For an operator who has looked at them.
    ///
    /// # Errors
    ///
    /// When the Workspace is not here, or a file cannot be written.
    pub async fn reseal(&self, key: &ProjectKey) -> Result<Vec<String>, Error> {
        let lock = self.inner.locks.exclusive(key).await?;
        let folder = self.folder(key)?.map(|folder| folder.under(&lock));
        let folder = folder.ok_or_else(|| Error::WorkspaceNotFound(key.to_string()))?;
        let resealed = folder.reseal()?;
        tracing::warn!(project = %key, ?resealed, "an operator took over files that this host had not written");
        Ok(resealed)
    }

    /// Of a Workspace that is in another workspace root, only what a committed suspend left here
    /// may go.
    async fn clear_garbage(
        &self,
        key: &ProjectKey,
        record: &WorkspaceRecord,
        lock: &Held,
    ) -> Result<(), Error> {
        if let Some(folder) = self.folder(key)?.map(|folder| folder.under(lock))
            && let Some(file) = folder.workspace_file()?
            && is_garbage(record, &file)
        {
            self.finish_delete(key, record, folder).await?;
        }
        Ok(())
    }

    /// `workspace.json`; a damaged one is set aside when the store knows the Workspace.
    fn settle_file(
        &self,
        folder: &Folder,
        record: Option<&WorkspaceRecord>,
    ) -> Result<Option<WorkspaceFile>, Error> {
        match (folder.workspace_file(), record) {
            (Err(Error::Damaged { file, reason }), Some(record)) => {
                let aside = folder.quarantine_workspace_file()?;
                tracing::warn!(%file, %reason, %aside, "a damaged file is set aside and written anew");
                if record.status != WorkspaceStatus::Running {
                    return Ok(None);
                }
                folder.put_workspace_file(WorkspaceStatus::Running, None, record.created_at)?;
                folder.workspace_file()
            }
            (other, _) => other,
        }
    }

    /// A folder without `workspace.json` whose Workspace the store knows: `init` did not end, or
    /// the file was lost.
    async fn settle_bare(
        &self,
        key: &ProjectKey,
        record: WorkspaceRecord,
        folder: Folder,
    ) -> Result<Settled, Error> {
        let record = self.settle_record(key, record).await?;
        if record.status == WorkspaceStatus::Running {
            folder.put_workspace_file(WorkspaceStatus::Running, None, record.created_at)?;
            self.settle_roots(&folder).await?;
        }
        Ok(Settled {
            record: Some(record),
            folder: Some(folder),
        })
    }

    /// A folder that neither the store nor a `workspace.json` explains.
    async fn settle_unknown(&self, key: &ProjectKey, folder: Folder) -> Result<Settled, Error> {
        let listing = folder.list()?;
        if !listing.orphans.is_empty() {
            return Err(Error::OrphanedContent(listing.orphans));
        }
        if listing.descriptors.is_empty() && listing.damaged.is_empty() {
            return Ok(Settled {
                record: None,
                folder: Some(folder),
            });
        }
        let mut record = fresh_record(key, WorkspaceStatus::Running);
        self.stamp(&mut record);
        self.inner.store.put_workspace(None, &record).await?;
        self.settle_bare(key, record, folder).await
    }

    /// Takes over a Workspace that the store has forgotten: the folder is the truth.
    async fn adopt(
        &self,
        key: &ProjectKey,
        file: &WorkspaceFile,
    ) -> Result<WorkspaceRecord, Error> {
        let mut record = fresh_record(key, WorkspaceStatus::Running);
        record.created_at = file.created_at;
        self.stamp(&mut record);
        self.inner.store.put_workspace(None, &record).await?;
        tracing::warn!(tenant = %key.tenant, project = %key.project, "took over a workspace that the store did not know");
        Ok(record)
    }

    /// A suspend that was not committed did not happen.
    async fn settle_record(
        &self,
        key: &ProjectKey,
        record: WorkspaceRecord,
    ) -> Result<WorkspaceRecord, Error> {
        if record.status != WorkspaceStatus::Suspending {
            return Ok(record);
        }
        let kept = self.inner.store.snapshots(key).await?;
        let suspend = kept.first().map(|snapshot| SuspendStatus {
            generation: snapshot.generation,
            state: SuspendState::Partial,
        });
        let pending = record.suspend.map(|suspend| suspend.generation);
        Ok(self
            .flip(&record, |next| {
                next.status = WorkspaceStatus::Running;
                next.rolled_back.extend(pending);
                next.suspend = suspend;
            })
            .await?)
    }

    /// Rolls back what was being made, ends what was being deleted. One that resists stays as it
    /// is and is shown so.
    async fn settle_roots(&self, folder: &Folder) -> Result<(), Error> {
        folder.sweep()?;
        for mut descriptor in folder.list()?.descriptors {
            match descriptor.state {
                RootState::Ready | RootState::Recovering => {}
                RootState::Suspending => {
                    descriptor.state = RootState::Ready;
                    folder.put(&descriptor, Durable::Yes)?;
                }
                RootState::Initializing | RootState::Deleting => {
                    delete_or_warn(folder, &descriptor).await?;
                }
            }
        }
        Ok(())
    }

    /// Ends the delete of a folder whose Workspace is suspended or disposed of.
    pub(super) async fn finish_delete(
        &self,
        key: &ProjectKey,
        record: &WorkspaceRecord,
        folder: Folder,
    ) -> Result<Option<Folder>, Error> {
        // Whatever a committed suspend found was saved, and nothing can be made in a folder whose
        // `workspace.json` says so: every RootDir in it goes.
        let listing = folder.list()?;
        for descriptor in &listing.descriptors {
            delete_or_warn(&folder, descriptor).await?;
        }
        if record.status == WorkspaceStatus::Disposed {
            let folder = folder.clone();
            super::blocking(move || folder.delete_strangers(&listing)).await??;
        }
        let left = folder.remove()?;
        if left.is_empty() {
            if record.status == WorkspaceStatus::Disposed {
                self.forget_user(key).await;
            }
            return Ok(None);
        }
        tracing::warn!(tenant = %key.tenant, project = %key.project, ?left, "the folder of a workspace that is gone still holds content");
        Ok(Some(folder))
    }

    /// Another Project may have its user now. One that is not given up costs a number.
    async fn forget_user(&self, key: &ProjectKey) {
        let services = self.inner.runtime.services().clone();
        let (tenant, project) = (key.tenant.to_string(), key.project.to_string());
        let forget = move || services.forget_project(&tenant, &project);
        if let Ok(Err(error)) = super::blocking(forget).await {
            tracing::warn!(
                error = crate::error::chain(&error),
                "a user is not given up"
            );
        }
    }
}

/// Whether the folder was left by a suspend that was committed, or by a dispose.
fn is_garbage(record: &WorkspaceRecord, file: &WorkspaceFile) -> bool {
    match file.status {
        WorkspaceStatus::Suspending => file
            .generation
            .is_some_and(|g| g <= record.committed && !record.rolled_back.contains(&g)),
        WorkspaceStatus::Disposed => record.status == WorkspaceStatus::Disposed,
        _ => false,
    }
}

async fn delete_or_warn(folder: &Folder, descriptor: &Descriptor) -> Result<(), Error> {
    let (place, dir_name) = (folder.clone(), descriptor.dir_name.clone());
    let deleted = super::blocking(move || place.delete(&dir_name)).await?;
    if let Err(error) = deleted {
        tracing::warn!(
            dir_name = %descriptor.dir_name,
            error = crate::error::chain(&error),
            "cannot delete a RootDir that was left behind"
        );
        folder.mark_deleting(descriptor);
    }
    Ok(())
}
