//! How much room a tree takes.

use crate::Dir;
use crate::stat::{Kind, Stat};
use crate::walk::{Flow, WalkError, WalkLimits, walk};
use std::collections::HashSet;

/// Room that a tree takes.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct Usage {
    /// Allocated bytes, those of the directory itself included; a sparse file counts little.
    pub bytes: u64,
    /// Entries below it that are no directories; a hard link counts once.
    pub files: u64,
    /// Directories below it.
    pub dirs: u64,
}

/// Counts what `dir` takes as `du -x` does; what is mounted in it does not count.
///
/// # Errors
/// What stops a walk: directories that are moved meanwhile or can not be read.
pub fn usage(dir: &Dir) -> Result<Usage, WalkError> {
    let mut usage = Usage {
        bytes: Stat::of(dir)
            .map_err(|e| WalkError::io(b"", e))?
            .bytes_allocated(),
        ..Usage::default()
    };
    let mut linked = HashSet::new();
    walk(dir, WalkLimits::NONE, |entry| {
        let stat = entry.stat();
        if stat.mount_point {
            return Ok::<_, WalkError>(Flow::Skip);
        }
        if stat.kind == Kind::Dir {
            usage.dirs += 1;
        } else if stat.nlink > 1 && !linked.insert((stat.dev, stat.ino)) {
            return Ok(Flow::Go);
        } else {
            usage.files += 1;
        }
        usage.bytes = usage.bytes.saturating_add(stat.bytes_allocated());
        Ok(Flow::Go)
    })?;
    Ok(usage)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::testing::{open, scratch};
    use std::fs::{self, File};
    use std::process::Command;

    #[test]
    fn counts_as_du_does() {
        let tmp = scratch();
        fs::create_dir_all(tmp.path().join("a/b")).unwrap();
        fs::write(tmp.path().join("a/f"), vec![7; 100_000]).unwrap();
        fs::hard_link(tmp.path().join("a/f"), tmp.path().join("a/b/g")).unwrap();
        let sparse = File::create(tmp.path().join("sparse")).unwrap();
        sparse.set_len(1 << 40).unwrap();
        let usage = usage(&open(tmp.path())).unwrap();
        assert_eq!((usage.files, usage.dirs), (2, 2));
        let du = Command::new("du")
            .env_clear()
            .env("PATH", "/usr/bin:/bin")
            .args(["-sx", "--block-size=1"])
            .arg(tmp.path())
            .output()
            .unwrap();
        let du = String::from_utf8(du.stdout).unwrap();
        let bytes: u64 = du.split_whitespace().next().unwrap().parse().unwrap();
        assert_eq!(usage.bytes, bytes);
        assert!((100_000..200_000).contains(&bytes));
    }
}
