//! What the demo says while it runs.

use std::io::Write;
use std::time::Instant;

use serde_json::{Value, json};
use warren_disk::text::excerpt;

/// Most bytes of one line.
const LINE_BYTES_MAX: usize = 400;

/// Steps, printed as they happen unless a program reads the output.
pub(super) struct Report {
    silent: bool,
    last: Instant,
    steps: Vec<Value>,
}

impl Report {
    pub(super) fn new(silent: bool) -> Self {
        Self {
            silent,
            last: Instant::now(),
            steps: Vec::new(),
        }
    }

    /// A step that succeeded, with the time since the one before.
    pub(super) fn done(&mut self, what: &str) {
        let ms = u64::try_from(self.last.elapsed().as_millis()).unwrap_or(u64::MAX);
        self.last = Instant::now();
        let what = excerpt(what.as_bytes(), LINE_BYTES_MAX);
        self.line(&format!("✓ {what} ({ms} ms)"));
        self.steps.push(json!({ "step": what, "ms": ms }));
    }

    /// Something to know.
    pub(super) fn note(&mut self, what: &str) {
        let what = excerpt(what.as_bytes(), LINE_BYTES_MAX);
        self.line(&format!("- {what}"));
        self.steps.push(json!({ "note": what }));
    }

    /// Text that is safe to print, moved in.
    pub(super) fn quote(&self, text: &str) {
        for line in text.lines() {
            self.line(&format!("    {line}"));
        }
    }

    pub(super) fn steps(&self) -> &[Value] {
        &self.steps
    }

    fn line(&self, line: &str) {
        if !self.silent {
            // Whoever stopped reading still gets the exit code.
            let _ = writeln!(anstream::stdout().lock(), "{line}");
        }
    }
}
