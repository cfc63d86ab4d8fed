//! The metadata keys of a fork.

use serde::{Deserialize, Serialize};

use crate::Error;
use crate::git::{Head, Remote};

/// How a snapshot comes back.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum RecoverAs {
    /// Exactly as it was: same HEAD, staged and unstaged changes apart.
    #[default]
    WorkingTree,
    /// HEAD on the snapshot's own commit, on the suspend branch.
    Branch,
}

/// The metadata keys of a fork. A handler takes them as they are, or flattens them into its own.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct Settings {
    /// URL of the remote, without credentials.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub repo_url: Option<String>,
    /// Branch of HEAD; none: the remote's default one at init, detached later.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub branch: Option<String>,
    /// Commit of HEAD in hex; at init it pins the commit.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub commit: Option<String>,
    /// Branch on the remote that holds the last snapshot. Written by suspend.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub suspend_branch: Option<String>,
    /// Commit of the last snapshot. Written by suspend.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub suspend_commit: Option<String>,
    /// Whether close commits and pushes.
    #[serde(default, skip_serializing_if = "is_default")]
    pub commit_on_close: bool,
    /// Name of a credential in the host's store.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub credential_alias: Option<String>,
    /// How a snapshot comes back.
    #[serde(default, skip_serializing_if = "is_default")]
    pub recover_as: RecoverAs,
    /// Paths that are saved although they are ignored.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub keep: Vec<String>,
}

fn is_default<T: Default + PartialEq>(value: &T) -> bool {
    *value == T::default()
}

impl Settings {
    /// The remote. Fails without `repoUrl`.
    pub fn origin(&self) -> Result<Remote, Error> {
        let Some(url) = &self.repo_url else {
            return Err(Error::invalid_metadata("repoUrl", "missing"));
        };
        Ok(Remote {
            url: url.clone(),
            credential_alias: self.credential_alias.clone(),
        })
    }

    /// Notes where HEAD is.
    pub(super) fn note_head(&mut self, head: Head) {
        self.branch = head.branch;
        self.commit = head.commit;
    }

    /// Fails when keys are set that only suspend sets: they would name a snapshot that is not ours.
    pub fn refuse_suspend_keys(&self) -> Result<(), Error> {
        for (key, value) in [
            ("suspendBranch", &self.suspend_branch),
            ("suspendCommit", &self.suspend_commit),
        ] {
            if value.is_some() {
                return Err(Error::invalid_metadata(key, "only suspend sets it"));
            }
        }
        Ok(())
    }
}
