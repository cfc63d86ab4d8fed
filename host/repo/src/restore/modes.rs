//! Permissions that git does not keep.

use std::fs::File;
use std::io;

use rustix::fs::Mode;
use warren_disk::{Dir, beneath};

use super::snapshot::{Saved, bad, path};
use crate::RepoError;
use crate::checkout::{Item, Stat, stat_of};
use crate::files::{self, as_path, show};

/// Sets recorded permissions after the content is there, the deepest first, so that a directory
/// without write permission is closed last. Set-uid and its kin are never set.
///
/// `stats` of the items change with it.
pub(super) fn apply(
    root: &Dir,
    saved: &Saved,
    items: &[Item],
    stats: &mut [Option<Stat>],
) -> Result<(), RepoError> {
    let mut wanted = Vec::with_capacity(saved.manifest.modes.len());
    for (text, mode) in &saved.manifest.modes {
        if *mode > 0o7777 {
            return Err(bad("a mode is no mode"));
        }
        wanted.push((path(text)?, Mode::from_raw_mode(mode & 0o777)));
    }
    // Below sorts after above.
    wanted.sort_by(|a, b| b.0.cmp(&a.0));
    for (path, mode) in wanted {
        let stat = set(root, &path, mode)
            .map_err(|e| RepoError::io(format!("set the mode of `{}`", show(&path)), e))?;
        let at = items.binary_search_by(|item| item.path.cmp(&path));
        match (stat, at) {
            (Some(stat), Ok(at)) => stats[at] = stats[at].and(Some(stat)),
            (Some(_), Err(_)) => {}
            (None, _) => tracing::warn!(path = show(&path), "a mode for what is not there"),
        }
    }
    Ok(())
}

/// Sets the mode of a file or directory; none: there is no such thing.
fn set(root: &Dir, path: &[u8], mode: Mode) -> io::Result<Option<Stat>> {
    let kind = match beneath::stat(root, as_path(path)) {
        Ok(stat) => stat.kind,
        Err(e) if is_gone(&e) => return Ok(None),
        Err(e) => return Err(e),
    };
    let file = match kind {
        beneath::Kind::File => beneath::open_file(root, as_path(path))?,
        beneath::Kind::Dir => File::from(std::os::fd::OwnedFd::from(files::open_dir(root, path)?)),
        beneath::Kind::Symlink | beneath::Kind::Other => return Ok(None),
    };
    rustix::fs::fchmod(&file, mode)?;
    Ok(Some(stat_of(&rustix::fs::fstat(&file)?)))
}

fn is_gone(error: &io::Error) -> bool {
    beneath::is_refused(error)
        || matches!(
            error.kind(),
            io::ErrorKind::NotFound | io::ErrorKind::NotADirectory
        )
}
