//! `git`: the verbs over the repository in the RootDir. The mirrors do and check them; here they
//! are taken off the executor, and end when the call does.

use std::sync::{Arc, Mutex, PoisonError};

use warren_mirror::{Head, Lay, MirrorError, Origin, Session, Snapshot, Status};
use warren_model::Receipt;
use wasmtime::component::{HasSelf, Linker};

use crate::plugin::bindings::warren::handler::git::{
    HeadPosition, Host, Remote, RestoreAs, SnapshotMade, WorkStatus, add_to_linker,
};
use crate::plugin::bindings::warren::handler::types::{GitError, Loss, RefConflict, Rejection};
use crate::plugin::convert::loss_kind;
use crate::plugin::grants::Grants;
use crate::plugin::state::CallState;

pub(crate) fn granted(grants: &Grants) -> bool {
    grants.git.is_some()
}

pub(crate) fn link(linker: &mut Linker<CallState>) -> wasmtime::Result<()> {
    add_to_linker::<_, HasSelf<CallState>>(linker, |state| state)
}

/// The git work of one call. Clones are one.
#[derive(Clone)]
pub(crate) struct GitCall(Arc<Mutex<Session>>);

impl GitCall {
    pub(crate) fn new(session: Session) -> Self {
        Self(Arc::new(Mutex::new(session)))
    }

    /// Proof that content is saved, as the session saw it.
    pub(crate) fn receipts(&self) -> Vec<Receipt> {
        let session = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        session.receipts().to_vec()
    }
}

impl CallState {
    /// Runs a verb on a thread that may block. The thread holds the call open until it is done.
    async fn verb<T: Send + 'static>(
        &mut self,
        verb: impl FnOnce(&mut Session) -> Result<T, MirrorError> + Send + 'static,
    ) -> Result<T, GitError> {
        let Some(GitCall(session)) = self.git.clone() else {
            return Err(GitError::Denied("git in this call".to_owned()));
        };
        let job = self.jobs.clone();
        let work = tokio::task::spawn_blocking(move || {
            let _job = job;
            let mut session = session.lock().unwrap_or_else(PoisonError::into_inner);
            verb(&mut session)
        });
        match work.await {
            Ok(done) => done.map_err(to_guest),
            Err(error) => {
                tracing::error!(%error, "a verb of git panicked");
                Err(GitError::Io("the host failed".to_owned()))
            }
        }
    }
}

impl Host for CallState {
    async fn init(&mut self, branch: String, origin: Option<Remote>) -> Result<(), GitError> {
        let origin = origin.map(from_guest);
        self.verb(move |git| git.init(&branch, origin.as_ref()))
            .await
    }

    async fn clone(
        &mut self,
        origin: Remote,
        branch: Option<String>,
    ) -> Result<HeadPosition, GitError> {
        let origin = from_guest(origin);
        let head = self.verb(move |git| Session::clone(git, &origin, branch.as_deref()));
        head.await.map(position)
    }

    async fn clone_at(
        &mut self,
        origin: Remote,
        branch: Option<String>,
        commit: String,
    ) -> Result<HeadPosition, GitError> {
        let origin = from_guest(origin);
        let head = self.verb(move |git| git.clone_at(&origin, branch.as_deref(), &commit));
        head.await.map(position)
    }

    async fn head(&mut self) -> Result<HeadPosition, GitError> {
        self.verb(|git| git.head()).await.map(position)
    }

    async fn status(&mut self) -> Result<WorkStatus, GitError> {
        self.verb(|git| git.status()).await.map(work_status)
    }

    async fn snapshot(
        &mut self,
        origin: Remote,
        keep: Vec<String>,
    ) -> Result<SnapshotMade, GitError> {
        let origin = from_guest(origin);
        let made = self.verb(move |git| git.snapshot(&origin, &keep));
        made.await.map(snapshot_made)
    }

    async fn commit_all(
        &mut self,
        origin: Remote,
        message: String,
    ) -> Result<Option<String>, GitError> {
        let origin = from_guest(origin);
        self.verb(move |git| git.commit_all(&origin, &message))
            .await
    }

