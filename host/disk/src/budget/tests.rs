use super::*;
use crate::testing::{open, scratch};
use proptest::prelude::*;
use std::fs;

fn quota(bytes: u64, inodes: u64) -> Quota {
    Quota {
        bytes: Some(bytes),
        inodes: Some(inodes),
    }
}

fn budget(root: &std::path::Path, quota: Quota) -> Budget {
    Budget::new(open(root), quota, None)
}

/// A disk that is full from the first byte on.
const FULL: space::Limits = space::Limits {
    soft_percent: 0,
    hard_percent: 0,
};

#[test]
fn what_is_there_counts_and_what_goes_comes_back() {
    let tmp = scratch();
    fs::write(tmp.path().join("old"), vec![1; 64 * 1024]).unwrap();
    let there = Used::from(usage(&open(tmp.path())).unwrap());
    let budget = budget(tmp.path(), quota(there.bytes + 8192, 2));
    assert!(budget.needs_walk() && budget.used().is_none());
    budget.take(8192, 1).unwrap();
    assert_eq!(
        budget.used().unwrap(),
        Used {
            bytes: there.bytes + 8192,
            inodes: 2
        }
    );
    let short = budget.take(1, 0).unwrap_err();
    assert!(
        matches!(
            short,
            Short::Quota {
                resource: Resource::Bytes,
                wanted: 1,
                ..
            }
        ),
        "{short:?}"
    );
    let short = budget.take(0, 1).unwrap_err();
    assert!(matches!(
        short,
        Short::Quota {
            resource: Resource::Inodes,
            limit: 2,
            ..
        }
    ));
    assert_eq!(short.code(), "WorkspaceQuotaExceeded");
    assert_eq!(io::Error::from(short).kind(), io::ErrorKind::QuotaExceeded);
    assert_eq!(budget.refusals().quota, 2);
    assert_eq!(
        budget.refusals().last,
        Some(Met::Quota(Resource::Inodes, 2))
    );
    budget.give_back(4096, 1);
    budget.clone().take(4096, 1).unwrap();
}

#[test]
fn what_others_wrote_counts_once_it_is_measured() {
    let tmp = scratch();
    let budget = budget(tmp.path(), quota(1 << 20, 10));
    budget.take(1000, 1).unwrap();
    fs::write(tmp.path().join("a"), vec![1; 900_000]).unwrap();
    fs::hard_link(tmp.path().join("a"), tmp.path().join("b")).unwrap();
    let found = budget.remeasure(&open(tmp.path())).unwrap();
    assert_eq!(budget.used(), Some(found));
    assert_eq!(found.inodes, 1);
    assert!(budget.take(1 << 18, 0).is_err() && budget.take(1 << 16, 0).is_ok());
    // Over the limit already: said at once, not only when more is asked for.
    fs::write(tmp.path().join("c"), vec![1; 900_000]).unwrap();
    budget.check().unwrap();
    budget.remeasure(&open(tmp.path())).unwrap();
    assert!(matches!(budget.check(), Err(Short::Quota { .. })));
}

#[test]
fn what_is_held_outlives_a_walk_and_goes_back_once() {
    let tmp = scratch();
    let base = Used::from(usage(&open(tmp.path())).unwrap()).bytes;
    let budget = budget(tmp.path(), quota(base + 100_000, 10));
    let used = || budget.used().unwrap().bytes - base;
    let mut held = budget.reserve(60_000).unwrap();
    budget.remeasure(&open(tmp.path())).unwrap();
    assert_eq!(used(), 60_000);
    assert!(held.more(50_000).is_err() && held.left() == 60_000);
    held.written(10_000);
    assert_eq!((used(), held.left()), (60_000, 50_000));
    held.release(20_000);
    assert_eq!((used(), held.left()), (40_000, 30_000));
    held.written(40_000);
    drop(held);
    assert_eq!(used(), 50_000);
}

#[test]
fn a_sparse_file_counts_what_it_takes() {
    let tmp = scratch();
    let file = fs::File::create(tmp.path().join("sparse")).unwrap();
    file.set_len(1 << 40).unwrap();
    let budget = budget(tmp.path(), quota(1 << 20, 10));
    budget.take(4096, 0).unwrap();
    assert!(budget.used().unwrap().bytes < 1 << 20);
}

