//! The repository of a RootDir, checked and open.

use std::io;
use std::os::fd::AsFd;
use std::os::unix::fs::MetadataExt;
use std::path::{Path, PathBuf};

use git2::{Commit, Odb, Oid, ReferenceType, Repository, RepositoryOpenFlags, RepositoryState};
use warren_disk::Dir;

use crate::files::show;
use crate::{Bounds, Exclude, Head, RepoError, layout, objects, setup};

const BRANCHES: &[u8] = b"refs/heads/";

/// The repository in one RootDir. Nothing is written to it.
pub struct Repo {
    pub(crate) git: Repository,
    pub(crate) root: Dir,
    pub(crate) git_dir: Dir,
    pub(crate) bounds: Bounds,
    pub(crate) exclude: Exclude,
}

impl std::fmt::Debug for Repo {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Repo")
            .field("path", &self.git.path())
            .finish()
    }
}

impl Repo {
    /// Checks the layout through `root` and opens the repository at `path`, the RootDir's absolute
    /// path on the host, which must be the same directory. All work on it stays within `bounds`.
    ///
    /// # Errors
    ///
    /// Those of [`layout::check`]; `Unsafe` when `path` is another directory by now; `Git`.
    pub fn open(root: &Dir, path: &Path, bounds: Bounds) -> Result<Self, RepoError> {
        setup::init()?;
        layout::check(root, &bounds)?;
        let fail = |error: io::Error| RepoError::io("open the RootDir", error);
        let root = root.try_clone().map_err(fail)?;
        let git_dir = layout::open_git(&root)?;
        let flags = RepositoryOpenFlags::NO_SEARCH | RepositoryOpenFlags::NO_DOTGIT;
        let nowhere: [&Path; 0] = [];
        let git = Repository::open_ext(path.join(".git"), flags, nowhere)
            .map_err(RepoError::git("open the repository"))?;
        let repo = Self {
            git,
            root,
            git_dir,
            bounds,
            exclude: Exclude::default(),
        };
        repo.check_place(path)?;
        Ok(repo)
    }

    /// What libgit2 opened must be what the layout check looked at.
    fn check_place(&self, path: &Path) -> Result<(), RepoError> {
        let same = |dir: &Dir, path: &Path| -> io::Result<bool> {
            let ours = rustix::fs::fstat(dir.as_fd())?;
            let theirs = std::fs::symlink_metadata(path)?;
            Ok((ours.st_dev, ours.st_ino) == (theirs.dev(), theirs.ino()))
        };
        let fail = |error| RepoError::io("look at the RootDir", error);
        // Without a trailing slash, which would follow a link.
        let plain = |path: &Path| path.components().collect::<PathBuf>();
        let workdir = self.git.workdir().map(plain).unwrap_or_default();
        let ok = same(&self.root, path).map_err(fail)?
            && same(&self.git_dir, &plain(self.git.path())).map_err(fail)?
            && same(&self.git_dir, &plain(self.git.commondir())).map_err(fail)?
            && same(&self.root, &workdir).map_err(fail)?;
        if ok {
            Ok(())
        } else {
            Err(RepoError::Unsafe(
                "it is not where it was registered".to_owned(),
            ))
        }
    }

    /// Whether the repository's own config names `url`, and no other, as `origin`.
    pub fn is_origin(&self, url: &str) -> bool {
        let remote = self.git.find_remote("origin");
        remote.is_ok_and(|remote| {
            let pushes = remote.pushurl_bytes();
            remote.url_bytes() == url.as_bytes()
                && pushes.is_none_or(|pushes| pushes == url.as_bytes())
        })
    }

    /// Where HEAD is.
    ///
    /// # Errors
    ///
    /// `UnsupportedFormat` when HEAD points at something that is no branch; `Missing` when its
    /// commit is not there; `Git`.
    pub fn head(&self) -> Result<Head, RepoError> {
        let (branch, commit) = self.head_raw()?;
        Ok(Head {
            commit: commit.map(|id| id.to_string()),
            branch: branch.as_deref().map(show),
        })
    }

    /// Short name of HEAD's branch in bytes, and its commit.
    pub(crate) fn head_raw(&self) -> Result<(Option<Vec<u8>>, Option<Oid>), RepoError> {
        let fail = RepoError::git("read HEAD");
        let head = self.git.find_reference("HEAD").map_err(&fail)?;
        let branch = match head.kind() {
            Some(ReferenceType::Symbolic) => {
                let target = head.symbolic_target_bytes().unwrap_or_default();
                let Some(branch) = target.strip_prefix(BRANCHES) else {
                    return Err(RepoError::UnsupportedFormat(format!(
                        "HEAD points at `{}`",
                        show(target)
                    )));
                };
                Some(branch.to_vec())
            }
            _ => None,
        };
        let commit = match head.resolve() {
            Ok(resolved) => resolved.target(),
            Err(error) if error.code() == git2::ErrorCode::NotFound => None,
            Err(error) => return Err(fail(error)),
        };
        if let Some(id) = commit {
            self.commit(id)?;
        }
        Ok((branch, commit))
    }

    pub(crate) fn odb(&self) -> Result<Odb<'_>, RepoError> {
        self.git.odb().map_err(RepoError::git("open the objects"))
    }

    pub(crate) fn commit(&self, id: Oid) -> Result<Commit<'_>, RepoError> {
        objects::commit(&self.git, &self.odb()?, id)
    }

    /// Refuses while a merge, rebase, cherry-pick, revert or bisect is under way, or conflicts are
    /// unresolved: a snapshot would show them as finished.
    ///
    /// # Errors
    ///
    /// `OperationInProgress` names it.
    pub fn check_idle(&self) -> Result<(), RepoError> {
        let name = match self.git.state() {
            RepositoryState::Clean => "",
            RepositoryState::Merge => "merge",
            RepositoryState::Revert | RepositoryState::RevertSequence => "revert",
            RepositoryState::CherryPick | RepositoryState::CherryPickSequence => "cherry-pick",
            RepositoryState::Bisect => "bisect",
            RepositoryState::Rebase
            | RepositoryState::RebaseInteractive
            | RepositoryState::RebaseMerge => "rebase",
            RepositoryState::ApplyMailbox | RepositoryState::ApplyMailboxOrRebase => "am",
        };
        let mut found = Some(name).filter(|name| !name.is_empty());
        for (file, name) in [
            ("MERGE_HEAD", "merge"),
            ("rebase-merge", "rebase"),
            ("rebase-apply", "rebase"),
            ("sequencer", "sequencer"),
        ] {
            if found.is_none() && layout::exists(&self.git_dir, file)? {
                found = Some(name);
            }
        }
        match found {
            Some(name) => Err(RepoError::OperationInProgress(name.to_owned())),
            None => Ok(()),
        }
    }
}

#[cfg(test)]
mod tests;
