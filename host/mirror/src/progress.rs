//! How far work with a remote has come.

use std::sync::Arc;

/// One report.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Progress {
    /// `fetch` or `push`.
    pub stage: &'static str,
    /// Objects done.
    pub done: u64,
    /// Objects there are; none: not known yet.
    pub total: Option<u64>,
}

/// Takes reports, from the thread that does the work. Must be quick.
pub type ProgressSink = Arc<dyn Fn(Progress) + Send + Sync>;
