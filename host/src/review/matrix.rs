//! Asked, granted, used, denied: one row for each list of a policy.

use std::collections::BTreeSet;

use serde::Serialize;
use warren_policy::{Access, Grant, Wants};

use super::Subject;
use super::usage::{Used, Uses};

/// One row of the matrix.
#[derive(Debug, Clone, PartialEq, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct Row {
    /// The key that a policy has for it: `git.remotes`.
    pub key: &'static str,
    /// What the plugin asks for.
    pub asked: Vec<String>,
    /// Why, as its author says.
    pub reason: Option<String>,
    /// What it gets, with words like `@python` as the policy has them.
    pub granted: Vec<String>,
    /// What those words stand for on this Pod.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub stands_for: Vec<String>,
    /// How often it was used and denied.
    pub uses: Uses,
    /// The same by what it was used on.
    pub targets: Vec<TargetUse>,
}

/// What something was used on.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct TargetUse {
    /// A URL, a ref, a program, a path.
    pub target: String,
    /// How often.
    #[serde(flatten)]
    pub uses: Uses,
}

const KEYS: [&str; 12] = [
    "root",
    "git.remotes",
    "git.push",
    "git.credentials",
    "process.programs",
    "process.in-root",
    "process.network",
    "process.environment",
    "http.hosts",
    "log",
    "progress",
    "git",
];

pub(super) fn rows(subject: &Subject, used: &Used) -> Vec<Row> {
    let mut rows: Vec<Row> = KEYS
        .iter()
        .map(|key| row(key, subject, used))
        .filter(|row| !(row.asked.is_empty() && row.granted.is_empty() && row.targets.is_empty()))
        .collect();
    // One reason stands for all lists of a capability: it is said once.
    let mut said = BTreeSet::new();
    for row in &mut rows {
        let capability = row.key.split('.').next().unwrap_or(row.key);
        if row.reason.is_some() && !said.insert(capability) {
            row.reason = None;
        }
    }
    rows
}

fn row(key: &'static str, subject: &Subject, used: &Used) -> Row {
    let (asked, reason) = subject
        .wants
        .as_ref()
        .map(|wants| asked(key, wants))
        .unwrap_or_default();
    let granted = subject
        .grant
        .as_ref()
        .map(|grant| granted(key, grant))
        .unwrap_or_default();
    let words = granted.iter().filter_map(|word| subject.words.get(word));
    let targets: Vec<TargetUse> = used
        .targets(key)
        .map(|(target, uses)| TargetUse {
            target: target.clone(),
            uses: *uses,
        })
        .collect();
    let uses = targets
        .iter()
        .fold(Uses::default(), |sum, one| sum.plus(&one.uses));
    Row {
        key,
        asked,
        reason,
        stands_for: words.flatten().cloned().collect(),
        granted,
        uses,
        targets,
    }
}

fn asked(key: &str, wants: &Wants) -> (Vec<String>, Option<String>) {
    let (git, process) = (wants.git.as_ref(), wants.process.as_ref());
    let list = |of: Option<&Vec<String>>| of.cloned().unwrap_or_default();
    let plain = |there: bool| there.then(|| "yes".to_owned()).into_iter().collect();
    let reason = |name: &str| {
        let found = wants.reasons().into_iter().find(|(at, _)| *at == name);
        found.map(|(_, reason)| reason.to_owned())
    };
    let asked = match key {
        "root" => wants
            .root
            .iter()
            .map(|root| root.access.as_str().to_owned())
            .collect(),
        "git.remotes" => list(git.map(|git| &git.remotes)),
        "git.push" => list(git.map(|git| &git.push)),
        "git.credentials" => list(git.map(|git| &git.credentials)),
        "process.programs" => list(process.map(|process| &process.programs)),
        "process.in-root" => list(process.map(|process| &process.in_root)),
        "process.network" => list(process.map(|process| &process.network)),
        "process.environment" => list(process.map(|process| &process.environment)),
        "http.hosts" => list(wants.http.as_ref().map(|http| &http.hosts)),
        "log" => plain(wants.log.is_some()),
        "progress" => plain(wants.progress.is_some()),
        _ => Vec::new(),
    };
    let name = key.split('.').next().unwrap_or(key);
    let reason = reason(name).filter(|_| !asked.is_empty());
    (asked, reason)
}

/// What passes all layers: what the policy lists, and beside it what the plugin asks for where that
/// is narrower.
fn granted(key: &str, grant: &Grant) -> Vec<String> {
    let git = grant.git.as_ref();
    let process = grant.process.as_ref();
    let list = |of: Option<&Vec<String>>| of.cloned().unwrap_or_default();
    let plain = |there: bool| there.then(|| "yes".to_owned()).into_iter().collect();
    match key {
        "root" => match grant.root {
            Access::None => Vec::new(),
            access => vec![access.as_str().to_owned()],
        },
        "git.remotes" => list(git.map(|git| &git.remotes.policy)),
        "git.push" => list(git.map(|git| &git.push.policy)),
        "git.credentials" => list(git.map(|git| &git.credentials)),
        "process.programs" => list(process.map(|process| &process.programs)),
        "process.in-root" => list(process.map(|process| &process.in_root)),
        "process.network" => list(process.map(|process| &process.network.policy)),
        "process.environment" => list(process.map(|process| &process.environment)),
        "http.hosts" => list(grant.http.as_ref().map(|http| &http.hosts.policy)),
        "log" => plain(grant.log),
        "progress" => plain(grant.progress),
        _ => Vec::new(),
    }
}
