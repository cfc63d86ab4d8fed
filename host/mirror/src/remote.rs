//! The three things that are done with a remote: list its refs, fetch, push.

use std::cell::RefCell;
use std::collections::BTreeMap;
use std::rc::Rc;

use git2::{
    AutotagOption, Direction, FetchOptions, Oid, PushOptions, Remote, RemoteRedirect, Repository,
};
use serde::{Deserialize, Serialize};

use crate::MirrorError;
use crate::wire::Wire;

/// The refs that a remote shows.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) struct Advertised {
    /// Full name and id in hex of every ref; no peeled tags, not HEAD.
    pub(crate) refs: BTreeMap<String, String>,
    /// Full name of the branch that HEAD is on.
    pub(crate) head: Option<String>,
}

impl Advertised {
    pub(crate) fn id(&self, ref_name: &str) -> Option<&str> {
        self.refs.get(ref_name).map(String::as_str)
    }

    fn read(remote: &Remote<'_>, wire: &Wire) -> Result<Self, MirrorError> {
        let list = remote
            .list()
            .map_err(|error| MirrorError::git("list the refs of the remote", error))?;
        if list.len() > wire.refs_max() {
            return Err(MirrorError::TooLarge(format!(
                "`{}` has more than {} refs",
                wire.place(),
                wire.refs_max()
            )));
        }
        let mut found = Self::default();
        let mut head_id = None;
        for head in list {
            match head.name() {
                "HEAD" => {
                    head_id = Some(head.oid().to_string());
                    found.head = head
                        .symref_target()
                        .filter(|target| target.starts_with("refs/heads/"))
                        .map(str::to_owned);
                }
                name if name.starts_with("refs/")
                    && warren_repo::is_valid_ref_name(name.as_bytes()) =>
                {
                    found.refs.insert(name.to_owned(), head.oid().to_string());
                }
                // Peeled tags, `.have` and the like, and names that no file system should see.
                _ => {}
            }
        }
        if found.head.is_none() {
            found.head = head_id.and_then(|id| found.guess_head(&id));
        }
        Ok(found)
    }

    /// The branch that an old server's HEAD is most likely on.
    fn guess_head(&self, id: &str) -> Option<String> {
        let at = |name: &str| self.id(name) == Some(id);
        ["refs/heads/main", "refs/heads/master"]
            .into_iter()
            .find(|name| at(name))
            .map(str::to_owned)
            .or_else(|| {
                self.refs
                    .keys()
                    .find(|name| name.starts_with("refs/heads/") && at(name))
                    .cloned()
            })
    }
}

fn remote<'repo>(repo: &'repo Repository, wire: &Wire) -> Result<Remote<'repo>, MirrorError> {
    repo.remote_anonymous(&wire.url())
        .map_err(|error| MirrorError::git("name the remote", error))
}

/// A repository whose object format libgit2 does not read looks like nonsense to it.
fn check_format(wire: &Wire, error: MirrorError) -> MirrorError {
    match error {
        MirrorError::Unreachable(why) if why.contains("object format") => {
            MirrorError::UnsupportedFormat(format!("sha256 at `{}`", wire.place()))
        }
        error => error,
    }
}

/// Connects and lists, then hands both over. `repo` must be one of ours: its config says that
/// redirects are not followed.
fn connected<T>(
    repo: &Repository,
    wire: &Rc<Wire>,
    direction: Direction,
    then: impl FnOnce(&mut Remote<'_>, Advertised) -> Result<T, MirrorError>,
) -> Result<T, MirrorError> {
    let mut remote = remote(repo, wire)?;
    wire.begin();
    let doing = match direction {
        Direction::Fetch => "talk",
        Direction::Push => "begin a push",
    };
    let mut connection = wire
        .run(doing, || {
            remote.connect_auth(direction, Some(wire.callbacks()), None)
        })
        .map_err(|error| check_format(wire, error))?;
    wire.listed();
    let format = connection.remote().object_format();
    if format.is_ok_and(|format| format != git2::ObjectFormat::Sha1) {
        return Err(MirrorError::UnsupportedFormat(format!(
            "sha256 at `{}`",
            wire.place()
        )));
    }
    let advertised = Advertised::read(connection.remote(), wire)?;
    then(connection.remote(), advertised)
}

/// Lists the refs of a remote.
pub(crate) fn list(repo: &Repository, wire: &Rc<Wire>) -> Result<Advertised, MirrorError> {
    connected(repo, wire, Direction::Fetch, |_, advertised| Ok(advertised))
}

/// Lists the refs of a remote and downloads, on the same connection, what the refspecs that `plan`
/// picks name. No ref is written.
pub(crate) fn download(
    repo: &Repository,
    wire: &Rc<Wire>,
    plan: impl FnOnce(&Advertised) -> Result<Vec<String>, MirrorError>,
) -> Result<Advertised, MirrorError> {
    connected(repo, wire, Direction::Fetch, |remote, advertised| {
        let refspecs = plan(&advertised)?;
        if refspecs.is_empty() {
            return Ok(advertised);
        }
        let mut options = FetchOptions::new();
        options
            .remote_callbacks(wire.callbacks())
            .download_tags(AutotagOption::None)
            .follow_redirects(RemoteRedirect::None)
            .update_fetchhead(false);
        let fetched = wire.run("fetch", || remote.download(&refspecs, Some(&mut options)));
        wire.end();
        fetched?;
        Ok(advertised)
    })
}

/// One ref to change on a remote.
pub(crate) struct Change<'a> {
    pub(crate) ref_name: &'a str,
    /// What it must point at now; none: it must not exist.
    pub(crate) expected: Option<Oid>,
    /// What it is to point at; none: it is to go.
    pub(crate) target: Option<Oid>,
}

