//! `dispose`, `disposeRootDir`, `disposeByCreator`.

use std::io;

use futures_util::{StreamExt, stream};
use warren_disk::atomic::Durable;
use warren_model::{
    CreatorId, Descriptor, DirName, RootState, SuspendState, WorkspaceRecord, WorkspaceStatus,
};

use super::folder::Folder;
use super::handlers::Mode;
use super::listing::Listing;
use super::report::LostRoot;
use super::{DisposeOptions, DisposeReport, PARALLEL, RootFailure, Service};
use crate::error::Error;
use crate::store::{Change, ProjectKey};

impl Service {
    /// Disposes of a Workspace: its RootDirs, its folder and its Snapshots. Repeating it is
    /// harmless.
    pub async fn dispose(
        &self,
        key: &ProjectKey,
        options: DisposeOptions,
    ) -> Result<DisposeReport, Error> {
        let lock = self.inner.locks.exclusive(key).await?;
        let settled = self.settle(key, &lock).await?;
        let record = settled
            .record
            .ok_or_else(|| Error::WorkspaceNotFound(key.to_string()))?;
        let listing = match &settled.folder {
            Some(folder) => folder.list()?,
            None => Listing::default(),
        };
        if options.dry_run {
            let mut plan = self
                .plan_dispose(settled.folder.as_ref(), listing.descriptors)
                .await?;
            for snapshot in self.inner.store.snapshots(key).await? {
                if !plan.disposed.contains(&snapshot.dir_name) {
                    plan.lost.push(LostRoot::waiting(&snapshot.dir_name));
                    plan.disposed.push(snapshot.dir_name);
                }
            }
            return Ok(plan);
        }
        if !options.force {
            refuse_strangers(&listing)?;
        }
        if let Some(folder) = &settled.folder {
            self.close_all(folder, &listing, options.force).await?;
            folder.put_workspace_file(WorkspaceStatus::Disposed, None, record.created_at)?;
        }
        let (record, waiting) = self.commit_dispose(key, &record).await?;
        let mut disposed: Vec<DirName> = listing
            .descriptors
            .iter()
            .map(|d| d.dir_name.clone())
            .collect();
        for name in waiting {
            if !disposed.contains(&name) {
                disposed.push(name);
            }
        }
        if let Some(folder) = settled.folder {
            self.finish_delete(key, &record, folder).await?;
        }
        Ok(DisposeReport {
            disposed,
            ..DisposeReport::default()
        })
    }

    /// The commit point of a dispose: record and Snapshots in one transaction. Names the latter.
    async fn commit_dispose(
        &self,
        key: &ProjectKey,
        record: &WorkspaceRecord,
    ) -> Result<(WorkspaceRecord, Vec<DirName>), Error> {
        let snapshots = self.inner.store.snapshots(key).await?;
        let names = snapshots.iter().map(|s| s.dir_name.clone()).collect();
        let change = Change {
            remove: snapshots
                .into_iter()
                .map(|s| (s.dir_name, s.generation))
                .collect(),
            forget_working_dirs: true,
            ..Change::default()
        };
        let mut next = record.clone();
        next.status = WorkspaceStatus::Disposed;
        self.stamp(&mut next);
        next.suspend = None;
        next.generation += 1;
        self.inner.store.change(Some(record), &next, change).await?;
        tracing::info!(project = %key, "workspace disposed");
        Ok((next, names))
    }

    /// Lets every handler close its RootDir; one that fails stops the dispose unless forced.
    async fn close_all(
        &self,
        folder: &Folder,
        listing: &Listing,
        force: bool,
    ) -> Result<(), Error> {
        let ready = listing
            .descriptors
            .iter()
            .filter(|d| d.state == RootState::Ready);
        let errors: Vec<Error> = stream::iter(ready)
            .map(|descriptor| self.close(folder, descriptor))
            .buffered(PARALLEL)
            .filter_map(|closed| async { closed.err() })
            .collect()
            .await;
        if errors.is_empty() || force {
            for error in &errors {
                tracing::warn!(
                    error = crate::error::chain(error),
                    "disposed of all the same"
                );
            }
            return Ok(());
        }
        Err(Error::of(errors))
    }

