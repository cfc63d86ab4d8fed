use std::fmt::Write as _;

use warren::doctor::{Finding, Report, State};

use super::safe;

/// What this machine enforces, one line a finding.
pub(crate) fn doctor(report: &Report) -> String {
    let mut out = String::new();
    for found in &report.findings {
        line(&mut out, found);
    }
    out.push_str(match report.fit {
        true => "this machine enforces all that the policy needs\n",
        false => "this machine does not give all that the policy needs\n",
    });
    out
}

fn line(out: &mut String, found: &Finding) {
    let mark = match found.state {
        State::Ok => "ok",
        State::Absent => "absent",
        State::Off => "OFF",
        State::Missing => "MISSING",
    };
    // Writing to a string can not fail.
    let _ = writeln!(
        out,
        "{mark:<8} {:<20} {}",
        safe(&found.name),
        safe(&found.what)
    );
    if !found.plugins.is_empty() {
        let names: Vec<_> = found.plugins.iter().map(|name| safe(name)).collect();
        let _ = writeln!(out, "{:<8} plugins: {}", "", names.join(", "));
    }
    if let Some(hint) = &found.hint {
        let _ = writeln!(out, "{:<8} hint: {}", "", safe(hint));
    }
}