impl Change<'_> {
    fn conflict(&self, found: Option<&str>) -> MirrorError {
        MirrorError::Conflict {
            ref_name: self.ref_name.to_owned(),
            expected: self.expected.map(|id| id.to_string()),
            found: found.map(str::to_owned),
        }
    }

    /// Whether there is nothing left to do, say because of a call that crashed after its push.
    pub(crate) fn check(&self, advertised: &Advertised) -> Result<bool, MirrorError> {
        let found = advertised.id(self.ref_name);
        if found == self.target.map(|id| id.to_string()).as_deref() {
            return Ok(true);
        }
        if found == self.expected.map(|id| id.to_string()).as_deref() {
            return Ok(false);
        }
        Err(self.conflict(found))
    }

    fn refspec(&self) -> String {
        match (self.target, self.expected) {
            (None, _) => format!(":{}", self.ref_name),
            (Some(target), None) => format!("{target}:{}", self.ref_name),
            // The server compares with what it showed on this connection, which is `expected`.
            (Some(target), Some(_)) => format!("+{target}:{}", self.ref_name),
        }
    }
}

/// Changes one ref of a remote and reads it back. It must be what `expected` says on the connection
/// that pushes; libgit2 reports success for a push that was refused, so its word is not taken.
pub(crate) fn push(
    repo: &Repository,
    wire: &Rc<Wire>,
    change: &Change<'_>,
) -> Result<(), MirrorError> {
    let target = change.target.map(|id| id.to_string());
    let pushed = connected(repo, wire, Direction::Push, |remote, advertised| {
        if change.check(&advertised)? {
            return Ok(false);
        }
        send(remote, wire, change)?;
        Ok(true)
    });
    match pushed {
        Ok(true) => {}
        Ok(false) => return Ok(()),
        // A server words a lost race in its own way; where the ref is now says more.
        Err(error @ MirrorError::Rejected { .. }) => {
            return Err(match list(repo, wire).map(|now| change.check(&now)) {
                Ok(Err(conflict)) => conflict,
                _ => error,
            });
        }
        Err(error) => return Err(error),
    }
    let after = list(repo, wire)?;
    if after.id(change.ref_name) == target.as_deref() {
        return Ok(());
    }
    Err(MirrorError::Conflict {
        ref_name: change.ref_name.to_owned(),
        expected: target,
        found: after.id(change.ref_name).map(str::to_owned),
    })
}

fn send(remote: &mut Remote<'_>, wire: &Rc<Wire>, change: &Change<'_>) -> Result<(), MirrorError> {
    let refused: Rc<RefCell<Option<String>>> = Rc::default();
    let mut callbacks = wire.callbacks();
    let noted = Rc::clone(&refused);
    callbacks.push_update_reference(move |_, message| {
        if let Some(message) = message {
            *noted.borrow_mut() = Some(message.to_owned());
        }
        Ok(())
    });
    let zero = Oid::ZERO_SHA1;
    let expected = change.expected.unwrap_or(zero);
    let target = change.target.unwrap_or(zero);
    let ref_name = change.ref_name.to_owned();
    let conflict = change.conflict(None);
    let judge = Rc::clone(wire);
    let mut conflict = Some(conflict);
    callbacks.push_negotiation(move |updates| {
        let ours = |update: &git2::PushUpdate<'_>| {
            update.dst_refname_bytes() == ref_name.as_bytes()
                && update.src() == expected
                && update.dst() == target
        };
        if updates.len() == 1 && updates.iter().all(ours) {
            return Ok(());
        }
        if let Some(mut error) = conflict.take() {
            if let (MirrorError::Conflict { found, .. }, Some(update)) =
                (&mut error, updates.first())
            {
                *found = Some(update.src().to_string());
            }
            judge.fail(error);
        }
        Err(git2::Error::from_str("the ref has moved"))
    });
    let mut options = PushOptions::new();
    options
        .remote_callbacks(callbacks)
        .follow_redirects(RemoteRedirect::None);
    let refspec = change.refspec();
    let result = wire.run("push", || remote.push(&[&refspec], Some(&mut options)));
    let message = refused.borrow_mut().take();
    match (message, result) {
        (Some(message), _) => Err(MirrorError::Rejected {
            ref_name: change.ref_name.to_owned(),
            message: said(wire, &message),
        }),
        (None, result) => result,
    }
}

/// Why a server refused: the ref's status, and what its hooks wrote.
fn said(wire: &Wire, status: &str) -> String {
    let status = wire.excerpt(status.as_bytes());
    let aside = wire.sideband();
    if aside.is_empty() {
        status
    } else {
        wire.excerpt(format!("{status}: {aside}").as_bytes())
    }
}
