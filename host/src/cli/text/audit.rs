use std::fmt::Write as _;

use warren_audit::{Outcome, Page, Pin, Record, Verdict, Verified};

use super::safe;

pub(crate) fn records(page: &Page) -> String {
    let mut out: String = page.records.iter().map(record).collect();
    // Writing to a string can not fail.
    if let Some(next) = page.next {
        let _ = writeln!(out, "more: --after {next}");
    }
    if page.unreadable > 0 {
        let _ = writeln!(
            out,
            "{} lines are no records; `warren audit verify` says more",
            page.unreadable
        );
    }
    out
}

/// A record in one line.
pub(crate) fn record(record: &Record) -> String {
    let mut out = format!("{} {:.3}", record.seq, record.at);
    for text in [&record.project, &record.dir_name].into_iter().flatten() {
        let _ = write!(out, " {}", safe(text));
    }
    let handler = record.handler.as_deref().unwrap_or("-");
    let _ = write!(
        out,
        " {}: {} {} {}",
        safe(handler),
        safe(&record.capability),
        safe(&record.verb),
        word(record.outcome),
    );
    for text in [&record.code, &record.target].into_iter().flatten() {
        let _ = write!(out, " {}", safe(text));
    }
    if let Some(micros) = record.duration_us {
        let _ = write!(out, " {}.{:03} ms", micros / 1000, micros % 1000);
    }
    for (name, count) in &record.counts {
        let _ = write!(out, " {}={count}", safe(name));
    }
    if let Some(detail) = &record.detail {
        let _ = write!(out, " ({})", safe(detail));
    }
    out.push('\n');
    out
}

fn word(outcome: Outcome) -> &'static str {
    match outcome {
        Outcome::Denied => "DENIED",
        Outcome::Failed => "FAILED",
        _ => outcome.as_str(),
    }
}

pub(crate) fn verified(found: &Verified, pin: Option<&Pin>) -> String {
    let mut out = String::new();
    let _ = match found.verdict() {
        Verdict::Intact => writeln!(out, "intact: {} records hold", found.records),
        Verdict::Broken => writeln!(out, "BROKEN: only the first {} records hold", found.records),
    };
    if let Some(at) = &found.broken {
        let _ = writeln!(
            out,
            "  {} line {}: record {} {}",
            at.file, at.line, at.seq, at.fault
        );
    }
    if let (Some(pin), Some(holds)) = (pin, found.pin_holds) {
        let _ = match holds {
            true => writeln!(out, "  the pinned record {} is there", pin.seq),
            false => writeln!(
                out,
                "  the pinned record {} is NOT there, or another one is",
                pin.seq
            ),
        };
    } else if let Some(pin) = pin {
        let _ = writeln!(out, "  the pinned record {} is older than the log", pin.seq);
    }
    if let Some(from) = found.from.filter(|from| *from > 1) {
        let why = match found.begins_by_rotation {
            true => "rotation took the older ones",
            false => "the older ones were NOT taken by rotation",
        };
        let _ = writeln!(out, "  it begins with record {from}: {why}");
    }
    if found.torn > 0 {
        let _ = writeln!(out, "  {} torn by crashes, and noted", found.torn);
    }
    if let Some(head) = &found.head {
        let _ = writeln!(out, "  head: {head}");
    }
    out
}
