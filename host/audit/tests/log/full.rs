//! A disk without room.

use std::ffi::CString;
use std::io::Write;
use std::path::Path;

use warren_audit::{AuditError, AuditLog, Settings, Verdict, verify};

use crate::kit::{State, entry, small};

/// A small disk that ends with the test; none where it cannot be mounted.
struct SmallDisk(State);

impl SmallDisk {
    fn new() -> Option<Self> {
        let state = State::new();
        let flags = rustix::mount::MountFlags::empty();
        let options = CString::new("size=256k").unwrap();
        let mounted = rustix::mount::mount("tmpfs", state.path(), "tmpfs", flags, Some(&*options));
        if let Err(error) = mounted {
            let text = format!("SKIPPED a full disk: {error}\n");
            // Past the capture of the test runner.
            std::io::stderr().write_all(text.as_bytes()).unwrap();
            return None;
        }
        let dir = warren_disk::open_root(state.path()).unwrap();
        Some(Self(State { dir, ..state }))
    }

    fn fill(&self, name: &str) {
        let mut file = std::fs::File::create(self.0.path().join(name)).unwrap();
        while file.write_all(&[0; 512]).is_ok() {}
    }
}

impl Drop for SmallDisk {
    fn drop(&mut self) {
        let flags = rustix::mount::UnmountFlags::DETACH;
        let _ = rustix::mount::unmount(self.0.path() as &Path, flags);
    }
}

#[test]
fn the_reserve_lasts_for_a_while_then_records_are_refused_and_none_is_torn() {
    let Some(disk) = SmallDisk::new() else { return };
    let settings = Settings {
        reserve_bytes: 64 * 1024,
        ..small()
    };
    let log = AuditLog::open(&disk.0.dir, settings).unwrap();
    log.append(&entry("before")).unwrap();
    disk.fill("filler");
    let mut written = 0;
    let error = loop {
        match log.append(&entry("on a full disk")) {
            Ok(_) => written += 1,
            Err(error) => break error,
        }
    };
    assert!(matches!(error, AuditError::Full), "{error:?}");
    assert_eq!(error.code(), "AuditUnavailable");
    // About 300 bytes each; at least half of the reserve was there.
    assert!(written > 100, "{written}");
    let found = verify(&disk.0.dir, None).unwrap();
    assert_eq!(
        (found.verdict(), found.records),
        (Verdict::Intact, written + 1)
    );

    std::fs::remove_file(disk.0.path().join("filler")).unwrap();
    assert_eq!(log.append(&entry("after")).unwrap(), written + 2);
    // The reserve is there again.
    disk.fill("filler");
    log.append(&entry("again")).unwrap();
    assert_eq!(
        verify(&disk.0.dir, None).unwrap().verdict(),
        Verdict::Intact
    );
}
