//! Verbs that fill an empty root.

use git2::{ObjectType, Oid, Repository};
use warren_repo::{ForkSpec, Head, HeadSpec, RestoreSpec};

use super::publish::check_snapshot;
use super::{Aim, Granted, Lay, Origin, Session, ids};
use crate::confine;
use crate::mirror::{self, Held};
use crate::scratch::Scratch;
use crate::{MirrorError, names, remote};

/// Branch of a repository whose remote is empty.
const FIRST_BRANCH: &str = "main";

/// Where a fetched snapshot is kept in an inbox.
const INBOX_REF: &str = "refs/warren/snapshot";

/// What to do when the remote has moved on since the mirror was brought up to date.
#[derive(Clone, Copy, PartialEq, Eq)]
enum IfStale {
    Stop,
    GoOn,
}

impl Session {
    /// Makes an empty repository whose unborn HEAD is on `branch`, with `origin` when given.
    ///
    /// # Errors
    /// For a branch or remote that is not valid or not granted, or a root that is not empty.
    pub fn init(&self, branch: &str, origin: Option<&Origin>) -> Result<(), MirrorError> {
        names::branch(branch)?;
        let url = origin
            .map(|origin| self.permit(origin))
            .transpose()?
            .map(|permit| permit.url.to_string());
        let bounds = self.bounds(Aim::Fill);
        confine::run(&self.reach_root(Aim::Fill)?, None, &bounds, |_| {
            let (root, path) = (&self.spec.root, &self.spec.root_path);
            warren_repo::init(root, path, branch, url.as_deref(), &bounds)?;
            Ok(())
        })
    }

    /// Fills the empty root with a fork of the remote. `branch` is a branch, a tag or a full commit
    /// id, the last two giving a detached HEAD; without it, the remote's default branch.
    ///
    /// # Errors
    /// [`MirrorError::Missing`] for a branch that the remote lacks, and those of talking to it.
    pub fn clone(&self, origin: &Origin, branch: Option<&str>) -> Result<Head, MirrorError> {
        if let Some(branch) = branch {
            names::branch(branch)?;
        }
        self.fork(origin, |held| match branch {
            Some(branch) => named_head(held, branch),
            None => default_head(held),
        })
    }

    /// Fills the empty root with a fork of the remote with HEAD at `commit`, on `branch` or
    /// detached.
    ///
    /// # Errors
    /// [`MirrorError::Missing`] when no branch or tag of the remote leads to the commit, and those
    /// of talking to it.
    pub fn clone_at(
        &self,
        origin: &Origin,
        branch: Option<&str>,
        commit: &str,
    ) -> Result<Head, MirrorError> {
        let id = names::commit(commit)?;
        if let Some(branch) = branch {
            names::branch(branch)?;
        }
        self.fork(origin, |held| {
            let commit =
                find_commit(held, id)?.ok_or_else(|| MirrorError::Missing(commit.to_owned()))?;
            let Some(branch) = branch else {
                return Ok(HeadSpec::Detached(commit));
            };
            let full = format!("refs/heads/{branch}");
            Ok(HeadSpec::Branch {
                name: branch.to_owned(),
                commit,
                upstream: held.upstream.id(&full).is_some().then_some(full),
            })
        })
    }

    fn fork(
        &self,
        origin: &Origin,
        pick: impl Fn(&Held) -> Result<HeadSpec, MirrorError> + Send + Sync,
    ) -> Result<Head, MirrorError> {
        self.check_empty()?;
        self.with_remote(origin, Aim::Fill, |granted| {
            self.healing(granted, || {
                let held = granted.mirror.refresh(&granted.wire, self.wait())?;
                let head = pick(&held)?;
                Ok(self.fork_from(granted, &held, head))
            })
        })
    }