    async fn push(
        &mut self,
        origin: Remote,
        commit: String,
        ref_name: String,
        expected: Option<String>,
    ) -> Result<(), GitError> {
        let origin = from_guest(origin);
        self.verb(move |git| git.push(&origin, &commit, &ref_name, expected.as_deref()))
            .await
    }

    async fn restore(
        &mut self,
        origin: Remote,
        ref_name: String,
        commit: String,
        lay: RestoreAs,
    ) -> Result<HeadPosition, GitError> {
        let origin = from_guest(origin);
        let lay = match lay {
            RestoreAs::WorkingTree => Lay::WorkingTree,
            RestoreAs::Branch => Lay::Branch,
        };
        let head = self.verb(move |git| git.restore(&origin, &ref_name, &commit, lay));
        head.await.map(position)
    }

    async fn remote_ref(
        &mut self,
        origin: Remote,
        ref_name: String,
    ) -> Result<Option<String>, GitError> {
        let origin = from_guest(origin);
        self.verb(move |git| git.remote_ref(&origin, &ref_name))
            .await
    }

    async fn delete_remote_ref(
        &mut self,
        origin: Remote,
        ref_name: String,
        expected: String,
    ) -> Result<(), GitError> {
        let origin = from_guest(origin);
        self.verb(move |git| git.delete_remote_ref(&origin, &ref_name, &expected))
            .await
    }
}

fn from_guest(remote: Remote) -> Origin {
    Origin {
        url: remote.url,
        credential_alias: remote.credential_alias,
    }
}

fn position(head: Head) -> HeadPosition {
    HeadPosition {
        commit: head.commit,
        branch: head.branch,
    }
}

fn work_status(status: Status) -> WorkStatus {
    WorkStatus {
        head: position(status.head),
        staged: status.staged,
        modified: status.modified,
        untracked: status.untracked,
        unpushed: status.unpushed,
    }
}

fn snapshot_made(made: Snapshot) -> SnapshotMade {
    let loss = made.loss.into_iter().map(|loss| Loss {
        kind: loss_kind(loss.kind),
        path: loss.path,
        bytes: loss.bytes,
    });
    SnapshotMade {
        commit: made.commit,
        head: position(made.head),
        saved: made.saved,
        loss: loss.collect(),
    }
}

/// The guest gets the case and its facts; causes inside the host are for the log.
fn to_guest(error: MirrorError) -> GitError {
    use MirrorError as E;
    match error {
        E::Denied(what) => GitError::Denied(what),
        E::Unconfined(why) => {
            tracing::error!(
                error = &why as &(dyn std::error::Error + 'static),
                "git work cannot be confined"
            );
            GitError::Denied(format!("git work that cannot be confined: {why}"))
        }
        E::InvalidArgument { what, why } => GitError::InvalidArgument(format!("{what}: {why}")),
        E::NotARepository => GitError::NotARepository,
        E::UnsafeRepository(how) => GitError::UnsafeRepository(how),
        E::UnsupportedFormat(format) => GitError::UnsupportedFormat(format),
        E::OperationInProgress(name) => GitError::OperationInProgress(name),
        E::NestedRepository(paths) => GitError::NestedRepository(paths),
        E::Locked(what) => GitError::Locked(what),
        E::AuthenticationFailed(what) => GitError::AuthenticationFailed(what),
        error @ E::HostKeyUnknown { .. } => GitError::HostKeyUnknown(error.to_string()),
        error @ E::HostKeyChanged { .. } => GitError::HostKeyChanged(error.to_string()),
        E::Unreachable(what) => GitError::Unreachable(what),
        E::Timeout(what) | E::Cancelled(what) => GitError::Timeout(what),
        E::Rejected { ref_name, message } => GitError::Rejected(Rejection { ref_name, message }),
        E::Missing(what) => GitError::Missing(what),
        E::Conflict {
            ref_name,
            expected,
            found,
        } => GitError::Conflict(RefConflict {
            ref_name,
            expected,
            found,
        }),
        E::TooLarge(what) => GitError::TooLarge(what),
        E::NoSpace(what) => GitError::NoSpace(what),
        error => {
            tracing::warn!(
                error = &error as &(dyn std::error::Error + 'static),
                "file work of git failed"
            );
            GitError::Io(error.to_string())
        }
    }
}
