//! Narrow verbs over the repository in the RootDir. The host does and checks them.

use crate::GitError;
pub use crate::bindings::warren::handler::git::{
    HeadPosition as Head, Remote, RestoreAs, SnapshotMade as Snapshot, WorkStatus as Status,
};

#[cfg(target_arch = "wasm32")]
use crate::bindings::warren::handler::git as host;
#[cfg(not(target_arch = "wasm32"))]
use crate::testing::git as host;

/// Makes an empty repository whose unborn HEAD is on `branch`, with `origin` when given.
pub fn init(branch: &str, origin: Option<&Remote>) -> Result<(), GitError> {
    host::init(branch, origin)
}

/// Fills the empty root with a fork of the remote; without `branch`, the remote's default one.
pub fn clone(origin: &Remote, branch: Option<&str>) -> Result<Head, GitError> {
    host::clone(origin, branch)
}

/// Fills the empty root with a fork of the remote with HEAD at `commit`, on `branch` or detached.
pub fn clone_at(origin: &Remote, branch: Option<&str>, commit: &str) -> Result<Head, GitError> {
    host::clone_at(origin, branch, commit)
}

/// Says where HEAD is.
pub fn head() -> Result<Head, GitError> {
    host::head()
}

/// Says what the working tree holds.
pub fn status() -> Result<Status, GitError> {
    host::status()
}

/// Makes a snapshot. `keep` lists paths to save although they are ignored.
pub fn snapshot(origin: &Remote, keep: &[String]) -> Result<Snapshot, GitError> {
    host::snapshot(origin, keep)
}

/// Commits the whole working tree on top of HEAD, in the host's store only; none: no change.
pub fn commit_all(origin: &Remote, message: &str) -> Result<Option<String>, GitError> {
    host::commit_all(origin, message)
}

/// Pushes a commit made by [`snapshot`] or [`commit_all`], or HEAD's own, to a ref of the remote
/// and reads it back.
///
/// `expected` is what the ref must point at now; none: it must not exist. Outside
/// `refs/heads/vance/suspend/` it must be in the commit's history.
pub fn push(
    origin: &Remote,
    commit: &str,
    ref_name: &str,
    expected: Option<&str>,
) -> Result<(), GitError> {
    host::push(origin, commit, ref_name, expected)
}

/// Fills the empty root from a snapshot. `commit` must be what the ref points at.
pub fn restore(
    origin: &Remote,
    ref_name: &str,
    commit: &str,
    lay: RestoreAs,
) -> Result<Head, GitError> {
    host::restore(origin, ref_name, commit, lay)
}

/// Reads one ref of the remote; none: it does not exist.
pub fn remote_ref(origin: &Remote, ref_name: &str) -> Result<Option<String>, GitError> {
    host::remote_ref(origin, ref_name)
}

/// Deletes a ref of the remote that points at `expected`.
pub fn delete_remote_ref(origin: &Remote, ref_name: &str, expected: &str) -> Result<(), GitError> {
    host::delete_remote_ref(origin, ref_name, expected)
}
