//! Removing and moving what may be anything.

use std::fs;
use std::io::ErrorKind;
use std::path::Path;

use warren_sdk::{Error, io};

/// What is at a path, links not followed.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Kind {
    /// Nothing.
    Absent,
    /// A directory.
    Directory,
    /// A file, a link or something special.
    Other,
}

/// Says what is at a path.
pub(crate) fn kind(path: &Path) -> Result<Kind, Error> {
    match fs::symlink_metadata(path) {
        Ok(metadata) if metadata.is_dir() => Ok(Kind::Directory),
        Ok(_) => Ok(Kind::Other),
        Err(error) if error.kind() == ErrorKind::NotFound => Ok(Kind::Absent),
        Err(error) => Err(io(path, error)),
    }
}

/// Removes whatever is at a path, with all below it. A link goes, what it names stays.
pub(crate) fn remove(path: &Path) -> Result<(), Error> {
    let removed = match kind(path)? {
        Kind::Absent => Ok(()),
        Kind::Directory => fs::remove_dir_all(path),
        Kind::Other => fs::remove_file(path),
    };
    removed.map_err(|error| io(path, error))
}

/// Renames within the root.
pub(crate) fn rename(from: &Path, to: &Path) -> Result<(), Error> {
    fs::rename(from, to).map_err(|error| io(from, error))
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::os::unix::fs::symlink;
    use warren_sdk::testing::Host;

    #[test]
    fn a_link_is_seen_and_removed_as_itself() {
        let host = Host::new();
        let (target, link) = (host.root().join("target"), host.root().join("link"));
        fs::create_dir(&target).unwrap();
        fs::write(target.join("x"), "mine").unwrap();
        for to in ["target", "target/x", "nowhere"] {
            symlink(to, &link).unwrap();
            assert_eq!(kind(&link).unwrap(), Kind::Other, "{to}");
            remove(&link).unwrap();
            assert_eq!(kind(&link).unwrap(), Kind::Absent, "{to}");
        }
        assert_eq!(fs::read_to_string(target.join("x")).unwrap(), "mine");
        remove(&target).unwrap();
        assert_eq!(kind(&target).unwrap(), Kind::Absent);
    }
}
