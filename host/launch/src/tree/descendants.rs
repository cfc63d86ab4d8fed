//! Killing a tree without a namespace: whatever daemonises becomes a child of the launcher, the
//! subreaper, so that nothing is left when it has no children.

use std::collections::HashMap;
use std::fs;
use std::thread::sleep;
use std::time::{Duration, Instant};

use rustix::io::Errno;
use rustix::process::{Pid, Signal, WaitOptions, getpid, kill_process, wait};

/// Between two rounds.
const PAUSE: Duration = Duration::from_millis(2);

/// Kills and reaps all descendants, those included that are started meanwhile. Says whether none
/// is left at the end.
pub(super) fn kill(end: Instant) -> bool {
    loop {
        for pid in descendants_of(getpid(), &parents()) {
            // It may be gone by now; the next round sees what is not.
            let _ = kill_process(pid, Signal::KILL);
        }
        loop {
            match wait(WaitOptions::NOHANG) {
                Ok(Some(_)) | Err(Errno::INTR) => {}
                Ok(None) => break,
                Err(error) => return error == Errno::CHILD,
            }
        }
        if Instant::now() >= end {
            return false;
        }
        sleep(PAUSE);
    }
}

/// Every process, with its parent.
fn parents() -> HashMap<i32, i32> {
    let entries = fs::read_dir("/proc").into_iter().flatten().flatten();
    entries
        .filter_map(|entry| {
            let pid = entry.file_name().to_str()?.parse().ok()?;
            let stat = fs::read(entry.path().join("stat")).ok()?;
            Some((pid, parent_in(&stat)?))
        })
        .collect()
}

/// The parent in a line of `/proc/<pid>/stat`: two fields behind the name, which is in parentheses
/// and may hold anything.
fn parent_in(stat: &[u8]) -> Option<i32> {
    let name_end = stat.iter().rposition(|&byte| byte == b')')?;
    let rest = std::str::from_utf8(&stat[name_end + 1..]).ok()?;
    rest.split_ascii_whitespace().nth(1)?.parse().ok()
}

/// The descendants, those nearest to the ancestor first: a shell must not see its children die and
/// say so.
fn descendants_of(ancestor: Pid, parents: &HashMap<i32, i32>) -> Vec<Pid> {
    let ancestor = ancestor.as_raw_pid();
    let depth_of = |&pid: &i32| {
        let mut at = pid;
        // A chain that was read while it changed may run in a circle.
        for depth in 0..parents.len() {
            at = *parents.get(&at)?;
            if at == ancestor {
                return Some((depth, Pid::from_raw(pid)?));
            }
        }
        None
    };
    let mut found: Vec<_> = parents.keys().filter_map(depth_of).collect();
    found.sort_by_key(|&(depth, pid)| (depth, pid.as_raw_pid()));
    found.into_iter().map(|(_, pid)| pid).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_name_can_not_fake_a_parent() {
        assert_eq!(parent_in(b"7 (x) S 1 ) R 42 7 7 0"), Some(42));
        assert_eq!(parent_in(b"7 (a) S 9 \xff) S 3 7"), Some(3));
        assert_eq!(parent_in(b"7 (x"), None);
    }

    #[test]
    fn descendants_are_found_at_any_depth_nearest_first() {
        let parents = HashMap::from([(2, 1), (3, 4), (4, 2), (9, 1), (10, 11), (11, 10)]);
        let found = descendants_of(Pid::from_raw(2).unwrap(), &parents);
        assert_eq!(found, [4, 3].map(|pid| Pid::from_raw(pid).unwrap()));
    }
}
