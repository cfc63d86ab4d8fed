//! `recoverAll`: each RootDir on its own; one that fails does not cost the others.

use futures_util::{StreamExt, stream};
use warren_disk::atomic::Durable;
use warren_model::{
    Descriptor, DirName, RootState, Snapshot, SuspendState, SuspendStatus, WorkspaceRecord,
    WorkspaceStatus,
};

use super::folder::Folder;
use super::handlers::handler_ref;
use super::locks::Held;
use super::{InitReport, PARALLEL, RootFailure, Service};
use crate::error::{Error, Step, chain};
use crate::store::{Change, ProjectKey};

impl Service {
    /// Brings back what a committed suspend put away, here or on another Pod. Without Snapshots
    /// there is nothing to do, and the report says so.
    pub async fn recover_all(&self, key: &ProjectKey) -> Result<InitReport, Error> {
        let lock = self.inner.locks.exclusive(key).await?;
        let record = self.settle(key, &lock).await?.record;
        let record = record.ok_or_else(|| Error::WorkspaceNotFound(key.to_string()))?;
        if record.status == WorkspaceStatus::Disposed {
            return Err(Error::WorkspaceDisposed(key.to_string()));
        }
        if record.suspend.is_none() && record.status != WorkspaceStatus::Recovering {
            return Ok(InitReport {
                workspace: self.view(record).await?,
                recovered: Vec::new(),
                failed: Vec::new(),
            });
        }
        self.recover_alone(key, record, &lock).await
    }

    pub(super) async fn recover_alone(
        &self,
        key: &ProjectKey,
        record: WorkspaceRecord,
        lock: &Held,
    ) -> Result<InitReport, Error> {
        let record = if record.status == WorkspaceStatus::Recovering {
            record
        } else {
            self.flip(&record, |next| next.status = WorkspaceStatus::Recovering)
                .await?
        };
        let folder = self.folder_or_create(key)?.under(lock);
        folder.put_workspace_file(WorkspaceStatus::Recovering, None, record.created_at)?;

        let snapshots = self.inner.store.snapshots(key).await?;
        let results: Vec<(Snapshot, Result<Descriptor, Error>)> = stream::iter(snapshots)
            .map(|snapshot| {
                let folder = &folder;
                async move {
                    let result = self.bring_back(folder, &snapshot).await;
                    (snapshot, result)
                }
            })
            .buffered(PARALLEL)
            .collect()
            .await;
        self.finish_recover(key, &record, &folder, results).await
    }

    /// One transaction takes the Snapshots of what is back and sets the Workspace running.
    async fn finish_recover(
        &self,
        key: &ProjectKey,
        record: &WorkspaceRecord,
        folder: &Folder,
        results: Vec<(Snapshot, Result<Descriptor, Error>)>,
    ) -> Result<InitReport, Error> {
        let (mut recovered, mut failed) = (Vec::new(), Vec::new());
        let mut change = Change::default();
        let mut generation = None;
        for (mut snapshot, result) in results {
            match result {
                Ok(descriptor) => {
                    change.remove.push((snapshot.dir_name, snapshot.generation));
                    recovered.push(descriptor);
                }
                Err(error) => {
                    tracing::warn!(project = %key, dir_name = %snapshot.dir_name, error = chain(&error), "cannot recover a RootDir; its snapshot is kept");
                    failed.push(RootFailure::new(&snapshot.dir_name, &error));
                    generation = Some(snapshot.generation);
                    snapshot.recover_error = Some(chain(&error));
                    change.insert.push(snapshot);
                }
            }
        }
        let mut next = record.clone();
        next.status = WorkspaceStatus::Running;
        self.stamp(&mut next);
        next.generation += 1;
        next.suspend = generation.map(|generation| SuspendStatus {
            generation,
            state: SuspendState::Partial,
        });
        self.inner.store.change(Some(record), &next, change).await?;
        folder.put_workspace_file(WorkspaceStatus::Running, None, record.created_at)?;
        tracing::info!(project = %key, recovered = recovered.len(), failed = failed.len(), "workspace recovered");
        Ok(InitReport {
            workspace: self.view(next).await?,
            recovered,
            failed,
        })
    }

    /// Recovers one RootDir. It has happened when the Descriptor says `ready` with the generation.
    async fn bring_back(&self, folder: &Folder, snapshot: &Snapshot) -> Result<Descriptor, Error> {
        let dir_name = &snapshot.dir_name;
        let mut placeholder = snapshot.descriptor.clone();
        placeholder.state = RootState::Recovering;
        match folder.descriptor(dir_name) {
            Ok(found) if is_back(&found, snapshot) && folder.has(dir_name)? => return Ok(found),
            Ok(found) if is_ours(&found, snapshot) => {
                hold_name(folder, &placeholder)?;
                delete_content(folder, dir_name).await?;
            }
            Ok(_) => {
                return Err(Error::RootDirNotReady {
                    dir_name: dir_name.clone(),
                    state: "in the way of a snapshot of the same name",
                });
            }
            Err(Error::RootDirNotFound(_)) if folder.has(dir_name)? => {
                // Not a half of ours: that has a Descriptor.
                return Err(Error::OrphanedContent(vec![dir_name.to_string()]));
            }
            Err(Error::RootDirNotFound(_)) => folder
                .claim(&placeholder)
                .map_err(Error::io(format!("write the Descriptor of `{dir_name}`")))?,
            Err(error) => return Err(error),
        }
        let result = self
            .refill(folder, placeholder.clone(), snapshot.generation)
            .await;
        if result.is_err() {
            // The placeholder stays: it keeps the name and shows that a Snapshot waits.
            hold_name(folder, &placeholder)?;
            delete_content(folder, dir_name).await?;
        }
        result
    }

    async fn refill(
        &self,
        folder: &Folder,
        placeholder: Descriptor,
        generation: u64,
    ) -> Result<Descriptor, Error> {
        let plugin = self.plugin(&placeholder.handler_type)?;
        let name = placeholder.dir_name.as_str();
        folder
            .dir()
            .create_dir(name)
            .map_err(Error::io(format!("make RootDir `{name}`")))?;
        let metadata = self.fill(folder, &placeholder, Step::Recover).await?;
        let ready = Descriptor {
            metadata,
            state: RootState::Ready,
            handler: Some(handler_ref(&plugin)),
            recovered_generation: Some(generation),
            ..placeholder
        };
        folder.put(&ready, Durable::Yes)?;
        Ok(ready)
    }
}

/// Sees to it that the Descriptor says `recovering` before content goes.
fn hold_name(folder: &Folder, placeholder: &Descriptor) -> Result<(), Error> {
    if folder.descriptor(&placeholder.dir_name)?.state == RootState::Recovering {
        return Ok(());
    }
    folder.put(placeholder, Durable::Yes)
}

async fn delete_content(folder: &Folder, dir_name: &DirName) -> Result<(), Error> {
    let (folder, name) = (folder.clone(), dir_name.clone());
    super::blocking(move || folder.delete_content(&name)).await?
}

/// Whether what stands there is only what a recover, or the delete before it, has left.
fn is_ours(found: &Descriptor, snapshot: &Snapshot) -> bool {
    matches!(found.state, RootState::Recovering | RootState::Deleting) || is_back(found, snapshot)
}

/// Whether a RootDir was recovered from this Snapshot before a crash.
fn is_back(found: &Descriptor, snapshot: &Snapshot) -> bool {
    found.state == RootState::Ready && found.recovered_generation == Some(snapshot.generation)
}
