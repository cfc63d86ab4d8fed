//! What a `.git` must look like before libgit2 opens it.
//!
//! libgit2 follows `gitdir` files, `commondir`, alternates, includes, `core.worktree` and symlinks,
//! and waits on FIFOs; each would let a RootDir read, change or hang what is not its own.

use std::io;

use rustix::fs::FileType;
use warren_disk::{Dir, beneath};

use crate::files::{self, as_path, show};
use crate::{Bounds, RepoError, layout_config};

/// Longest config read.
pub(crate) const CONFIG_BYTES_MAX: u64 = 1 << 20;

/// Most entries in a `.git`.
const ENTRIES_MAX: usize = 4_000_000;

/// Deepest folder in a `.git`: refs may be nested, but not without end.
const DEPTH_MAX: usize = 64;

/// Longest loose ref: libgit2 reads it as a whole.
const REF_BYTES_MAX: u64 = 64 << 10;

/// Longest loose object as it lies on disk, and longest other file that libgit2 reads as a whole:
/// a sparse file of a terabyte costs its owner nothing, and us our memory.
const OBJECT_BYTES_MAX: u64 = 1 << 30;
const FILE_BYTES_MAX: u64 = 256 << 20;

/// Files that point elsewhere. Git makes them in linked worktrees, submodules and shared clones.
const POINTERS: &[&str] = &[
    "commondir",
    "gitdir",
    "worktrees",
    "objects/info/alternates",
    "objects/info/http-alternates",
];

/// Files of features that libgit2 gets wrong or cannot do.
const FEATURES: &[(&str, &str)] = &[
    ("shallow", "shallow clone"),
    ("info/grafts", "grafts"),
    ("reftable", "reftable"),
];

/// Folders that libgit2 never opens; hooks are often links.
const UNUSED: &[&[u8]] = &[
    b"hooks",
    b"lfs",
    b"annex",
    b"branches",
    b"gk",
    b"filter-repo",
];

/// Checks the `.git` of a RootDir, through handles only.
///
/// # Errors
///
/// - `NotARepository`: there is no `.git` directory, or it lacks `HEAD`, `objects` or `refs`.
/// - `Unsafe`: `.git` is a file or link, or something in it leads out of it.
/// - `UnsupportedFormat`: sha256, reftable, partial or shallow clone, split index…
/// - `TooLarge`: more entries or levels than any honest `.git` has.
/// - `Timeout`, `Cancelled`.
pub fn check(root: &Dir, bounds: &Bounds) -> Result<(), RepoError> {
    let git = open_git(root)?;
    check_entries(&git, bounds)?;
    for pointer in POINTERS {
        if exists(&git, pointer)? {
            return Err(RepoError::Unsafe(format!("there is `.git/{pointer}`")));
        }
    }
    for (file, feature) in FEATURES {
        if is_filled(&git, file)? {
            return Err(RepoError::UnsupportedFormat((*feature).to_owned()));
        }
    }
    for name in ["config", "config.worktree"] {
        if let Some(bytes) = files::read_small(&git, name.as_bytes(), CONFIG_BYTES_MAX)? {
            layout_config::check(&format!(".git/{name}"), &bytes)?;
        }
    }
    for name in ["HEAD", "objects", "refs"] {
        if !exists(&git, name)? {
            return Err(RepoError::NotARepository);
        }
    }
    Ok(())
}

/// Opens `.git`, which must be a real directory.
pub(crate) fn open_git(root: &Dir) -> Result<Dir, RepoError> {
    match beneath::stat(root, as_path(b".git")) {
        Ok(stat) if stat.kind == beneath::Kind::Dir => {}
        Ok(_) => {
            return Err(RepoError::Unsafe(
                "`.git` is a file or link that points elsewhere".to_owned(),
            ));
        }
        Err(error) if error.kind() == io::ErrorKind::NotFound => {
            return Err(RepoError::NotARepository);
        }
        Err(error) => return Err(RepoError::io("look at `.git`", error)),
    }
    beneath::open_dir(root, as_path(b".git")).map_err(|error| RepoError::io("open `.git`", error))
}

/// Whether `.git/<name>` is there, whatever it is.
pub(crate) fn exists(git: &Dir, name: &str) -> Result<bool, RepoError> {
    match beneath::stat(git, as_path(name.as_bytes())) {
        Ok(_) => Ok(true),
        Err(error) if error.kind() == io::ErrorKind::NotFound => Ok(false),
        Err(error) if beneath::is_refused(&error) => Err(link(name.as_bytes())),
        Err(error) => Err(RepoError::io(format!("look at `.git/{name}`"), error)),
    }
}

fn is_filled(git: &Dir, name: &str) -> Result<bool, RepoError> {
    match beneath::stat(git, as_path(name.as_bytes())) {
        Ok(stat) => Ok(stat.kind == beneath::Kind::Dir || stat.size > 0),
        Err(error) if error.kind() == io::ErrorKind::NotFound => Ok(false),
        Err(error) => Err(RepoError::io(format!("look at `.git/{name}`"), error)),
    }
}

fn link(path: &[u8]) -> RepoError {
    RepoError::Unsafe(format!("`.git/{}` is a link", show(path)))
}

/// How long a file of `.git` may be. Packs are mapped in parts; submodules are not opened.
fn bytes_max(path: &[u8]) -> u64 {
    let is_below = |folder: &[u8]| path.starts_with(folder);
    if is_below(b"objects/pack/") || is_below(b"modules/") {
        u64::MAX
    } else if is_below(b"objects/") {
        OBJECT_BYTES_MAX
    } else if is_below(b"refs/") {
        REF_BYTES_MAX
    } else {
        FILE_BYTES_MAX
    }
}

/// Everything below `.git` that libgit2 may open must be a plain file or directory.
fn check_entries(git: &Dir, bounds: &Bounds) -> Result<(), RepoError> {
    let mut pending: Vec<(Vec<u8>, usize)> = vec![(Vec::new(), 0)];
    let mut count = 0;
    while let Some((path, depth)) = pending.pop() {
        bounds.check()?;
        let fail = |error| RepoError::io(format!("list `.git/{}`", show(&path)), error);
        let dir = files::open_dir(git, &path).map_err(fail)?;
        for entry in files::entries(&dir).map_err(fail)? {
            let (kind, size) = (entry.kind(), entry.stat.st_size as u64);
            let name = entry.name;
            count += 1;
            if count > ENTRIES_MAX {
                return Err(RepoError::TooLarge(
                    "`.git` has too many entries".to_owned(),
                ));
            }
            if depth == 0 && UNUSED.contains(&name.as_slice()) {
                continue;
            }
            if depth == 0 && name.starts_with(b"sharedindex.") {
                return Err(RepoError::UnsupportedFormat("split index".to_owned()));
            }
            let child = if path.is_empty() {
                name
            } else {
                [path.as_slice(), b"/", &name].concat()
            };
            match kind {
                FileType::RegularFile if size <= bytes_max(&child) => {}
                FileType::RegularFile => {
                    let what = format!("`.git/{}` has {size} bytes", show(&child));
                    return Err(RepoError::TooLarge(what));
                }
                FileType::Directory if depth >= DEPTH_MAX => {
                    return Err(RepoError::TooLarge("`.git` is too deep".to_owned()));
                }
                FileType::Directory => pending.push((child, depth + 1)),
                FileType::Symlink => return Err(link(&child)),
                _ => {
                    return Err(RepoError::Unsafe(format!(
                        "`.git/{}` is not a plain file",
                        show(&child)
                    )));
                }
            }
        }
    }
    Ok(())
}

#[cfg(test)]
mod tests;