    /// Fills the root. When that fails although all that was asked for is there — the outer result
    /// says so — the mirror is broken: it is made anew, once.
    fn healing(
        &self,
        granted: &Granted,
        fill: impl Fn() -> Result<Result<Head, MirrorError>, MirrorError>,
    ) -> Result<Head, MirrorError> {
        match fill()? {
            Err(error @ (MirrorError::Io { .. } | MirrorError::Missing(_))) => {
                tracing::warn!(url = granted.url(), %error, "mirror is broken; made anew");
                granted.mirror.distrust(self.wait())?;
                self.empty()?;
                fill()?
            }
            result => result,
        }
    }

    fn fork_from(
        &self,
        granted: &Granted,
        held: &Held,
        head: HeadSpec,
    ) -> Result<Head, MirrorError> {
        let url = granted.url();
        let spec = ForkSpec {
            upstream: &held.path,
            root: &self.spec.root,
            root_path: &self.spec.root_path,
            origin_url: &url,
            remote_refs: ids(held, "refs/heads/")?,
            tags: ids(held, "refs/tags/")?,
            default_branch: held.upstream.head.clone(),
            head,
            bounds: self.bounds(Aim::Fill),
        };
        Ok(warren_repo::fork(spec, &mut self.files_progress())?)
    }

    /// Fills the empty root from a snapshot. `commit` must be what the ref points at.
    ///
    /// # Errors
    /// [`MirrorError::Missing`] when the ref is gone, [`MirrorError::Conflict`] when it points
    /// elsewhere, and those of talking to the remote.
    pub fn restore(
        &self,
        origin: &Origin,
        ref_name: &str,
        commit: &str,
        lay: Lay,
    ) -> Result<Head, MirrorError> {
        let snapshot = names::commit(commit)?;
        let ref_name = names::expand_ref(ref_name)?;
        self.check_empty()?;
        let as_branch = match lay {
            Lay::WorkingTree => None,
            Lay::Branch => Some(
                ref_name
                    .strip_prefix("refs/heads/")
                    .ok_or_else(|| {
                        MirrorError::invalid("ref", format!("`{ref_name}` is no branch"))
                    })?
                    .to_owned(),
            ),
        };
        self.with_remote(origin, Aim::Fill, |granted| {
            self.healing(granted, || {
                let url = granted.url();
                let (held, inbox) = self.receive(granted, &ref_name, snapshot)?;
                let spec = RestoreSpec {
                    inbox: inbox.repository(),
                    snapshot,
                    upstream: &held.path,
                    root: &self.spec.root,
                    root_path: &self.spec.root_path,
                    origin_url: &url,
                    remote_refs: ids(&held, "refs/heads/")?,
                    tags: ids(&held, "refs/tags/")?,
                    default_branch: held.upstream.head.clone(),
                    as_branch: as_branch.clone(),
                    bounds: self.bounds(Aim::Fill),
                };
                let done = warren_repo::restore(spec, &mut self.files_progress());
                Ok(done.map_err(MirrorError::from))
            })
        })
    }

    /// Fetches a snapshot into an inbox over the mirror, which is brought up to date. With a mirror
    /// that is so already, one connection does both.
    fn receive(
        &self,
        granted: &Granted,
        ref_name: &str,
        snapshot: Oid,
    ) -> Result<(Held, Scratch), MirrorError> {
        if let Some(held) = granted.mirror.hold(self.wait())? {
            let (inbox, is_current) =
                self.fetch_snapshot(granted, &held, ref_name, snapshot, IfStale::Stop)?;
            if is_current {
                return Ok((held, inbox));
            }
        }
        let held = granted.mirror.renew(&granted.wire, self.wait())?;
        let (inbox, _) = self.fetch_snapshot(granted, &held, ref_name, snapshot, IfStale::GoOn)?;
        Ok((held, inbox))
    }

    /// The inbox, and whether the mirror has all that the remote has now.
    fn fetch_snapshot(
        &self,
        granted: &Granted,
        held: &Held,
        ref_name: &str,
        snapshot: Oid,
        if_stale: IfStale,
    ) -> Result<(Scratch, bool), MirrorError> {
        let inbox = self.scratch(Some(held))?;
        let repo = inbox.open()?;
        mirror::write_refs(&repo, &held.upstream)?;
        let mut is_current = false;
        remote::download(&repo, &granted.wire, |advertised| {
            check_snapshot(advertised, ref_name, snapshot)?;
            is_current = mirror::mirrored(advertised) == held.upstream;
            if !is_current && if_stale == IfStale::Stop {
                return Ok(Vec::new());
            }
            Ok(vec![format!("+{ref_name}:{INBOX_REF}")])
        })?;
        Ok((inbox, is_current))
    }

