//! Verbs that read and change refs of the remote.

use git2::{Oid, Repository};
use warren_model::Receipt;

use super::{Aim, Granted, Origin, Session};
use crate::mirror::SNAPSHOT_HEADS;
use crate::remote::{self, Advertised, Change};
use crate::{MirrorError, names};

impl Session {
    /// Pushes a commit made by `snapshot` or `commit_all`, or HEAD's own, to a ref of the remote and
    /// reads it back.
    ///
    /// `expected` is what the ref must point at now; none: it must not exist. A ref that points at
    /// the commit already is fine. Only refs of snapshots may be replaced by a commit without
    /// `expected` in its history. In a dry run the ref is only looked at.
    ///
    /// # Errors
    /// [`MirrorError::Denied`] for a ref that is not granted, [`MirrorError::Conflict`],
    /// [`MirrorError::Rejected`], [`MirrorError::Missing`] for a commit that nobody has, and those
    /// of talking to the remote.
    pub fn push(
        &mut self,
        origin: &Origin,
        commit: &str,
        ref_name: &str,
        expected: Option<&str>,
    ) -> Result<(), MirrorError> {
        let target = names::commit(commit)?;
        let expected = expected.map(names::commit).transpose()?;
        let ref_name = self.writable(ref_name)?;
        let admitted = self.admit(origin)?;
        let url = admitted.permit.url.to_string();
        self.with_admitted(admitted, origin, Aim::Publish, |granted| {
            self.publish(granted, target, &ref_name, expected)
        })?;
        if self.snapshots.contains(&target) {
            self.receipts.push(Receipt {
                url,
                ref_name: Some(ref_name),
                commit: commit.to_owned(),
            });
        }
        Ok(())
    }

    fn publish(
        &self,
        granted: &Granted,
        target: Oid,
        ref_name: &str,
        expected: Option<Oid>,
    ) -> Result<(), MirrorError> {
        // Held so that no mirror is replaced under the outbox; refreshed only when there is none.
        let held = match granted.mirror.hold(self.wait())? {
            Some(held) => held,
            None => granted.mirror.refresh(&granted.wire, self.wait())?,
        };
        let has = |repo: &Repository| repo.odb().is_ok_and(|odb| odb.exists(target));
        if !has(&self.outbox(&granted.key, &held)?.open()?) {
            self.copy_head(granted, &held, target)?;
        }
        let outbox = self.outbox(&granted.key, &held)?.open()?;
        if outbox.find_commit(target).is_err() {
            return Err(MirrorError::Missing(target.to_string()));
        }
        only_forward(&outbox, ref_name, expected, target)?;
        let change = Change {
            ref_name,
            expected,
            target: Some(target),
        };
        self.change(granted, &outbox, &change)
    }

    /// Reads one ref of the remote; none: it does not exist.
    ///
    /// # Errors
    /// Those of talking to the remote.
    pub fn remote_ref(
        &self,
        origin: &Origin,
        ref_name: &str,
    ) -> Result<Option<String>, MirrorError> {
        let ref_name = names::expand_ref(ref_name)?;
        self.with_remote(origin, Aim::Look, |granted| {
            let scratch = self.scratch(None)?;
            let advertised = remote::list(&scratch.open()?, &granted.wire)?;
            Ok(advertised.id(&ref_name).map(str::to_owned))
        })
    }

    /// Deletes a ref of the remote that points at `expected`; one that is gone is fine. In a dry
    /// run it is only looked at.
    ///
    /// # Errors
    /// Those of [`Session::push`].
    pub fn delete_remote_ref(
        &self,
        origin: &Origin,
        ref_name: &str,
        expected: &str,
    ) -> Result<(), MirrorError> {
        let expected = names::commit(expected)?;
        let ref_name = self.writable(ref_name)?;
        self.with_remote(origin, Aim::Publish, |granted| {
            let scratch = self.scratch(None)?;
            let change = Change {
                ref_name: &ref_name,
                expected: Some(expected),
                target: None,
            };
            self.change(granted, &scratch.open()?, &change)
        })
    }

    fn change(
        &self,
        granted: &Granted,
        repo: &Repository,
        change: &Change<'_>,
    ) -> Result<(), MirrorError> {
        if !self.spec.dry_run {
            return remote::push(repo, &granted.wire, change);
        }
        change.check(&remote::list(repo, &granted.wire)?).map(drop)
    }

    /// The full name of a ref that may be written.
    fn writable(&self, ref_name: &str) -> Result<String, MirrorError> {
        let ref_name = names::expand_ref(ref_name)?;
        let layers = &self.spec.push_refs;
        if !layers.is_empty() && layers.iter().all(|layer| layer.allows(&ref_name)) {
            return Ok(ref_name);
        }
        Err(MirrorError::Denied(format!("writing `{ref_name}`")))
    }
}

/// Refuses to take commits away from a branch that others work on.
fn only_forward(
    outbox: &Repository,
    ref_name: &str,
    expected: Option<Oid>,
    target: Oid,
) -> Result<(), MirrorError> {
    let expected = expected.filter(|_| !ref_name.starts_with(SNAPSHOT_HEADS));
    let Some(found) = expected.filter(|found| *found != target) else {
        return Ok(());
    };
    // A commit that nobody here knows is in no history.
    let known = outbox.find_commit(found).is_ok();
    let fail = |error| MirrorError::git("compare two commits", error);
    if known && outbox.graph_descendant_of(target, found).map_err(fail)? {
        return Ok(());
    }
    let base = outbox.merge_base(target, found).unwrap_or(target);
    Err(MirrorError::Conflict {
        ref_name: ref_name.to_owned(),
        expected: Some(base.to_string()),
        found: Some(found.to_string()),
    })
}

/// What is to be fetched for `restore`, once the ref is what it must be.
pub(super) fn check_snapshot(
    advertised: &Advertised,
    ref_name: &str,
    commit: Oid,
) -> Result<(), MirrorError> {
    let wanted = commit.to_string();
    match advertised.id(ref_name) {
        Some(found) if found == wanted => Ok(()),
        None => Err(MirrorError::Missing(ref_name.to_owned())),
        Some(found) => Err(MirrorError::Conflict {
            ref_name: ref_name.to_owned(),
            expected: Some(wanted),
            found: Some(found.to_owned()),
        }),
    }
}
