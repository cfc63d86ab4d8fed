//! A complete repository of its own, made from a mirror of ours.

use std::path::Path;

use git2::{ObjectType, Odb, Oid, Repository};
use warren_disk::Dir;
use warren_disk::text::escape;

use crate::checkout::Place;
use crate::init::{SKELETON_INODES, make_dir, skeleton, write_file};
use crate::packs::copy_objects;
use crate::refs::{self, Config, RefSet};
use crate::{Bounds, Head, RepoError, checkout, setup};

/// Where HEAD goes.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum HeadSpec {
    /// On a branch.
    Branch {
        /// Its short name.
        name: String,
        /// What it points at.
        commit: Oid,
        /// Full name of the ref on the remote that it tracks.
        upstream: Option<String>,
    },
    /// At a commit, on no branch.
    Detached(Oid),
    /// On a branch of this short name without a commit.
    Unborn(String),
}

/// What to make.
#[derive(Debug)]
pub struct ForkSpec<'a> {
    /// Git directory of the mirror: bare, complete, ours.
    pub upstream: &'a Path,
    /// The empty directory.
    pub root: &'a Dir,
    /// Where it lies, for messages.
    pub root_path: &'a Path,
    /// URL of `origin`, without credentials.
    pub origin_url: &'a str,
    /// Branches of the remote by full name (`refs/heads/…`).
    pub remote_refs: Vec<(String, Oid)>,
    /// Tags of the remote by full name (`refs/tags/…`).
    pub tags: Vec<(String, Oid)>,
    /// Full or short name of the remote's default branch, for `origin/HEAD`.
    pub default_branch: Option<String>,
    /// Where HEAD goes.
    pub head: HeadSpec,
    /// How long it may take, and what it may take up.
    pub bounds: Bounds,
}

/// Fills an empty directory with a fork of the mirror, checked out.
///
/// `progress` gets files written and files in all. After an error the directory may hold a part.
///
/// # Errors
/// `InvalidArgument` for a bad name or URL, or a directory that is not empty; `Missing` for a ref
/// whose object the mirror lacks; `UnsafePath` and `TooLarge` for a tree that must not be written;
/// `NoSpace`, `Timeout` and `Cancelled`.
pub fn fork(spec: ForkSpec<'_>, progress: &mut dyn FnMut(u64, u64)) -> Result<Head, RepoError> {
    setup::init()?;
    let repo = Repository::open_bare(spec.upstream).map_err(RepoError::git("open the mirror"))?;
    let odb = repo.odb().map_err(RepoError::git("open the objects"))?;
    let mut layout = Layout::default();
    layout.config.origin_url = Some(spec.origin_url.to_owned());
    layout.add_remote(&odb, &spec.remote_refs, spec.default_branch.as_deref())?;
    layout.add_tags(&odb, &spec.tags)?;
    let (head, commit) = layout.set_head(&odb, &spec.head)?;
    let git = layout.write(spec.root, spec.root_path, &[spec.upstream], &spec.bounds)?;
    if let Some(commit) = commit {
        let tree = tree_of(&repo, commit)?;
        let (items, subtrees) = checkout::plan(spec.upstream, &odb, tree, &spec.bounds)?;
        let place = Place {
            git_dir: spec.upstream,
            root: spec.root,
            bounds: &spec.bounds,
        };
        let stats = checkout::write(place, &items, &[], progress)?;
        let index = checkout::clean_index(items, stats, &subtrees);
        spec.bounds.take(index.len() as u64, 1)?;
        write_file(&git, "index", &index)?;
    }
    Ok(head)
}

/// All of a new `.git` but its objects and index.
#[derive(Debug, Default)]
pub(crate) struct Layout {
    pub(crate) config: Config,
    pub(crate) refs: RefSet,
    /// Full name of the ref that `refs/remotes/origin/HEAD` stands for.
    pub(crate) origin_head: Option<Vec<u8>>,
    /// Content of `HEAD`.
    pub(crate) head: Vec<u8>,
    /// Content of `logs/refs/stash`.
    pub(crate) stash_log: Vec<u8>,
}

impl Layout {
    /// Remote-tracking refs for the branches of the remote.
    pub(crate) fn add_remote(
        &mut self,
        odb: &Odb<'_>,
        remote_refs: &[(String, Oid)],
        default_branch: Option<&str>,
    ) -> Result<(), RepoError> {
        for (name, id) in remote_refs {
            refs::check(name.as_bytes(), "refs/heads/")?;
            let short = &name["refs/heads/".len()..];
            if short == "HEAD" {
                // It would hide which branch is the default one; git leaves it out, too.
                tracing::warn!("the remote has a branch called `HEAD`; it is left out");
                continue;
            }
            check_object(odb, name, *id, Some(ObjectType::Commit))?;
            self.refs.set(format!("refs/remotes/origin/{short}"), *id);
        }
        self.set_origin_head(default_branch)
    }

