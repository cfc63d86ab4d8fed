//! Under which ref of the remote a snapshot goes.

use super::{Settings, full_name};
use crate::git::{self, Remote};
use crate::{Error, GitError, Root, log};

/// Most names that are tried: `vance/suspend/x`, then `x-2` to `x-50`.
const NAMES_MAX: u32 = 50;

/// Pushes a snapshot under the first name that is free or still holds what this RootDir put there;
/// returns the branch.
///
/// A name that holds the snapshot already is pushed to as well: that costs nothing, and the host
/// sees for itself that the content is saved.
pub(super) fn save(
    origin: &Remote,
    root: &Root,
    settings: &Settings,
    snapshot: &str,
) -> Result<String, Error> {
    let mut taken = None;
    for branch in names(root, settings) {
        let ours = settings.suspend_branch.as_deref() == Some(branch.as_str());
        let expected = settings.suspend_commit.as_deref().filter(|_| ours);
        match push(origin, snapshot, &full_name(&branch), expected) {
            Ok(()) => return Ok(branch),
            Err(GitError::Conflict(conflict)) => {
                log::info(&format!("`{}` is taken", conflict.ref_name));
                taken = Some(conflict);
            }
            Err(error) => return Err(error.into()),
        }
    }
    Err(match taken {
        Some(conflict) => GitError::Conflict(conflict).into(),
        None => Error::Failed("no name for a suspend ref".to_owned()),
    })
}

/// A push to a ref that holds `expected`, or that somebody has discarded since.
fn push(
    origin: &Remote,
    snapshot: &str,
    ref_name: &str,
    expected: Option<&str>,
) -> Result<(), GitError> {
    match git::push(origin, snapshot, ref_name, expected) {
        Err(GitError::Conflict(conflict)) if conflict.found.is_none() && expected.is_some() => {
            git::push(origin, snapshot, ref_name, None)
        }
        other => other,
    }
}

/// The names in the order in which they are tried: the one in use first.
fn names(root: &Root, settings: &Settings) -> impl Iterator<Item = String> {
    let base = format!("vance/suspend/{}", root.dir_name);
    let all = (1..=NAMES_MAX).map(move |n| match n {
        1 => base.clone(),
        _ => format!("{base}-{n}"),
    });
    let all: Vec<_> = all.collect();
    // Only a name of ours: the metadata may say anything.
    let used = settings.suspend_branch.clone().filter(|b| all.contains(b));
    let others = all.into_iter().filter({
        let used = used.clone();
        move |name| Some(name) != used.as_ref()
    });
    used.into_iter().chain(others)
}
