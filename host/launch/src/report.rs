//! What the forked processes tell the launcher, over a pipe, in records that are written whole.

use std::os::fd::AsFd;

use rustix::io::Errno;
use warren_launch::{Layer, Stage};

/// Bytes of a record.
pub(crate) const REPORT_BYTES: usize = 8;

/// Why nothing was started.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Failure {
    pub(crate) stage: Stage,
    pub(crate) errno: i32,
}

impl Failure {
    /// For `map_err`: a failure at this stage.
    pub(crate) fn at(stage: Stage) -> impl Fn(Errno) -> Self {
        move |error| Self {
            stage,
            errno: error.raw_os_error(),
        }
    }

    /// The request is not valid.
    pub(crate) fn spec() -> Self {
        Self {
            stage: Stage::Spec,
            errno: 0,
        }
    }
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Report {
    /// A layer is in force.
    InForce(Layer),
    /// The child never ran.
    NotStarted(Failure),
    /// The child is gone; the status as `wait` gave it.
    Ended(i32),
}

/// Stages and layers by number.
const STAGES: [Stage; 5] = [
    Stage::Spec,
    Stage::Setup,
    Stage::Directory,
    Stage::Limits,
    Stage::Execute,
];
const FIRST_LAYER: u8 = 100;

fn number_of(stage: Stage) -> u8 {
    match stage {
        Stage::Confinement(layer) => FIRST_LAYER + layer as u8,
        Stage::Spec => 0,
        Stage::Setup => 1,
        Stage::Directory => 2,
        Stage::Limits => 3,
        Stage::Execute => 4,
    }
}

fn stage_of(number: u8) -> Option<Stage> {
    match number.checked_sub(FIRST_LAYER) {
        Some(layer) => Some(Stage::Confinement(layer_of(layer)?)),
        None => STAGES.get(usize::from(number)).copied(),
    }
}

fn layer_of(number: u8) -> Option<Layer> {
    Layer::ALL.get(usize::from(number)).copied()
}

impl Report {
    fn to_bytes(self) -> [u8; REPORT_BYTES] {
        let (kind, stage, value) = match self {
            Self::InForce(layer) => (1, layer as u8, 0),
            Self::NotStarted(failure) => (2, number_of(failure.stage), failure.errno),
            Self::Ended(status) => (3, 0, status),
        };
        let [a, b, c, d] = value.to_le_bytes();
        [kind, stage, 0, 0, a, b, c, d]
    }

    pub(crate) fn from_bytes([kind, stage, _, _, a, b, c, d]: [u8; REPORT_BYTES]) -> Option<Self> {
        let value = i32::from_le_bytes([a, b, c, d]);
        Some(match kind {
            1 => Self::InForce(layer_of(stage)?),
            2 => Self::NotStarted(Failure {
                stage: stage_of(stage)?,
                errno: value,
            }),
            3 => Self::Ended(value),
            _ => return None,
        })
    }

    /// Sends the record. When the launcher is gone there is nobody to tell; the kernel then kills
    /// the sender.
    pub(crate) fn send(self, pipe: impl AsFd) {
        let bytes = self.to_bytes();
        while rustix::io::write(&pipe, &bytes) == Err(Errno::INTR) {}
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn records_round_trip() {
        let layers = Layer::ALL.map(Stage::Confinement);
        let stages = STAGES.into_iter().chain(layers);
        let failures = stages.map(|stage| Report::NotStarted(Failure { stage, errno: 2 }));
        let in_force = Layer::ALL.map(Report::InForce);
        for report in failures.chain(in_force).chain([Report::Ended(-9)]) {
            assert_eq!(Report::from_bytes(report.to_bytes()), Some(report));
        }
        assert_eq!(Report::from_bytes([2, 9, 0, 0, 0, 0, 0, 0]), None);
        assert_eq!(Report::from_bytes([1, 99, 0, 0, 0, 0, 0, 0]), None);
    }
}
