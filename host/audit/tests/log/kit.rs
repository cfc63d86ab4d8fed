//! What several tests need.

use std::path::{Path, PathBuf};
use std::process::Command;

use tempfile::TempDir;
use warren_audit::{AuditLog, Entry, Outcome, Settings};
use warren_disk::{Dir, open_root};

/// Tells a test that runs in a process of its own where to work.
const PLACE: &str = "WARREN_AUDIT_TEST_PLACE";

/// A state directory, in memory where there is one.
pub(crate) struct State {
    pub(crate) tmp: TempDir,
    pub(crate) dir: Dir,
}

impl State {
    pub(crate) fn new() -> Self {
        let memory = Path::new("/dev/shm");
        let tmp = match memory.is_dir() {
            true => tempfile::tempdir_in(memory).unwrap(),
            false => tempfile::tempdir().unwrap(),
        };
        let dir = open_root(tmp.path()).unwrap();
        Self { tmp, dir }
    }

    pub(crate) fn path(&self) -> &Path {
        self.tmp.path()
    }

    pub(crate) fn open(&self) -> AuditLog {
        AuditLog::open(&self.dir, Settings::default()).unwrap()
    }

    /// The log with `n` records.
    pub(crate) fn with_records(n: u64) -> Self {
        let state = Self::new();
        let log = state.open();
        for i in 1..=n {
            assert_eq!(log.append(&entry(&format!("t{i}"))).unwrap(), i);
        }
        state
    }

    pub(crate) fn file(&self, index: u32) -> PathBuf {
        let name = format!("audit-{index:06}.jsonl");
        self.path().join("audit").join(name)
    }

    pub(crate) fn lines(&self, index: u32) -> Vec<String> {
        let text = std::fs::read_to_string(self.file(index)).unwrap();
        text.lines().map(str::to_owned).collect()
    }

    pub(crate) fn set_lines(&self, index: u32, lines: &[String]) {
        let text: String = lines.iter().map(|line| format!("{line}\n")).collect();
        std::fs::write(self.file(index), text).unwrap();
    }
}

pub(crate) fn entry(target: &str) -> Entry<'_> {
    Entry {
        tenant: Some("acme"),
        project: Some("shop"),
        target: Some(target),
        duration_us: Some(12),
        ..Entry::new("git", "push", Outcome::Ok)
    }
}

/// Small files, so that they rotate.
pub(crate) fn small() -> Settings {
    Settings {
        file_bytes_max: 2000,
        files_max: 4,
        reserve_bytes: 4096,
        ..Settings::default()
    }
}

/// Runs an ignored test of this binary in a process of its own.
pub(crate) fn child(test: &str, place: &Path) -> Command {
    let mut command = Command::new(std::env::current_exe().unwrap());
    command
        .args([test, "--exact", "--ignored", "--nocapture"])
        .env_clear()
        .env(PLACE, place);
    command
}

/// Where the test of a child works; nothing when nobody sent it.
pub(crate) fn place() -> Option<PathBuf> {
    std::env::var_os(PLACE).map(PathBuf::from)
}
