//! Verbs that look at the RootDir and build in the outbox.

use std::time::{Duration, Instant};

use git2::{ObjectType, Oid, Repository};
use warren_model::Receipt;
use warren_repo::{Head, Repo, SnapshotOptions, Status};

use super::{Aim, Granted, Origin, Session, Snapshot, ids};
use crate::MirrorError;
use crate::confine;
use crate::mirror::Held;

/// Longest wait for a git of the user's that works in the RootDir.
const LOCK_WAIT: Duration = Duration::from_secs(5);

impl Session {
    /// Says where HEAD is.
    ///
    /// # Errors
    /// Those of [`Repo::open`].
    pub fn head(&self) -> Result<Head, MirrorError> {
        self.with_root(|repo| Ok(repo.head()?))
    }

    /// Says what the working tree holds.
    ///
    /// # Errors
    /// Those of [`Repo::open`] and [`Repo::status`].
    pub fn status(&self) -> Result<Status, MirrorError> {
        self.with_root(|repo| Ok(repo.status(self.shared.repo_limits)?))
    }

    /// Makes a snapshot in the host's store. `keep` lists paths to save although they are ignored.
    ///
    /// # Errors
    /// Those of [`Repo::snapshot`], and those of talking to the remote: only it knows what it has.
    pub fn snapshot(&mut self, origin: &Origin, keep: &[String]) -> Result<Snapshot, MirrorError> {
        let admitted = self.admit(origin)?;
        let url = admitted.permit.url.to_string();
        self.clear_locks()?;
        let made = self.with_admitted(admitted, origin, Aim::Look, |granted| {
            let held = granted.mirror.refresh(&granted.wire, self.wait())?;
            self.build(granted, &held, keep)
        })?;
        let commit = made.commit.to_string();
        self.snapshots.insert(made.commit);
        if made.saved {
            self.receipts.push(Receipt {
                url,
                ref_name: None,
                commit: commit.clone(),
            });
        }
        Ok(Snapshot {
            commit,
            head: made.head,
            saved: made.saved,
            loss: made.loss,
        })
    }

    /// Commits the whole working tree on top of HEAD, in the host's store only; none: no change.
    ///
    /// # Errors
    /// Those of [`Repo::commit_all`], and those of talking to the remote.
    pub fn commit_all(
        &self,
        origin: &Origin,
        message: &str,
    ) -> Result<Option<String>, MirrorError> {
        let admitted = self.admit(origin)?;
        self.clear_locks()?;
        let made = self.with_admitted(admitted, origin, Aim::Look, |granted| {
            let held = granted.mirror.refresh(&granted.wire, self.wait())?;
            let repo = self.repo()?;
            let limits = self.shared.repo_limits;
            let outbox = self.outbox(&granted.key, &held)?.open()?;
            Ok(repo.commit_all(&outbox, message, limits)?)
        })?;
        Ok(made.map(|id| id.to_string()))
    }

    /// Brings HEAD's own commit into the outbox.
    pub(super) fn copy_head(
        &self,
        granted: &Granted,
        held: &Held,
        commit: Oid,
    ) -> Result<(), MirrorError> {
        let head = self.repo()?.head()?;
        if head.commit.as_deref() != Some(commit.to_string().as_str()) {
            return Err(MirrorError::Missing(commit.to_string()));
        }
        // A snapshot carries HEAD's commit with it, and all that the remote lacks of its history.
        self.build(granted, held, &[]).map(drop)
    }

    fn build(
        &self,
        granted: &Granted,
        held: &Held,
        keep: &[String],
    ) -> Result<warren_repo::Snapshot, MirrorError> {
        let repo = self.repo()?;
        let url = granted.url();
        if !repo.is_origin(&url) {
            tracing::warn!(dir_name = %self.spec.dir_name, url, "`origin` was changed; it counts for nothing here");
        }
        let mirror = Repository::open_bare(&held.path)
            .map_err(|error| MirrorError::git("open the mirror", error))?;
        let tags = ids(held, "refs/tags/")?;
        let mut tips: Vec<Oid> = ids(held, "refs/heads/")?
            .into_iter()
            .map(|(_, id)| id)
            .collect();
        // A tag may name what is no commit.
        tips.extend(tags.iter().filter_map(|(_, id)| {
            let object = mirror.find_object(*id, None).ok()?;
            Some(object.peel(ObjectType::Commit).ok()?.id())
        }));
        let options = SnapshotOptions {
            keep: keep.to_vec(),
            remote_tips: tips,
            remote_tags: tags.into_iter().collect(),
            dir_name: self.spec.dir_name.clone(),
            limits: self.shared.repo_limits,
        };
        let outbox = self.outbox(&granted.key, held)?.open()?;
        Ok(repo.snapshot(&outbox, &options)?)
    }

    fn repo(&self) -> Result<Repo, MirrorError> {
        let open = Repo::open(
            &self.spec.root,
            &self.spec.root_path,
            self.bounds(Aim::Look),
        );
        Ok(open?.excluding(self.shared.exclude.clone()))
    }

    /// Looks at the repository on a thread that reaches the RootDir only.
    fn with_root<T: Send>(
        &self,
        look: impl FnOnce(&Repo) -> Result<T, MirrorError> + Send,
    ) -> Result<T, MirrorError> {
        let reach = self.reach_root(Aim::Look)?;
        confine::run(&reach, None, &self.bounds(Aim::Look), |_| {
            look(&self.repo()?)
        })
    }

    /// Lock files of a git that was killed must not keep work from being saved.
    fn clear_locks(&self) -> Result<(), MirrorError> {
        let left = self
            .spec
            .deadline
            .saturating_duration_since(Instant::now())
            .min(LOCK_WAIT);
        warren_repo::layout::check(&self.spec.root, &self.bounds(Aim::Look))?;
        Ok(warren_repo::clear_stale_locks(
            &self.spec.root,
            &self.spec.root_path,
            left,
        )?)
    }
}
