//! What a crash leaves.

use std::io::Write;
use std::time::Duration;

use warren_audit::{AuditLog, Fault, Filter, Settings, Verdict, read, verify};

use crate::kit::{State, child, entry, place, small};

fn append_raw(state: &State, bytes: &[u8]) {
    let mut file = std::fs::File::options()
        .append(true)
        .open(state.file(1))
        .unwrap();
    file.write_all(bytes).unwrap();
}

fn many_files() -> Settings {
    Settings {
        file_bytes_max: 10_000,
        files_max: 1000,
        ..small()
    }
}

#[test]
fn a_torn_record_stays_and_is_noted() {
    let whole = State::with_records(4).lines(1)[3].clone();
    for end in [1, 10, 200, whole.len() - 1] {
        let state = State::with_records(3);
        append_raw(&state, &whole.as_bytes()[..end]);
        let broken = verify(&state.dir, None).unwrap().broken.unwrap();
        assert_eq!((broken.line, broken.seq, broken.fault), (4, 4, Fault::Torn));

        let log = state.open();
        assert_eq!(log.append(&entry("next")).unwrap(), 5);
        let found = verify(&state.dir, None).unwrap();
        assert_eq!(
            (found.verdict(), found.torn, found.records),
            (Verdict::Intact, 1, 5)
        );
        assert_eq!(state.lines(1)[3], whole[..end]);
        let note = read(&state.dir, &Filter::default(), 3, 1)
            .unwrap()
            .records
            .remove(0);
        assert_eq!((&*note.capability, &*note.verb), ("audit", "torn"));
        assert_eq!(note.counts["bytes"], end as u64 + 1);

        // What was noted may not be changed any more.
        let mut lines = state.lines(1);
        lines[3].replace_range(..1, "x");
        state.set_lines(1, &lines);
        assert_eq!(verify(&state.dir, None).unwrap().verdict(), Verdict::Broken);
    }
}

/// Once more while the note itself was being written, before and after its newline.
#[test]
fn a_crash_while_the_note_is_written_is_noted_too() {
    for rest in ["\n", "\n{\"seq\":4,", "\0\0\0\0"] {
        let state = State::with_records(3);
        append_raw(&state, b"{\"seq\":4,\"at\":");
        append_raw(&state, rest.as_bytes());
        assert_eq!(state.open().append(&entry("next")).unwrap(), 5);
        let found = verify(&state.dir, None).unwrap();
        assert_eq!(
            (found.verdict(), found.torn),
            (Verdict::Intact, 1),
            "{rest:?} {found:?}"
        );
    }
}

#[test]
fn a_file_with_nothing_but_a_torn_record_is_gone_on_with() {
    let state = State::with_records(0);
    append_raw(&state, b"{\"seq\":1");
    assert_eq!(state.open().append(&entry("next")).unwrap(), 2);
    assert_eq!(verify(&state.dir, None).unwrap().verdict(), Verdict::Intact);
}

#[test]
#[ignore = "run by the test below in a process of its own"]
fn endless_writer() {
    let Some(place) = place() else { return };
    let state = warren_disk::open_root(&place).unwrap();
    let log = AuditLog::open(&state, many_files()).unwrap();
    let long = "x".repeat(900);
    for n in 0_u64.. {
        let made = log.append(&entry(&format!("{n} {long}"))).unwrap();
        std::fs::write(place.join(std::process::id().to_string()), made.to_string()).unwrap();
    }
}

/// Writers are killed wherever they are: nothing that was acknowledged is missing, and the chain
/// holds.
#[test]
fn killed_writers_leave_a_chain_that_holds() {
    let state = State::new();
    for round in 0..8_u64 {
        let mut children: Vec<_> = (0..3)
            .map(|_| {
                child("crash::endless_writer", state.path())
                    .spawn()
                    .unwrap()
            })
            .collect();
        let pids: Vec<u32> = children.iter().map(std::process::Child::id).collect();
        let acknowledged = |pid: &u32| {
            let text = std::fs::read_to_string(state.path().join(pid.to_string()));
            text.ok().and_then(|text| text.parse::<u64>().ok())
        };
        while !pids.iter().all(|pid| acknowledged(pid).is_some()) {
            std::thread::sleep(Duration::from_millis(5));
        }
        std::thread::sleep(Duration::from_micros(700 * round));
        for child in &mut children {
            child.kill().unwrap();
            child.wait().unwrap();
        }
        let log = AuditLog::open(&state.dir, many_files()).unwrap();
        let next = log.append(&entry("after")).unwrap();
        assert!(pids.iter().filter_map(acknowledged).all(|seq| seq < next));
        let found = verify(&state.dir, None).unwrap();
        assert_eq!(found.verdict(), Verdict::Intact, "{found:?}");
        assert_eq!(found.records, next);
    }
}
