//! How many commits are on local refs only.

use std::collections::{BinaryHeap, HashMap};

use git2::{ObjectType, Oid};

use crate::objects::check;
use crate::{Repo, RepoError};

/// Most tags that point at one another.
const TAG_CHAIN_MAX: usize = 16;

/// Commits seen, the newest first. libgit2's own walk would read a commit of any length, and what
/// a hostile commit-graph file says.
struct Walk<'a> {
    repo: &'a Repo,
    seen: HashMap<Oid, Seen>,
    queue: BinaryHeap<(i64, Oid)>,
    /// Commits in the queue that are not hidden.
    open: usize,
}

struct Seen {
    parents: Vec<Oid>,
    is_hidden: bool,
    is_queued: bool,
}

/// Counts the commits that local refs and `head` reach and remote-tracking refs do not. Where
/// clocks went backwards it may count a few that are pushed.
pub(crate) fn count_unpushed(repo: &Repo, head: Option<Oid>) -> Result<usize, RepoError> {
    let mut walk = Walk {
        repo,
        seen: HashMap::new(),
        queue: BinaryHeap::new(),
        open: 0,
    };
    let fail = RepoError::git("list the refs");
    for reference in repo.git.references().map_err(&fail)? {
        repo.bounds.check()?;
        let reference = reference.map_err(&fail)?;
        let is_remote = reference.name_bytes().starts_with(b"refs/remotes/");
        let commit = match reference.target() {
            Some(id) => peel(repo, id)?,
            None => None,
        };
        if let Some(id) = commit {
            walk.add(id, is_remote)?;
        }
    }
    if let Some(id) = head {
        walk.add(id, false)?;
    }
    while walk.open > 0 {
        walk.step()?;
    }
    Ok(walk.seen.values().filter(|seen| !seen.is_hidden).count())
}

/// The commit that a ref's target stands for; none: another object, or one that is gone.
fn peel(repo: &Repo, id: Oid) -> Result<Option<Oid>, RepoError> {
    let odb = repo.odb()?;
    let mut id = id;
    for _ in 0..TAG_CHAIN_MAX {
        match odb.read_header(id) {
            Ok((_, ObjectType::Commit)) => return Ok(Some(id)),
            Ok((_, ObjectType::Tag)) => check(&odb, id, ObjectType::Tag)?,
            _ => return Ok(None),
        }
        let tag = repo.git.find_tag(id);
        id = tag.map_err(RepoError::git("read a tag"))?.target_id();
    }
    Ok(None)
}

impl Walk<'_> {
    fn add(&mut self, id: Oid, is_hidden: bool) -> Result<(), RepoError> {
        if self.seen.contains_key(&id) {
            if is_hidden {
                self.hide(id);
            }
            return Ok(());
        }
        self.repo.bounds.check()?;
        let commit = self.repo.commit(id)?;
        self.queue.push((commit.time().seconds(), id));
        self.open += usize::from(!is_hidden);
        let seen = Seen {
            parents: commit.parent_ids().collect(),
            is_hidden,
            is_queued: true,
        };
        self.seen.insert(id, seen);
        Ok(())
    }

    /// Hides a commit, and what was reached through it before.
    fn hide(&mut self, id: Oid) {
        let mut pending = vec![id];
        while let Some(id) = pending.pop() {
            let Some(seen) = self.seen.get_mut(&id).filter(|seen| !seen.is_hidden) else {
                continue;
            };
            seen.is_hidden = true;
            self.open -= usize::from(seen.is_queued);
            pending.extend(&seen.parents);
        }
    }

    /// Takes the newest commit and looks at its parents.
    fn step(&mut self) -> Result<(), RepoError> {
        let Some((_, id)) = self.queue.pop() else {
            return Ok(());
        };
        let Some(seen) = self.seen.get_mut(&id) else {
            return Ok(());
        };
        seen.is_queued = false;
        let is_hidden = seen.is_hidden;
        self.open -= usize::from(!is_hidden);
        for parent in seen.parents.clone() {
            self.add(parent, is_hidden)?;
        }
        Ok(())
    }
}
