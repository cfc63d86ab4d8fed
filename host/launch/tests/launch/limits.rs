//! Hogs: one project's child runs into its limit, and another one's works meanwhile.

use std::time::Duration;

use warren_process::{Command, Layer, Output, ProcessError};

use crate::kit::{Place, launcher};

const MIB: u64 = 1024 * 1024;

/// Runs a hog, and children of another project until it has ended.
async fn beside(hog: Command<'_>) -> Result<Output, ProcessError> {
    let neighbour = Place::new();
    let hog_launcher = launcher(true);
    let mut hog = std::pin::pin!(hog_launcher.run(hog, None));
    let mut runs = 0;
    loop {
        let mut command = neighbour.confined("(true; true) & (true) & wait; echo fine");
        command.limits.processes = Some(20);
        command.limits.open_files = Some(64);
        command.limits.memory_bytes = Some(64 * MIB);
        let launcher = launcher(true);
        let work = launcher.run(command, None);
        let mut ended = None;
        let mut work = std::pin::pin!(work);
        let output = loop {
            tokio::select! {
                result = &mut hog, if ended.is_none() => ended = Some(result),
                output = &mut work => break output.unwrap(),
            }
        };
        assert_eq!(output.stdout.text(), "fine\n", "{}", output.stderr.text());
        runs += 1;
        if let Some(result) = ended {
            assert!(runs > 0);
            return result;
        }
    }
}

#[tokio::test]
async fn a_fork_bomb_fills_only_its_own_room() {
    let place = Place::new();
    let python = place.python("/usr/bin/python3");
    let bomb = "import os, time\nwhile True:\n  try: os.fork()\n  except OSError: time.sleep(0.01)";
    let mut command = place.command(&python, &["-I", "-c", bomb]);
    command.confinement = place.confinement();
    command.limits.processes = Some(100);
    command.deadline = Duration::from_secs(3);
    let error = beside(command).await.unwrap_err();
    assert!(matches!(error, ProcessError::Timeout { .. }), "{error:?}");
    assert_eq!(place.alive(), [0; 0]);

    let count = "import os\nn = 0\ntry:\n  while n < 500:\n    if os.fork() == 0: os.read(0, 1); \
        __import__('time').sleep(60)\n    n += 1\nexcept OSError as e: print(n, e.errno)";
    let mut command = place.command(&python, &["-I", "-c", count]);
    command.confinement = place.confinement();
    command.limits.processes = Some(50);
    let output = launcher(true).run(command, None).await.unwrap();
    assert_eq!(output.stdout.text(), "49 11\n", "{}", output.stderr.text());
    assert_eq!(
        output.limits_hit.processes,
        output.isolation.has(Layer::Cgroup)
    );
}

#[tokio::test]
async fn a_memory_hog_is_named_and_dies_alone() {
    let place = Place::new();
    let python = place.python("/usr/bin/python3");
    let hog =
        "import sys; print('start', flush=True)\na = []\nwhile True: a.append(bytearray(1 << 20))";
    let mut command = place.command(&python, &["-I", "-c", hog]);
    command.confinement = place.confinement();
    command.limits.memory_bytes = Some(100 * MIB);
    match beside(command).await {
        Err(error @ ProcessError::OutOfMemory { .. }) => {
            assert_eq!(error.code(), "ProcessOutOfMemory");
            assert!(error.hint().unwrap().contains("memory-bytes"));
        }
        // Without a cgroup, an allocation fails.
        Ok(output) => {
            assert!(!output.isolation.has(Layer::Cgroup));
            assert!(output.stderr.text().contains("MemoryError"));
        }
        Err(other) => panic!("{other:?}"),
    }
    // What is written to memory file systems counts, too; and they are of a size of their own.
    let script = "head -c 300000000 /dev/zero > /dev/shm/f; ls -l /dev/shm/f";
    let mut command = place.confined(script);
    command.limits.memory_bytes = Some(1024 * MIB);
    let output = beside(command).await.unwrap();
    if output.isolation.has(Layer::PrivateRoot) {
        assert!(
            output.stdout.text().contains(" 268435456 "),
            "{}",
            output.stdout.text()
        );
    }
}

#[tokio::test]
async fn open_files_and_large_files_end_at_their_limits() {
    let place = Place::new();
    let python = place.python("/usr/bin/python3");
    let hog = "a = []\ntry:\n  while True: a.append(open('/dev/null'))\nexcept OSError as e: print(e.errno)";
    let mut command = place.command(&python, &["-I", "-c", hog]);
    command.confinement = place.confinement();
    command.limits.open_files = Some(100);
    let output = beside(command).await.unwrap();
    assert_eq!(output.stdout.text(), "24\n", "{}", output.stderr.text());

    let mut command = place.confined("exec head -c 100000 /dev/zero > file");
    command.limits.file_bytes = Some(1000);
    let error = beside(command).await.unwrap_err();
    assert!(error.hint().unwrap().contains("size limit"), "{error}");
}

#[tokio::test]
async fn a_confined_flood_and_a_deadline_end_as_others_do() {
    let place = Place::new();
    let mut command = place.confined("setsid sleep 3600 & exec yes");
    command.deadline = Duration::from_secs(1);
    command.output_caps.stdout_bytes = 1000;
    let error = beside(command).await.unwrap_err();
    let ProcessError::Timeout { tail } = error else {
        panic!("{error}");
    };
    assert!(tail.ends_with("y\ny\n"));
    assert_eq!(place.alive(), [0; 0]);
}
