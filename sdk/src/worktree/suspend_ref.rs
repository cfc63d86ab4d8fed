//! Under which ref of the remote a snapshot goes.

use super::{Settings, full_name};
use crate::git::{self, Remote};
use crate::{Error, GitError, RefConflict, Root, log};

/// Most names that are tried: `vance/suspend/x`, then `x-2` to `x-50`.
const NAMES_MAX: u32 = 50;

/// Pushes a snapshot under the first name that is free or still holds what this RootDir put there;
/// returns the branch. A name that holds the snapshot already needs no push.
pub(super) fn save(
    origin: &Remote,
    root: &Root,
    settings: &Settings,
    snapshot: &str,
) -> Result<String, Error> {
    let mut taken = None;
    for branch in names(root, settings) {
        let ref_name = full_name(&branch);
        let found = git::remote_ref(origin, &ref_name)?;
        if found.as_deref() == Some(snapshot) {
            return Ok(branch);
        }
        let ours = settings.suspend_branch.as_deref() == Some(branch.as_str())
            && settings.suspend_commit == found;
        if found.is_some() && !ours {
            taken = Some(RefConflict {
                ref_name,
                expected: None,
                found,
            });
            continue;
        }
        match git::push(origin, snapshot, &ref_name, found.as_deref()) {
            Ok(()) => return Ok(branch),
            // Somebody else was faster; a name is theirs who come first.
            Err(GitError::Conflict(conflict)) => {
                if conflict.found.as_deref() == Some(snapshot) {
                    return Ok(branch);
                }
                log::info(&format!("`{ref_name}` was taken meanwhile"));
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
