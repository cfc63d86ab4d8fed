//! Mounts for tests, where the machine lets us make them.

use std::io::Write as _;
use std::path::Path;
use std::process::Command;

/// A mount that goes when dropped.
pub(crate) struct Mount<'a>(&'a Path);

impl<'a> Mount<'a> {
    /// A file system in memory; none where we may not mount.
    pub(crate) fn tmpfs(at: &'a Path, options: &str) -> Option<Self> {
        std::fs::create_dir_all(at).unwrap();
        Self::new(at, &["-t", "tmpfs", "-o", options, "none"])
    }

    /// A directory seen at a second place; none where we may not mount.
    pub(crate) fn bind(from: &Path, at: &'a Path) -> Option<Self> {
        std::fs::create_dir_all(at).unwrap();
        Self::new(at, &["--bind", from.to_str().unwrap()])
    }

    fn new(at: &'a Path, args: &[&str]) -> Option<Self> {
        let mut mount = Command::new("mount");
        mount.args(args).arg(at);
        if mount.output().is_ok_and(|output| output.status.success()) {
            return Some(Self(at));
        }
        skipped("no right to mount");
        None
    }

    /// Leaves no room, not even for a page.
    pub(crate) fn fill(&self) {
        let error = std::fs::write(self.0.join("fill"), vec![1; 4 << 20]).unwrap_err();
        assert_eq!(error.kind(), std::io::ErrorKind::StorageFull);
        // What is left of the last page.
        while std::fs::write(self.0.join("more"), [1; 4096]).is_ok() {
            std::fs::rename(self.0.join("more"), self.0.join("fill2")).unwrap();
        }
    }
}

impl Drop for Mount<'_> {
    fn drop(&mut self) {
        let gone = Command::new("umount").arg(self.0).status();
        assert!(gone.is_ok_and(|status| status.success()));
    }
}

/// Says so past the capture of the test runner.
pub(crate) fn skipped(why: &str) {
    let mut stderr = std::io::stderr();
    writeln!(stderr, "SKIPPED: {why}").unwrap();
}
