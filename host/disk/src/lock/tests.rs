use super::*;
use crate::testing::{child, open, place, scratch};
use std::fs;
use std::io::{BufRead as _, BufReader};
use std::os::unix::fs::{MetadataExt as _, symlink};
use std::process::Stdio;
use std::sync::atomic::{AtomicU32, Ordering};

const LONG: Duration = Duration::from_secs(60);

#[test]
fn sharers_go_together_and_one_alone() {
    let tmp = scratch();
    let dir = open(tmp.path());
    let one = Lock::shared(&dir, "l", LONG).unwrap();
    let two = Lock::try_shared(&dir, "l").unwrap().unwrap();
    assert!(Lock::try_exclusive(&dir, "l").unwrap().is_none());
    drop((one, two));
    let alone = Lock::try_exclusive(&dir, "l").unwrap().unwrap();
    assert!(Lock::try_shared(&dir, "l").unwrap().is_none());
    assert!(Lock::try_exclusive(&dir, "l").unwrap().is_none());
    drop(alone);
    let meta = fs::metadata(tmp.path().join("l")).unwrap();
    assert_eq!((meta.mode() & 0o777, meta.len()), (0o600, 0));
}

#[test]
fn a_wait_ends_typed() {
    let tmp = scratch();
    let dir = open(tmp.path());
    let _held = Lock::exclusive(&dir, "l", LONG).unwrap();
    let timeout = Duration::from_millis(30);
    for error in [
        Lock::shared(&dir, "l", timeout).unwrap_err(),
        Lock::exclusive(&dir, "l", timeout).unwrap_err(),
        Lock::exclusive(&dir, "l", Duration::ZERO).unwrap_err(),
    ] {
        assert_eq!(error.code(), "LockTimedOut");
        assert!(error.to_string().starts_with("`l` is still locked"));
    }
}

#[test]
fn only_one_thread_at_a_time_is_alone() {
    let tmp = scratch();
    let dir = open(tmp.path());
    let (inside, total) = (AtomicU32::new(0), AtomicU32::new(0));
    std::thread::scope(|scope| {
        for _ in 0..8 {
            scope.spawn(|| {
                for _ in 0..20 {
                    let _lock = Lock::exclusive(&dir, "l", LONG).unwrap();
                    assert_eq!(inside.fetch_add(1, Ordering::SeqCst), 0);
                    total.fetch_add(1, Ordering::SeqCst);
                    std::thread::yield_now();
                    inside.fetch_sub(1, Ordering::SeqCst);
                }
            });
        }
    });
    assert_eq!(total.into_inner(), 160);
}

#[test]
fn another_process_holds_it_until_it_dies() {
    let tmp = scratch();
    let dir = open(tmp.path());
    let mut holder = child("lock::tests::hold_in_a_child", tmp.path())
        .stdin(Stdio::piped())
        .stdout(Stdio::piped())
        .spawn()
        .unwrap();
    let said = BufReader::new(holder.stdout.take().unwrap());
    assert!(said.lines().any(|line| line.unwrap().contains("held")));
    assert!(Lock::try_shared(&dir, "l").unwrap().is_none());
    holder.kill().unwrap();
    holder.wait().unwrap();
    assert!(Lock::try_exclusive(&dir, "l").unwrap().is_some());
}

#[test]
#[ignore = "run by `another_process_holds_it_until_it_dies` in a process of its own"]
fn hold_in_a_child() {
    use std::io::Write as _;
    let Some(root) = place() else { return };
    let _lock = Lock::exclusive(&open(&root), "l", LONG).unwrap();
    writeln!(std::io::stdout(), "held").unwrap();
    // Until it is killed, or the test that waits for it is gone.
    std::io::stdin().lines().for_each(drop);
}

#[test]
fn a_file_that_was_taken_away_is_noticed() {
    let tmp = scratch();
    let dir = open(tmp.path());
    let file = super::open(&dir, "l").unwrap();
    assert!(still_there(&dir, "l", &file).unwrap());
    fs::rename(tmp.path().join("l"), tmp.path().join("m")).unwrap();
    assert!(!still_there(&dir, "l", &file).unwrap());
    fs::write(tmp.path().join("l"), "").unwrap();
    assert!(!still_there(&dir, "l", &file).unwrap());
}

#[test]
fn only_a_regular_file_is_locked() {
    let tmp = scratch();
    let dir = open(tmp.path());
    symlink("elsewhere", tmp.path().join("link")).unwrap();
    fs::create_dir(tmp.path().join("d")).unwrap();
    let fifo = tmp.path().join("fifo");
    rustix::fs::mkfifoat(rustix::fs::CWD, &fifo, Mode::RWXU).unwrap();
    for bad in ["link", "d", "fifo", "../x", ""] {
        let error = Lock::exclusive(&dir, bad, LONG).unwrap_err();
        assert_eq!(error.code(), "LockUnusable", "{bad}");
    }
    assert!(!tmp.path().join("elsewhere").exists());
}

#[test]
fn a_retired_lock_leaves_no_file_and_excludes_all_the_same() {
    let tmp = scratch();
    let dir = open(tmp.path());
    let inside = AtomicU32::new(0);
    std::thread::scope(|scope| {
        for _ in 0..4 {
            scope.spawn(|| {
                for _ in 0..50 {
                    let lock = Lock::exclusive(&dir, "l", LONG).unwrap();
                    assert_eq!(inside.fetch_add(1, Ordering::SeqCst), 0);
                    std::thread::yield_now();
                    inside.fetch_sub(1, Ordering::SeqCst);
                    lock.retire(&dir, "l").unwrap();
                }
            });
        }
    });
    assert_eq!(fs::read_dir(tmp.path()).unwrap().count(), 0);
}
