//! The verbs of the `git` capability for one operation on one RootDir.

mod admit;
mod fill;
mod local;
mod publish;
mod reach;

use std::collections::{BTreeSet, HashMap, HashSet};
use std::fmt;
use std::path::PathBuf;
use std::rc::Rc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex, OnceLock, PoisonError};
use std::time::{Duration, Instant};

use git2::Oid;
use warren_disk::Dir;
use warren_disk::budget::Budget;
use warren_model::{Loss, Receipt};
use warren_repo::{Bounds, Head};

use crate::confine::{self, Resolver};
use crate::mirror::{Held, Mirror, Wait};
use crate::mirrors::Shared;
use crate::progress::ProgressSink;
use crate::scratch::{Folder, Scratch};
use crate::wire::{Judge, Limits, Wire, WireSpec};
use crate::{MirrorError, RefPatterns, UrlPolicy};
use admit::Admitted;

/// What a session may do, and for whom.
pub struct SessionSpec {
    /// Tenant that owns the Project; mirrors are never shared between tenants.
    pub tenant: String,
    /// The RootDir.
    pub root: Dir,
    /// Its absolute path: libgit2 takes no handle.
    pub root_path: PathBuf,
    /// Its name, for the message of a snapshot.
    pub dir_name: String,
    /// Whether nothing outside of the host may change: `push` and `delete_remote_ref` only look.
    pub dry_run: bool,
    /// Refs that may be pushed and deleted: every one of these must allow it, at least one.
    pub push_refs: Vec<RefPatterns>,
    /// What narrows the host's own policy: every one of these must let a URL through.
    pub remotes: Vec<UrlPolicy>,
    /// Credential aliases that may be used; none: all.
    pub aliases: Option<BTreeSet<String>>,
    /// Most bytes that one verb may receive, say what is left of a quota; the host's limit holds
    /// when it is lower.
    pub received_bytes_max: Option<u64>,
    /// What the RootDir may take of the disk.
    pub budget: Budget,
    /// Whether work may go on where threads cannot be confined, or must not be.
    pub unconfined: bool,
    /// Takes reports, on the thread that works.
    pub progress: ProgressSink,
    /// When every verb must have ended.
    pub deadline: Instant,
    /// Set by a caller that gives up.
    pub cancel: Arc<AtomicBool>,
}

impl fmt::Debug for SessionSpec {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("SessionSpec")
            .field("tenant", &self.tenant)
            .field("root_path", &self.root_path)
            .field("dir_name", &self.dir_name)
            .field("dry_run", &self.dry_run)
            .finish_non_exhaustive()
    }
}

/// Where a repository comes from.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Origin {
    /// URL without credentials.
    pub url: String,
    /// Name of a credential in the host's store.
    pub credential_alias: Option<String>,
}

/// A snapshot of everything a person would miss.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Snapshot {
    /// Commit id in hex. The same content gives the same id.
    pub commit: String,
    /// Where HEAD was.
    pub head: Head,
    /// Whether the remote already has all of it.
    pub saved: bool,
    /// What it leaves out.
    pub loss: Vec<Loss>,
}

/// How `restore` lays the tree.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Lay {
    /// Exactly as it was.
    WorkingTree,
    /// HEAD on the snapshot's own commit, on a branch of the ref's name.
    Branch,
}

/// The git work of one operation on one RootDir. Its scratch repositories go with it.
///
/// Every verb blocks, and ends at the session's deadline or when it is cancelled.
#[derive(Debug)]
pub struct Session {
    shared: Arc<Shared>,
    spec: SessionSpec,
    /// Where snapshots and commits are built, by mirror.
    outboxes: Mutex<HashMap<String, Arc<Scratch>>>,
    /// Holds them; made when it is first wanted.
    folder: OnceLock<Folder>,
    /// Commits that `snapshot` made.
    snapshots: HashSet<Oid>,
    receipts: Vec<Receipt>,
}

/// A remote that work may go on with.
struct Granted {
    key: String,
    wire: Rc<Wire>,
    mirror: Mirror,
}

impl Granted {
    fn url(&self) -> String {
        self.wire.url()
    }
}

/// What a verb does.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Aim {
    /// Fills the RootDir.
    Fill,
    /// Looks at the RootDir and at the remote.
    Look,
    /// Looks at the RootDir and changes the remote.
    Publish,
}

impl Session {
    pub(crate) fn new(shared: Arc<Shared>, spec: SessionSpec) -> Self {
        Self {
            shared,
            spec,
            outboxes: Mutex::default(),
            folder: OnceLock::new(),
            snapshots: HashSet::new(),
            receipts: Vec::new(),
        }
    }

    /// Proof that content is saved, as this session saw it: a snapshot pushed and read back, or one
    /// that the remote had already.
    pub fn receipts(&self) -> &[Receipt] {
        &self.receipts
    }

    /// Does a verb's work with a remote on a thread of its own, which reaches the RootDir, the
    /// remote's mirror, this session's boxes and the remote.
    fn with_remote<T: Send>(
        &self,
        origin: &Origin,
        aim: Aim,
        work: impl FnOnce(&Granted) -> Result<T, MirrorError> + Send,
    ) -> Result<T, MirrorError> {
        let admitted = self.admit(origin)?;
        self.with_admitted(admitted, origin, aim, work)
    }

