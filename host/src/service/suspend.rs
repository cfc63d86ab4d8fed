//! `suspendAll`: all or nothing, in three phases.
//!
//! First every handler saves its RootDir. Then one transaction writes the Snapshots and flips the
//! record to `committed`: the commit point. Then the folders go. A failure before the commit point
//! leaves the Workspace running with every byte in place.

use futures_util::{StreamExt, stream};
use jiff::Timestamp;
use warren_model::{
    Descriptor, RootState, Snapshot, SuspendState, SuspendStatus, WorkspaceRecord, WorkspaceStatus,
};

use super::folder::Folder;
use super::handlers::Mode;
use super::listing::Listing;
use super::locks::Held;
use super::{PARALLEL, RootFailure, Service, SuspendReport, SuspendedRoot};
use crate::error::Error;
use crate::plugin::Suspended;
use crate::store::{Change, ProjectKey};

impl Service {
    /// Puts a Workspace away: everything a person would miss is saved, then its folder goes.
    ///
    /// With `dry_run` nothing is changed, here or on any remote; the report says what would be
    /// kept and what would be lost.
    pub async fn suspend_all(
        &self,
        key: &ProjectKey,
        dry_run: bool,
    ) -> Result<SuspendReport, Error> {
        let lock = self.inner.locks.exclusive(key).await?;
        let settled = self.settle(key, &lock).await?;
        let (record, folder) = match (settled.record, settled.folder) {
            (Some(record), Some(folder)) if record.status == WorkspaceStatus::Running => {
                (record, folder)
            }
            _ => return Err(self.absent(key).await),
        };
        let roots = suspendable(folder.list()?)?;
        self.refuse_doubles(key, &roots).await?;
        if dry_run {
            return Ok(self.plan(&folder, roots).await);
        }
        self.suspend_alone(key, &record, &folder, roots, &lock)
            .await
    }

    /// A RootDir and a Snapshot of one name: under the new generation one would replace the other.
    async fn refuse_doubles(&self, key: &ProjectKey, roots: &[Descriptor]) -> Result<(), Error> {
        let waiting = self.inner.store.snapshots(key).await?;
        let double = |root: &&Descriptor| waiting.iter().any(|s| s.dir_name == root.dir_name);
        match roots.iter().find(double) {
            None => Ok(()),
            Some(root) => Err(Error::RootDirNotReady {
                dir_name: root.dir_name.clone(),
                state: "in the way of a snapshot of the same name",
            }),
        }
    }

    async fn plan(&self, folder: &Folder, roots: Vec<Descriptor>) -> SuspendReport {
        let mut report = SuspendReport {
            dry_run: true,
            generation: None,
            roots: Vec::new(),
            failed: Vec::new(),
            left: Vec::new(),
        };
        for (descriptor, saved) in self.save(folder, roots, Mode::DryRun).await {
            match saved {
                Ok(saved) => report.roots.push(reported(&descriptor, saved)),
                Err(error) => report
                    .failed
                    .push(RootFailure::new(&descriptor.dir_name, &error)),
            }
        }
        report
    }

    async fn suspend_alone(
        &self,
        key: &ProjectKey,
        record: &WorkspaceRecord,
        folder: &Folder,
        roots: Vec<Descriptor>,
        lock: &Held,
    ) -> Result<SuspendReport, Error> {
        let generation = record.generation + 1;
        let pending = self
            .flip(record, |next| {
                next.status = WorkspaceStatus::Suspending;
                next.suspend = Some(SuspendStatus {
                    generation,
                    state: SuspendState::Pending,
                });
            })
            .await?;

        let (mut saved, mut errors) = (Vec::new(), Vec::new());
        for (descriptor, result) in self.save(folder, roots, Mode::Real).await {
            match result {
                Ok(suspended) => saved.push((descriptor, suspended)),
                Err(error) => errors.push(error),
            }
        }
        if !errors.is_empty() {
            self.back_to_running(&pending, record).await;
            return Err(Error::of(errors));
        }
        // From here on nothing is made in the folder, whatever happens to this host.
        let marked = folder.put_workspace_file(
            WorkspaceStatus::Suspending,
            Some(generation),
            record.created_at,
        );
        let committed = match marked {
            Ok(()) => self.commit(key, &pending, generation, &saved).await,
            Err(error) => Err(error),
        };
        if let Err(error) = committed {
            // The store may have done it all the same: what it says now decides.
            let settled = self.settle(key, lock).await?;
            if settled
                .record
                .is_none_or(|record| record.committed < generation)
            {
                return Err(error);
            }
        }
        let left = self.delete_all(folder, &saved).await?;
        Ok(SuspendReport {
            dry_run: false,
            generation: Some(generation),
            roots: saved.into_iter().map(|(d, s)| reported(&d, s)).collect(),
            failed: Vec::new(),
            left,
        })
    }

