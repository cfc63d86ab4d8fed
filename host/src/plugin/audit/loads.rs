//! Which components were loaded, and which were not.

use warren_audit::{AuditError, AuditLog, Entry, Outcome, capability};

use crate::plugin::load::LoadFailure;
use crate::plugin::registry::{Plugin, Registry};

/// Id of what a plugin was granted.
pub(crate) fn grant_id(plugin: &Plugin) -> String {
    plugin.grants.id.to_string()
}

/// Records what a host has loaded and what it has refused. That nothing is recorded refuses nothing
/// here: what was loaded can do nothing that is not recorded.
pub(crate) fn record_loads(log: Option<&AuditLog>, registry: &Registry, failures: &[LoadFailure]) {
    let Some(log) = log else { return };
    for plugin in registry.iter() {
        let (target, grant) = (plugin.origin.to_string(), grant_id(plugin));
        append(
            log,
            &Entry {
                handler: Some(plugin.handler_type().as_str()),
                plugin: Some(&plugin.inspection.digest),
                grant: Some(&grant),
                target: Some(&target),
                ..Entry::new(capability::PLUGIN, "load", Outcome::Ok)
            },
        );
    }
    for failure in failures {
        let LoadFailure { origin, error, .. } = failure;
        let handler = match &failure.handler {
            Some(handler) => handler.to_string(),
            None => origin.name(),
        };
        let target = origin.to_string();
        let detail = error.to_string();
        append(
            log,
            &Entry {
                handler: Some(&handler),
                plugin: failure.digest.as_deref(),
                target: Some(&target),
                code: Some(error.code()),
                detail: Some(&detail),
                ..Entry::new(capability::PLUGIN, "load", Outcome::Denied)
            },
        );
    }
}

fn append(log: &AuditLog, entry: &Entry<'_>) {
    if let Err(error) = log.append(entry) {
        tracing::warn!(
            error = &error as &(dyn std::error::Error + 'static),
            target = entry.target,
            "that a plugin was loaded, or not, cannot be recorded"
        );
    }
}

/// What a person decides about a plugin.
#[derive(Debug, Clone, Copy)]
pub struct Decision<'a> {
    /// `approve`, `revoke`, `add`, `remove`.
    pub verb: &'static str,
    /// The type.
    pub handler: &'a str,
    /// Digest of the component, where it is about one.
    pub digest: Option<&'a str>,
    /// Id of the grant, where it is about one.
    pub grant: Option<&'a str>,
    /// Who decides.
    pub by: &'a str,
}

impl Decision<'_> {
    /// Records it: before it holds as [`Outcome::Started`], then as it went. What cannot be recorded
    /// must not hold.
    ///
    /// # Errors
    ///
    /// When the log cannot be written.
    pub fn record(
        &self,
        log: &AuditLog,
        outcome: Outcome,
        code: Option<&str>,
    ) -> Result<(), AuditError> {
        let by = format!("by {}", self.by);
        let entry = Entry {
            handler: Some(self.handler),
            plugin: self.digest,
            grant: self.grant,
            code,
            detail: Some(&by),
            ..Entry::new(capability::PLUGIN, self.verb, outcome)
        };
        log.append_durable(&entry).map(drop)
    }
}
