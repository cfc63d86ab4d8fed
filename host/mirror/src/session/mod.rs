//! The verbs of the `git` capability for one operation on one RootDir.

mod fill;
mod local;
mod publish;

use std::collections::{BTreeSet, HashMap, HashSet};
use std::fmt;
use std::path::PathBuf;
use std::rc::Rc;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::{Duration, Instant};

use git2::Oid;
use warren_disk::Dir;
use warren_model::{Loss, Receipt};
use warren_repo::Head;

use crate::mirror::{self, Held, Mirror, Wait};
use crate::mirrors::Shared;
use crate::policy::Permit;
use crate::progress::ProgressSink;
use crate::remote_url::Scheme;
use crate::scratch::Scratch;
use crate::wire::{Wire, WireSpec};
use crate::{MirrorError, RefPatterns};

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
    /// Refs that may be pushed and deleted.
    pub push_refs: RefPatterns,
    /// Credential aliases that may be used; none: all.
    pub aliases: Option<BTreeSet<String>>,
    /// Most bytes that one verb may receive, say what is left of a quota; the host's limit holds
    /// when it is lower.
    pub received_bytes_max: Option<u64>,
    /// Takes reports.
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
    outboxes: HashMap<String, Scratch>,
    /// Commits that `snapshot` made.
    snapshots: HashSet<Oid>,
    receipts: Vec<Receipt>,
}

/// A remote that the policy granted.
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

impl Session {
    pub(crate) fn new(shared: Arc<Shared>, spec: SessionSpec) -> Self {
        Self {
            shared,
            spec,
            outboxes: HashMap::new(),
            snapshots: HashSet::new(),
            receipts: Vec::new(),
        }
    }

    /// Proof that content is saved, as this session saw it: a snapshot pushed and read back, or one
    /// that the remote had already.
    pub fn receipts(&self) -> &[Receipt] {
        &self.receipts
    }

    /// Holds a remote against the policy; nothing is asked of anybody.
    fn permit(&self, origin: &Origin) -> Result<Permit, MirrorError> {
        let permit = self.shared.policy.permit(&origin.url)?;
        if let Some(alias) = &origin.credential_alias {
            let granted = self
                .spec
                .aliases
                .as_ref()
                .is_none_or(|aliases| aliases.contains(alias));
            if !granted {
                let shown = warren_disk::text::excerpt(alias.as_bytes(), 100);
                return Err(MirrorError::Denied(format!("credential `{shown}`")));
            }
            self.shared.credentials.check(alias, &permit.url)?;
        }
        if permit.url.scheme == Scheme::File {
            self.check_file(&permit)?;
        }
        Ok(permit)
    }

    /// A listed path must not lead elsewhere by a link.
    fn check_file(&self, permit: &Permit) -> Result<(), MirrorError> {
        let path = &permit.url.path;
        let real = std::fs::canonicalize(path)
            .map_err(|_| MirrorError::Unreachable(format!("there is nothing at `{path}`")))?;
        let listed = real
            .to_str()
            .is_some_and(|real| self.shared.policy.check(&format!("file://{real}")).is_ok());
        if listed {
            Ok(())
        } else {
            Err(MirrorError::Denied(format!("`{path}` leads elsewhere")))
        }
    }

    /// Grants a remote and reads its credential.
    fn grant(&self, origin: &Origin) -> Result<Granted, MirrorError> {
        let permit = self.permit(origin)?;
        self.check_time()?;
        let url = permit.url.to_string();
        let alias = origin.credential_alias.as_deref();
        let login = alias
            .map(|alias| self.shared.credentials.login(alias, &permit.url))
            .transpose()?;
        let key = mirror::key(&self.spec.tenant, &url, alias);
        let mirror = Mirror::open(&self.shared.mirrors, &self.shared.mirrors_path, &key)?;
        let mut limits = self.shared.limits;
        if let Some(max) = self.spec.received_bytes_max {
            limits.received_bytes_max = limits.received_bytes_max.min(max);
        }
        let wire = Wire::new(WireSpec {
            permit,
            login,
            known_hosts: self.shared.known_hosts.clone(),
            limits,
            deadline: self.spec.deadline,
            cancel: Arc::clone(&self.spec.cancel),
            progress: Arc::clone(&self.spec.progress),
        });
        Ok(Granted { key, wire, mirror })
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

    fn scratch(&self, upstream: Option<&Held>) -> Result<Scratch, MirrorError> {
        Scratch::new(
            &self.shared.scratch,
            &self.shared.scratch_path,
            upstream.map(|held| held.path.as_path()),
        )
    }

    /// The outbox over a mirror, made when it is first wanted.
    fn outbox(&mut self, key: &str, held: &Held) -> Result<&Scratch, MirrorError> {
        if !self.outboxes.contains_key(key) {
            let made = self.scratch(Some(held))?;
            self.outboxes.insert(key.to_owned(), made);
        }
        self.outboxes
            .get(key)
            .ok_or_else(|| MirrorError::Missing("the outbox".to_owned()))
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
