//! The demo's repository, the work done in its forks, and what they look like.

use std::fmt::Write as _;
use std::fs;
use std::os::unix::fs::{PermissionsExt, symlink};
use std::path::Path;

use git2::build::TreeUpdateBuilder;
use git2::{Error, FileMode, Repository, Signature, StatusOptions};
use warren_disk::digest::tree_digest;

use super::super::console::safe;
use super::super::error::CliError;

const FILES: [(&str, FileMode, &str); 6] = [
    (
        "README.md",
        FileMode::Blob,
        "# A small repository\n\nMade by `warren demo`.\n",
    ),
    (
        "main.py",
        FileMode::Blob,
        "print(\"hello from a RootDir\")\n",
    ),
    ("docs/notes.md", FileMode::Blob, "Nothing yet.\n"),
    (
        "requirements.txt",
        FileMode::Blob,
        "# nothing: the demo needs no network\n",
    ),
    (
        "run.sh",
        FileMode::BlobExecutable,
        "#!/bin/sh\nexec python3 -I main.py\n",
    ),
    ("latest.md", FileMode::Link, "docs/notes.md"),
];

/// Makes a bare repository with one commit on `main`; how many files it has.
pub(super) fn make(path: &Path) -> Result<usize, Error> {
    let repo = Repository::init_bare(path)?;
    repo.set_head("refs/heads/main")?;
    let empty = repo.find_tree(repo.treebuilder(None)?.write()?)?;
    let mut update = TreeUpdateBuilder::new();
    for (name, mode, content) in FILES {
        update.upsert(name, repo.blob(content.as_bytes())?, mode);
    }
    let tree = repo.find_tree(update.create_updated(&repo, &empty)?)?;
    let who = author()?;
    repo.commit(Some("refs/heads/main"), &who, &who, "Start", &tree, &[])?;
    Ok(FILES.len())
}

fn author() -> Result<Signature<'static>, Error> {
    Signature::now("Warren Demo", "demo@localhost")
}

/// Leaves work of every kind: a commit, a branch, staged and unstaged edits, untracked files.
pub(super) fn work(root: &Path) -> Result<(), Error> {
    let repo = Repository::open(root)?;
    let mut index = repo.index()?;
    let tracked = first_file(&index);
    let folder = root.join("warren-demo");
    io(fs::create_dir_all(&folder))?;
    let write = |name: &str, text: &str| io(fs::write(folder.join(name), text));

    write("committed.txt", "a commit that no remote has\n")?;
    index.add_path(Path::new("warren-demo/committed.txt"))?;
    let tree = repo.find_tree(index.write_tree()?)?;
    let parent = repo.head()?.peel_to_commit()?;
    let who = author()?;
    repo.commit(
        Some("HEAD"),
        &who,
        &who,
        "Work of the demo",
        &tree,
        &[&parent],
    )?;
    repo.branch("demo-idea", &parent, false)?;

    write("staged.txt", "staged\n")?;
    index.add_path(Path::new("warren-demo/staged.txt"))?;
    index.write()?;
    write("staged.txt", "staged, then edited again\n")?;
    write("untracked.sh", "#!/bin/sh\necho untracked\n")?;
    let mode = fs::Permissions::from_mode(0o755);
    io(fs::set_permissions(folder.join("untracked.sh"), mode))?;
    io(symlink("committed.txt", folder.join("link")))?;
    if let Some(name) = tracked {
        let path = root.join(name);
        let mut text = io(fs::read(&path))?;
        text.extend_from_slice(b"\nan edit that is not staged\n");
        io(fs::write(&path, text))?;
    }
    Ok(())
}

/// The first regular file that is tracked.
fn first_file(index: &git2::Index) -> Option<String> {
    index
        .iter()
        .filter(|entry| entry.mode == u32::from(FileMode::Blob) && !entry.path.starts_with(b"."))
        .find_map(|entry| String::from_utf8(entry.path).ok())
}

fn io<T>(result: std::io::Result<T>) -> Result<T, Error> {
    result.map_err(|error| Error::from_str(&error.to_string()))
}

/// What has to be the same afterwards.
#[derive(Debug, PartialEq, Eq)]
pub(super) struct Fingerprint {
    head: String,
    branches: Vec<String>,
    /// Staged and unstaged state of every path that has one.
    paths: Vec<String>,
    /// Names, kinds, modes and bytes of the working tree.
    digest: String,
}

impl Fingerprint {
    pub(super) fn of(root: &Path) -> Result<Self, CliError> {
        let failed = |error: Error| {
            CliError::Demo(format!(
                "cannot read `{}`: {}",
                root.display(),
                error.message()
            ))
        };
        let dir = warren_disk::open_root(root).map_err(CliError::io("open a RootDir"))?;
        let digest = tree_digest(&dir, |path| path == b".git" || path == b".venv")
            .map_err(|error| CliError::Demo(warren::error::chain(&error)))?;
        let repo = Repository::open(root).map_err(failed)?;
        Ok(Self {
            head: head(&repo).map_err(failed)?,
            branches: branches(&repo).map_err(failed)?,
            paths: paths(&repo).map_err(failed)?,
            digest,
        })
    }

