//! Temporary directories on a disk that is fast at many small files.

use std::path::{Path, PathBuf};

/// A temporary directory, on `/dev/shm` where there is one; deleted when dropped.
#[derive(Debug)]
pub struct Work(tempfile::TempDir);

impl Work {
    /// Makes one.
    ///
    /// # Panics
    /// When it cannot be made.
    #[expect(clippy::new_without_default, reason = "it does I/O")]
    pub fn new() -> Self {
        let shm = Path::new("/dev/shm");
        if !shm.is_dir() {
            return Self::on_disk();
        }
        Self(named().tempdir_in(shm).expect("a temporary directory"))
    }

    /// Makes one where temporary directories usually are.
    ///
    /// # Panics
    /// When it cannot be made.
    pub fn on_disk() -> Self {
        Self(named().tempdir().expect("a temporary directory"))
    }

    /// Its path.
    pub fn path(&self) -> &Path {
        self.0.path()
    }

    /// A path in it; nothing is made.
    pub fn join(&self, name: impl AsRef<Path>) -> PathBuf {
        self.0.path().join(name)
    }

    /// A directory in it, made with its parents.
    ///
    /// # Panics
    /// When it cannot be made.
    pub fn dir(&self, name: impl AsRef<Path>) -> PathBuf {
        let path = self.join(name);
        std::fs::create_dir_all(&path).expect("a directory");
        path
    }

    /// Every regular file below that holds `needle`, a text, to look for leaked secrets.
    ///
    /// # Panics
    /// When a directory or file cannot be read.
    pub fn files_holding(&self, needle: &[u8]) -> Vec<PathBuf> {
        let needle = std::str::from_utf8(needle).expect("a text");
        let mut found = Vec::new();
        let mut dirs = vec![self.path().to_owned()];
        while let Some(dir) = dirs.pop() {
            for entry in std::fs::read_dir(dir).expect("a readable directory") {
                let entry = entry.expect("an entry");
                let kind = entry.file_type().expect("a file type");
                if kind.is_dir() {
                    dirs.push(entry.path());
                } else if kind.is_file() {
                    let bytes = std::fs::read(entry.path()).expect("a readable file");
                    // The search of texts is fast in a debug build too.
                    if String::from_utf8_lossy(&bytes).contains(needle) {
                        found.push(entry.path());
                    }
                }
            }
        }
        found
    }
}

fn named() -> tempfile::Builder<'static, 'static> {
    let mut builder = tempfile::Builder::new();
    builder.prefix("warren-test-");
    builder
}
