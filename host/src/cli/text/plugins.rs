use std::fmt::Write as _;
use std::sync::Arc;

use indicatif::HumanBytes;
use warren::error::chain;
use warren::plugin::{Inspection, LoadFailure, Plugin};

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

pub(crate) fn inspection(plugin: Option<&Plugin>, inspection: &Inspection) -> String {
    let mut out = String::new();
    if let Some(plugin) = plugin {
        let description = plugin.description();
        let _ = writeln!(
            out,
            "{} {}: {}\n  from:    {}",
            safe(description.handler_type.as_str()),
            safe(&description.version),
            safe(&description.summary),
            safe(&plugin.origin().to_string()),
        );
        for action in &description.actions {
            let _ = writeln!(
                out,
                "  action:  {}: {}",
                safe(&action.name),
                safe(&action.summary)
            );
        }
    }
    let _ = writeln!(
        out,
        "  sha256:  {}\n  size:    {}\n  WIT:     {}",
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
    out
}
