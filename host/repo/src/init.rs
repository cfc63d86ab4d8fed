//! An empty repository, and the skeleton that every new `.git` starts from.

use std::io::Write as _;
use std::os::fd::AsFd;
use std::path::Path;

use rustix::fs::{AtFlags, Mode};
use rustix::io::Errno;
use warren_disk::{Dir, beneath, text::escape};

use crate::refs::{self, Config};
use crate::{Bounds, Head, RepoError};

/// Makes an empty repository in an empty directory: our minimal config, no template, no hooks, HEAD
/// unborn on `branch` (its short name), `origin` when a URL is given.
///
/// `path` is where `root` lies, for messages.
///
/// # Errors
/// `InvalidArgument` for a bad branch or URL, or when the directory is not empty; `Io`, `NoSpace`,
/// `Timeout`, `Cancelled`.
pub fn init(
    root: &Dir,
    path: &Path,
    branch: &str,
    origin_url: Option<&str>,
    bounds: &Bounds,
) -> Result<Head, RepoError> {
    let full = refs::branch(branch)?;
    let config = Config {
        origin_url: origin_url.map(str::to_owned),
        upstreams: Vec::new(),
    };
    let config = config.text()?;
    bounds.take(config.len() as u64, SKELETON_INODES)?;
    let git = skeleton(root, path)?;
    write_file(&git, "config", &config)?;
    write_file(&git, "HEAD", format!("ref: {full}\n").as_bytes())?;
    Ok(Head {
        commit: None,
        branch: Some(escape(branch.as_bytes())),
    })
}

/// Entries of a new `.git` without objects, its own included.
pub(crate) const SKELETON_INODES: u64 = 16;

/// Makes `.git` with the directories git wants, in a root that must be empty.
pub(crate) fn skeleton(root: &Dir, path: &Path) -> Result<Dir, RepoError> {
    let listing = || format!("list `{}`", path.display());
    let mut entries = root.entries().map_err(|e| RepoError::io(listing(), e))?;
    if entries.next().is_some() {
        let value = path.display().to_string();
        return Err(refs::invalid("empty directory", value.as_bytes()));
    }
    make_dir(root, ".git")?;
    let doing = || "open `.git`".to_owned();
    let git = beneath::open_dir(root, Path::new(".git")).map_err(|e| RepoError::io(doing(), e))?;
    for dir in [
        // Tools append to `info/exclude` and expect the directory.
        "info",
        "objects",
        "objects/info",
        "objects/pack",
        "refs",
        "refs/heads",
        "refs/tags",
    ] {
        make_dir(&git, dir)?;
    }
    Ok(git)
}

/// Makes a directory of ours with mode 755 whatever the umask; one that is there is fine.
pub(crate) fn make_dir(parent: &Dir, rel: &str) -> Result<(), RepoError> {
    let mode = Mode::from_raw_mode(0o755);
    let made = match rustix::fs::mkdirat(parent, rel, mode) {
        Err(Errno::EXIST) => return Ok(()),
        Err(e) => Err(e),
        Ok(()) => rustix::fs::chmodat(parent.as_fd(), rel, mode, AtFlags::empty()),
    };
    made.map_err(|e| RepoError::io(format!("make the directory `{rel}`"), e))
}

/// Writes a new file of ours.
pub(crate) fn write_file(dir: &Dir, rel: &str, bytes: &[u8]) -> Result<(), RepoError> {
    let write = || beneath::create_file(dir, Path::new(rel), 0o644)?.write_all(bytes);
    write().map_err(|e| RepoError::io(format!("write `.git/{rel}`"), e))
}
