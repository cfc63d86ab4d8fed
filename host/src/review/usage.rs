//! What the audit log shows that plugins used and were refused.

use std::collections::BTreeMap;

use jiff::Timestamp;
use serde::Serialize;
use warren_audit::{AuditError, Filter, Outcome, Record, visit};
use warren_disk::Dir;

use crate::plugin::audit::{DRY_RUN, FILLING, Program, Target};

/// Targets of one kind that are told apart; more are counted together.
const TARGETS_MAX: usize = 500;

/// What stands for the targets that are counted together.
const OTHERS: &str = "(others)";

/// How often something was used, and when last.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct Uses {
    /// It was allowed and worked.
    pub ok: u64,
    /// It was allowed and failed.
    pub failed: u64,
    /// It was refused.
    pub denied: u64,
    /// When it was last allowed.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub last_used: Option<Timestamp>,
    /// When it was last refused.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub last_denied: Option<Timestamp>,
}

impl Uses {
    /// Whether it was used at all.
    pub fn is_used(&self) -> bool {
        self.ok + self.failed > 0
    }

    fn add(&mut self, outcome: Outcome, times: u64, at: Timestamp) {
        match outcome {
            Outcome::Started => return,
            Outcome::Ok => self.ok += times,
            Outcome::Failed => self.failed += times,
            Outcome::Denied => self.denied += times,
        }
        if times > 0 {
            let last = match outcome {
                Outcome::Denied => &mut self.last_denied,
                _ => &mut self.last_used,
            };
            *last = (*last).max(Some(at));
        }
    }

    /// Both together.
    pub fn plus(mut self, other: &Self) -> Self {
        self.ok += other.ok;
        self.failed += other.failed;
        self.denied += other.denied;
        self.last_used = self.last_used.max(other.last_used);
        self.last_denied = self.last_denied.max(other.last_denied);
        self
    }
}

/// Uses by what they were on.
pub type Targets = BTreeMap<String, Uses>;

/// What one plugin did.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Used {
    /// Uses by the key that a policy has for them, `git.remotes` say, and by target.
    pub by_key: BTreeMap<&'static str, Targets>,
    /// Calls into it, by verb.
    pub calls: Targets,
    /// Limits that it ran into.
    pub limits: Targets,
    /// Bytes that it wrote to files itself.
    pub bytes_written: u64,
    /// Programs that ran without being confined.
    pub unconfined_runs: u64,
    /// How often it was loaded, or not.
    pub loads: Uses,
}

/// What all plugins did.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Usage {
    /// By type of handler.
    pub by_handler: BTreeMap<String, Used>,
    /// Time of the first and of the last record that was looked at.
    pub period: Option<(Timestamp, Timestamp)>,
    /// Lines of the log that are no records.
    pub unreadable: u64,
}

impl Usage {
    /// Reads the log of a state directory.
    ///
    /// # Errors
    /// When it cannot be read.
    pub fn collect(state: &Dir, filter: &Filter) -> Result<Self, AuditError> {
        let mut usage = Self::default();
        usage.unreadable = visit(state, filter, |record| usage.add(&record))?;
        Ok(usage)
    }

    /// Counts one record.
    pub fn add(&mut self, record: &Record) {
        let at = record.at;
        let (first, last) = self.period.get_or_insert((at, at));
        (*first, *last) = ((*first).min(at), (*last).max(at));
        let Some(handler) = &record.handler else {
            return;
        };
        // What a dry run would have written, it did not write.
        let is_dry = record
            .call
            .as_ref()
            .is_some_and(|call| call.starts_with(DRY_RUN));
        if is_dry && matches!(record.verb.as_str(), "push" | "delete-remote-ref") {
            return;
        }
        let used = self.by_handler.entry(handler.clone()).or_default();
        match record.capability.as_str() {
            "call" => used.call(record),
            "git" => used.git(record),
            "process" => used.process(record),
            "network" => used.one("process.network", record.target.as_deref(), record),
            "http" => used.one("http.hosts", record.target.as_deref(), record),
            "files" => used.one("root", record.target.as_deref(), record),
            "plugin" if record.verb == "load" => used.loads.add(record.outcome, 1, at),
            _ => {}
        }
    }
}

