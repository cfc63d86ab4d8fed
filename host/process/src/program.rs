//! Which programs may run.

mod check;
mod needs;

use std::collections::{BTreeMap, BTreeSet};
use std::os::fd::OwnedFd;
use std::path::{Path, PathBuf};

use cap_std::fs::Dir;

use crate::ProcessError;
use crate::program::check::{Found, Origin};

/// A program that the policy grants.
#[derive(Debug)]
pub struct Program {
    name: String,
    path: String,
    needs: BTreeSet<PathBuf>,
    file: Option<OwnedFd>,
}

impl Program {
    /// As it was asked for.
    pub fn name(&self) -> &str {
        &self.name
    }

    /// The zeroth argument, from which a Python finds its environment: an absolute path, or for a
    /// program in a root one relative to that root, `./` in front.
    pub fn path(&self) -> &str {
        &self.path
    }

    /// The checked file itself, which is what is executed whatever becomes of the path. None for a
    /// script: its interpreter has to find it by path.
    pub(crate) fn file(&self) -> Option<&OwnedFd> {
        self.file.as_ref()
    }

    /// What a confined run has to make readable for it and for the programs that it may start.
    pub(crate) fn needs(&self) -> impl Iterator<Item = &PathBuf> {
        self.needs.iter()
    }

    fn new(
        name: &str,
        path: &Path,
        found: Found,
        needs: &BTreeSet<PathBuf>,
    ) -> Result<Self, ProcessError> {
        let path = path.to_str().ok_or_else(|| {
            ProcessError::InvalidArgument(format!("path `{}` is not UTF-8", path.display()))
        })?;
        Ok(Self {
            name: name.to_owned(),
            path: path.to_owned(),
            needs: needs.clone(),
            file: found.is_binary()?.then_some(found.file),
        })
    }
}

/// The policy: names and paths that may run. Whatever is not on it may not.
#[derive(Debug, Clone, Default)]
pub struct Programs {
    search: Vec<PathBuf>,
    forbidden: Vec<PathBuf>,
    /// None: granted, but not on this machine.
    aliases: BTreeMap<String, Option<PathBuf>>,
    paths: Vec<PathBuf>,
    /// What all of them need to have readable, besides the system's own.
    needs: BTreeSet<PathBuf>,
}

impl Programs {
    /// An empty policy. Programs are looked for in `search`; nothing in `forbidden`, the folders
    /// that others than the operator fill, counts as a program.
    ///
    /// # Errors
    /// `InvalidArgument`: a path that is not absolute. `Failed`: a forbidden folder that exists but
    /// can not be resolved.
    pub fn new(search: &[PathBuf], forbidden: &[PathBuf]) -> Result<Self, ProcessError> {
        for path in search.iter().chain(forbidden) {
            check::absolute(path)?;
        }
        let mut resolved = Vec::new();
        for path in forbidden {
            resolved.push(path.clone());
            match path.canonicalize() {
                Ok(real) => resolved.push(real),
                Err(error) if error.kind() == std::io::ErrorKind::NotFound => {}
                Err(error) => {
                    return Err(ProcessError::failed(
                        "the folders of Workspaces could not be resolved",
                    )(error));
                }
            }
        }
        Ok(Self {
            search: search.to_vec(),
            forbidden: resolved,
            ..Self::default()
        })
    }

    /// Grants an alias: the first of these programs that is there and passes the checks. Each is a
    /// file name, looked for in the search folders, or an absolute path.
    pub fn alias(&mut self, alias: &str, programs: &[impl AsRef<str>]) {
        let candidates = programs.iter().flat_map(|program| {
            let program = Path::new(program.as_ref());
            match program.components().count() {
                1 if program.is_relative() => {
                    self.search.iter().map(|at| at.join(program)).collect()
                }
                _ => vec![program.to_owned()],
            }
        });
        let found = candidates.into_iter().find(|path| {
            match check::trusted(path, &self.forbidden) {
                Ok(_) => true,
                Err(ProcessError::NotFound(_)) => false,
                Err(error) => {
                    tracing::warn!(alias, path = %path.display(), %error, "not used as a program");
                    false
                }
            }
        });
        if let Some(path) = &found {
            self.needs.extend(needs::of(path));
        }
        self.aliases.insert(alias.to_owned(), found);
    }

    /// Grants a path: an interpreter, or a folder with all that is in it.
    ///
    /// # Errors
    /// `InvalidArgument`: it is not absolute.
    pub fn allow(&mut self, path: PathBuf) -> Result<(), ProcessError> {
        check::absolute(&path)?;
        self.needs.extend(needs::of(&path));
        self.paths.push(path);
        Ok(())
    }

    /// The program of an alias.
    ///
    /// # Errors
    /// `Denied`: no such alias. `NotFound`: not on this machine. Otherwise it fails the checks now.
    pub fn resolve_alias(&self, alias: &str) -> Result<Program, ProcessError> {
        match self.aliases.get(alias) {
            None => Err(denied(alias)),
            Some(None) => Err(ProcessError::NotFound(alias.to_owned())),
            Some(Some(path)) => {
                let found = check::trusted(path, &self.forbidden)?;
                Program::new(alias, path, found, &self.needs)
            }
        }
    }

    /// The program at an absolute path: one that is granted, or the program of an alias by another
    /// path.
    ///
    /// # Errors
    /// `InvalidArgument`: not an absolute path without `..`, not a regular file that may be
    /// executed, or one that others may write. `Denied`: in a forbidden folder or not granted.
    /// `NotFound`: there is none.
    pub fn resolve_path(&self, path: &Path) -> Result<Program, ProcessError> {
        check::absolute(path)?;
        let name = path.display().to_string();
        let found = check::trusted(path, &self.forbidden)?;
        if !self.grants(path, &found) {
            return Err(denied(&name));
        }
        Program::new(&name, path, found, &self.needs)
    }

    /// The program at a path in a root, `.venv/bin/python` say, if `allowed` lists it. No folder
    /// on the way may be a link. The file may be one: to a granted program outside of every root, or
    /// to a file in this root.
    ///
    /// The command must then run with this root as working directory.
    ///
    /// # Errors
    /// `Denied`: not listed, or it leads to what is not granted. `NotFound`: it or what it links to
    /// is not there. `InvalidArgument`: not a path in the root, a link on the way, or not a file
    /// that may be executed.
    pub fn resolve_in_root(
        &self,
        root: &Dir,
        path: &str,
        allowed: &[impl AsRef<str>],
    ) -> Result<Program, ProcessError> {
        if !allowed.iter().any(|entry| entry.as_ref() == path) {
            return Err(denied(path));
        }
        let (found, origin) = check::in_root(root, path, &self.forbidden)?;
        let granted = match origin {
            Origin::Root => true,
            Origin::Outside => self.grants(&found.real, &found),
        };
        if !granted {
            return Err(ProcessError::Denied(format!(
                "program `{path}`, a link to `{}`,",
                found.real.display()
            )));
        }
        Program::new(path, &Path::new(".").join(path), found, &self.needs)
    }

    /// Whether a file outside of every root is granted: by a path, or as what an alias stands for.
    fn grants(&self, path: &Path, found: &Found) -> bool {
        let aliases = self.aliases.values().flatten();
        let listed = |entry: &PathBuf| path.starts_with(entry) || found.is_same(entry);
        self.paths.iter().any(listed) || aliases.into_iter().any(|entry| found.is_same(entry))
    }
}

fn denied(program: &str) -> ProcessError {
    ProcessError::Denied(format!("program `{}`", program.escape_debug()))
}

#[cfg(test)]
mod tests;
