//! What a child writes and reads.

use std::fs;

use warren_process::{OutputCaps, OutputStream};

use crate::kit::{Place, launcher, launchers};

const MIB: usize = 1024 * 1024;

#[tokio::test]
async fn a_mebibyte_on_each_stream_in_either_order() {
    let place = Place::new();
    for (first, second) in [("1", "2"), ("2", "1")] {
        let script = format!(
            "head -c {MIB} /dev/zero >&{first}; head -c {MIB} /dev/zero >&{second}; exit 7"
        );
        let output = place.run(&script).await.unwrap();
        assert_eq!(output.exit_code, 7);
        for stream in [&output.stdout, &output.stderr] {
            assert_eq!(stream.bytes.len(), MIB);
            assert!(!stream.truncated());
        }
    }
}

#[tokio::test]
async fn of_a_flood_the_tail_is_kept_and_memory_stays_flat() {
    const FLOOD_BYTES: u64 = 200_000_000;
    const KIB_MAX: u64 = 16 * 1024;
    let place = Place::new();
    let mut command = place.script(&format!("yes 0123456789 | head -c {FLOOD_BYTES}; echo END"));
    command.output_caps = OutputCaps {
        stdout_bytes: 100_000,
        stderr_bytes: 10,
    };
    let (mut frames, mut live_bytes, mut peak_kib) = (0_u32, 0, 0);
    let mut sink = |stream: OutputStream, bytes: &[u8]| {
        assert_eq!(stream, OutputStream::Stdout);
        frames += 1;
        live_bytes += bytes.len() as u64;
        // Not each time: a slow sink would itself keep the frames few.
        if frames < 20 || frames.is_multiple_of(64) {
            let peaks = launchers().into_iter().map(peak_of);
            peak_kib = peaks.fold(peak_kib, u64::max);
        }
    };
    let output = launcher(true).run(command, Some(&mut sink)).await.unwrap();
    assert_eq!(output.stdout.total_bytes, FLOOD_BYTES + 4);
    assert_eq!(output.stdout.bytes.len(), 100_000);
    assert!(output.stdout.truncated() && !output.stderr.truncated());
    assert!(output.stdout.text().ends_with("END\n"));
    assert!(
        0 < live_bytes && live_bytes < FLOOD_BYTES / 10,
        "{live_bytes}"
    );
    assert!(0 < peak_kib && peak_kib < KIB_MAX, "{peak_kib} KiB");
}

fn peak_of(pid: i32) -> u64 {
    let status = fs::read_to_string(format!("/proc/{pid}/status")).unwrap_or_default();
    let peak = status.lines().find_map(|line| line.strip_prefix("VmHWM:"));
    peak.and_then(|text| text.split_whitespace().next()?.parse().ok())
        .unwrap_or(0)
}

#[tokio::test]
async fn output_is_told_while_the_child_runs() {
    let place = Place::new();
    // The child goes on only when the sink has seen its line.
    let command = place.script("echo one; until [ -e go ]; do sleep 0.01; done; echo two >&2");
    let go = place.path().join("go");
    let mut seen = Vec::new();
    let mut sink = |stream, bytes: &[u8]| {
        seen.push((stream, bytes.to_vec()));
        fs::write(&go, "").unwrap();
    };
    launcher(true).run(command, Some(&mut sink)).await.unwrap();
    assert_eq!(seen[0], (OutputStream::Stdout, b"one\n".to_vec()));
}

#[tokio::test]
async fn input_arrives_whole_or_is_left_alone() {
    let place = Place::new();
    let input: Vec<u8> = (0..MIB).map(|n| n as u8).collect();
    let mut command = place.script("exec cat");
    command.stdin = Some(input.clone());
    let output = launcher(true).run(command, None).await.unwrap();
    assert_eq!(output.stdout.bytes, input);
    for script in ["exit 3", "exec <&-; sleep 0.05; exit 3"] {
        let mut command = place.script(script);
        command.stdin = Some(input.clone());
        let output = launcher(true).run(command, None).await.unwrap();
        assert_eq!(output.exit_code, 3);
    }
    let mut command = place.script("exec cat");
    command.stdin = Some(Vec::new());
    let output = launcher(true).run(command, None).await.unwrap();
    assert_eq!(output.stdout.total_bytes, 0);
}
