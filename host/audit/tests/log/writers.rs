//! Several threads and processes write to one log.

use std::collections::BTreeMap;

use warren_audit::{AuditLog, Filter, Settings, Verdict, verify, visit};

use crate::kit::{State, child, entry, place, small};

const EACH: u64 = 200;

fn write_some(log: &AuditLog, who: &str) {
    for n in 0..EACH {
        log.append(&entry(&format!("{who}/{n}"))).unwrap();
    }
}

#[test]
#[ignore = "run by the test below in a process of its own"]
fn writer_process() {
    let Some(place) = place() else { return };
    let state = warren_disk::open_root(&place).unwrap();
    let settings = Settings {
        files_max: 1000,
        ..small()
    };
    let log = AuditLog::open(&state, settings).unwrap();
    let who = std::process::id().to_string();
    std::thread::scope(|scope| {
        for thread in 0..2 {
            let (log, who) = (log.clone(), format!("{who}-{thread}"));
            scope.spawn(move || write_some(&log, &who));
        }
    });
}

#[test]
fn no_record_of_any_is_lost_or_out_of_order() {
    let state = State::new();
    let mut children: Vec<_> = (0..3)
        .map(|_| {
            child("writers::writer_process", state.path())
                .spawn()
                .unwrap()
        })
        .collect();
    let log = AuditLog::open(
        &state.dir,
        Settings {
            files_max: 1000,
            ..small()
        },
    )
    .unwrap();
    write_some(&log, "own");
    for child in &mut children {
        assert!(child.wait().unwrap().success());
    }
    assert_eq!(verify(&state.dir, None).unwrap().verdict(), Verdict::Intact);
    let mut seen = BTreeMap::<String, u64>::new();
    visit(&state.dir, &Filter::default(), |record| {
        let target = record.target.unwrap();
        let (who, n) = target.split_once('/').unwrap();
        let next = seen.entry(who.to_owned()).or_default();
        assert_eq!(n.parse(), Ok(*next), "{who}");
        *next += 1;
    })
    .unwrap();
    assert_eq!(seen.len(), 7);
    assert!(seen.values().all(|&count| count == EACH), "{seen:?}");
}
