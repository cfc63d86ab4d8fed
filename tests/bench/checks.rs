//! What it costs to ask whether something is allowed, and to write down that it was used.

use std::hint::black_box;
use std::time::{Duration, Instant};

use warren_audit::{AuditLog, Entry, Outcome, Settings, verify};
use warren_mirror::{RefPatterns, UrlPolicy};
use warren_model::{Endpoint, Endpoints, Target};
use warren_testkit::Work;

use crate::table::{Table, median};

const SAMPLES: usize = 2000;

/// Checks in one sample: one alone is too short for the clock.
const EACH: u32 = 20;

pub(crate) fn run(table: &mut Table) {
    let url = UrlPolicy::new(&["https://git.example/**", "ssh://**"]).expect("patterns");
    let refs = RefPatterns::new(&["refs/heads/**"]).expect("patterns");
    let index: Endpoint = "https://index.example".parse().expect("an endpoint");
    let servers = Endpoints::new(vec![index]);
    let server = Target::from_url("https://index.example/simple/x").expect("a URL");
    for (what, took) in [
        (
            "check: remote, 2 patterns (p50)",
            time(|| black_box(url.check(black_box("https://git.example/shop.git"))).is_ok()),
        ),
        (
            "check: ref (p50)",
            time(|| refs.allows(black_box("refs/heads/vance/suspend/a"))),
        ),
        (
            "check: server (p50)",
            time(|| servers.permit(black_box(&server)).is_some()),
        ),
    ] {
        table.time(what, "5 µs", took);
    }
    append(table);
}

fn time(mut check: impl FnMut() -> bool) -> Duration {
    let mut samples = Vec::with_capacity(SAMPLES);
    for _ in 0..SAMPLES {
        let start = Instant::now();
        for _ in 0..EACH {
            assert!(black_box(check()));
        }
        samples.push(start.elapsed() / EACH);
    }
    median(samples)
}

fn append(table: &mut Table) {
    let work = Work::new();
    let state = warren_disk::open_root(&work.dir("state")).expect("a directory");
    let log = AuditLog::open(&state, Settings::default()).expect("a log");
    let digest = "0".repeat(64);
    let entry = Entry {
        tenant: Some("default"),
        project: Some("shop"),
        dir_name: Some("frontend"),
        handler: Some("git"),
        plugin: Some(&digest),
        grant: Some("0123456789abcdef"),
        call: Some("init-0123456789abcdef"),
        target: Some("https://git.example/shop.git ref=refs/heads/main credential=acme"),
        duration_us: Some(1234),
        ..Entry::new("git", "push", Outcome::Ok)
    };
    let mut samples = Vec::with_capacity(SAMPLES);
    for _ in 0..SAMPLES {
        let start = Instant::now();
        log.append(&entry).expect("a record");
        samples.push(start.elapsed());
    }
    table.time("audit: append a record (p50)", "–", median(samples));
    let start = Instant::now();
    let found = verify(&state, None).expect("a log");
    let each = start.elapsed() / u32::try_from(found.records).unwrap_or(1);
    table.time("audit: verify, a record", "–", each);
}
