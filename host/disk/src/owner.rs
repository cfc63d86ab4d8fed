//! Whose a tree is.

use crate::Dir;
use crate::stat::Stat;
use crate::walk::{Flow, WalkError, WalkLimits, walk};
use rustix::fs::{AtFlags, Gid, Uid, chownat};
use rustix::io::Errno;

/// Gives the directory and all below it to this user and group; says how many entries were
/// somebody else's. No link is followed, and what is mounted in the tree is left alone.
///
/// A file with several names changes its owner under all of them. That is no way out: a name is made
/// within one mount only, and whoever writes in a RootDir sees that RootDir as a mount of its own.
/// The kernel takes set-user-ID bits and file capabilities away from a file that changes hands.
///
/// # Errors
/// What stops a walk, and an entry whose owner can not be changed.
pub fn own_tree(dir: &Dir, uid: u32, gid: u32) -> Result<u64, WalkError> {
    let (user, group) = (Uid::from_raw(uid), Gid::from_raw(gid));
    let differs = |stat: &Stat| stat.uid != uid || stat.gid != gid;
    let mut changed = 0;
    let top = |e: std::io::Error| WalkError::io(b"", e);
    if differs(&Stat::of(dir).map_err(top)?) {
        // The handle may be one that names the directory only.
        chownat(dir, "", Some(user), Some(group), AtFlags::EMPTY_PATH)
            .map_err(|e| top(e.into()))?;
        changed += 1;
    }
    walk(dir, WalkLimits::NONE, |entry| {
        if entry.stat().mount_point {
            return Ok::<_, WalkError>(Flow::Skip);
        }
        if differs(entry.stat()) {
            match entry.change_owner(user, group) {
                Ok(()) => changed += 1,
                // Gone meanwhile.
                Err(Errno::NOENT) => {}
                Err(error) => return Err(WalkError::io(entry.path(), error.into())),
            }
        }
        Ok(Flow::Go)
    })?;
    Ok(changed)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::testing::{open, scratch};
    use std::fs;
    use std::os::unix::fs::{MetadataExt, PermissionsExt, symlink};

    #[test]
    fn everything_in_the_tree_and_nothing_a_link_leads_to() {
        if !rustix::process::geteuid().is_root() {
            // Only root gives files away.
            return;
        }
        let tmp = scratch();
        let outside = scratch();
        let victim = outside.path().join("victim");
        fs::write(&victim, "v").unwrap();
        let path = tmp.path();
        fs::create_dir_all(path.join("a/b")).unwrap();
        fs::write(path.join("a/b/f"), "f").unwrap();
        fs::set_permissions(path.join("a/b/f"), fs::Permissions::from_mode(0o4755)).unwrap();
        symlink(&victim, path.join("a/link")).unwrap();
        symlink(outside.path(), path.join("dir")).unwrap();
        // A handle as the file calls of cap-std give it, too.
        let named_only = Dir::open_ambient_dir(path, cap_std::ambient_authority()).unwrap();
        assert_eq!(own_tree(&named_only, 201_234, 201_235).unwrap(), 6);
        for name in ["", "a", "a/b", "a/b/f", "a/link", "dir"] {
            let found = fs::symlink_metadata(path.join(name)).unwrap();
            assert_eq!((found.uid(), found.gid()), (201_234, 201_235), "{name}");
        }
        let mode = fs::metadata(path.join("a/b/f")).unwrap().mode();
        assert_eq!(mode & 0o7777, 0o755, "no program of another user is left");
        assert_eq!(fs::metadata(&victim).unwrap().uid(), 0);
        assert_eq!(fs::metadata(outside.path()).unwrap().uid(), 0);
        assert_eq!(own_tree(&open(path), 201_234, 201_235).unwrap(), 0);
    }
}
