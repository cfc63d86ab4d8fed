//! The trail of a call: what it uses of its capabilities, and what it is refused, in the audit log.
//!
//! A use that reaches out of the host is recorded before it happens, every one when it is over. What
//! cannot be recorded is refused, and the call that wanted it fails.

mod loads;
mod network;
pub(crate) mod process;
mod target;

use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Instant;

use warren_audit::{AuditError, AuditLog, Entry, Outcome, capability};

use super::call::{CallContext, CallMode};
use super::error::PluginError;
use super::registry::Plugin;

pub use loads::Decision;
pub(crate) use loads::record_loads;
pub use target::{Program, Target};

/// What is before the id of a call that changes nothing.
pub(crate) const DRY_RUN: &str = "dry-run-";

/// Verbs of `git` that write into the RootDir.
pub(crate) const FILLING: [&str; 5] = ["init", "clone", "clone-at", "commit-all", "restore"];

/// Code of a use that nobody waited for any more.
const ABANDONED: &str = "Abandoned";

/// Takes the records of one call. Clones are one.
#[derive(Clone)]
pub(crate) struct Trail(Arc<Call>);

struct Call {
    log: Option<AuditLog>,
    tenant: String,
    project: String,
    dir_name: String,
    handler: String,
    plugin: String,
    grant: String,
    /// Verb and a number of its own.
    id: String,
    /// Why a record could not be written, the first time.
    broken: Mutex<Option<AuditError>>,
}

/// A record could not be written; the trail knows why.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Unrecorded;

/// What a capability is used for.
#[derive(Debug, Clone)]
pub(crate) struct Use {
    pub(crate) capability: &'static str,
    pub(crate) verb: &'static str,
    pub(crate) target: Option<String>,
    pub(crate) detail: Option<String>,
    pub(crate) counts: Vec<(&'static str, u64)>,
    /// When it is recorded beside its end.
    pub(crate) start: Start,
}

/// Whether the start of a use is recorded.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Start {
    /// Only its end: it changes nothing outside of the RootDir.
    Unrecorded,
    /// Before it happens.
    Recorded,
    /// Before it happens, and a loss of power does not lose it: others may see the effect.
    Durable,
}

impl Use {
    pub(crate) fn new(capability: &'static str, verb: &'static str, start: Start) -> Self {
        Self {
            capability,
            verb,
            target: None,
            detail: None,
            counts: Vec::new(),
            start,
        }
    }

    pub(crate) fn on(mut self, target: Target<'_>) -> Self {
        self.target = Some(target.to_string());
        self
    }
}

/// How a use ended.
#[derive(Debug, Clone, Copy)]
pub(crate) struct End<'a> {
    pub(crate) outcome: Outcome,
    pub(crate) code: Option<&'a str>,
    pub(crate) detail: Option<&'a str>,
}

impl<'a> End<'a> {
    pub(crate) const OK: Self = Self {
        outcome: Outcome::Ok,
        code: None,
        detail: None,
    };

    /// Of something that failed, or was refused.
    pub(crate) fn failed(code: &'a str, is_denied: bool) -> Self {
        Self {
            outcome: match is_denied {
                true => Outcome::Denied,
                false => Outcome::Failed,
            },
            code: Some(code),
            detail: None,
        }
    }

    /// Of a call. What the guest said stays out: nobody knows what it has put into it.
    pub(crate) fn of_call(error: Option<&PluginError>) -> Self {
        let Some(error) = error else {
            return Self::OK;
        };
        Self {
            detail: match error {
                PluginError::LimitExceeded { limit, .. } => Some(limit.as_str()),
                _ => None,
            },
            ..Self::failed(error.code(), false)
        }
    }
}

impl Trail {
    pub(crate) fn new(
        log: Option<AuditLog>,
        plugin: &Plugin,
        cx: &CallContext,
        verb: &str,
    ) -> Result<Self, PluginError> {
        let number = getrandom::u64().map_err(|error| PluginError::Internal(error.to_string()))?;
        Ok(Self(Arc::new(Call {
            log,
            tenant: cx.tenant.to_string(),
            project: cx.project.to_string(),
            dir_name: cx.dir_name.to_string(),
            handler: plugin.handler_type().to_string(),
            plugin: plugin.inspection.digest.clone(),
            grant: loads::grant_id(plugin),
            id: match cx.mode {
                CallMode::ReadWrite => format!("{verb}-{number:016x}"),
                CallMode::DryRun => format!("{DRY_RUN}{verb}-{number:016x}"),
            },
            broken: Mutex::default(),
        })))
    }