    /// Disposes of one RootDir.
    ///
    /// Happened when the Descriptor says `deleting`; a crash after that is finished by the next
    /// init.
    pub async fn dispose_root_dir(
        &self,
        key: &ProjectKey,
        dir_name: &DirName,
        options: DisposeOptions,
    ) -> Result<DisposeReport, Error> {
        let project = self.inner.locks.shared(key).await?;
        let folder = self.running(key).await?.under(&project);
        let root = self.inner.locks.root(key, dir_name).await?;
        let descriptor = match folder.descriptor(dir_name) {
            Err(error @ Error::Damaged { .. }) if !options.force => return Err(error),
            Err(Error::Damaged { .. }) => {
                return self.dispose_damaged(folder, dir_name, options).await;
            }
            Err(error @ Error::RootDirNotFound(_)) => {
                // Whoever asks for names that nobody has leaves no files behind.
                self.inner.locks.retire_root(root, key, dir_name);
                return Err(error);
            }
            other => other?,
        };
        if options.dry_run {
            return self.plan_dispose(Some(&folder), vec![descriptor]).await;
        }
        match descriptor.state {
            RootState::Initializing => {
                return Err(Error::RootDirNotReady {
                    dir_name: dir_name.clone(),
                    state: "being made, or was when its host stopped",
                });
            }
            RootState::Recovering => self.forget_snapshot(key, dir_name).await?,
            RootState::Deleting => {}
            RootState::Ready | RootState::Suspending => {
                if let Err(error) = self.close(&folder, &descriptor).await {
                    if !options.force {
                        return Err(error);
                    }
                    tracing::warn!(%dir_name, error = crate::error::chain(&error), "disposed of all the same");
                }
            }
        }
        let deleting = Descriptor {
            state: RootState::Deleting,
            ..descriptor
        };
        commit_deleting(&folder, &deleting)?;
        let name = dir_name.clone();
        // The lock goes along: also when nobody waits any more, the name is free only at the end.
        let (deleted, root) = super::blocking(move || (folder.delete(&name), root)).await?;
        deleted?;
        self.inner.locks.retire_root(root, key, dir_name);
        tracing::info!(project = %key, %dir_name, "RootDir disposed");
        Ok(DisposeReport {
            disposed: vec![dir_name.clone()],
            ..DisposeReport::default()
        })
    }

    async fn dispose_damaged(
        &self,
        folder: Folder,
        dir_name: &DirName,
        options: DisposeOptions,
    ) -> Result<DisposeReport, Error> {
        if !options.dry_run {
            let name = dir_name.clone();
            super::blocking(move || folder.delete(&name)).await??;
        }
        Ok(DisposeReport {
            dry_run: options.dry_run,
            disposed: vec![dir_name.clone()],
            ..DisposeReport::default()
        })
    }

    /// Removes the Snapshot of a RootDir whose recover failed and that nobody wants back.
    async fn forget_snapshot(&self, key: &ProjectKey, dir_name: &DirName) -> Result<(), Error> {
        let record = self.inner.store.workspace(key).await?;
        let record = record.ok_or_else(|| Error::WorkspaceNotFound(key.to_string()))?;
        // A folder that came back from elsewhere: the Snapshot is not the one it waited for.
        if record.status != WorkspaceStatus::Running {
            return Err(Error::WorkspaceNotRunning {
                project: key.to_string(),
                status: record.status,
            });
        }
        let snapshots = self.inner.store.snapshots(key).await?;
        let (gone, kept): (Vec<_>, Vec<_>) =
            snapshots.into_iter().partition(|s| s.dir_name == *dir_name);
        let change = Change {
            remove: gone
                .into_iter()
                .map(|s| (s.dir_name, s.generation))
                .collect(),
            ..Change::default()
        };
        let mut next = record.clone();
        next.generation += 1;
        next.suspend = next
            .suspend
            .filter(|suspend| !kept.is_empty() || suspend.state != SuspendState::Partial);
        self.inner
            .store
            .change(Some(&record), &next, change)
            .await?;
        Ok(())
    }

