//! The audit log: what plugins did and were refused, as JSON lines in a chain of hashes.
//!
//! Every record holds the hash of the one before it, so that none can be changed, taken out, put in
//! or moved unnoticed; [`verify()`] names the first that was. The chain says nothing about records
//! cut off at its end: whoever wants to know that keeps a [`Pin`] elsewhere.
//!
//! Several processes may append to one log at the same time. [`AuditLog::append`] writes before it
//! returns and queues nothing: a log that cannot keep up slows its callers down. Files and memory
//! are bounded; nothing here reads a whole file at once.

mod entry;
mod error;
mod files;
mod line;
mod log;
mod read;
mod redact;
mod scan;
mod tail;
mod verify;

pub use entry::{Entry, Outcome, Record, capability};
pub use error::AuditError;
pub use log::{AuditLog, Settings};
pub use read::{Filter, Page, last, read, visit};
pub use redact::{redact, redact_url};
pub use verify::{Break, Fault, Pin, Verdict, Verified, verify};

/// The log's directory inside the state directory.
pub const DIR: &str = "audit";
