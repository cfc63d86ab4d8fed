//! The metadata keys.

use serde::{Deserialize, Serialize};
use warren_sdk::{Error, worktree};

/// The metadata keys of a `python` RootDir: those of a fork, and the interpreter.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct Settings {
    /// Absolute path of the interpreter; none: the Pod's own.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub python_path: Option<String>,
    /// The fork; without `repoUrl` the sources are a repository of their own.
    #[serde(flatten)]
    pub git: worktree::Settings,
}

impl Settings {
    /// Fails on keys that mean nothing without a remote: whoever sets them expects one.
    pub(crate) fn refuse_what_needs_a_remote(&self) -> Result<(), Error> {
        self.git.refuse_suspend_keys()?;
        let reason = "it needs `repoUrl`";
        if self.git.commit.is_some() {
            return Err(Error::invalid_metadata("commit", reason));
        }
        if self.git.commit_on_close {
            return Err(Error::invalid_metadata("commitOnClose", reason));
        }
        Ok(())
    }
}
