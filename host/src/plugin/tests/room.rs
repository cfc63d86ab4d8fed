//! What guests make the host keep in memory, measured in a process of its own.

use std::process::Command;

use futures_util::future::join_all;

use super::*;

const MIB: u64 = 1 << 20;

fn child(test: &str) {
    let output = Command::new(std::env::current_exe().unwrap())
        .args([
            &format!("plugin::tests::room::{test}"),
            "--exact",
            "--ignored",
            "--nocapture",
        ])
        .env_clear()
        .env("PATH", std::env::var_os("PATH").unwrap_or_default())
        .envs(
            ["HOME", "CARGO_HOME", "RUSTUP_HOME", "CARGO"]
                .into_iter()
                .filter_map(|name| Some((name, std::env::var_os(name)?))),
        )
        .output()
        .unwrap();
    let text = String::from_utf8_lossy(&output.stdout);
    assert!(
        output.status.success() && text.contains("1 passed"),
        "{text}{}",
        String::from_utf8_lossy(&output.stderr)
    );
}

fn status(key: &str) -> u64 {
    let text = std::fs::read_to_string("/proc/self/status").unwrap();
    let line = text.lines().find(|line| line.starts_with(key)).unwrap();
    let kib: u64 = line.split_whitespace().nth(1).unwrap().parse().unwrap();
    kib * 1024
}

/// Most memory that the host had during `work`, over what it had before.
async fn peak(work: impl Future<Output = ()>) -> u64 {
    // Forgets the peak so far.
    std::fs::write("/proc/self/clear_refs", "5").unwrap();
    let before = status("VmRSS:");
    work.await;
    status("VmHWM:").saturating_sub(before)
}

#[test]
fn what_a_guest_hands_over_is_bounded() {
    child("hands_over");
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
#[ignore = "in a process of its own"]
async fn hands_over() {
    let mut roomy = grants();
    roomy.limits.memory_bytes = 256 << 20;
    roomy.limits.wall = Duration::from_secs(300);
    let world = World::with(hostile(), roomy).await;
    let most = peak(async {
        for (scenario, code) in [
            ("random", "HandlerTrapped"),
            ("random-list", "HandlerLimit"),
            ("handles", "HandlerLimit"),
            ("huge-log", "HandlerLimit"),
            ("huge-url", "HandlerLimit"),
            ("huge-result", "HandlerLimit"),
        ] {
            let error = world.play(scenario).await.unwrap_err();
            assert_eq!(error.code(), code, "{scenario}: {error}");
        }
        let current = metadata(json!({ "scenario": "most-losses" }));
        let suspended = world.runtime.suspend(&world.plugin, world.cx(), &current);
        assert_eq!(suspended.await.unwrap_err().code(), "HandlerLimit");
        world.play("flood-log").await.unwrap();
        world.play("flood-stdio").await.unwrap_err();
        world.still_works().await;
    })
    .await;
    // The guest's own memory, and some for what is copied.
    assert!(most < (256 + 64) * MIB, "{} MiB", most / MIB);
}

#[test]
fn fifty_growing_guests_stay_under_the_sum() {
    child("fifty_grow");
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
#[ignore = "in a process of its own"]
async fn fifty_grow() {
    let mut roomy = grants();
    roomy.limits.memory_bytes = 256 << 20;
    roomy.limits.wall = Duration::from_secs(120);
    let mut config = config(&[hostile()], roomy);
    config.pool.memory_bytes_total = 256 << 20;
    let world = World::of(config, "hostile").await;
    let most = peak(async {
        let grow = (0..50).map(|n| {
            let project = format!("p{}", n % 5);
            let world = &world;
            async move { world.play_for(&project, "allocate").await.unwrap_err() }
        });
        let (ended, other) = tokio::join!(join_all(grow), world.play_for("q", "none"));
        for error in ended {
            assert_eq!(error.code(), "HandlerLimit", "{error}");
        }
        assert_eq!(other.unwrap()["scenario"], "none");
    })
    .await;
    assert!(most < (256 + 96) * MIB, "{} MiB", most / MIB);
}
