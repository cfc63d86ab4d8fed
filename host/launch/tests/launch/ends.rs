//! How children end: nothing outlives the call, however it ends.

use std::env;
use std::process::{Command as StdCommand, Stdio};
use std::time::Duration;

use rustix::process::{Pid, Signal, kill_process};
use warren_process::{Layer, ProcessError};

use crate::kit::{BOTH, Place, launcher, processes};

/// Leaves daemons of several kinds behind, all of which hold the output.
const DAEMONS: &str =
    "setsid sleep 3600 & (setsid sh -c 'trap \"\" TERM HUP INT; sleep 3600 & wait' &);
    (sleep 3600 &); i=0; while [ $i -lt 20 ]; do setsid sleep 3600 & i=$((i+1)); done; echo up;";

/// For the helper process of a test: the mark of its children.
const HELPER: &str = "WARREN_TEST_HELPER";

#[tokio::test]
async fn daemons_that_hold_the_output_do_not_delay_the_answer_and_are_gone() {
    for namespaces in BOTH {
        let place = Place::new();
        let command = place.script(&format!("{DAEMONS} exit 4"));
        let output = launcher(namespaces).run(command, None).await.unwrap();
        assert_eq!(
            (output.exit_code, output.stdout.text().as_str()),
            (4, "up\n")
        );
        assert_eq!(place.alive(), [0; 0], "namespaces: {namespaces}");
    }
}

#[tokio::test]
async fn at_the_deadline_all_are_killed() {
    for namespaces in BOTH {
        let place = Place::new();
        let mut command = place.script(&format!("echo early; {DAEMONS} trap '' TERM; sleep 3600"));
        command.deadline = Duration::from_secs(2);
        let error = launcher(namespaces).run(command, None).await.unwrap_err();
        let ProcessError::Timeout { tail } = error else {
            panic!("{error}");
        };
        assert!(tail.starts_with("early\n"), "{tail}");
        assert_eq!(place.alive(), [0; 0], "namespaces: {namespaces}");
    }
}

#[tokio::test]
async fn a_signal_is_told_by_number() {
    let place = Place::new();
    for namespaces in BOTH {
        // Of these, a process that were pid 1 of its namespace would feel none.
        for number in [6, 9, 13, 15] {
            let command = place.script(&format!("echo why >&2; kill -{number} $$; sleep 60"));
            let error = launcher(namespaces).run(command, None).await.unwrap_err();
            let ProcessError::Killed { signal, tail } = error else {
                panic!("{error}");
            };
            assert_eq!((signal, tail.as_str()), (number, "why\n"));
        }
    }
}

#[tokio::test]
async fn a_dropped_future_takes_the_tree_along() {
    for namespaces in BOTH {
        let place = Place::new();
        let launcher = launcher(namespaces);
        let run = launcher.run(place.script(&format!("{DAEMONS} wait")), None);
        tokio::select! {
            output = run => panic!("{output:?}"),
            () = place.until_alive(|count| count > 20) => {}
        }
        place.until_alive(|count| count == 0).await;
    }
}

#[tokio::test]
async fn a_killed_client_takes_the_tree_along() {
    for namespaces in BOTH {
        let place = Place::new();
        let mut client = StdCommand::new(env::current_exe().unwrap())
            .args(["--exact", "ends::helper_client", "--ignored"])
            .env(HELPER, format!("{namespaces} {}", place.mark))
            .stdout(Stdio::null())
            .stderr(Stdio::null())
            .spawn()
            .unwrap();
        place.until_alive(|count| count > 20).await;
        client.kill().unwrap();
        client.wait().unwrap();
        place.until_alive(|count| count == 0).await;
    }
}

#[tokio::test]
#[ignore = "the helper of another test"]
async fn helper_client() {
    let Ok(task) = env::var(HELPER) else { return };
    let (namespaces, mark) = task.split_once(' ').unwrap();
    let place = Place::with_mark(mark.to_owned());
    let command = place.script(&format!("{DAEMONS} wait"));
    let launcher = launcher(namespaces.parse().unwrap());
    panic!("{:?}", launcher.run(command, None).await);
}

#[tokio::test]
async fn a_killed_launcher_is_an_error_and_takes_its_namespace_along() {
    let place = Place::new();
    let probe = place.run("exit 0").await.unwrap();
    let launcher = launcher(true);
    let run = launcher.run(place.script(&format!("{DAEMONS} wait")), None);
    let kill = async {
        place.until_alive(|count| count > 20).await;
        let pid = launcher_of(place.alive()[0]);
        kill_process(Pid::from_raw(pid).unwrap(), Signal::KILL).unwrap();
    };
    let (result, ()) = tokio::join!(run, kill);
    let error = result.unwrap_err();
    assert!(matches!(error, ProcessError::Failed { .. }), "{error}");
    if probe.isolation.has(Layer::PidNamespace) {
        place.until_alive(|count| count == 0).await;
    } else {
        for pid in place.alive() {
            // May be gone by now.
            let _ = kill_process(Pid::from_raw(pid).unwrap(), Signal::KILL);
        }
    }
}

/// The ancestor of a process that is a child of this one.
fn launcher_of(mut pid: i32) -> i32 {
    let parents = processes();
    while parents[&pid] != std::process::id() as i32 {
        pid = parents[&pid];
    }
    pid
}
