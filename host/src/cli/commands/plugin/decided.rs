//! What a person decides about a plugin is in the audit log, or is not done.

use warren::config::Config;
use warren::plugin::audit::Decision;
use warren_audit::{AuditLog, Outcome, Settings};

use super::super::super::error::CliError;

/// Records a decision, carries it out, and records how that went.
pub(super) fn decided<T>(
    config: &Config,
    decision: Decision<'_>,
    carry_out: impl FnOnce() -> Result<T, CliError>,
) -> Result<T, CliError> {
    let path = &config.state_dir.value;
    let state =
        warren_disk::open_root(path).map_err(CliError::io(format!("open `{}`", path.display())))?;
    let log = AuditLog::open(&state, Settings::default())?;
    decision.record(&log, Outcome::Started, None)?;
    let done = carry_out();
    match &done {
        Ok(_) => decision.record(&log, Outcome::Ok, None)?,
        Err(error) => decision.record(&log, Outcome::Failed, Some(error.code()))?,
    }
    done
}
