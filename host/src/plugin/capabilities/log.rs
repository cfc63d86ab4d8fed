//! `log`: lines of a guest in the host's log, capped and escaped.

use wasmtime::component::{HasSelf, Linker};

use crate::plugin::bindings::warren::handler::log::{Host, Level, add_to_linker};
use crate::plugin::grants::{Grants, Limits};
use crate::plugin::state::{CallState, Label};
use crate::plugin::text::clean_line;

pub(crate) fn granted(grants: &Grants) -> bool {
    grants.log
}

pub(crate) fn link(linker: &mut Linker<CallState>) -> wasmtime::Result<()> {
    add_to_linker::<_, HasSelf<CallState>>(linker, |state| state)
}

/// What is left of a call's budget.
pub(crate) struct LogCall {
    bytes_left: usize,
    line_bytes_max: usize,
    lines: u64,
    dropped: u64,
}

/// What a line costs beside its text: many empty lines are a flood too.
const LINE_OVERHEAD_BYTES: usize = 64;

impl LogCall {
    pub(crate) fn new(limits: &Limits) -> Self {
        Self {
            bytes_left: limits.log_bytes,
            line_bytes_max: limits.log_line_bytes,
            lines: 0,
            dropped: 0,
        }
    }

    /// The line as it may be logged; none: the budget is spent.
    fn check(&mut self, message: &str) -> Option<String> {
        let line = clean_line(message, self.line_bytes_max);
        let cost = line.len() + LINE_OVERHEAD_BYTES;
        if cost > self.bytes_left {
            // One that does not fit ends it: later short ones would only look like a whole.
            self.bytes_left = 0;
            self.dropped += 1;
            return None;
        }
        self.bytes_left -= cost;
        self.lines += 1;
        Some(line)
    }

    /// Lines that passed.
    pub(crate) fn lines(&self) -> u64 {
        self.lines
    }

    /// Lines that did not.
    pub(crate) fn dropped(&self) -> u64 {
        self.dropped
    }

    /// Says once how much was dropped.
    pub(crate) fn finish(&self, label: &Label) {
        if self.dropped > 0 {
            tracing::warn!(
                target: "warren::plugin",
                plugin = &*label.plugin,
                handler = label.handler(),
                project = label.project(),
                dir_name = label.dir_name(),
                dropped = self.dropped,
                "lines of a handler's log were dropped: it passed its limit"
            );
        }
    }
}

impl Host for CallState {
    async fn write(&mut self, level: Level, message: String) {
        let Some(line) = self.log.check(&message) else {
            return;
        };
        // The line is a field: it cannot be mistaken for a record of the host.
        macro_rules! emit {
            ($level:ident) => {
                tracing::$level!(
                    target: "warren::plugin",
                    plugin = &*self.label.plugin,
                    handler = self.label.handler(),
                    project = self.label.project(),
                    dir_name = self.label.dir_name(),
                    line,
                    "handler"
                )
            };
        }
        match level {
            Level::Debug => emit!(debug),
            Level::Info => emit!(info),
            Level::Warn => emit!(warn),
            Level::Error => emit!(error),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn budget(log_bytes: usize) -> LogCall {
        LogCall::new(&Limits {
            log_bytes,
            log_line_bytes: 20,
            ..Limits::default()
        })
    }

    #[test]
    fn a_line_is_cut_and_cannot_forge_another() {
        let mut log = budget(1000);
        assert_eq!(log.check("a\nlevel=error x").unwrap(), "a\\nlevel=error x");
        assert!(log.check(&"x".repeat(100)).unwrap().len() <= 24);
    }

    #[test]
    fn what_passes_the_budget_is_counted() {
        let mut log = budget(200);
        assert!(log.check("one").is_some());
        assert!(log.check("two").is_some());
        assert!(log.check(&"x".repeat(20)).is_none());
        assert!(log.check("").is_none());
        assert_eq!(log.dropped, 2);
    }
}
