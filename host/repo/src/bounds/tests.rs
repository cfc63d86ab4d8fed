use std::time::Duration;

use super::*;
use crate::fork::HeadSpec;
use crate::fork_testing::Lab;
use crate::testrepo::TestRepo;
use crate::{Limits, Repo};

fn late() -> Bounds {
    Bounds {
        deadline: Some(Instant::now() - Duration::from_millis(1)),
        ..Bounds::default()
    }
}

fn given_up() -> Bounds {
    Bounds {
        cancel: Some(Arc::new(AtomicBool::new(true))),
        ..Bounds::default()
    }
}

/// Room for so many bytes and inodes beside what `root` has already.
fn room(root: &std::path::Path, bytes: u64, inodes: u64) -> Budget {
    let root = warren_disk::open_root(root).unwrap();
    let used = warren_disk::usage::usage(&root).unwrap();
    let quota = warren_disk::budget::Quota {
        bytes: Some(used.bytes + bytes),
        inodes: Some(used.files + used.dirs + inodes),
    };
    Budget::new(root, quota, None)
}

#[test]
fn work_whose_time_is_up_ends_wherever_it_is() {
    let repo = TestRepo::new();
    for (bounds, code) in [(late(), "Timeout"), (given_up(), "Cancelled")] {
        let opened = Repo::open(&repo.root(), &repo.path(), bounds.clone());
        assert_eq!(opened.unwrap_err().code(), code);
        // Time runs out while it is open.
        let mut open = repo.open().unwrap();
        open.bounds = bounds;
        let status = open.status(Limits::default());
        assert_eq!(status.unwrap_err().code(), code);
        let outbox = repo.outbox();
        let snapshot = open.snapshot(&outbox, &repo.options());
        assert_eq!(snapshot.unwrap_err().code(), code);
        let commit = open.commit_all(&outbox, "x", Limits::default());
        assert_eq!(commit.unwrap_err().code(), code);
    }
}

#[test]
fn a_fork_ends_with_its_time_and_its_room() {
    let lab = Lab::new();
    lab.write(&[("a", &"x".repeat(10_000)), ("d/b", "y")]);
    let head = || HeadSpec::Branch {
        name: "main".into(),
        commit: lab.commit_and_push("first"),
        upstream: None,
    };
    let fork = |name: &str, bounds| lab.fork_within(name, head(), bounds).map(drop);
    let code = |result: Result<(), RepoError>| result.unwrap_err().code();
    assert_eq!(code(fork("late", late())), "Timeout");
    assert_eq!(code(fork("cancelled", given_up())), "Cancelled");
    let within = |name: &str, bytes, inodes| {
        let path = lab.path().join(name);
        std::fs::create_dir(&path).unwrap();
        Bounds {
            root: room(&path, bytes, inodes),
            ..Bounds::default()
        }
    };
    let bytes = within("bytes", 40_000, 1_000);
    assert_eq!(code(fork("bytes", bytes)), "NoSpace");
    assert!(!lab.path().join("bytes/a").exists());
    let inodes = within("inodes", 1 << 20, 20);
    assert_eq!(code(fork("inodes", inodes)), "NoSpace");
    let fits = within("fits", 1 << 20, 1_000);
    fork("fits", fits.clone()).unwrap();
    // What was taken is what is there, or more.
    let taken = fits.root.used().unwrap();
    let path = warren_disk::open_root(&lab.path().join("fits")).unwrap();
    let there = fits.root.remeasure(&path).unwrap();
    assert!(
        taken.bytes >= there.bytes - 64 * 1024,
        "{taken:?} {there:?}"
    );
    assert!(taken.inodes >= there.inodes, "{taken:?} {there:?}");
}

#[test]
fn a_snapshot_asks_for_room_in_the_store() {
    let repo = TestRepo::new();
    repo.write("new.txt", &"n".repeat(5_000));
    let mut open = repo.open().unwrap();
    let outbox = repo.outbox();
    open.bounds.store = room(outbox.path(), 4_000, 100);
    let snapshot = open.snapshot(&outbox, &repo.options());
    assert_eq!(snapshot.unwrap_err().code(), "NoSpace");
    open.bounds.store = room(outbox.path(), 1 << 20, 100);
    open.snapshot(&outbox, &repo.options()).unwrap();
}
