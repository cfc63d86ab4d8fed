//! `manifest.json` of a snapshot (format 1, see ARCHITECTURE.md).

use std::collections::BTreeMap;

use serde::{Deserialize, Serialize};

/// Version of the snapshot format that this host writes and reads.
pub(crate) const FORMAT: u32 = 1;

/// Where HEAD is.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Head {
    /// Commit id in hex; none: the branch has no commit yet.
    pub commit: Option<String>,
    /// Short name of the branch; none: detached.
    pub branch: Option<String>,
}

/// What a branch tracks: `branch.<name>.remote` and `branch.<name>.merge`.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Upstream {
    /// Name of the remote.
    pub remote: String,
    /// Full name of the ref on the remote.
    pub merge: String,
}

/// One stash, the newest first.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct StashEntry {
    /// Commit id in hex.
    pub commit: String,
    /// Its reflog message.
    pub message: String,
}

/// Index entries with flags that a tree does not carry. Paths are escaped.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase", default)]
pub struct Flags {
    /// `git add -N`.
    pub intent_to_add: Vec<String>,
    /// `git update-index --assume-unchanged`.
    pub assume_unchanged: Vec<String>,
    /// `git update-index --skip-worktree`.
    pub skip_worktree: Vec<String>,
}

/// What a snapshot carries beside its two trees. Paths and names are escaped with
/// `warren_disk::text::escape`.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase", default)]
pub struct Manifest {
    /// Version of the format.
    pub format: u32,
    /// Where HEAD was.
    pub head: Head,
    /// Every local ref (`refs/heads/*`, `refs/tags/*`, `refs/notes/*`) and its id in hex.
    pub refs: BTreeMap<String, String>,
    /// Every remote-tracking ref and its id in hex.
    pub remote_refs: BTreeMap<String, String>,
    /// What each branch tracks.
    pub upstream: BTreeMap<String, Upstream>,
    /// The stash, the newest first.
    pub stash: Vec<StashEntry>,
    /// Index flags.
    pub flags: Flags,
    /// Permission bits of files and directories where they are not what git would make
    /// (644, 755 for an executable; directories 755), by path.
    pub modes: BTreeMap<String, u32>,
    /// Directories without files.
    pub empty_dirs: Vec<String>,
}
