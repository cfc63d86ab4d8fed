//! `git`: the verbs over the repository in the RootDir. The mirrors do and check them; here they
//! are taken off the executor, and end when the call does.

use std::sync::{Arc, Mutex, PoisonError};

use warren_mirror::{Head, Lay, MirrorError, Origin, Session, Snapshot, Status};
use warren_model::Receipt;
use wasmtime::component::{HasSelf, Linker};

use crate::plugin::audit::{End, FILLING, Open, Start, Target, Unrecorded, Use};
use crate::plugin::bindings::warren::handler::git::{
    HeadPosition, Host, Remote, RestoreAs, SnapshotMade, WorkStatus, add_to_linker,
};
use crate::plugin::bindings::warren::handler::types::{GitError, Loss, RefConflict, Rejection};
use crate::plugin::convert::loss_kind;
use crate::plugin::grants::{Grants, RootAccess};
use crate::plugin::state::CallState;

/// Name of the capability in the audit log.
const GIT: &str = "git";

pub(crate) fn granted(grants: &Grants) -> bool {
    grants.git.is_some()
}

pub(crate) fn link(linker: &mut Linker<CallState>) -> wasmtime::Result<()> {
    add_to_linker::<_, HasSelf<CallState>>(linker, |state| state)
}

/// The git work of one call. Clones are one.
#[derive(Clone)]
pub(crate) struct GitCall {
    session: Arc<Mutex<Session>>,
    access: RootAccess,
}

impl GitCall {
    /// `access` is what the plugin may do in its RootDir, whoever does it.
    pub(crate) fn new(session: Session, access: RootAccess) -> Self {
        Self {
            session: Arc::new(Mutex::new(session)),
            access,
        }
    }

    fn may(&self, verb: &str) -> bool {
        match self.access {
            RootAccess::None => false,
            RootAccess::ReadOnly => !FILLING.contains(&verb),
            RootAccess::ReadWrite => true,
        }
    }

    /// Proof that content is saved, as the session saw it.
    pub(crate) fn receipts(&self) -> Vec<Receipt> {
        let session = self.session.lock().unwrap_or_else(PoisonError::into_inner);
        session.receipts().to_vec()
    }
}

impl CallState {
    /// Runs a verb on a thread that may block. The thread holds the call open until it is done.
    async fn verb<T: Send + 'static>(
        &mut self,
        what: Use,
        verb: impl FnOnce(&mut Session) -> Result<T, MirrorError> + Send + 'static,
    ) -> Result<T, GitError> {
        let granted = self.git.clone().filter(|git| git.may(what.verb));
        let Some(GitCall { session, .. }) = granted else {
            if let Some(trail) = &self.trail {
                let refused = trail.begin(Use {
                    start: Start::Unrecorded,
                    ..what
                });
                let end = End::failed("GitDenied", true);
                let recorded = refused.and_then(|open| open.end(end, &[]));
                recorded.map_err(|Unrecorded| unrecorded())?;
            }
            return Err(GitError::Denied("this verb of git in this call".to_owned()));
        };
        let (job, trail) = (self.jobs.clone(), self.trail.clone());
        let work = tokio::task::spawn_blocking(move || {
            let _job = job;
            // May wait for the disk, so it is done here. A use that nobody waits for any more is
            // recorded all the same: with how it ended.
            let open = trail.map(|trail| trail.begin(what)).transpose()?;
            let mut session = session.lock().unwrap_or_else(PoisonError::into_inner);
            let done = verb(&mut session);
            match open {
                Some(open) => record(open, &done).map(|()| done),
                None => Ok(done),
            }
        });
        match work.await {
            Ok(Ok(done)) => done.map_err(to_guest),
            Ok(Err(Unrecorded)) => Err(unrecorded()),
            Err(error) => {
                tracing::error!(%error, "a verb of git panicked");
                Err(GitError::Io("the host failed".to_owned()))
            }
        }
    }
}

fn unrecorded() -> GitError {
    GitError::Io("the audit log cannot be written".to_owned())
}

