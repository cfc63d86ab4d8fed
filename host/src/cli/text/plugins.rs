use std::fmt::Write as _;
use std::sync::Arc;

use indicatif::HumanBytes;
use warren::error::chain;
use warren::plugin::{Examination, LoadFailure, Plugin};
use warren_policy::{Change, Direction};

use super::{lines, safe, table};

/// How much of a digest a list shows.
const DIGEST_SHOWN: usize = 12;

pub(crate) fn plugins(plugins: &[&Arc<Plugin>], failed: &[LoadFailure]) -> String {
    let mut table = table(&["TYPE", "VERSION", "DIGEST", "ORIGIN", "SUMMARY"]);
    for plugin in plugins {
        let description = plugin.description();
        let digest = &plugin.inspection().digest;
        table.add_row([
            safe(description.handler_type.as_str()),
            safe(&description.version),
            digest.chars().take(DIGEST_SHOWN).collect(),
            safe(&plugin.origin().to_string()),
            safe(&description.summary),
        ]);
    }
    let mut out = lines(&table);
    for failure in failed {
        let origin = safe(&failure.origin.to_string());
        // Writing to a string can not fail.
        let _ = writeln!(
            out,
            "not loaded: {origin}: {}",
            safe(&chain(&failure.error))
        );
        if let Some(hint) = failure.error.hint() {
            let _ = writeln!(out, "  hint: {}", safe(&hint));
        }
    }
    out
}

/// What a plugin says of itself when it is asked.
pub(crate) fn description(plugin: &Plugin) -> String {
    let description = plugin.description();
    let mut out = format!(
        "{} {}: {}\n",
        safe(description.handler_type.as_str()),
        safe(&description.version),
        safe(&description.summary),
    );
    for action in &description.actions {
        let (name, summary) = (safe(&action.name), safe(&action.summary));
        let _ = writeln!(out, "  action:  {name}: {summary}");
    }
    out
}

/// What is known of a component without running it.
pub(crate) fn examination(found: &Examination) -> String {
    let inspection = &found.inspection;
    let mut out = format!(
        "  from:    {}\n  sha256:  {}\n  size:    {}\n  WIT:     {}\n",
        safe(&found.origin.to_string()),
        inspection.digest,
        HumanBytes(inspection.bytes),
        safe(inspection.wit_version.as_deref().unwrap_or("none")),
    );
    for import in &inspection.imports {
        let _ = writeln!(out, "  imports: {}", safe(import));
    }
    for export in &inspection.exports {
        let _ = writeln!(out, "  exports: {}", safe(export));
    }
    if let Ok(manifest) = &inspection.manifest {
        let (name, version) = (safe(&manifest.name), safe(&manifest.version));
        let _ = writeln!(
            out,
            "  is:      {name} {version}, for type {}",
            manifest.handler_type
        );
        for (at, reason) in manifest.wants.reasons() {
            let _ = writeln!(out, "  wants:   {at}: {}", safe(reason));
        }
    }
    if let Some(review) = &found.review {
        for line in toml::to_string(&review.grant).unwrap_or_default().lines() {
            let _ = writeln!(out, "  gets:    {}", safe(line));
        }
        let _ = writeln!(out, "  grant:   {}", review.id);
        if let Some(approval) = &review.approval {
            let (by, at) = (safe(&approval.approved_by), approval.approved_at);
            let _ = match approval.digest == inspection.digest {
                true => writeln!(out, "  approved by {by} at {at}: {}", approval.grant_id),
                false => writeln!(
                    out,
                    "  NOT approved; another component of this type was, by {by} at {at}: sha256 {}",
                    approval.digest
                ),
            };
        }
    }
    let _ = match &found.problem {
        None => writeln!(out, "  loads:   yes"),
        Some(error) => writeln!(out, "  loads:   no: {}", safe(&chain(error))),
    };
    out
}

/// Differences, what widens first.
pub(crate) fn changes(changes: &[Change]) -> String {
    let mut sorted: Vec<&Change> = changes.iter().collect();
    sorted.sort_by_key(|change| change.direction != Direction::Widens);
    let line = |change: &&Change| format!("  {}\n", safe(&change.to_string()));
    sorted.iter().map(line).collect()
}