    /// `origin/HEAD` for the default branch, when that is there and nothing stands in its place.
    pub(crate) fn set_origin_head(&mut self, branch: Option<&str>) -> Result<(), RepoError> {
        let Some(branch) = branch else {
            return Ok(());
        };
        let short = branch.strip_prefix("refs/heads/").unwrap_or(branch);
        refs::branch(short)?;
        let target = format!("refs/remotes/origin/{short}").into_bytes();
        let place = b"refs/remotes/origin/HEAD";
        let is_free = self.refs.get(place).is_none() && !self.refs.clashes(place);
        if is_free && self.refs.get(&target).is_some() {
            self.origin_head = Some(target);
        }
        Ok(())
    }

    pub(crate) fn add_tags(
        &mut self,
        odb: &Odb<'_>,
        tags: &[(String, Oid)],
    ) -> Result<(), RepoError> {
        for (name, id) in tags {
            refs::check(name.as_bytes(), "refs/tags/")?;
            check_object(odb, name, *id, None)?;
            self.refs.set(name.as_bytes(), *id);
        }
        Ok(())
    }

    /// Puts HEAD where it goes; returns it, with the commit to check out.
    pub(crate) fn set_head(
        &mut self,
        odb: &Odb<'_>,
        head: &HeadSpec,
    ) -> Result<(Head, Option<Oid>), RepoError> {
        let (branch, commit) = match head {
            HeadSpec::Branch {
                name,
                commit,
                upstream,
            } => {
                let full = refs::branch(name)?;
                self.head = format!("ref: {full}\n").into_bytes();
                self.refs.set(full, *commit);
                if let Some(merge) = upstream {
                    let (branch, merge) = (name.as_bytes().to_vec(), merge.as_bytes().to_vec());
                    self.config.upstreams.push((branch, "origin".into(), merge));
                }
                (Some(name), Some(*commit))
            }
            HeadSpec::Detached(commit) => {
                self.head = format!("{commit}\n").into_bytes();
                (None, Some(*commit))
            }
            HeadSpec::Unborn(name) => {
                self.head = format!("ref: {}\n", refs::branch(name)?).into_bytes();
                (Some(name), None)
            }
        };
        if let Some(commit) = commit {
            check_object(odb, "HEAD", commit, Some(ObjectType::Commit))?;
        }
        let head = Head {
            commit: commit.map(|id| id.to_string()),
            branch: branch.map(|name| escape(name.as_bytes())),
        };
        Ok((head, commit))
    }

    /// Writes `.git` into an empty root, with the objects of the repositories at `from`.
    pub(crate) fn write(
        &self,
        root: &Dir,
        root_path: &Path,
        from: &[&Path],
        bounds: &Bounds,
    ) -> Result<Dir, RepoError> {
        let (config, packed) = (self.config.text()?, self.refs.packed()?);
        let bytes = config.len() + packed.len() + self.stash_log.len();
        bounds.take(bytes as u64, SKELETON_INODES)?;
        let git = skeleton(root, root_path)?;
        for repository in from {
            copy_objects(repository, &git, bounds)?;
        }
        write_file(&git, "config", &config)?;
        write_file(&git, "packed-refs", &packed)?;
        if let Some(target) = &self.origin_head {
            make_dir(&git, "refs/remotes")?;
            make_dir(&git, "refs/remotes/origin")?;
            let content = [b"ref: ", target.as_slice(), b"\n"].concat();
            write_file(&git, "refs/remotes/origin/HEAD", &content)?;
        }
        if !self.stash_log.is_empty() {
            make_dir(&git, "logs")?;
            make_dir(&git, "logs/refs")?;
            write_file(&git, "logs/refs/stash", &self.stash_log)?;
        }
        write_file(&git, "HEAD", &self.head)?;
        Ok(git)
    }
}

/// Refuses a ref whose object is missing or of another kind.
pub(crate) fn check_object(
    odb: &Odb<'_>,
    name: &str,
    id: Oid,
    kind: Option<ObjectType>,
) -> Result<(), RepoError> {
    match odb.read_header(id) {
        Ok((_, found)) if kind.is_none_or(|kind| kind == found) => Ok(()),
        Ok(_) => Err(refs::invalid(
            "ref (its object is no commit)",
            name.as_bytes(),
        )),
        Err(e) if e.code() == git2::ErrorCode::NotFound => {
            Err(RepoError::Missing(format!("{name} at {id}")))
        }
        Err(e) => Err(RepoError::git("read an object")(e)),
    }
}

pub(crate) fn tree_of(repo: &Repository, commit: Oid) -> Result<Oid, RepoError> {
    let commit = repo.find_commit(commit);
    Ok(commit.map_err(RepoError::git("read a commit"))?.tree_id())
}