    /// Disposes of the RootDirs that a creator made and that go when it closes.
    ///
    /// The id is compared exactly. One that fails stays and is reported; the rest go.
    pub async fn dispose_by_creator(
        &self,
        key: &ProjectKey,
        creator: &CreatorId,
        options: DisposeOptions,
    ) -> Result<DisposeReport, Error> {
        let listing = {
            let _lock = self.inner.locks.shared(key).await?;
            self.running(key).await?.list()?
        };
        let mut report = DisposeReport {
            dry_run: options.dry_run,
            ..DisposeReport::default()
        };
        let theirs = listing
            .descriptors
            .into_iter()
            .filter(|d| d.creator_process_id == *creator);
        for descriptor in theirs {
            if !descriptor.delete_on_creator_close {
                report.kept.push(descriptor.dir_name);
                continue;
            }
            match self
                .dispose_root_dir(key, &descriptor.dir_name, options)
                .await
            {
                Ok(one) => {
                    report.disposed.extend(one.disposed);
                    report.lost.extend(one.lost);
                }
                // Somebody else disposed of it in the meantime.
                Err(Error::RootDirNotFound(_)) => {}
                Err(error) => report
                    .failed
                    .push(RootFailure::new(&descriptor.dir_name, &error)),
            }
        }
        if !options.dry_run {
            self.inner.store.set_working_dir(key, creator, None).await?;
        }
        Ok(report)
    }

    /// What would go, and what of it is saved elsewhere.
    async fn plan_dispose(
        &self,
        folder: Option<&Folder>,
        roots: Vec<Descriptor>,
    ) -> Result<DisposeReport, Error> {
        let mut report = DisposeReport {
            dry_run: true,
            ..DisposeReport::default()
        };
        let Some(folder) = folder else {
            return Ok(report);
        };
        for descriptor in roots {
            report.lost.push(self.lost(folder, &descriptor).await?);
            report.disposed.push(descriptor.dir_name);
        }
        Ok(report)
    }

    async fn lost(&self, folder: &Folder, descriptor: &Descriptor) -> Result<LostRoot, Error> {
        if descriptor.state == RootState::Recovering {
            return Ok(LostRoot::waiting(&descriptor.dir_name));
        }
        let root = match folder.root(&descriptor.dir_name) {
            Ok(root) => root,
            Err(error) => return Ok(LostRoot::unreadable(&descriptor.dir_name, &error)),
        };
        let usage = super::blocking(move || warren_disk::usage::usage(&root))
            .await?
            .map_err(|error| Error::InvalidArgument {
                what: "RootDir",
                reason: crate::error::chain(&error),
            })?;
        // What suspend would have to save is what dispose loses.
        let saved = self.put_away(folder, descriptor, Mode::DryRun).await;
        Ok(LostRoot::new(&descriptor.dir_name, &usage, saved))
    }
}

/// The commit point of disposing of one RootDir. On a full disk a mark can not be written, but
/// removing the Descriptor takes no room: what a crash then leaves is content without one.
fn commit_deleting(folder: &Folder, deleting: &Descriptor) -> Result<(), Error> {
    match folder.put(deleting, Durable::Yes) {
        Err(Error::Io { source, .. }) if source.kind() == io::ErrorKind::StorageFull => {
            folder.forget(&deleting.dir_name)
        }
        other => other,
    }
}

/// Content that no handler answers for goes only by force.
fn refuse_strangers(listing: &Listing) -> Result<(), Error> {
    if let Some(damage) = listing.damaged.first() {
        return Err(Error::Damaged {
            file: damage.file.clone(),
            reason: damage.reason.clone(),
        });
    }
    if !listing.orphans.is_empty() {
        return Err(Error::OrphanedContent(listing.orphans.clone()));
    }
    Ok(())
}
