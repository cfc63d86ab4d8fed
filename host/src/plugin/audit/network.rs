//! Connections of children.

use warren_audit::{Entry, Outcome};
use warren_egress::proxy::{Outcome as Came, Report};
use warren_model::Target as Place;

use super::{Target, Trail, Unrecorded};

/// Name of the capability: children have it through `process`.
pub(crate) const NETWORK: &str = "network";

const CONNECT: &str = "connect";

impl Trail {
    /// Before a child is connected to a server.
    pub(crate) fn connecting(&self, place: &Place) -> Result<(), Unrecorded> {
        let target = Target::Server(place.to_string().into()).to_string();
        let entry = Entry {
            target: Some(&target),
            ..Entry::new(NETWORK, CONNECT, Outcome::Started)
        };
        self.write(entry, false)
    }

    /// When the connection is over, or was never made.
    pub(crate) fn connected(&self, report: &Report) -> Result<(), Unrecorded> {
        let target = Target::Server((&*report.target).into()).to_string();
        let (outcome, why) = match &report.outcome {
            Came::Ended => (Outcome::Ok, None),
            Came::Denied(why) => (Outcome::Denied, Some(why.as_str())),
            Came::Failed(why) => (Outcome::Failed, Some(why.as_str())),
            Came::Cut(why) => (Outcome::Failed, Some(*why)),
        };
        let micros = report.duration.as_micros();
        let entry = Entry {
            target: Some(&target),
            code: (outcome != Outcome::Ok).then(|| report.outcome.code()),
            duration_us: Some(u64::try_from(micros).unwrap_or(u64::MAX)),
            counts: &[
                ("sentBytes", report.sent_bytes),
                ("receivedBytes", report.received_bytes),
            ],
            detail: why,
            ..Entry::new(NETWORK, CONNECT, outcome)
        };
        self.write(entry, false)
    }
}
