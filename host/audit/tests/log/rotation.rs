//! Files begin and go, the chain stays.

use std::os::unix::fs::PermissionsExt;

use warren_audit::{AuditLog, Filter, Verdict, last, read, verify};

use crate::kit::{State, entry, small};

#[test]
fn the_chain_goes_on_over_files_that_come_and_go() {
    let state = State::new();
    let log = AuditLog::open(&state.dir, small()).unwrap();
    for n in 0..60 {
        log.append(&entry(&n.to_string())).unwrap();
    }
    assert!(!state.file(1).exists());
    let logs = || {
        let entries = std::fs::read_dir(state.path().join("audit")).unwrap();
        let paths = entries.map(|entry| entry.unwrap().path());
        paths
            .filter(|path| path.extension().is_some())
            .collect::<Vec<_>>()
    };
    assert_eq!(logs().len(), 4);
    for path in logs() {
        let meta = path.metadata().unwrap();
        assert_eq!(meta.permissions().mode() & 0o777, 0o600);
        assert!(meta.len() < 3000, "{}", meta.len());
    }
    let found = verify(&state.dir, None).unwrap();
    assert_eq!(found.verdict(), Verdict::Intact);
    assert!(
        found.from.unwrap() > 1 && found.begins_by_rotation,
        "{found:?}"
    );
    let newest = last(&state.dir, &Filter::default(), 1)
        .unwrap()
        .records
        .remove(0);
    assert_eq!(found.head.unwrap().hash, newest.hash);
    assert_eq!(newest.target.as_deref(), Some("59"));

    // By hand: it holds, and says that it was not rotation.
    std::fs::remove_file(logs().into_iter().min().unwrap()).unwrap();
    let found = verify(&state.dir, None).unwrap();
    assert_eq!(
        (found.verdict(), found.begins_by_rotation),
        (Verdict::Intact, false)
    );
    // One in the middle is missing: that does not.
    let mut left = logs();
    left.sort();
    std::fs::remove_file(&left[1]).unwrap();
    assert_eq!(verify(&state.dir, None).unwrap().verdict(), Verdict::Broken);
}

#[test]
fn two_that_write_by_turns_follow_each_others_rotations() {
    let state = State::new();
    let open = || AuditLog::open(&state.dir, small()).unwrap();
    let (one, two) = (open(), open());
    for n in 0..40 {
        let log = if n % 3 == 0 { &one } else { &two };
        log.append(&entry(&n.to_string())).unwrap();
    }
    let found = verify(&state.dir, None).unwrap();
    assert_eq!(found.verdict(), Verdict::Intact, "{found:?}");
    let page = read(&state.dir, &Filter::default(), 0, 1000).unwrap();
    let targets: Vec<_> = page
        .records
        .iter()
        .filter_map(|r| r.target.as_deref())
        .collect();
    let own: Vec<_> = targets
        .iter()
        .filter(|t| !t.starts_with("audit-"))
        .collect();
    assert_eq!(own.last(), Some(&&"39"));
}

/// A crash between making the next file and writing to it.
#[test]
fn an_empty_newest_file_is_gone_on_with() {
    let state = State::with_records(3);
    std::fs::write(state.file(2), "").unwrap();
    let log = state.open();
    assert_eq!(log.append(&entry("x")).unwrap(), 4);
    assert_eq!(state.lines(2).len(), 1);
    assert_eq!(verify(&state.dir, None).unwrap().verdict(), Verdict::Intact);
}