    /// Before a use. The end must be recorded too; if it is not, it is said to be abandoned.
    pub(crate) fn begin(&self, what: Use) -> Result<Open, Unrecorded> {
        let open = Open {
            trail: self.clone(),
            started: Instant::now(),
            what: Some(what),
        };
        let Some(what) = &open.what else {
            return Ok(open);
        };
        if what.start == Start::Unrecorded {
            return Ok(open);
        }
        let entry = Entry {
            target: what.target.as_deref(),
            counts: &what.counts,
            detail: what.detail.as_deref(),
            ..Entry::new(what.capability, what.verb, Outcome::Started)
        };
        let written = self.write(entry, what.start == Start::Durable);
        if written.is_err() {
            // It did not begin: there is no end to record.
            drop(open.into_what());
            return Err(Unrecorded);
        }
        Ok(open)
    }

    /// Something that was refused at once, and has no duration.
    pub(crate) fn denied(
        &self,
        capability: &'static str,
        verb: &'static str,
        target: Target<'_>,
        code: &str,
    ) -> Result<(), Unrecorded> {
        let target = target.to_string();
        let entry = Entry {
            target: Some(&target),
            code: Some(code),
            ..Entry::new(capability, verb, Outcome::Denied)
        };
        self.write(entry, false)
    }

    fn write(&self, entry: Entry<'_>, durable: bool) -> Result<(), Unrecorded> {
        let call = &*self.0;
        let Some(log) = &call.log else {
            return Ok(());
        };
        let entry = Entry {
            tenant: Some(&call.tenant),
            project: Some(&call.project),
            dir_name: Some(&call.dir_name),
            handler: Some(&call.handler),
            plugin: Some(&call.plugin),
            grant: Some(&call.grant),
            call: Some(&call.id),
            ..entry
        };
        let written = if durable {
            log.append_durable(&entry)
        } else {
            log.append(&entry)
        };
        let Err(error) = written else {
            return Ok(());
        };
        tracing::error!(
            error = &error as &(dyn std::error::Error + 'static),
            capability = entry.capability,
            verb = entry.verb,
            "a use of a capability was refused: it cannot be recorded"
        );
        self.broken().get_or_insert(error);
        Err(Unrecorded)
    }

    /// Whether everything was recorded so far.
    pub(crate) fn is_whole(&self) -> bool {
        self.broken().is_none()
    }

    /// Why the call must fail when it is not.
    pub(crate) fn error(&self) -> PluginError {
        match self.broken().take() {
            Some(error) => PluginError::Audit(error),
            None => PluginError::Internal("a record of the audit log is missing".to_owned()),
        }
    }

    fn broken(&self) -> MutexGuard<'_, Option<AuditError>> {
        self.0.broken.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// A use that has begun.
pub(crate) struct Open {
    trail: Trail,
    started: Instant,
    what: Option<Use>,
}

impl Open {
    /// The use is over. When that cannot be recorded, its result must not be used.
    pub(crate) fn end(mut self, end: End<'_>, counts: &[(&str, u64)]) -> Result<(), Unrecorded> {
        match self.what.take() {
            Some(what) => self.record(&what, end, counts),
            None => Ok(()),
        }
    }

    fn into_what(mut self) -> Option<Use> {
        self.what.take()
    }

    fn record(&self, what: &Use, end: End<'_>, more: &[(&str, u64)]) -> Result<(), Unrecorded> {
        let mut counts: Vec<(&str, u64)> = what.counts.clone();
        counts.extend_from_slice(more);
        let micros = self.started.elapsed().as_micros();
        let entry = Entry {
            target: what.target.as_deref(),
            code: end.code,
            duration_us: Some(u64::try_from(micros).unwrap_or(u64::MAX)),
            counts: &counts,
            detail: end.detail.or(what.detail.as_deref()),
            ..Entry::new(what.capability, what.verb, end.outcome)
        };
        self.trail.write(entry, false)
    }
}

impl Drop for Open {
    fn drop(&mut self) {
        if let Some(what) = self.what.take() {
            let end = End {
                outcome: Outcome::Failed,
                code: Some(ABANDONED),
                detail: None,
            };
            // The trail keeps the error, and there is nobody else to tell.
            let _ = self.record(&what, end, &[]);
        }
    }
}

/// The call as a whole.
pub(crate) fn whole_call(verb: &'static str) -> Use {
    Use::new(capability::CALL, verb, Start::Recorded)
}
