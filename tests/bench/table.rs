//! Interleaved samples and the table of their medians.

use std::fmt;
use std::time::{Duration, Instant};

/// One line of the result.
struct Row {
    what: String,
    ours: Duration,
    theirs: Option<Duration>,
    limit: String,
}

/// The result of a run.
#[derive(Default)]
pub(crate) struct Table(Vec<Row>);

impl Table {
    /// An absolute time.
    pub(crate) fn time(&mut self, what: &str, limit: &str, ours: Duration) {
        self.0.push(Row {
            what: what.to_owned(),
            ours,
            theirs: None,
            limit: limit.to_owned(),
        });
    }

    /// Two medians and their ratio.
    pub(crate) fn ratio(&mut self, what: &str, limit: &str, (ours, theirs): (Duration, Duration)) {
        self.0.push(Row {
            what: what.to_owned(),
            ours,
            theirs: Some(theirs),
            limit: limit.to_owned(),
        });
    }
}

impl fmt::Display for Table {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        writeln!(
            f,
            "| what | ours | the other | ratio | limit |\n|---|---:|---:|---:|---:|"
        )?;
        for row in &self.0 {
            let (theirs, ratio) = match row.theirs {
                Some(theirs) => (
                    format!("{theirs:.1?}"),
                    format!("{:.2}", row.ours.as_secs_f64() / theirs.as_secs_f64()),
                ),
                None => (String::new(), String::new()),
            };
            writeln!(
                f,
                "| {} | {:.1?} | {theirs} | {ratio} | {} |",
                row.what, row.ours, row.limit
            )?;
        }
        Ok(())
    }
}

/// The middle one.
pub(crate) fn median(mut samples: Vec<Duration>) -> Duration {
    samples.sort();
    samples[samples.len() / 2]
}

/// Medians of two things done in turn. Each closure says how long its own part took, so that what
/// has to be prepared does not count.
pub(crate) fn in_turn(
    rounds: usize,
    mut ours: impl FnMut() -> Duration,
    mut theirs: impl FnMut() -> Duration,
) -> (Duration, Duration) {
    ours();
    theirs();
    let (mut a, mut b) = (Vec::new(), Vec::new());
    for _ in 0..rounds {
        a.push(ours());
        b.push(theirs());
    }
    (median(a), median(b))
}

/// How long something took.
pub(crate) fn timed<T>(work: impl FnOnce() -> T) -> Duration {
    let start = Instant::now();
    let out = work();
    let took = start.elapsed();
    drop(out);
    took
}