    fn check_empty(&self) -> Result<(), MirrorError> {
        let mut entries = self
            .spec
            .root
            .entries()
            .map_err(|error| MirrorError::io("list the RootDir", error))?;
        if entries.next().is_some() {
            return Err(MirrorError::invalid("RootDir", "it is not empty"));
        }
        Ok(())
    }

    /// Takes away what a fork that failed left in a root that was empty before.
    fn empty(&self) -> Result<(), MirrorError> {
        let failed = |error| MirrorError::io("list the RootDir", error);
        for entry in self.spec.root.entries().map_err(failed)? {
            let name = entry.map_err(failed)?.file_name();
            let name = name
                .to_str()
                .ok_or_else(|| MirrorError::invalid("file name", "it is not UTF-8"))?;
            warren_disk::remove::remove_tree(&self.spec.root, name).map_err(|error| {
                MirrorError::Io {
                    doing: "empty the RootDir".to_owned(),
                    source: error.into(),
                }
            })?;
        }
        Ok(())
    }
}

/// The branch, tag or commit that a caller named.
fn named_head(held: &Held, name: &str) -> Result<HeadSpec, MirrorError> {
    let missing = || MirrorError::Missing(name.to_owned());
    let failed = |error| MirrorError::git("read the mirror", error);
    let full = format!("refs/heads/{name}");
    if let Some(id) = held.upstream.id(&full) {
        return Ok(HeadSpec::Branch {
            name: name.to_owned(),
            commit: Oid::from_str(id).map_err(failed)?,
            upstream: Some(full),
        });
    }
    if let Some(id) = held.upstream.id(&format!("refs/tags/{name}")) {
        let id = Oid::from_str(id).map_err(failed)?;
        return find_commit(held, id)?
            .map(HeadSpec::Detached)
            .ok_or_else(missing);
    }
    if names::is_commit(name) {
        let id = names::commit(name)?;
        return find_commit(held, id)?
            .map(HeadSpec::Detached)
            .ok_or_else(missing);
    }
    Err(missing())
}

/// The remote's default branch; an unborn one when the remote is empty.
fn default_head(held: &Held) -> Result<HeadSpec, MirrorError> {
    let branch = held
        .upstream
        .head
        .as_ref()
        .and_then(|full| Some((full.strip_prefix("refs/heads/")?, full)));
    match branch {
        Some((name, full)) => match held.upstream.id(full) {
            Some(id) => Ok(HeadSpec::Branch {
                name: name.to_owned(),
                commit: Oid::from_str(id)
                    .map_err(|error| MirrorError::git("read the mirror", error))?,
                upstream: Some(full.clone()),
            }),
            None => Err(MirrorError::Missing(full.clone())),
        },
        None if held.upstream.refs.is_empty() => Ok(HeadSpec::Unborn(FIRST_BRANCH.to_owned())),
        None => Err(MirrorError::Missing(
            "the default branch of the remote".to_owned(),
        )),
    }
}

/// The commit that an object of the mirror is or leads to.
fn find_commit(held: &Held, id: Oid) -> Result<Option<Oid>, MirrorError> {
    let repo = Repository::open_bare(&held.path)
        .map_err(|error| MirrorError::git("open the mirror", error))?;
    let object = match repo.find_object(id, None) {
        Ok(object) => object,
        Err(error) if error.code() == git2::ErrorCode::NotFound => return Ok(None),
        Err(error) => return Err(MirrorError::git("read the mirror", error)),
    };
    Ok(object
        .peel(ObjectType::Commit)
        .ok()
        .map(|commit| commit.id()))
}
