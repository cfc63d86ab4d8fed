//! What is told of each connection.

use std::sync::Arc;
use std::time::{Duration, Instant};

use warren_model::Target;

use crate::proxy::meter::Meter;

/// Told of every use of the network: the audit log, say. Called from the proxy's tasks; may block
/// as long as an append to a file takes.
pub trait Sink: Send + Sync + 'static {
    /// A server is about to be connected to.
    ///
    /// # Errors
    /// When it cannot be noted: the connection is not made then.
    fn opening(&self, target: &Target) -> Result<(), Refused>;

    /// A connection is over, or was never made. Comes once for each `opening`, and for each denial.
    fn ended(&self, report: &Report);
}

/// The sink cannot take note, so that nothing may happen.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Refused;

/// One connection: a `CONNECT`, or a request and its answer.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Report {
    /// `scheme://host[:port]`, without user, path or query; or why it is no server.
    pub target: String,
    /// What came of it.
    pub outcome: Outcome,
    /// Bytes sent to the server.
    pub sent_bytes: u64,
    /// Bytes received from it.
    pub received_bytes: u64,
    /// From the request to the end.
    pub duration: Duration,
}

/// What came of a connection.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Outcome {
    /// It ran to its end.
    Ended,
    /// It was not made: not granted, or at an address that is not. Says why.
    Denied(String),
    /// It could not be made, or broke. Says why.
    Failed(String),
    /// The host ended it: a limit was reached, or the child was gone. Says which.
    Cut(&'static str),
}

impl Outcome {
    /// Stable name for machines.
    pub fn code(&self) -> &'static str {
        match self {
            Self::Ended => "Ended",
            Self::Denied(_) => "NetworkDenied",
            Self::Failed(_) => "NetworkFailed",
            Self::Cut(_) => "NetworkCut",
        }
    }
}

/// A connection under way. Reports when it is dropped, wherever that is.
pub(crate) struct Exchange {
    sink: Arc<dyn Sink>,
    target: String,
    outcome: Outcome,
    started: Instant,
    pub(crate) meter: Arc<Meter>,
}

impl Exchange {
    pub(crate) fn new(sink: &Arc<dyn Sink>, target: String, meter: Arc<Meter>) -> Self {
        Self {
            sink: Arc::clone(sink),
            target,
            outcome: Outcome::Cut("it was still open when the child ended or fell silent"),
            started: Instant::now(),
            meter,
        }
    }

    pub(crate) fn end(&mut self, outcome: Outcome) {
        self.outcome = outcome;
    }
}

impl Drop for Exchange {
    fn drop(&mut self) {
        let outcome = match self.meter.over() {
            true => Outcome::Cut("its bytes are used up"),
            false => self.outcome.clone(),
        };
        self.sink.ended(&Report {
            target: std::mem::take(&mut self.target),
            outcome,
            sent_bytes: self.meter.sent_bytes(),
            received_bytes: self.meter.received_bytes(),
            duration: self.started.elapsed(),
        });
    }
}
