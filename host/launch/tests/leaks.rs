//! Many runs, one after the other: nothing adds up. In a program of its own, because it counts what
//! the process has.

#[path = "launch/kit.rs"]
#[expect(dead_code, reason = "shared with the other test program")]
mod kit;

use std::fs;

use kit::{BOTH, Place, launcher, launchers};

#[tokio::test]
async fn two_hundred_runs_leave_nothing() {
    let place = Place::new();
    for namespaces in BOTH {
        let launcher = launcher(namespaces);
        let mut before = None;
        for round in 0..100 {
            let command = place.script("setsid sleep 3600 & echo hello");
            let output = launcher.run(command, None).await.unwrap();
            assert_eq!(output.stdout.text(), "hello\n");
            if round == 2 {
                before = Some(count());
            }
        }
        assert_eq!(before, Some(count()), "descriptors and threads");
        assert_eq!(launchers(), [0; 0], "launchers, zombies included");
        assert_eq!(place.alive(), [0; 0]);
    }
}

fn count() -> [usize; 2] {
    ["fd", "task"].map(|what| fs::read_dir(format!("/proc/self/{what}")).unwrap().count())
}
