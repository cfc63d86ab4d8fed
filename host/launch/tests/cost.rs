//! What confinement costs. Prints; asserts nothing about time.

#[path = "launch/kit.rs"]
#[expect(dead_code, reason = "shared with the other test programs")]
mod kit;

use std::time::{Duration, Instant};

use kit::{Place, launcher};
use warren_process::Command;

const ROUNDS: usize = 60;

#[tokio::test]
#[ignore = "a measurement: cargo test -p warren-launch --test cost -- --ignored --nocapture"]
async fn spawns_confined_and_not_from_a_small_and_a_large_host() {
    measure("small host").await;
    // Touched, so that it is there.
    let ballast = vec![1_u8; 4 << 30];
    measure("host of 4 GiB").await;
    assert_eq!(
        ballast
            .iter()
            .step_by(1 << 20)
            .map(|&b| u64::from(b))
            .sum::<u64>(),
        4096
    );
}

async fn measure(host: &str) {
    let place = Place::new();
    let mut times = [Vec::new(), Vec::new()];
    // In turns, so that whatever else the machine does slows both.
    for _ in 0..ROUNDS {
        for (times, command) in times
            .iter_mut()
            .zip([place.script(":"), place.confined(":")])
        {
            times.push(time(command).await);
        }
    }
    let [plain, confined] = times.map(|mut times| {
        times.sort();
        [times[ROUNDS / 2], times[ROUNDS * 9 / 10]]
    });
    #[expect(clippy::print_stdout, reason = "it is what this is for")]
    {
        println!("{host}: p50, p90 unconfined {plain:?}, confined {confined:?}");
        println!(
            "{host}: p50 {:?} more",
            confined[0].saturating_sub(plain[0])
        );
    }
}

async fn time(command: Command<'_>) -> Duration {
    let start = Instant::now();
    let output = launcher(true).run(command, None).await.unwrap();
    assert_eq!(output.exit_code, 0);
    start.elapsed()
}
