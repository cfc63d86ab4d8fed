//! Whatever is done to a finished log is found, and named.

use proptest::prelude::*;
use warren_audit::{Fault, Pin, Verdict, verify};

use crate::kit::State;

fn broken(state: &State) -> Option<(u64, u64, Fault)> {
    let found = verify(&state.dir, None).unwrap();
    assert_eq!(found.verdict() == Verdict::Broken, found.broken.is_some());
    found.broken.map(|at| {
        assert_eq!(at.file, "audit-000001.jsonl");
        (at.line, at.seq, at.fault)
    })
}

#[test]
fn an_untouched_log_holds() {
    let state = State::with_records(5);
    let found = verify(&state.dir, None).unwrap();
    assert_eq!(
        (found.verdict(), found.records, found.from),
        (Verdict::Intact, 5, Some(1))
    );
    assert!(found.begins_by_rotation);
    let head = found.head.unwrap();
    assert!(state.lines(1)[4].contains(&head.hash));
    assert_eq!(head.seq, 5);
}

#[test]
fn a_changed_record_is_named() {
    let state = State::with_records(5);
    let mut lines = state.lines(1);
    lines[2] = lines[2].replace("shop", "shoq");
    state.set_lines(1, &lines);
    assert_eq!(broken(&state), Some((3, 3, Fault::Changed)));
}

/// With its own hash made anew, the record after it does not follow it any more.
#[test]
fn a_record_that_was_written_anew_is_named() {
    let state = State::with_records(5);
    let other = State::new();
    let log = other.open();
    for n in 1..=5 {
        let name = if n == 3 {
            "other".to_owned()
        } else {
            format!("t{n}")
        };
        log.append(&crate::kit::entry(&name)).unwrap();
    }
    let mut lines = state.lines(1);
    // Of another chain: right in itself, and does not follow.
    lines[2] = other.lines(1)[2].clone();
    state.set_lines(1, &lines);
    let (line, seq, fault) = broken(&state).unwrap();
    assert_eq!(fault, Fault::Changed);
    assert!(matches!((line, seq), (2, 2) | (3, 3)), "{line} {seq}");
}

#[test]
fn a_missing_record_is_named() {
    let state = State::with_records(5);
    let mut lines = state.lines(1);
    lines.remove(2);
    state.set_lines(1, &lines);
    assert_eq!(broken(&state), Some((3, 3, Fault::Removed)));
    lines.remove(0);
    state.set_lines(1, &lines);
    assert_eq!(broken(&state), Some((1, 1, Fault::Removed)));
}

#[test]
fn moved_records_are_named() {
    let state = State::with_records(5);
    let mut lines = state.lines(1);
    lines.swap(2, 3);
    state.set_lines(1, &lines);
    assert_eq!(broken(&state), Some((3, 3, Fault::Reordered)));
}

#[test]
fn inserted_lines_are_named() {
    let state = State::with_records(5);
    let lines = state.lines(1);
    for extra in [
        lines[0].clone(),
        lines[2].clone(),
        "{}".to_owned(),
        String::new(),
    ] {
        let mut more = lines.clone();
        more.insert(3, extra.clone());
        state.set_lines(1, &more);
        let (line, _, fault) = broken(&state).unwrap();
        assert_eq!((line, fault), (4, Fault::Inserted), "{extra}");
    }
}

/// A record that is right in itself and follows, as one who knows the format makes it.
#[test]
fn a_forged_record_is_named() {
    let state = State::with_records(3);
    let lines = state.lines(1);
    state.open().append(&crate::kit::entry("forged")).unwrap();
    let forged = state.lines(1)[3].clone();
    state.set_lines(1, &lines);
    state.open().append(&crate::kit::entry("true")).unwrap();
    let mut both = state.lines(1);
    both.insert(3, forged);
    state.set_lines(1, &both);
    assert_eq!(broken(&state), Some((4, 4, Fault::Inserted)));
}

#[test]
fn records_cut_off_at_the_end_are_found_with_a_pin() {
    let state = State::with_records(5);
    let pin = verify(&state.dir, None).unwrap().head.unwrap();
    let holds = |pin: &Pin| verify(&state.dir, Some(pin)).unwrap().verdict();
    assert_eq!(holds(&pin), Verdict::Intact);
    assert_eq!(pin.to_string().parse(), Ok(pin.clone()));
    let other = Pin {
        hash: "0".repeat(64),
        ..pin.clone()
    };
    assert_eq!(holds(&other), Verdict::Broken);
    let lines = state.lines(1);
    state.set_lines(1, &lines[..4]);
    assert_eq!(broken(&state), None);
    assert_eq!(holds(&pin), Verdict::Broken);
    std::fs::remove_dir_all(state.path().join("audit")).unwrap();
    assert_eq!(holds(&pin), Verdict::Broken);
}

/// A process that has written does not go on behind what was cut off.
#[test]
fn a_writer_notices_a_log_that_got_shorter() {
    let state = State::new();
    let log = state.open();
    for n in 0..3 {
        log.append(&crate::kit::entry(&n.to_string())).unwrap();
    }
    let lines = state.lines(1);
    state.set_lines(1, &lines[..2]);
    assert_eq!(
        log.append(&crate::kit::entry("x")).unwrap_err().code(),
        "AuditDamaged"
    );
    // Nor over a last record that is not as it was written.
    state.set_lines(1, &[lines[0].clone(), lines[1].replace("acme", "acne")]);
    assert_eq!(
        log.append(&crate::kit::entry("x")).unwrap_err().code(),
        "AuditDamaged"
    );
    state.set_lines(1, &lines);
    assert_eq!(log.append(&crate::kit::entry("x")).unwrap(), 4);
    // Taken away as a whole: a new file goes on with the chain, so that the gap shows.
    std::fs::remove_file(state.file(1)).unwrap();
    assert_eq!(log.append(&crate::kit::entry("y")).unwrap(), 5);
    let found = verify(&state.dir, None).unwrap();
    assert_eq!((found.from, found.begins_by_rotation), (Some(5), false));
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(400))]

    #[test]
    fn an_edit_of_any_byte_is_noticed(at in any::<prop::sample::Index>(), to in any::<u8>()) {
        let state = State::with_records(6);
        let mut bytes = std::fs::read(state.file(1)).unwrap();
        let at = at.index(bytes.len());
        prop_assume!(bytes[at] != to);
        bytes[at] = to;
        std::fs::write(state.file(1), &bytes).unwrap();
        let line = bytes[..at].iter().filter(|&&b| b == b'\n').count() as u64 + 1;
        let (found, _, _) = broken(&state).expect("not noticed");
        // A newline put into a line, or taken away, may show in the one beside it.
        prop_assert!(found.abs_diff(line) <= 1, "{found} {line}");
    }

    #[test]
    fn a_byte_more_or_less_is_noticed(at in any::<prop::sample::Index>(), new in any::<Option<u8>>()) {
        let state = State::with_records(4);
        let mut bytes = std::fs::read(state.file(1)).unwrap();
        let at = at.index(bytes.len());
        match new {
            Some(new) => bytes.insert(at, new),
            None => drop(bytes.remove(at)),
        }
        std::fs::write(state.file(1), &bytes).unwrap();
        prop_assert!(broken(&state).is_some());
    }
}
