//! `init`, `get` and the listing of Workspaces.

use warren_model::{WorkspaceRecord, WorkspaceStatus};

use super::folder::Folder;
use super::locks::Held;
use super::settle::Settled;
use super::{InitReport, Service, WorkspaceView, fresh_record};
use crate::error::Error;
use crate::store::{Page, ProjectKey};

impl Service {
    /// Brings a Workspace up: makes it, recovers it, or finds it running. Repeating it is harmless.
    ///
    /// Finishes or rolls back what a crash left. A RootDir that cannot be recovered does not cost
    /// the others; its Snapshot is kept and the next init tries again.
    pub async fn init(&self, key: &ProjectKey) -> Result<InitReport, Error> {
        let Some(lock) = self.inner.locks.try_exclusive(key)? else {
            // Someone is at work, so there is nothing to clean up behind them; wait only for those
            // who change the Workspace as a whole.
            let lock = self.inner.locks.shared(key).await?;
            if self.running(key).await.is_ok() {
                return self.nothing_recovered(key).await;
            }
            drop(lock);
            let lock = self.inner.locks.exclusive(key).await?;
            return self.init_alone(key, &lock).await;
        };
        self.init_alone(key, &lock).await
    }

    async fn init_alone(&self, key: &ProjectKey, lock: &Held) -> Result<InitReport, Error> {
        let Settled { record, folder } = self.settle(key, lock).await?;
        let record = match record {
            None => {
                let record = fresh_record(key, WorkspaceStatus::Init);
                self.inner.store.put_workspace(None, &record).await?;
                record
            }
            Some(record) if record.status == WorkspaceStatus::Disposed => {
                self.flip(&record, |next| {
                    next.status = WorkspaceStatus::Init;
                    next.created_at = jiff::Timestamp::now();
                })
                .await?
            }
            Some(record) => record,
        };
        if record.suspend.is_some() || record.status == WorkspaceStatus::Recovering {
            return self.recover_alone(key, record, lock).await;
        }
        self.start(key, &record, folder).await?;
        self.nothing_recovered(key).await
    }

    /// Makes the folder of a Workspace without Snapshots and sets it running.
    async fn start(
        &self,
        key: &ProjectKey,
        record: &WorkspaceRecord,
        folder: Option<Folder>,
    ) -> Result<(), Error> {
        if folder.is_none() && record.status == WorkspaceStatus::Running {
            tracing::warn!(project = %key, "the folder of a running workspace is gone; it starts empty");
        }
        let folder = match folder {
            Some(folder) => folder,
            None => self.folder_or_create(key)?,
        };
        if folder
            .workspace_file()?
            .is_none_or(|file| file.status != WorkspaceStatus::Running)
        {
            folder.put_workspace_file(WorkspaceStatus::Running, None, record.created_at)?;
        }
        if record.status != WorkspaceStatus::Running {
            self.flip(record, |next| next.status = WorkspaceStatus::Running)
                .await?;
        }
        Ok(())
    }

    async fn nothing_recovered(&self, key: &ProjectKey) -> Result<InitReport, Error> {
        Ok(InitReport {
            workspace: self.get(key).await?,
            recovered: Vec::new(),
            failed: Vec::new(),
        })
    }

    /// One Workspace.
    pub async fn get(&self, key: &ProjectKey) -> Result<WorkspaceView, Error> {
        let record = self.inner.store.workspace(key).await?;
        let record = record.ok_or_else(|| Error::WorkspaceNotFound(key.to_string()))?;
        self.view(record).await
    }

    pub(super) async fn view(&self, record: WorkspaceRecord) -> Result<WorkspaceView, Error> {
        let key = ProjectKey {
            tenant: record.tenant,
            project: record.project_id,
        };
        let root_dirs = match self.folder(&key)? {
            Some(folder) => folder.list()?.descriptors.len(),
            None => 0,
        };
        Ok(WorkspaceView {
            snapshots: self.inner.store.snapshots(&key).await?.len(),
            tenant: key.tenant.into(),
            project_id: key.project.into(),
            status: record.status,
            generation: record.generation,
            suspend: record.suspend,
            created_at: record.created_at.to_string(),
            root_dirs,
        })
    }

    /// The Workspaces of a tenant, by Project id, from behind `after` on; at most `limit`.
    pub async fn list(
        &self,
        tenant: &str,
        after: Option<String>,
        limit: usize,
    ) -> Result<Page<WorkspaceView>, Error> {
        let page = self.inner.store.workspaces(tenant, after, limit).await?;
        let mut items = Vec::with_capacity(page.items.len());
        for record in page.items {
            items.push(self.view(record).await?);
        }
        Ok(Page {
            items,
            next: page.next,
        })
    }
}
