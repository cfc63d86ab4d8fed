//! `git` as the test answers it.

use super::host::installed;
use crate::GitError;
use crate::git::{Head, Remote, RestoreAs, Snapshot, Status};

/// One call of `git`.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum GitCall {
    /// [`crate::git::init`].
    Init {
        /// Branch of the unborn HEAD.
        branch: String,
        /// Remote `origin`.
        origin: Option<Remote>,
    },
    /// [`crate::git::clone`].
    Clone {
        /// Remote to fork.
        origin: Remote,
        /// Branch to check out.
        branch: Option<String>,
    },
    /// [`crate::git::clone_at`].
    CloneAt {
        /// Remote to fork.
        origin: Remote,
        /// Branch for HEAD.
        branch: Option<String>,
        /// Commit for HEAD.
        commit: String,
    },
    /// [`crate::git::head`].
    Head,
    /// [`crate::git::status`].
    Status,
    /// [`crate::git::snapshot`].
    Snapshot {
        /// Remote that may have some of it.
        origin: Remote,
        /// Ignored paths to save.
        keep: Vec<String>,
    },
    /// [`crate::git::commit_all`].
    CommitAll {
        /// Remote that may have some of it.
        origin: Remote,
        /// Message of the commit.
        message: String,
    },
    /// [`crate::git::push`].
    Push {
        /// Remote to push to.
        origin: Remote,
        /// Commit to push.
        commit: String,
        /// Ref to set.
        ref_name: String,
        /// What the ref must point at.
        expected: Option<String>,
    },
    /// [`crate::git::restore`].
    Restore {
        /// Remote that holds the snapshot.
        origin: Remote,
        /// Ref of the snapshot.
        ref_name: String,
        /// Commit of the snapshot.
        commit: String,
        /// How the tree is laid.
        lay: RestoreAs,
    },
    /// [`crate::git::remote_ref`].
    RemoteRef {
        /// Remote to ask.
        origin: Remote,
        /// Ref to read.
        ref_name: String,
    },
    /// [`crate::git::delete_remote_ref`].
    DeleteRemoteRef {
        /// Remote to change.
        origin: Remote,
        /// Ref to delete.
        ref_name: String,
        /// What the ref must point at.
        expected: String,
    },
}

/// What a test answers to a [`GitCall`] that succeeds.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum GitReply {
    /// To `init`, `push` and `delete_remote_ref`.
    Done,
    /// To `clone`, `clone_at`, `head` and `restore`.
    Head(Head),
    /// To `status`.
    Status(Status),
    /// To `snapshot`.
    Snapshot(Snapshot),
    /// To `commit_all` and `remote_ref`.
    Commit(Option<String>),
}

fn ask(call: GitCall) -> Result<GitReply, GitError> {
    let host = installed();
    host.borrow_mut().git_calls.push(call.clone());
    // Taken out while it runs: it may ask the host itself.
    let Some(mut answer) = host.borrow_mut().on_git.take() else {
        return Err(GitError::Denied("git".to_owned()));
    };
    let result = answer(&call, &super::root());
    host.borrow_mut().on_git.get_or_insert(answer);
    result
}

macro_rules! expect {
    ($call:expr, $reply:pat => $value:expr) => {
        match ask($call)? {
            $reply => Ok($value),
            other => panic!("the test's answer {other:?} is of another call"),
        }
    };
}

pub(crate) fn init(branch: &str, origin: Option<&Remote>) -> Result<(), GitError> {
    let call = GitCall::Init {
        branch: branch.to_owned(),
        origin: origin.cloned(),
    };
    expect!(call, GitReply::Done => ())
}

pub(crate) fn clone(origin: &Remote, branch: Option<&str>) -> Result<Head, GitError> {
    let call = GitCall::Clone {
        origin: origin.clone(),
        branch: branch.map(str::to_owned),
    };
    expect!(call, GitReply::Head(head) => head)
}

pub(crate) fn clone_at(
    origin: &Remote,
    branch: Option<&str>,
    commit: &str,
) -> Result<Head, GitError> {
    let call = GitCall::CloneAt {
        origin: origin.clone(),
        branch: branch.map(str::to_owned),
        commit: commit.to_owned(),
    };
    expect!(call, GitReply::Head(head) => head)
}

pub(crate) fn head() -> Result<Head, GitError> {
    expect!(GitCall::Head, GitReply::Head(head) => head)
}

pub(crate) fn status() -> Result<Status, GitError> {
    expect!(GitCall::Status, GitReply::Status(status) => status)
}

pub(crate) fn snapshot(origin: &Remote, keep: &[String]) -> Result<Snapshot, GitError> {
    let call = GitCall::Snapshot {
        origin: origin.clone(),
        keep: keep.to_vec(),
    };
    expect!(call, GitReply::Snapshot(snapshot) => snapshot)
}

pub(crate) fn commit_all(origin: &Remote, message: &str) -> Result<Option<String>, GitError> {
    let call = GitCall::CommitAll {
        origin: origin.clone(),
        message: message.to_owned(),
    };
    expect!(call, GitReply::Commit(commit) => commit)
}

pub(crate) fn push(
    origin: &Remote,
    commit: &str,
    ref_name: &str,
    expected: Option<&str>,
) -> Result<(), GitError> {
    let call = GitCall::Push {
        origin: origin.clone(),
        commit: commit.to_owned(),
        ref_name: ref_name.to_owned(),
        expected: expected.map(str::to_owned),
    };
    expect!(call, GitReply::Done => ())
}

pub(crate) fn restore(
    origin: &Remote,
    ref_name: &str,
    commit: &str,
    lay: RestoreAs,
) -> Result<Head, GitError> {
    let call = GitCall::Restore {
        origin: origin.clone(),
        ref_name: ref_name.to_owned(),
        commit: commit.to_owned(),
        lay,
    };
    expect!(call, GitReply::Head(head) => head)
}

pub(crate) fn remote_ref(origin: &Remote, ref_name: &str) -> Result<Option<String>, GitError> {
    let call = GitCall::RemoteRef {
        origin: origin.clone(),
        ref_name: ref_name.to_owned(),
    };
    expect!(call, GitReply::Commit(commit) => commit)
}

pub(crate) fn delete_remote_ref(
    origin: &Remote,
    ref_name: &str,
    expected: &str,
) -> Result<(), GitError> {
    let call = GitCall::DeleteRemoteRef {
        origin: origin.clone(),
        ref_name: ref_name.to_owned(),
        expected: expected.to_owned(),
    };
    expect!(call, GitReply::Done => ())
}
