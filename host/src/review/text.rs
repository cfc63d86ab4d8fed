//! The report for a terminal. Everything from outside is escaped.

use std::fmt::Write as _;

use warren_disk::text::escape;

use super::{PluginReport, Report, Row, Uses};

/// Targets shown of one row.
const TARGETS_SHOWN: usize = 20;

/// The report as text. Writing to a string cannot fail.
pub fn text(report: &Report) -> String {
    let mut out = String::new();
    match (report.from, report.until) {
        (Some(from), Some(until)) => {
            let _ = writeln!(out, "audit log from {from:.0} to {until:.0}");
        }
        _ => out.push_str("the audit log is empty\n"),
    }
    if report.unreadable_lines > 0 {
        let lines = report.unreadable_lines;
        let _ = writeln!(
            out,
            "{lines} lines of it are no records: `warren audit verify`"
        );
    }
    for plugin in &report.plugins {
        out.push('\n');
        one(&mut out, plugin);
    }
    out
}

fn one(out: &mut String, plugin: &PluginReport) {
    let version = plugin.version.as_deref().unwrap_or("?");
    let _ = writeln!(
        out,
        "{} {} from {}",
        safe(&plugin.handler),
        safe(version),
        safe(&plugin.origin)
    );
    for (what, value) in [("digest", &plugin.digest), ("grant", &plugin.grant_id)] {
        if let Some(value) = value {
            let _ = writeln!(out, "  {what}: {}", safe(value));
        }
    }
    if let Some(refused) = &plugin.refused {
        let _ = writeln!(
            out,
            "  NOT LOADED ({}): {}",
            safe(&refused.code),
            safe(&refused.message)
        );
    }
    if plugin.refused.is_some() {
        out.push_str("  what is granted below is what it would get\n");
    }
    match &plugin.approval {
        Some(approved) => {
            let _ = write!(out, "  approved by {}", safe(&approved.by));
            let _ = match approved.at {
                Some(at) => writeln!(out, " at {at:.0}"),
                None => writeln!(out),
            };
        }
        None => out.push_str("  NOT APPROVED\n"),
    }
    if plugin.unconfined || plugin.unconfined_runs > 0 {
        let _ = writeln!(
            out,
            "  UNCONFINED: it {} work so; {} programs did",
            if plugin.unconfined {
                "may"
            } else {
                "may no longer"
            },
            plugin.unconfined_runs
        );
    }
    for change in &plugin.changes {
        let _ = writeln!(out, "  since approval: {}", safe(&change.to_string()));
    }
    for row in &plugin.matrix {
        self::row(out, row);
    }
    let calls: Vec<String> = plugin
        .calls
        .iter()
        .map(|(verb, uses)| format!("{} {}", safe(verb), uses.ok + uses.failed))
        .collect();
    if !calls.is_empty() {
        let _ = writeln!(out, "  calls: {}", calls.join(", "));
    }
    for finding in &plugin.findings {
        let _ = writeln!(
            out,
            "  {}: {}",
            finding.level.as_str(),
            safe(&finding.message)
        );
    }
}

fn row(out: &mut String, row: &Row) {
    let _ = writeln!(
        out,
        "  {:<20} asked {} | granted {} | {}",
        row.key,
        list(&row.asked),
        list(&row.granted),
        uses(&row.uses),
    );
    if let Some(reason) = &row.reason {
        let _ = writeln!(out, "      because: {}", safe(reason));
    }
    if !row.stands_for.is_empty() {
        let _ = writeln!(out, "      stands for: {}", list(&row.stands_for));
    }
    for one in row.targets.iter().take(TARGETS_SHOWN) {
        let _ = writeln!(out, "      {}: {}", safe(&one.target), uses(&one.uses));
    }
    let more = row.targets.len().saturating_sub(TARGETS_SHOWN);
    if more > 0 {
        let _ = writeln!(out, "      and {more} more");
    }
}

fn uses(uses: &Uses) -> String {
    let mut text = format!("used {}", uses.ok + uses.failed);
    if let Some(last) = uses.last_used {
        let _ = write!(text, ", last {last:.0}");
    }
    let _ = write!(text, "; denied {}", uses.denied);
    if let Some(last) = uses.last_denied {
        let _ = write!(text, ", last {last:.0}");
    }
    text
}

fn list(items: &[String]) -> String {
    match items {
        [] => "nothing".to_owned(),
        items => items
            .iter()
            .map(|item| safe(item))
            .collect::<Vec<_>>()
            .join(", "),
    }
}

fn safe(text: &str) -> String {
    escape(text.as_bytes())
}
