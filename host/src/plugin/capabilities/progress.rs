//! `progress`: how far a call has come, handed to whoever waits for it.

use std::sync::Arc;
use std::time::{Duration, Instant};

use wasmtime::component::{HasSelf, Linker};

use crate::plugin::bindings::warren::handler::progress::{Host, add_to_linker};
use crate::plugin::grants::Grants;
use crate::plugin::state::CallState;
use crate::plugin::text::clean_line;

/// Longest name of a stage in bytes.
const STAGE_BYTES: usize = 64;

/// Reports of one stage come at most this often.
const INTERVAL: Duration = Duration::from_millis(20);

/// Changes of stage in one call; no honest handler has that many.
const STAGES_MAX: u32 = 256;

/// Takes the reports of a call: the stage, safe to print, what is done and what there is to do in
/// any unit. It is called on the executor and must not block.
pub type ProgressSink = Arc<dyn Fn(&str, u64, Option<u64>) + Send + Sync>;

pub(crate) fn granted(grants: &Grants) -> bool {
    grants.progress
}

pub(crate) fn link(linker: &mut Linker<CallState>) -> wasmtime::Result<()> {
    add_to_linker::<_, HasSelf<CallState>>(linker, |state| state)
}

/// What one call has reported.
pub(crate) struct ProgressCall {
    sink: Option<ProgressSink>,
    stage: String,
    stages: u32,
    last: Option<Instant>,
    passed: u64,
}

impl ProgressCall {
    pub(crate) fn new(sink: Option<ProgressSink>) -> Self {
        Self {
            sink,
            stage: String::new(),
            stages: 0,
            last: None,
            passed: 0,
        }
    }

    /// Reports that passed.
    pub(crate) fn passed(&self) -> u64 {
        self.passed
    }

    /// Whether a report at `now` passes: a guest must not flood a terminal or a client.
    fn check(&mut self, stage: &str, now: Instant) -> bool {
        if self.stage != stage {
            self.stages += 1;
            stage.clone_into(&mut self.stage);
            self.last = Some(now);
            return self.stages <= STAGES_MAX;
        }
        if self.stages > STAGES_MAX || self.last.is_some_and(|last| now < last + INTERVAL) {
            return false;
        }
        self.last = Some(now);
        true
    }
}

impl Host for CallState {
    async fn report(&mut self, stage: String, done: u64, total: Option<u64>) {
        let Some(sink) = self.progress.sink.clone() else {
            return;
        };
        let stage = clean_line(&stage, STAGE_BYTES);
        if self.progress.check(&stage, Instant::now()) {
            self.progress.passed += 1;
            sink(&stage, done, total);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn reports_are_thinned_and_a_new_stage_passes() {
        let mut call = ProgressCall::new(None);
        let start = Instant::now();
        assert!(call.check("clone", start));
        assert!(!call.check("clone", start + INTERVAL / 2));
        assert!(call.check("clone", start + INTERVAL));
        assert!(call.check("install", start + INTERVAL));
    }

    #[test]
    fn a_flood_of_stages_ends() {
        let mut call = ProgressCall::new(None);
        let now = Instant::now();
        let passed = (0..10_000)
            .filter(|n| call.check(&n.to_string(), now))
            .count();
        assert_eq!(passed, STAGES_MAX as usize);
    }
}
