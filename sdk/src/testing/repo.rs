//! A remote and a repository that exist in memory only.

use std::cell::RefCell;
use std::collections::BTreeMap;
use std::path::Path;
use std::rc::Rc;

use super::{GitCall, GitReply, Host};
use crate::git::{Head, Snapshot, Status};
use crate::{GitError, RefConflict};

/// What a fake `git` answers from: refs of one remote, and the state of the RootDir.
///
/// Pushes compare and set, as the host's do. Clones and restores write [`FakeRepo::files`].
#[derive(Debug, Clone)]
pub struct FakeRepo {
    /// Refs of the remote, by full name.
    pub refs: BTreeMap<String, String>,
    /// Files of the commit that a clone or restore lays out: path and content.
    pub files: Vec<(String, String)>,
    /// Where HEAD of the RootDir is.
    pub head: Head,
    /// What `status` says.
    pub status: Status,
    /// What `snapshot` makes.
    pub snapshot: Snapshot,
    /// What `commit-all` makes.
    pub commit: Option<String>,
    /// An error for the next push; taken when it is used.
    pub fail_push: Option<GitError>,
}

impl FakeRepo {
    /// A remote with `main` at commit `base`, and a clean fork of it whose snapshot is `snap`.
    pub fn new() -> Self {
        let head = Head {
            commit: Some("base".to_owned()),
            branch: Some("main".to_owned()),
        };
        Self {
            refs: BTreeMap::from([("refs/heads/main".to_owned(), "base".to_owned())]),
            files: Vec::new(),
            status: Status {
                head: head.clone(),
                staged: 0,
                modified: 0,
                untracked: 0,
                unpushed: 0,
            },
            snapshot: Snapshot {
                commit: "snap".to_owned(),
                head: head.clone(),
                saved: false,
                loss: Vec::new(),
            },
            head,
            commit: None,
            fail_push: None,
        }
    }

    /// Lets `host` answer from this repository, which the test can go on changing.
    pub fn install(self, host: &Host) -> Rc<RefCell<Self>> {
        let repo = Rc::new(RefCell::new(self));
        let answering = Rc::clone(&repo);
        host.on_git(move |call, root| answering.borrow_mut().answer(call, root));
        repo
    }

    fn answer(&mut self, call: &GitCall, root: &Path) -> Result<GitReply, GitError> {
        match call {
            GitCall::Init { .. } => Ok(GitReply::Done),
            GitCall::Clone { .. } => self.lay(root),
            GitCall::CloneAt { branch, commit, .. } => {
                self.head.branch.clone_from(branch);
                self.head.commit = Some(commit.clone());
                self.lay(root)
            }
            GitCall::Restore {
                ref_name, commit, ..
            } => {
                match self.refs.get(ref_name) {
                    None => return Err(GitError::Missing(ref_name.clone())),
                    Some(_) => self.compare(ref_name, Some(commit))?,
                }
                self.lay(root)
            }
            GitCall::Head => Ok(GitReply::Head(self.head.clone())),
            GitCall::Status => Ok(GitReply::Status(self.status.clone())),
            GitCall::Snapshot { .. } => Ok(GitReply::Snapshot(self.snapshot.clone())),
            GitCall::CommitAll { .. } => Ok(GitReply::Commit(self.commit.clone())),
            GitCall::Push {
                commit,
                ref_name,
                expected,
                ..
            } => {
                if let Some(error) = self.fail_push.take() {
                    return Err(error);
                }
                if self.refs.get(ref_name) != Some(commit) {
                    self.compare(ref_name, expected.as_ref())?;
                }
                self.refs.insert(ref_name.clone(), commit.clone());
                Ok(GitReply::Done)
            }
            GitCall::RemoteRef { ref_name, .. } => {
                Ok(GitReply::Commit(self.refs.get(ref_name).cloned()))
            }
            GitCall::DeleteRemoteRef {
                ref_name, expected, ..
            } => {
                self.compare(ref_name, Some(expected))?;
                self.refs.remove(ref_name);
                Ok(GitReply::Done)
            }
        }
    }

    fn lay(&self, root: &Path) -> Result<GitReply, GitError> {
        for (path, content) in &self.files {
            let path = root.join(path);
            path.parent()
                .map_or(Ok(()), std::fs::create_dir_all)
                .and_then(|()| std::fs::write(&path, content))
                .map_err(|error| GitError::Io(error.to_string()))?;
        }
        Ok(GitReply::Head(self.head.clone()))
    }

    fn compare(&self, ref_name: &str, expected: Option<&String>) -> Result<(), GitError> {
        let found = self.refs.get(ref_name);
        if found == expected {
            return Ok(());
        }
        Err(GitError::Conflict(RefConflict {
            ref_name: ref_name.to_owned(),
            expected: expected.cloned(),
            found: found.cloned(),
        }))
    }
}

impl Default for FakeRepo {
    fn default() -> Self {
        Self::new()
    }
}
