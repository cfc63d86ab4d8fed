//! Many lives of a RootDir, one after the other: nothing adds up. In a program of its own, because
//! it counts what the process has.

mod kit;

use std::path::Path;

use kit::{Place, key, temp};
use warren::service::DisposeOptions;

const ROUNDS: usize = 300;

/// Rounds until pools and caches are filled.
const WARM_UP: usize = 60;

#[derive(Debug, PartialEq, Eq)]
struct Count {
    descriptors: usize,
    threads: usize,
    /// Files and folders of the host, and in the workspace root.
    entries: usize,
}

fn entries(path: &Path) -> usize {
    let mut count = 0;
    for entry in std::fs::read_dir(path).unwrap() {
        let entry = entry.unwrap();
        count += 1;
        if entry.file_type().unwrap().is_dir() {
            count += entries(&entry.path());
        }
    }
    count
}

fn count(place: &Place) -> Count {
    let of_process = |what: &str| {
        std::fs::read_dir(format!("/proc/self/{what}"))
            .unwrap()
            .count()
    };
    Count {
        descriptors: of_process("fd"),
        threads: of_process("task"),
        entries: entries(&place.join("ws")) + entries(&place.join("state")),
    }
}

fn resident_kib() -> u64 {
    let status = std::fs::read_to_string("/proc/self/status").unwrap();
    let line = status.lines().find(|line| line.starts_with("VmRSS:"));
    line.unwrap()
        .split_whitespace()
        .nth(1)
        .unwrap()
        .parse()
        .unwrap()
}

#[test]
fn three_hundred_root_dirs_leave_nothing() {
    let runtime = tokio::runtime::Builder::new_multi_thread()
        .worker_threads(2)
        // Few, so that all of them exist after the warm-up.
        .max_blocking_threads(4)
        .enable_all()
        .build()
        .unwrap();
    runtime.block_on(async {
        let place = Place::new();
        let host = place.host().await;
        let key = key();
        host.init(&key).await.unwrap();
        let mut before = None;
        for round in 0..ROUNDS {
            // Half of them share a name, half have none.
            let label = (round % 2 == 0).then_some("work");
            let made = host.create_root_dir(&key, temp(label)).await.unwrap();
            let path = host.root_dir_path(&key, &made.dir_name).await.unwrap();
            std::fs::write(path.join("f"), "content").unwrap();
            let options = DisposeOptions::default();
            host.dispose_root_dir(&key, &made.dir_name, options)
                .await
                .unwrap();
            let gone = host.dispose_root_dir(&key, &made.dir_name, options).await;
            assert_eq!(gone.unwrap_err().code(), "RootDirNotFound");
            let gone = host.rebuild_venv(&key, &made.dir_name, None).await;
            assert_eq!(gone.unwrap_err().code(), "RootDirNotFound");
            if round == WARM_UP {
                before = Some((count(&place), resident_kib()));
            }
        }
        let (counted, resident) = before.unwrap();
        let after = count(&place);
        assert_eq!(after.entries, counted.entries);
        // Threads for blocking work come and go, and hold no descriptors.
        assert_eq!(after.descriptors, counted.descriptors);
        assert!(
            after.threads <= counted.threads + 4,
            "{counted:?} -> {after:?}"
        );
        let grown = resident_kib().saturating_sub(resident);
        assert!(grown < 16 * 1024, "{grown} KiB more than after the warm-up");
    });
}