impl Used {
    /// What was used under a key of the policy.
    pub fn targets(&self, key: &str) -> impl Iterator<Item = (&String, &Uses)> {
        self.by_key.get(key).into_iter().flatten()
    }

    fn one(&mut self, key: &'static str, target: Option<&str>, record: &Record) {
        let targets = self.by_key.entry(key).or_default();
        count(targets, target.unwrap_or("-"), record.outcome, 1, record.at);
    }

    fn call(&mut self, record: &Record) {
        count(&mut self.calls, &record.verb, record.outcome, 1, record.at);
        if let Some(limit) = &record.detail {
            count(&mut self.limits, limit, Outcome::Denied, 1, record.at);
        }
        let number = |name: &str| record.counts.get(name).copied().unwrap_or_default();
        self.bytes_written += number("bytesWritten");
        for (key, target, times) in [
            ("root", "writes", number("bytesWritten").min(1)),
            (
                "root",
                "changes",
                number("filesMade") + number("filesRemoved"),
            ),
            ("log", "lines", number("logLines")),
            ("progress", "reports", number("progressReports")),
        ] {
            if times > 0 {
                let targets = self.by_key.entry(key).or_default();
                count(targets, target, Outcome::Ok, times, record.at);
            }
        }
        for (limit, times) in [
            ("log bytes", number("logLinesDropped")),
            ("disk quota", number("overQuota")),
            ("full disk", number("diskFull")),
        ] {
            if times > 0 {
                count(&mut self.limits, limit, Outcome::Denied, times, record.at);
            }
        }
    }

    fn git(&mut self, record: &Record) {
        if FILLING.contains(&record.verb.as_str()) && record.outcome != Outcome::Denied {
            self.one("root", Some("git"), record);
        }
        let Some(text) = &record.target else {
            return self.one("git", Some(&record.verb), record);
        };
        let Target::Remote {
            url,
            ref_name,
            credential,
        } = Target::remote(text)
        else {
            return;
        };
        let writes = matches!(record.verb.as_str(), "push" | "delete-remote-ref");
        let ref_name = ref_name.as_deref().filter(|_| writes);
        let credential = credential.as_deref();
        if record.outcome == Outcome::Denied {
            // What was refused is one of them, and the reason says which.
            let why = record.detail.as_deref().unwrap_or_default();
            match (ref_name, credential) {
                (Some(name), _) if why.contains("writing `") => {
                    self.one("git.push", Some(name), record);
                }
                (_, Some(alias)) if why.contains("credential `") => {
                    self.one("git.credentials", Some(alias), record);
                }
                _ => self.one("git.remotes", Some(&url), record),
            }
            return;
        }
        self.one("git.remotes", Some(&url), record);
        if let Some(name) = ref_name {
            self.one("git.push", Some(name), record);
        }
        if let Some(alias) = credential {
            self.one("git.credentials", Some(alias), record);
        }
    }

    fn process(&mut self, record: &Record) {
        let Some(text) = &record.target else { return };
        let key = match Program::parse(text) {
            Program::InRoot(_) => "process.in-root",
            Program::Alias(_) | Program::Path(_) => "process.programs",
        };
        let name = text.strip_prefix("./").unwrap_or(text);
        self.one(key, Some(name), record);
        if record.outcome == Outcome::Started || record.verb != "run" {
            return;
        }
        if record.outcome != Outcome::Denied {
            self.one("root", Some("programs"), record);
        }
        self.unconfined_runs += record.counts.get("unconfined").copied().unwrap_or_default();
        let detail = record.detail.as_deref().unwrap_or_default();
        if let Some((_, names)) = detail.split_once(" env=") {
            for name in names.split(',') {
                self.one("process.environment", Some(name), record);
            }
        }
    }
}

fn count(targets: &mut Targets, target: &str, outcome: Outcome, times: u64, at: Timestamp) {
    if outcome == Outcome::Started {
        return;
    }
    let target = match targets.contains_key(target) || targets.len() < TARGETS_MAX {
        true => target,
        false => OTHERS,
    };
    let uses = targets.entry(target.to_owned()).or_default();
    uses.add(outcome, times, at);
}
