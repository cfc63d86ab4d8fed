//! Paths that an operator keeps out of every snapshot and commit, whatever a RootDir says.

use std::sync::Arc;

use git2::Oid;
use ignore::Match;
use ignore::gitignore::{Gitignore, GitignoreBuilder};

use crate::files::as_path;
use crate::index::Index;
use crate::{Repo, RepoError};

/// Patterns as in `.gitignore`, from the RootDir's own top. What a commit holds already stays; all
/// else that matches is left out and reported as ignored.
#[derive(Debug, Clone, Default)]
pub struct Exclude(Option<Arc<Gitignore>>);

impl Exclude {
    /// Parses patterns, `.env` and `*.pem` say. The last one that matches counts; one that starts
    /// with `!` takes back.
    ///
    /// # Errors
    ///
    /// `InvalidArgument` for what is no pattern.
    pub fn new<S: AsRef<str>>(patterns: &[S]) -> Result<Self, RepoError> {
        if patterns.is_empty() {
            return Ok(Self::default());
        }
        let invalid = |value: &str| RepoError::InvalidArgument {
            what: "pattern to exclude",
            value: value.to_owned(),
        };
        let mut builder = GitignoreBuilder::new("");
        builder.allow_unclosed_class(false);
        for pattern in patterns {
            let pattern = pattern.as_ref();
            let plain = !pattern.trim().is_empty() && !pattern.starts_with('#');
            if !plain || pattern.contains(['\n', '\r', '\0']) {
                return Err(invalid(pattern));
            }
            let added = builder.add_line(None, pattern);
            added.map_err(|error| invalid(&error.to_string()))?;
        }
        let built = builder
            .build()
            .map_err(|error| invalid(&error.to_string()))?;
        Ok(Self(Some(Arc::new(built))))
    }

    /// Whether a path, or a folder on the way to it, is kept out.
    pub(crate) fn hides(&self, path: &[u8], is_dir: bool) -> bool {
        let Some(rules) = &self.0 else {
            return false;
        };
        let found = rules.matched_path_or_any_parents(as_path(path), is_dir);
        matches!(found, Match::Ignore(_))
    }

    fn is_none(&self) -> bool {
        self.0.is_none()
    }
}

impl Repo {
    /// The same, with paths kept out of snapshots and commits.
    #[must_use]
    pub fn excluding(self, exclude: Exclude) -> Self {
        Self { exclude, ..self }
    }

    /// The index without what is staged, kept out and not what HEAD's commit holds.
    pub(crate) fn staged_index(&self, head: Option<Oid>) -> Result<Index, RepoError> {
        let mut index = Index::load(self)?;
        if self.exclude.is_none() {
            return Ok(index);
        }
        let tree = match head {
            Some(id) => Some(
                self.commit(id)?
                    .tree()
                    .map_err(RepoError::git("read HEAD's tree"))?,
            ),
            None => None,
        };
        index.entries.retain(|entry| {
            !self.exclude.hides(&entry.path, false)
                || tree.as_ref().is_some_and(|tree| {
                    tree.get_path(as_path(&entry.path))
                        .is_ok_and(|committed| committed.id() == entry.id)
                })
        });
        Ok(index)
    }
}