    fn with_admitted<T: Send>(
        &self,
        admitted: Admitted,
        origin: &Origin,
        aim: Aim,
        work: impl FnOnce(&Granted) -> Result<T, MirrorError> + Send,
    ) -> Result<T, MirrorError> {
        let reach = self.reach(&admitted, aim)?;
        let spec = Seed {
            limits: self.limits(),
            bounds: self.bounds(aim),
            progress: Arc::clone(&self.spec.progress),
            fills: aim == Aim::Fill,
            judge: self.judge_hops(origin),
        };
        let url = admitted.permit.url.clone();
        confine::run(&reach, Some(&url), &self.bounds(aim), move |resolver| {
            work(&spec.plant(admitted, resolver))
        })
    }

    /// Refuses to begin what nobody waits for any more.
    fn check_time(&self) -> Result<(), MirrorError> {
        if self.spec.cancel.load(Ordering::Relaxed) {
            return Err(MirrorError::Cancelled("before it began".to_owned()));
        }
        if Instant::now() >= self.spec.deadline {
            return Err(MirrorError::Timeout("there was no time left".to_owned()));
        }
        Ok(())
    }

    /// How long to wait for another operation on the same mirror.
    fn wait(&self) -> Wait {
        let most = Duration::from_millis(self.shared.limits.lock_timeout_ms);
        Wait(self.spec.deadline.min(Instant::now() + most))
    }

    fn limits(&self) -> Limits {
        let mut limits = self.shared.limits;
        if let Some(max) = self.spec.received_bytes_max {
            limits.received_bytes_max = limits.received_bytes_max.min(max);
        }
        limits
    }

    /// What work on repositories keeps within. Saving goes on when the disk is past its limit: that
    /// is what makes room.
    fn bounds(&self, aim: Aim) -> Bounds {
        Bounds {
            deadline: Some(self.spec.deadline),
            cancel: Some(Arc::clone(&self.spec.cancel)),
            root: self.spec.budget.clone(),
            store: match aim {
                Aim::Fill => self.shared.store.clone(),
                Aim::Look | Aim::Publish => Budget::unlimited(),
            },
        }
    }

    /// The folder of this session's boxes.
    fn folder(&self) -> Result<&Folder, MirrorError> {
        if let Some(folder) = self.folder.get() {
            return Ok(folder);
        }
        let made = Folder::new(&self.shared.scratch, &self.shared.scratch_path)?;
        Ok(self.folder.get_or_init(|| made))
    }

    fn scratch(&self, upstream: Option<&Held>) -> Result<Scratch, MirrorError> {
        self.folder()?
            .make(upstream.map(|held| held.path.as_path()))
    }

    /// The outbox over a mirror, made when it is first wanted.
    fn outbox(&self, key: &str, held: &Held) -> Result<Arc<Scratch>, MirrorError> {
        let mut outboxes = self.outboxes.lock().unwrap_or_else(PoisonError::into_inner);
        if let Some(made) = outboxes.get(key) {
            return Ok(Arc::clone(made));
        }
        let made = Arc::new(self.scratch(Some(held))?);
        outboxes.insert(key.to_owned(), Arc::clone(&made));
        Ok(made)
    }

    /// Files written, reported as progress.
    fn files_progress(&self) -> impl FnMut(u64, u64) + use<> {
        let progress = Arc::clone(&self.spec.progress);
        move |done, total| {
            progress(crate::Progress {
                stage: "checkout",
                done,
                total: Some(total),
            });
        }
    }
}

/// What a [`Wire`] is made of on the thread that works.
struct Seed {
    judge: Judge,
    limits: Limits,
    bounds: Bounds,
    progress: ProgressSink,
    fills: bool,
}

impl Seed {
    fn plant(self, admitted: Admitted, resolver: Resolver) -> Granted {
        let wire = Wire::new(WireSpec {
            permit: admitted.permit,
            judge: self.judge,
            login: admitted.login,
            known_hosts: admitted.known_hosts,
            resolver,
            limits: self.limits,
            bounds: self.bounds,
            fills: self.fills,
            progress: self.progress,
        });
        Granted {
            key: admitted.key,
            wire,
            mirror: admitted.mirror,
        }
    }
}

/// Ids of an upstream's refs below a prefix.
fn ids(held: &Held, prefix: &str) -> Result<Vec<(String, Oid)>, MirrorError> {
    held.upstream
        .refs
        .iter()
        .filter(|(name, _)| name.starts_with(prefix))
        .map(|(name, id)| {
            let id = Oid::from_str(id)
                .map_err(|error| MirrorError::git("read the mirror's refs", error))?;
            Ok((name.clone(), id))
        })
        .collect()
}

#[cfg(test)]
mod tests {
    #[test]
    fn a_session_can_work_on_another_thread() {
        fn check<T: Send>() {}
        check::<super::Session>();
    }
}
