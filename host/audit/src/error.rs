//! Why the log cannot be written or read.

use std::io;
use std::time::Duration;

/// Why the log cannot be written or read: one variant per thing the operator can do.
#[derive(Debug, thiserror::Error)]
pub enum AuditError {
    /// Its files cannot be used.
    #[error("cannot {doing} the audit log")]
    Io {
        /// What was being done.
        doing: &'static str,
        /// What the system says.
        source: io::Error,
    },
    /// The disk is full, and so is the reserve.
    #[error("there is no room left for the audit log")]
    Full,
    /// Another process held the log all the time.
    #[error("the audit log is still held by another process after {} ms", waited.as_millis())]
    Busy {
        /// How long we waited.
        waited: Duration,
    },
    /// Its end is no record and no torn one either: somebody changed it.
    #[error("the audit log is damaged at the end of `{file}`")]
    Damaged {
        /// Name of the file.
        file: String,
    },
}

impl AuditError {
    /// Stable code for machines.
    pub fn code(&self) -> &'static str {
        match self {
            Self::Damaged { .. } => "AuditDamaged",
            Self::Io { .. } | Self::Full | Self::Busy { .. } => "AuditUnavailable",
        }
    }

    /// What to do next.
    pub fn hint(&self) -> Option<String> {
        Some(match self {
            Self::Io { .. } => "look at the directory `audit` of the state directory".into(),
            Self::Full => "make room on the disk of the state directory".into(),
            Self::Busy { .. } => "find the process that holds `audit/lock`, then try again".into(),
            Self::Damaged { .. } => {
                "`warren audit verify` says what is wrong; move the directory `audit` elsewhere as evidence, and a new log begins".into()
            }
        })
    }
}

pub(crate) fn io(doing: &'static str) -> impl FnOnce(io::Error) -> AuditError {
    move |source| AuditError::Io { doing, source }
}
