//! A guest leaves no symlink that points out of its root.
//!
//! A target is `..` any number of times, then names: never absolute, never `..` after a name,
//! which could be a link by the time it is followed. When no link has more `..` than the
//! directory that holds it has directories above it within the root, none can lead out, however
//! they are chained; so that is checked when one is made, and when it comes nearer to the root.

use std::fs::File;
use std::io;
use std::os::fd::{AsFd, BorrowedFd, OwnedFd};
use std::path::{Component, Path};

use rustix::fs::{Mode, OFlags, ResolveFlags};
use rustix::io::Errno;
use warren_disk::Dir;
use warren_disk::beneath::{Kind, Stat};
use warren_disk::walk::{Flow, WalkError, WalkLimits, walk};

/// Levels above a directory that are looked at.
const DEPTH_MAX: usize = 4096;

/// Entries of a directory that is moved nearer to the root.
const ENTRIES_MAX: u64 = 1_000_000;

/// How often a resolution that a concurrent rename disturbed is tried.
const ATTEMPTS_MAX: u32 = 64;

/// Where an entry is: the directory that holds it, opened, and its name.
#[derive(Debug)]
pub(crate) struct Place {
    dir: OwnedFd,
    name: String,
}

impl Place {
    /// Resolves all but the last component as WASI does: beneath `base`, links followed.
    pub(crate) fn of(base: &File, path: &str) -> io::Result<Self> {
        let path = path.trim_end_matches('/');
        let (parent, name) = path.rsplit_once('/').unwrap_or((".", path));
        if matches!(name, "" | "." | "..") {
            return Err(Errno::INVAL.into());
        }
        let parent = if parent.is_empty() { "/" } else { parent };
        Ok(Self {
            dir: open_beneath(base.as_fd(), parent)?,
            name: name.to_owned(),
        })
    }

    /// What is there; a link is not followed.
    pub(crate) fn stat(&self) -> io::Result<Stat> {
        Stat::of(open(self.dir.as_fd(), &self.name, OFlags::PATH)?)
    }

    /// How many directories of the root lie above it, the root not counted.
    pub(crate) fn depth(&self, root: &Stat) -> io::Result<usize> {
        let mut dir = self.dir.as_fd().try_clone_to_owned()?;
        for depth in 0..DEPTH_MAX {
            let here = Stat::of(&dir)?;
            if (here.dev, here.ino) == (root.dev, root.ino) {
                return Ok(depth);
            }
            let above = open(dir.as_fd(), "..", OFlags::PATH | OFlags::DIRECTORY)?;
            let found = Stat::of(&above)?;
            if (found.dev, found.ino) == (here.dev, here.ino) {
                break;
            }
            dir = above;
        }
        // It was moved out, or is deeper than anything that is honest.
        Err(Errno::PERM.into())
    }

    /// The target of the link that is there.
    fn target(&self) -> io::Result<Vec<u8>> {
        Ok(rustix::fs::readlinkat(&self.dir, self.name.as_str(), Vec::new())?.into_bytes())
    }
}

fn open(dir: BorrowedFd<'_>, name: &str, flags: OFlags) -> io::Result<OwnedFd> {
    let flags = flags | OFlags::NOFOLLOW | OFlags::CLOEXEC;
    Ok(rustix::fs::openat(dir, name, flags, Mode::empty())?)
}

fn open_beneath(base: BorrowedFd<'_>, path: &str) -> io::Result<OwnedFd> {
    let flags = OFlags::PATH | OFlags::DIRECTORY | OFlags::CLOEXEC;
    let resolve = ResolveFlags::BENEATH | ResolveFlags::NO_MAGICLINKS;
    for _ in 0..ATTEMPTS_MAX {
        match rustix::fs::openat2(base, path, flags, Mode::empty(), resolve) {
            Err(Errno::AGAIN | Errno::INTR) => {}
            // How WASI calls a path that leaves.
            Err(Errno::XDEV) => return Err(Errno::PERM.into()),
            done => return Ok(done?),
        }
    }
    Err(Errno::AGAIN.into())
}

/// Whether a link with this target, in a directory with `depth` others above it, can not lead out.
pub(crate) fn stays(target: &Path, depth: usize) -> bool {
    let mut up = 0;
    let mut named = false;
    for component in target.components() {
        match component {
            Component::CurDir => {}
            Component::Normal(_) => named = true,
            Component::ParentDir if !named => up += 1,
            _ => return false,
        }
    }
    up <= depth
}

