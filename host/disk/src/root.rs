//! The one place where a path from the configuration becomes a handle.

use crate::Dir;
use rustix::fs::{Mode, OFlags};
use std::io;
use std::path::{Component, Path, PathBuf};

/// Opens the directory at an absolute path.
///
/// The path comes from the operator, so symlinks on the way are fine; the last component must be a
/// directory itself.
///
/// # Errors
/// `InvalidInput` for a relative path or one with `..`; else what the system says (`ENOTDIR` for a
/// symlink).
pub fn open_root(path: &Path) -> io::Result<Dir> {
    if !path.is_absolute() || path.components().any(|c| c == Component::ParentDir) {
        let text = crate::text::escape(path.as_os_str().as_encoded_bytes());
        let why = format!("`{text}` is not an absolute path without `..`");
        return Err(io::Error::new(io::ErrorKind::InvalidInput, why));
    }
    // Collected anew without a trailing slash or `/.`, which would make the kernel follow a link.
    let clean: PathBuf = path.components().collect();
    let flags = OFlags::RDONLY | OFlags::DIRECTORY | OFlags::NOFOLLOW | OFlags::CLOEXEC;
    let fd = rustix::fs::open(&clean, flags, Mode::empty())?;
    Ok(Dir::from(fd))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::testing::scratch;

    #[test]
    fn opens_directories_and_nothing_else() {
        let tmp = scratch();
        std::fs::create_dir(tmp.path().join("d")).unwrap();
        std::fs::write(tmp.path().join("f"), "x").unwrap();
        std::os::unix::fs::symlink("d", tmp.path().join("l")).unwrap();
        assert!(open_root(&tmp.path().join("d")).is_ok());
        assert!(open_root(&tmp.path().join("d/")).is_ok());
        for bad in ["f", "l", "l/", "l/.", "d/..", "none"] {
            assert!(open_root(&tmp.path().join(bad)).is_err(), "{bad}");
        }
        assert!(open_root(Path::new("d")).is_err());
        assert!(open_root(Path::new("/")).is_ok());
    }
}