    /// HEAD and every path that is not as committed, safe to print.
    pub(super) fn status(&self) -> String {
        let mut out = format!("{}\n", self.head);
        for path in &self.paths {
            // Writing to a string can not fail.
            let _ = writeln!(out, "{path}");
        }
        out
    }

    pub(super) fn digest(&self) -> String {
        format!(
            "tree digest {}",
            self.digest.get(..12).unwrap_or(&self.digest)
        )
    }

    /// What is not the same, if anything.
    pub(super) fn difference(&self, other: &Self) -> Option<String> {
        let told = |what: &str, a: &str, b: &str| Some(format!("{what}: `{a}` became `{b}`"));
        if self.head != other.head {
            return told("HEAD", &self.head, &other.head);
        }
        if self.branches != other.branches {
            return told(
                "branches",
                &self.branches.join(", "),
                &other.branches.join(", "),
            );
        }
        if self.paths != other.paths {
            return told("status", &self.paths.join(", "), &other.paths.join(", "));
        }
        if self.digest != other.digest {
            return told("tree digest", &self.digest, &other.digest);
        }
        None
    }
}

fn head(repo: &Repository) -> Result<String, Error> {
    let head = repo.head()?;
    let name = String::from_utf8_lossy(head.name_bytes()).into_owned();
    Ok(format!("{} {}", safe(&name), head.peel_to_commit()?.id()))
}

fn branches(repo: &Repository) -> Result<Vec<String>, Error> {
    let mut found = Vec::new();
    for branch in repo.branches(Some(git2::BranchType::Local))? {
        let (branch, _) = branch?;
        let name = String::from_utf8_lossy(branch.name_bytes()?).into_owned();
        found.push(format!(
            "{} {}",
            safe(&name),
            branch.get().peel_to_commit()?.id()
        ));
    }
    found.sort();
    Ok(found)
}

fn paths(repo: &Repository) -> Result<Vec<String>, Error> {
    let mut options = StatusOptions::new();
    options.include_untracked(true).recurse_untracked_dirs(true);
    let statuses = repo.statuses(Some(&mut options))?;
    let mut found: Vec<_> = statuses
        .iter()
        .map(|entry| {
            let flags: Vec<_> = entry
                .status()
                .iter_names()
                .map(|(name, _)| name.to_lowercase().replace('_', " "))
                .collect();
            let path = warren_disk::text::escape(entry.path_bytes());
            format!("{path}: {}", flags.join(", "))
        })
        .collect();
    found.sort();
    Ok(found)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn fork() -> (tempfile::TempDir, std::path::PathBuf) {
        let dir = tempfile::tempdir().unwrap();
        let bare = dir.path().join("up.git");
        assert_eq!(make(&bare).unwrap(), FILES.len());
        let fork = dir.path().join("fork");
        Repository::clone(bare.to_str().unwrap(), &fork).unwrap();
        (dir, fork)
    }

    #[test]
    fn work_is_of_every_kind() {
        let (_dir, fork) = fork();
        work(&fork).unwrap();
        let print = Fingerprint::of(&fork).unwrap();
        let status = print.status();
        assert!(status.contains("README.md: wt modified"), "{status}");
        assert!(
            status.contains("warren-demo/staged.txt: index new, wt modified"),
            "{status}"
        );
        assert!(
            status.contains("warren-demo/untracked.sh: wt new"),
            "{status}"
        );
        assert_eq!(print.branches.len(), 2);
    }

    #[test]
    fn every_difference_is_seen() {
        let (_dir, fork) = fork();
        work(&fork).unwrap();
        let before = Fingerprint::of(&fork).unwrap();
        assert_eq!(before.difference(&Fingerprint::of(&fork).unwrap()), None);
        let script = fork.join("warren-demo/untracked.sh");
        fs::set_permissions(&script, fs::Permissions::from_mode(0o644)).unwrap();
        let after = Fingerprint::of(&fork).unwrap();
        assert!(
            before
                .difference(&after)
                .unwrap()
                .starts_with("tree digest")
        );
        let repo = Repository::open(&fork).unwrap();
        repo.find_branch("demo-idea", git2::BranchType::Local)
            .unwrap()
            .delete()
            .unwrap();
        let after = Fingerprint::of(&fork).unwrap();
        assert!(before.difference(&after).unwrap().starts_with("branches"));
        let mut index = repo.index().unwrap();
        index.add_path(Path::new("README.md")).unwrap();
        index.write().unwrap();
        let after = Fingerprint {
            branches: before.branches.clone(),
            ..Fingerprint::of(&fork).unwrap()
        };
        assert!(before.difference(&after).unwrap().starts_with("status"));
    }
}
