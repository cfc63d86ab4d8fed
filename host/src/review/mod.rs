//! What a reviewer needs to know of every plugin: what it asks for, what it was granted and by whom,
//! what it used, what it was refused, and what changed.
//!
//! [`report`] puts it together from what it is given and looks nothing up; [`text`], [`sarif`] and
//! [`html`] show it.

mod findings;
mod gather;
mod html;
mod matrix;
mod sarif;
mod suggest;
#[cfg(test)]
mod tests;
mod text;
mod usage;

use std::collections::BTreeMap;

use jiff::Timestamp;
use serde::Serialize;
use warren_policy::{Change, Grant, Wants};

pub use findings::{Finding, Level, RULES, Rule};
pub use gather::gather;
pub use html::html;
pub use matrix::{Row, TargetUse};
pub use sarif::sarif;
pub use suggest::{suggest, to_file};
pub use text::text;
pub use usage::{Targets, Usage, Used, Uses};

/// A plugin as it stands, loaded or not.
#[derive(Debug, Clone, Default)]
pub struct Subject {
    /// Its type; of one that did not say it, the name of its file.
    pub handler: String,
    /// Where it comes from.
    pub origin: String,
    /// What people call it.
    pub name: Option<String>,
    /// Its version.
    pub version: Option<String>,
    /// SHA-256 of the component, as hex.
    pub digest: Option<String>,
    /// What the binary imports.
    pub imports: Vec<String>,
    /// What it asks for.
    pub wants: Option<Wants>,
    /// What it gets now.
    pub grant: Option<Grant>,
    /// Id of that.
    pub grant_id: Option<String>,
    /// What the policy's own words stand for on this Pod: `@python`, say.
    pub words: BTreeMap<String, Vec<String>>,
    /// Why it was not loaded; none: it was.
    pub refused: Option<Refusal>,
    /// Who approved it.
    pub approval: Option<Approved>,
    /// What is different from what was approved.
    pub changes: Vec<Change>,
}

/// Why a plugin was not loaded.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct Refusal {
    /// Code of the error.
    pub code: String,
    /// What it says.
    pub message: String,
    /// What can be done.
    pub hint: Option<String>,
}

/// Who approved a plugin.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct Approved {
    /// Who.
    pub by: String,
    /// When; none: with this version of Warren.
    pub at: Option<Timestamp>,
    /// Of which component.
    pub digest: Option<String>,
}

/// All plugins.
#[derive(Debug, Clone, PartialEq, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct Report {
    /// When it was made.
    pub at: Timestamp,
    /// From when on the audit log was looked at.
    pub from: Option<Timestamp>,
    /// Until when.
    pub until: Option<Timestamp>,
    /// Lines of the log that are no records: somebody should verify it.
    pub unreadable_lines: u64,
    /// By type.
    pub plugins: Vec<PluginReport>,
}

/// One plugin.
#[derive(Debug, Clone, PartialEq, Serialize)]
#[serde(rename_all = "camelCase")]
#[expect(missing_docs, reason = "most fields are documented at `Subject`")]
pub struct PluginReport {
    pub handler: String,
    pub origin: String,
    pub name: Option<String>,
    pub version: Option<String>,
    pub digest: Option<String>,
    pub imports: Vec<String>,
    pub grant_id: Option<String>,
    pub refused: Option<Refusal>,
    pub approval: Option<Approved>,
    pub changes: Vec<Change>,
    /// One row for each thing that it asks for, is granted, or has used.
    pub matrix: Vec<Row>,
    /// Calls into it, by verb.
    pub calls: Targets,
    /// Limits that it ran into.
    pub limits_hit: Targets,
    /// Bytes that it wrote to files itself.
    pub bytes_written: u64,
    /// Whether its programs or its git work may run unconfined.
    pub unconfined: bool,
    /// Programs that did.
    pub unconfined_runs: u64,
    /// What a reviewer should look at.
    pub findings: Vec<Finding>,
}

/// Puts the report together.
pub fn report(subjects: &[Subject], usage: &Usage, at: Timestamp) -> Report {
    let nothing = Used::default();
    let mut plugins: Vec<PluginReport> = subjects
        .iter()
        .map(|subject| {
            let used = usage.by_handler.get(&subject.handler).unwrap_or(&nothing);
            plugin(subject, used)
        })
        .collect();
    plugins.sort_by(|a, b| (&a.handler, &a.origin).cmp(&(&b.handler, &b.origin)));
    Report {
        at,
        from: usage.period.map(|(from, _)| from),
        until: usage.period.map(|(_, until)| until),
        unreadable_lines: usage.unreadable,
        plugins,
    }
}

fn plugin(subject: &Subject, used: &Used) -> PluginReport {
    let unconfined = subject.grant.as_ref().is_some_and(|grant| {
        grant
            .process
            .as_ref()
            .is_some_and(|process| process.unconfined)
            || grant.git.as_ref().is_some_and(|git| git.unconfined)
    });
    let mut report = PluginReport {
        handler: subject.handler.clone(),
        origin: subject.origin.clone(),
        name: subject.name.clone(),
        version: subject.version.clone(),
        digest: subject.digest.clone(),
        imports: subject.imports.clone(),
        grant_id: subject.grant_id.clone(),
        refused: subject.refused.clone(),
        approval: subject.approval.clone(),
        changes: subject.changes.clone(),
        matrix: matrix::rows(subject, used),
        calls: used.calls.clone(),
        limits_hit: used.limits.clone(),
        bytes_written: used.bytes_written,
        unconfined,
        unconfined_runs: used.unconfined_runs,
        findings: Vec::new(),
    };
    report.findings = findings::of(&report);
    report
}
