//! The life of a RootDir that is a fork of a git remote, for handlers built on one.
//!
//! Suspend saves what a person would miss as one snapshot commit under
//! `refs/heads/vance/suspend/<dirName>` of the remote, and nothing when the remote has it all.
//! Recover lays it out again. Nothing is ever forced over a commit that this RootDir did not write.

mod settings;
mod suspend_ref;

#[cfg(test)]
mod tests;

pub use settings::{RecoverAs, Settings};

use crate::git::{self, Head, RestoreAs};
use crate::{Error, Loss, Root};

/// Fills the empty root from the remote; notes the branch and commit that it came to.
///
/// A `commit` in the settings pins it; otherwise it is the tip of `branch`, or of the remote's
/// default branch.
pub fn init(settings: &mut Settings) -> Result<(), Error> {
    let origin = settings.origin()?;
    settings.refuse_suspend_keys()?;
    let head = match &settings.commit {
        Some(commit) => git::clone_at(&origin, settings.branch.as_deref(), commit)?,
        None => git::clone(&origin, settings.branch.as_deref())?,
    };
    settings.note_head(head);
    Ok(())
}

/// Saves the working tree and notes where; returns what is not saved.
pub fn suspend(root: &Root, settings: &mut Settings) -> Result<Vec<Loss>, Error> {
    let origin = settings.origin()?;
    let snapshot = git::snapshot(&origin, &settings.keep)?;
    // Without a commit there is nothing on the remote to come back to, whatever it has.
    if snapshot.saved && snapshot.head.commit.is_some() {
        // An older suspend ref stays on the remote, but this recover must not go back to it.
        settings.suspend_branch = None;
        settings.suspend_commit = None;
    } else {
        let branch = suspend_ref::save(&origin, root, settings, &snapshot.commit)?;
        settings.suspend_branch = Some(branch);
        settings.suspend_commit = Some(snapshot.commit);
    }
    settings.note_head(snapshot.head);
    Ok(snapshot.loss)
}

/// Fills the empty root with what [`suspend`] saved.
///
/// A snapshot that is gone from the remote or was moved is an error, never the base branch instead.
/// Where the snapshot is stays noted, so that the next suspend may replace it.
pub fn recover(settings: &mut Settings) -> Result<(), Error> {
    let origin = settings.origin()?;
    let head = match (&settings.suspend_branch, &settings.suspend_commit) {
        (Some(branch), Some(commit)) => {
            let lay = match settings.recover_as {
                RecoverAs::WorkingTree => RestoreAs::WorkingTree,
                RecoverAs::Branch => RestoreAs::Branch,
            };
            git::restore(&origin, &full_name(branch), commit, lay)?
        }
        (None, None) => match &settings.commit {
            Some(commit) => git::clone_at(&origin, settings.branch.as_deref(), commit)?,
            // Suspend always notes a commit; documents of other hosts may lack it.
            None => git::clone(&origin, settings.branch.as_deref())?,
        },
        (Some(_), None) => {
            let reason = "missing, although `suspendBranch` is set";
            return Err(Error::invalid_metadata("suspendCommit", reason));
        }
        (None, Some(_)) => {
            let reason = "missing, although `suspendCommit` is set";
            return Err(Error::invalid_metadata("suspendBranch", reason));
        }
    };
    settings.note_head(head);
    Ok(())
}

/// With `commitOnClose`, commits the whole working tree and pushes it to the branch of HEAD, with
/// the commits below it; otherwise does nothing.
///
/// Only ever moves the branch forward. Fails when there is something to save on a detached HEAD.
pub fn close(root: &Root, settings: &Settings) -> Result<(), Error> {
    if !settings.commit_on_close {
        return Ok(());
    }
    let origin = settings.origin()?;
    let status = git::status()?;
    let clean = status.staged == 0 && status.modified == 0 && status.untracked == 0;
    if clean && status.unpushed == 0 {
        return Ok(());
    }
    let Head { commit, branch } = status.head;
    let Some(branch) = branch else {
        let reason = "HEAD is detached, so there is no branch to push to: check one out first";
        return Err(Error::invalid_metadata("commitOnClose", reason));
    };
    let message = format!("Save `{}` on close", root.dir_name);
    let Some(tip) = git::commit_all(&origin, &message)?.or(commit) else {
        return Ok(());
    };
    let ref_name = full_name(&branch);
    let found = git::remote_ref(&origin, &ref_name)?;
    if found.as_deref() != Some(tip.as_str()) {
        git::push(&origin, &tip, &ref_name, found.as_deref())?;
    }
    Ok(())
}

fn full_name(branch: &str) -> String {
    format!("refs/heads/{branch}")
}