    /// Phase 1: what each handler saved, in the order of the RootDirs.
    async fn save(
        &self,
        folder: &Folder,
        roots: Vec<Descriptor>,
        mode: Mode,
    ) -> Vec<(Descriptor, Result<Suspended, Error>)> {
        stream::iter(roots)
            .map(|descriptor| async move {
                let saved = self.put_away(folder, &descriptor, mode).await;
                (descriptor, saved)
            })
            .buffered(PARALLEL)
            .collect()
            .await
    }

    /// Best effort: when the store does not answer now, the next operation finds a suspend that
    /// was not committed and does the same.
    async fn back_to_running(&self, pending: &WorkspaceRecord, before: &WorkspaceRecord) {
        let flipped = self
            .flip(pending, |next| {
                next.status = WorkspaceStatus::Running;
                next.suspend = before.suspend;
            })
            .await;
        if let Err(error) = flipped {
            tracing::warn!(
                error = crate::error::chain(&error),
                "cannot set the workspace running again"
            );
        }
    }

    /// Phase 2, the commit point. Snapshots that wait from an earlier recover come along under the
    /// new generation.
    async fn commit(
        &self,
        key: &ProjectKey,
        pending: &WorkspaceRecord,
        generation: u64,
        saved: &[(Descriptor, Suspended)],
    ) -> Result<(), Error> {
        let waiting = self.inner.store.snapshots(key).await?;
        let now = Timestamp::now();
        let mut change = Change {
            remove: waiting
                .iter()
                .map(|s| (s.dir_name.clone(), s.generation))
                .collect(),
            ..Change::default()
        };
        for (descriptor, suspended) in saved {
            let mut descriptor = descriptor.clone();
            descriptor.metadata = suspended.metadata.clone();
            descriptor.recovered_generation = None;
            change.insert.push(Snapshot {
                tenant: key.tenant.clone(),
                project_id: key.project.clone(),
                dir_name: descriptor.dir_name.clone(),
                descriptor,
                suspended_at: now,
                generation,
                receipts: suspended.receipts.clone(),
                loss: suspended.loss.clone(),
                recover_error: None,
                extra: serde_json::Map::new(),
            });
        }
        change
            .insert
            .extend(waiting.into_iter().map(|mut snapshot| {
                snapshot.generation = generation;
                snapshot
            }));
        let mut next = pending.clone();
        next.status = WorkspaceStatus::Init;
        self.stamp(&mut next);
        next.generation = pending.generation + 1;
        next.committed = generation;
        next.suspend = Some(SuspendStatus {
            generation,
            state: SuspendState::Committed,
        });
        self.inner
            .store
            .change(Some(pending), &next, change)
            .await?;
        tracing::info!(project = %key, generation, "suspend committed");
        Ok(())
    }

    /// Phase 3. The suspend has happened: what cannot be deleted now is reported, and the next
    /// init tries again.
    async fn delete_all(
        &self,
        folder: &Folder,
        saved: &[(Descriptor, Suspended)],
    ) -> Result<Vec<String>, Error> {
        let mut roots: Vec<_> = saved.iter().map(|(d, _)| d.clone()).collect();
        roots.extend(waiting(&folder.list()?).cloned());
        let folder = folder.clone();
        super::blocking(move || {
            for root in &roots {
                if let Err(error) = folder.delete(&root.dir_name) {
                    tracing::warn!(dir_name = %root.dir_name, error = crate::error::chain(&error), "cannot delete a suspended RootDir");
                    folder.mark_deleting(root);
                }
            }
            // The suspend has happened, so this is no failure of it.
            Ok(folder.remove().unwrap_or_else(|error| vec![crate::error::chain(&error)]))
        })
        .await?
    }
}

/// RootDirs whose content is only in the store: their recover failed.
fn waiting(listing: &Listing) -> impl Iterator<Item = &Descriptor> {
    listing
        .descriptors
        .iter()
        .filter(|d| d.state == RootState::Recovering)
}

/// The RootDirs to save, or why the Workspace cannot be suspended without losing something.
fn suspendable(listing: Listing) -> Result<Vec<Descriptor>, Error> {
    if let Some(damage) = listing.damaged.into_iter().next() {
        return Err(Error::Damaged {
            file: damage.file,
            reason: damage.reason,
        });
    }
    if !listing.orphans.is_empty() {
        return Err(Error::OrphanedContent(listing.orphans));
    }
    let mut roots = Vec::new();
    for descriptor in listing.descriptors {
        match descriptor.state {
            RootState::Ready | RootState::Suspending => roots.push(descriptor),
            RootState::Recovering => {}
            RootState::Initializing | RootState::Deleting => {
                return Err(Error::RootDirNotReady {
                    dir_name: descriptor.dir_name,
                    state: "half deleted, and cannot be deleted whole",
                });
            }
        }
    }
    Ok(roots)
}

fn reported(descriptor: &Descriptor, saved: Suspended) -> SuspendedRoot {
    SuspendedRoot {
        dir_name: descriptor.dir_name.clone(),
        handler_type: descriptor.handler_type.clone(),
        receipts: saved.receipts,
        loss: saved.loss,
    }
}