fn record<T>(open: Open, done: &Result<T, MirrorError>) -> Result<(), Unrecorded> {
    let Err(error) = done else {
        return open.end(End::OK, &[]);
    };
    // Refused before anybody was asked. Of what is no URL at all, nothing more is said.
    let is_denied = matches!(
        error,
        MirrorError::Denied(_) | MirrorError::InvalidArgument { .. }
    );
    let why = matches!(error, MirrorError::Denied(_)).then(|| error.to_string());
    let end = End {
        detail: why.as_deref(),
        ..End::failed(error.code(), is_denied)
    };
    open.end(end, &[])
}

/// A verb that works in the RootDir only.
fn local(verb: &'static str) -> Use {
    Use::new(GIT, verb, Start::Unrecorded)
}

/// A verb that talks to a remote.
fn remote(verb: &'static str, start: Start, origin: &Origin, ref_name: Option<&str>) -> Use {
    Use::new(GIT, verb, start).on(Target::Remote {
        url: (&*origin.url).into(),
        ref_name: ref_name.map(Into::into),
        credential: origin.credential_alias.as_deref().map(Into::into),
    })
}

impl Host for CallState {
    async fn init(&mut self, branch: String, origin: Option<Remote>) -> Result<(), GitError> {
        let origin = origin.map(from_guest);
        let what = match &origin {
            Some(origin) => remote("init", Start::Unrecorded, origin, None),
            None => local("init"),
        };
        self.verb(what, move |git| git.init(&branch, origin.as_ref()))
            .await
    }

    async fn clone(
        &mut self,
        origin: Remote,
        branch: Option<String>,
    ) -> Result<HeadPosition, GitError> {
        let origin = from_guest(origin);
        let what = remote("clone", Start::Recorded, &origin, branch.as_deref());
        let head = self.verb(what, move |git| {
            Session::clone(git, &origin, branch.as_deref())
        });
        head.await.map(position)
    }

    async fn clone_at(
        &mut self,
        origin: Remote,
        branch: Option<String>,
        commit: String,
    ) -> Result<HeadPosition, GitError> {
        let origin = from_guest(origin);
        let what = remote("clone-at", Start::Recorded, &origin, branch.as_deref());
        let head = self.verb(what, move |git| {
            git.clone_at(&origin, branch.as_deref(), &commit)
        });
        head.await.map(position)
    }

    async fn head(&mut self) -> Result<HeadPosition, GitError> {
        self.verb(local("head"), |git| git.head())
            .await
            .map(position)
    }

    async fn status(&mut self) -> Result<WorkStatus, GitError> {
        self.verb(local("status"), |git| git.status())
            .await
            .map(work_status)
    }

    async fn snapshot(
        &mut self,
        origin: Remote,
        keep: Vec<String>,
    ) -> Result<SnapshotMade, GitError> {
        let origin = from_guest(origin);
        let what = remote("snapshot", Start::Recorded, &origin, None);
        let made = self.verb(what, move |git| git.snapshot(&origin, &keep));
        made.await.map(snapshot_made)
    }

    async fn commit_all(
        &mut self,
        origin: Remote,
        message: String,
    ) -> Result<Option<String>, GitError> {
        let origin = from_guest(origin);
        let what = remote("commit-all", Start::Recorded, &origin, None);
        self.verb(what, move |git| git.commit_all(&origin, &message))
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
        let what = remote("push", Start::Durable, &origin, Some(&ref_name));
        self.verb(what, move |git| {
            git.push(&origin, &commit, &ref_name, expected.as_deref())
        })
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
        let what = remote("restore", Start::Recorded, &origin, Some(&ref_name));
        let head = self.verb(what, move |git| {
            git.restore(&origin, &ref_name, &commit, lay)
        });
        head.await.map(position)
    }

    async fn remote_ref(
        &mut self,
        origin: Remote,
        ref_name: String,
    ) -> Result<Option<String>, GitError> {
        let origin = from_guest(origin);
        let what = remote("remote-ref", Start::Recorded, &origin, Some(&ref_name));
        self.verb(what, move |git| git.remote_ref(&origin, &ref_name))
            .await
    }

    async fn delete_remote_ref(
        &mut self,
        origin: Remote,
        ref_name: String,
        expected: String,
    ) -> Result<(), GitError> {
        let origin = from_guest(origin);
        let what = remote(
            "delete-remote-ref",
            Start::Durable,
            &origin,
            Some(&ref_name),
        );
        self.verb(what, move |git| {
            git.delete_remote_ref(&origin, &ref_name, &expected)
        })
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