#[test]
fn a_disk_at_its_limit_refuses_and_says_so() {
    let tmp = scratch();
    let budget = Budget::new(open(tmp.path()), Quota::default(), Some(FULL));
    assert!(!budget.is_unlimited() && !budget.needs_walk());
    let short = budget.take(1, 0).unwrap_err();
    assert!(
        matches!(
            short,
            Short::Disk {
                limit_percent: 0,
                ..
            }
        ),
        "{short:?}"
    );
    assert_eq!(io::Error::from(short).kind(), io::ErrorKind::StorageFull);
    assert_eq!(budget.refusals().disk, 1);
}

#[test]
fn the_disk_is_judged_by_what_it_would_be() {
    let tmp = scratch();
    let space = Space::of(&open(tmp.path())).unwrap();
    let limits = space::Limits {
        soft_percent: 100,
        hard_percent: space.percent_used().saturating_add(1).min(100),
    };
    let budget = Budget::new(open(tmp.path()), Quota::default(), Some(limits));
    // All that is left at once; before the first look and after it.
    assert!(matches!(
        budget.take(space.bytes_available, 0),
        Err(Short::Disk { .. })
    ));
    budget.charge(1, 1);
    assert!(matches!(
        budget.take(space.bytes_available, 0),
        Err(Short::Disk { .. })
    ));
}

#[test]
fn without_limits_nothing_is_measured() {
    let tmp = scratch();
    let free = budget(tmp.path(), Quota::default());
    free.take(u64::MAX, u64::MAX).unwrap();
    assert!(free.is_unlimited() && free.used().is_none());
    Budget::unlimited().take(u64::MAX, u64::MAX).unwrap();
}

#[test]
fn threads_never_take_more_than_there_is() {
    let tmp = scratch();
    let base = Used::from(usage(&open(tmp.path())).unwrap()).bytes;
    let budget = budget(tmp.path(), quota(base + 1000, 1000));
    let taken: u64 = std::thread::scope(|scope| {
        let take = || (0..1000).filter(|_| budget.take(1, 1).is_ok()).count() as u64;
        let threads: Vec<_> = (0..4).map(|_| scope.spawn(take)).collect();
        threads
            .into_iter()
            .map(|thread| thread.join().unwrap())
            .sum()
    });
    assert_eq!(taken, 1000);
}

#[derive(Debug, Clone)]
enum Step {
    Take(u64, u64),
    GiveBack,
    Remeasure,
}

fn step() -> impl Strategy<Value = Step> {
    prop_oneof![
        4 => (0..3000_u64, 0..4_u64).prop_map(|(bytes, inodes)| Step::Take(bytes, inodes)),
        2 => Just(Step::GiveBack),
        1 => Just(Step::Remeasure),
    ]
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 64, ..ProptestConfig::default() })]

    /// As one who counts with a list of what was taken.
    #[test]
    fn counts_as_a_list_does(steps in proptest::collection::vec(step(), 0..60)) {
        let tmp = scratch();
        let base = usage(&open(tmp.path())).unwrap().bytes;
        let budget = budget(tmp.path(), quota(base + 10_000, 20));
        let mut held: Vec<(u64, u64)> = Vec::new();
        for step in steps {
            let sum = held.iter().fold((0, 0), |sum, one| (sum.0 + one.0, sum.1 + one.1));
            match step {
                Step::Take(bytes, inodes) => {
                    let fits = sum.0 + bytes <= 10_000 && sum.1 + inodes <= 20;
                    prop_assert_eq!(budget.take(bytes, inodes).is_ok(), fits);
                    if fits {
                        held.push((bytes, inodes));
                    }
                }
                Step::GiveBack => if let Some((bytes, inodes)) = held.pop() {
                    budget.give_back(bytes, inodes);
                },
                // Nothing was written: the truth is an empty directory.
                Step::Remeasure => {
                    budget.remeasure(&open(tmp.path())).unwrap();
                    held.clear();
                }
            }
        }
    }
}