/// Whether what is at `from` may get a name at `to` too: no link in it leads out only from there.
pub(crate) fn may_move(from: &Place, to: &Place, root: &Stat) -> io::Result<bool> {
    let stat = from.stat()?;
    if !matches!(stat.kind, Kind::Dir | Kind::Symlink) {
        return Ok(true);
    }
    let (old, new) = (from.depth(root)?, to.depth(root)?);
    if new >= old {
        return Ok(true);
    }
    // One that leads out already was not made by a guest.
    let gets_out =
        |target: &Path, below: usize| stays(target, old + below) && !stays(target, new + below);
    if stat.kind == Kind::Symlink {
        return Ok(!gets_out(as_path(&from.target()?), 0));
    }
    let dir = open(
        from.dir.as_fd(),
        &from.name,
        OFlags::RDONLY | OFlags::DIRECTORY,
    )?;
    let limits = WalkLimits {
        entries_max: ENTRIES_MAX,
        depth_max: u32::MAX,
    };
    let mut fine = true;
    let walked = walk(&Dir::from(dir), limits, |entry| {
        if entry.stat().mount_point {
            return Ok::<_, WalkError>(Flow::Skip);
        }
        if entry.stat().kind == Kind::Symlink {
            let below = 1 + entry.path().iter().filter(|byte| **byte == b'/').count();
            // One that vanished meanwhile is no link.
            if let Ok(target) = entry.read_link()
                && gets_out(&target, below)
            {
                fine = false;
                return Ok(Flow::Stop);
            }
        }
        Ok(Flow::Go)
    });
    walked.map_err(io::Error::other)?;
    Ok(fine)
}

fn as_path(bytes: &[u8]) -> &Path {
    use std::os::unix::ffi::OsStrExt;
    Path::new(std::ffi::OsStr::from_bytes(bytes))
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    #[test]
    fn a_target_goes_up_first_and_not_too_far() {
        for (target, depth) in [
            ("a", 0),
            ("a/b/", 0),
            ("./a", 0),
            (".", 0),
            ("..", 1),
            ("../../a", 2),
            ("./../a", 1),
        ] {
            assert!(stays(Path::new(target), depth), "{target} {depth}");
        }
        for (target, depth) in [
            ("/", 9),
            ("/etc", 9),
            ("..", 0),
            ("../..", 1),
            ("a/..", 9),
            ("a/../b", 9),
            ("../a/../..", 9),
        ] {
            assert!(!stays(Path::new(target), depth), "{target} {depth}");
        }
    }

    proptest! {
        /// Trees of links that are each fine never lead out, whatever is replaced by what.
        #[test]
        fn links_that_are_fine_never_lead_out(
            links in proptest::collection::vec((0..4_usize, "(\\.\\./){0,3}([ab]/){0,3}[ab]?"), 1..12),
        ) {
            let tmp = tempfile::tempdir_in(if Path::new("/dev/shm").is_dir() { "/dev/shm" } else { "/tmp" }).unwrap();
            let root = tmp.path().join("root");
            std::fs::create_dir_all(root.join("a/a/a")).unwrap();
            std::fs::create_dir_all(root.join("b/b")).unwrap();
            let root_dir = File::open(&root).unwrap();
            let root_stat = Stat::of(&root_dir).unwrap();
            for (n, (depth, target)) in links.iter().enumerate() {
                let holder = ["", "a/", "a/a/", "a/a/a/"][*depth];
                let place = Place::of(&root_dir, &format!("{holder}l{n}")).unwrap();
                prop_assert_eq!(place.depth(&root_stat).unwrap(), *depth);
                if !target.is_empty() && stays(Path::new(target), *depth) {
                    // In the place of a directory that others go through, too.
                    let name = if n % 3 == 0 { "b" } else { "x" };
                    let at = root.join(format!("{holder}{name}"));
                    std::fs::remove_dir_all(&at).ok();
                    std::os::unix::fs::symlink(target, &at).ok();
                }
            }
            for entry in ["b", "x", "a/b", "a/x", "a/a/b", "a/a/x", "a/a/a/b", "a/a/a/x"] {
                if let Ok(real) = root.join(entry).canonicalize() {
                    prop_assert!(real.starts_with(&root), "{entry} -> {real:?}");
                }
            }
        }
    }
}
