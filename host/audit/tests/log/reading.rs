//! Asking the log.

use warren_audit::{AuditLog, Entry, Filter, Outcome, last, read, visit};

use crate::kit::{State, entry, small};

fn filled() -> State {
    let state = State::new();
    let log = AuditLog::open(
        &state.dir,
        warren_audit::Settings {
            files_max: 100,
            ..small()
        },
    )
    .unwrap();
    for n in 1..=30_u64 {
        let target = format!("https://git.example/Repo-{n}.git");
        let project = if n % 2 == 0 { "shop" } else { "blog" };
        let outcome = Outcome::ALL[(n % 4) as usize];
        let entry = Entry {
            project: Some(project),
            handler: Some("git"),
            plugin: Some("abcdef"),
            call: Some("init-1"),
            dir_name: Some("r"),
            code: (outcome == Outcome::Denied).then_some("GitDenied"),
            target: Some(&target),
            ..Entry::new(if n > 20 { "process" } else { "git" }, "push", outcome)
        };
        log.append(&entry).unwrap();
    }
    state
}

fn seqs(state: &State, filter: &Filter) -> Vec<u64> {
    let page = read(&state.dir, filter, 0, 1000).unwrap();
    assert_eq!((page.next, page.unreadable), (None, 0));
    page.records.iter().map(|record| record.seq).collect()
}

#[test]
fn each_filter_keeps_what_it_names() {
    let state = filled();
    let all = Filter::default;
    let text = |text: &str| Some(text.to_owned());
    assert_eq!(seqs(&state, &all()), (1..=30).collect::<Vec<_>>());
    assert_eq!(
        seqs(
            &state,
            &Filter {
                project: text("shop"),
                ..all()
            }
        )
        .len(),
        15
    );
    assert_eq!(
        seqs(
            &state,
            &Filter {
                capability: text("process"),
                ..all()
            }
        ),
        (21..=30).collect::<Vec<_>>()
    );
    let denied = Filter {
        outcome: Some(Outcome::Denied),
        ..all()
    };
    assert_eq!(seqs(&state, &denied), [2, 6, 10, 14, 18, 22, 26, 30]);
    assert_eq!(
        seqs(
            &state,
            &Filter {
                text: text("gitdenied"),
                ..all()
            }
        )
        .len(),
        8
    );
    assert_eq!(
        seqs(
            &state,
            &Filter {
                text: text("repo-7."),
                ..all()
            }
        ),
        [7]
    );
    assert_eq!(
        seqs(
            &state,
            &Filter {
                plugin: text("abc"),
                ..all()
            }
        )
        .len(),
        30
    );
    for none in [
        Filter {
            tenant: text("acme"),
            ..all()
        },
        Filter {
            dir_name: text("x"),
            ..all()
        },
        Filter {
            handler: text("temp"),
            ..all()
        },
        Filter {
            call: text("x"),
            ..all()
        },
        Filter {
            plugin: text("b"),
            ..all()
        },
    ] {
        assert_eq!(seqs(&state, &none), [0; 0], "{none:?}");
    }
    let all_records = read(&state.dir, &all(), 0, 1000).unwrap().records;
    let tenth = all_records[9].at;
    let from = seqs(
        &state,
        &Filter {
            from: Some(tenth),
            ..all()
        },
    );
    let until = seqs(
        &state,
        &Filter {
            until: Some(tenth),
            ..all()
        },
    );
    assert_eq!(from.len() + until.len(), 30);
    assert!(from.contains(&10) && !until.contains(&10));
}

#[test]
fn pages_add_up_to_all() {
    let state = filled();
    let filter = Filter {
        project: Some("shop".into()),
        ..Filter::default()
    };
    let (mut after, mut found) = (0, Vec::new());
    loop {
        let page = read(&state.dir, &filter, after, 4).unwrap();
        assert!(page.records.len() <= 4);
        found.extend(page.records.iter().map(|record| record.seq));
        match page.next {
            Some(next) => after = next,
            None => break,
        }
    }
    assert_eq!(found, seqs(&state, &filter));
}

#[test]
fn the_last_ones_are_found_from_the_end() {
    let state = filled();
    let seqs = |limit| {
        let page = last(&state.dir, &Filter::default(), limit).unwrap();
        page.records
            .iter()
            .map(|record| record.seq)
            .collect::<Vec<_>>()
    };
    assert_eq!(seqs(3), [28, 29, 30]);
    assert_eq!(seqs(0), [0; 0]);
    assert_eq!(seqs(500).len(), 30);
    let filter = Filter {
        capability: Some("git".into()),
        ..Filter::default()
    };
    let page = last(&state.dir, &filter, 2).unwrap();
    assert_eq!(
        page.records.iter().map(|r| r.seq).collect::<Vec<_>>(),
        [19, 20]
    );
}

#[test]
fn a_line_that_is_no_record_is_counted_and_hides_no_other() {
    let state = State::with_records(3);
    let mut lines = state.lines(1);
    lines[1] = "x".repeat(100_000);
    state.set_lines(1, &lines);
    let mut seen = Vec::new();
    let unreadable = visit(&state.dir, &Filter::default(), |record| {
        seen.push(record.seq)
    })
    .unwrap();
    assert_eq!(seen, [1, 3]);
    assert!(unreadable > 0);
}

#[test]
fn a_log_that_is_not_there_is_empty() {
    let state = State::new();
    assert_eq!(
        read(&state.dir, &Filter::default(), 0, 9).unwrap(),
        Default::default()
    );
    assert!(!state.path().join("audit").exists());
}

#[test]
fn what_is_read_is_what_was_written() {
    let state = State::new();
    let at = jiff::Timestamp::now();
    state
        .open()
        .append(&Entry {
            counts: &[("bytes", 3)],
            detail: Some("a\nb"),
            ..entry("t")
        })
        .unwrap();
    let record = read(&state.dir, &Filter::default(), 0, 1)
        .unwrap()
        .records
        .remove(0);
    assert!(record.at >= at);
    assert_eq!(record.tenant.as_deref(), Some("acme"));
    assert_eq!(record.counts["bytes"], 3);
    assert_eq!(record.detail.as_deref(), Some("a\nb"));
    assert_eq!(
        (record.duration_us, record.outcome),
        (Some(12), Outcome::Ok)
    );
}
