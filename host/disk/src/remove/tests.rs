use super::*;
use crate::testing::{
    Mount, Stop, as_nobody, child, is_root, make_deep, open, place, scratch, skipped,
};
use rustix::fs::{CWD, IFlags, RenameFlags, ioctl_setflags};
use std::fs::{self, File, Permissions};
use std::os::unix::ffi::OsStrExt;
use std::os::unix::fs::{PermissionsExt, symlink};
use std::os::unix::net::UnixListener;
use std::path::Path;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::{Duration, Instant};

fn make_tree(root: &Path) {
    fs::create_dir_all(root.join("a/b/c")).unwrap();
    fs::write(root.join("a/one"), vec![1; 10_000]).unwrap();
    fs::hard_link(root.join("a/one"), root.join("a/b/two")).unwrap();
    fs::write(root.join(std::ffi::OsStr::from_bytes(b"\xff\n%")), "").unwrap();
    symlink("missing", root.join("dangling")).unwrap();
    let fifo = root.join("a/fifo");
    rustix::fs::mkfifoat(CWD, &fifo, Mode::RWXU).unwrap();
    UnixListener::bind(root.join("s")).unwrap();
}

fn is_there(path: &Path) -> bool {
    path.symlink_metadata().is_ok()
}

#[test]
fn removes_all_kinds_and_follows_none() {
    let tmp = scratch();
    let keep = tmp.path().join("keep");
    make_tree(&keep);
    make_tree(&tmp.path().join("t"));
    symlink(&keep, tmp.path().join("t/a/b/c/out")).unwrap();
    symlink("../keep", tmp.path().join("t/up")).unwrap();
    let removed = remove_tree(&open(tmp.path()), "t").unwrap();
    assert_eq!((removed.files, removed.dirs), (8, 4));
    // The second name of a file frees it, not the first.
    assert!((10_000..20_000).contains(&removed.bytes), "{removed:?}");
    assert!(!is_there(&tmp.path().join("t")));
    assert!(is_there(&keep.join("a/b/two")) && is_there(&keep.join("a/b/c")));
}

#[test]
fn the_name_may_be_anything_or_nothing() {
    let tmp = scratch();
    let dir = open(tmp.path());
    fs::create_dir(tmp.path().join("keep")).unwrap();
    fs::write(tmp.path().join("f"), "").unwrap();
    symlink("keep", tmp.path().join("l")).unwrap();
    for (name, files) in [("none", 0), ("f", 1), ("l", 1), ("l", 0)] {
        assert_eq!(remove_tree(&dir, name).unwrap().files, files, "{name}");
    }
    for bad in ["", ".", "..", "a/b", "keep/", "/", "a\0"] {
        let error = remove_tree(&dir, bad).unwrap_err();
        assert_eq!(error.code(), "DeleteFailed", "{bad:?}");
    }
    assert!(is_there(&tmp.path().join("keep")));
}

#[test]
fn a_wide_directory() {
    let tmp = scratch();
    for i in 0..2000 {
        fs::create_dir_all(tmp.path().join(format!("t/d{i:0100}"))).unwrap();
        fs::write(tmp.path().join(format!("t/f{i:0100}")), "").unwrap();
    }
    let removed = remove_tree(&open(tmp.path()), "t").unwrap();
    assert_eq!((removed.files, removed.dirs), (2000, 2001));
}

#[test]
fn a_deep_tree_needs_few_descriptors_and_no_stack() {
    let tmp = scratch();
    make_deep(tmp.path(), 1);
    let name = "x".repeat(200);
    make_deep(&tmp.path().join(name), 5000);
    let done = child("remove::tests::deep_in_a_child", tmp.path()).output();
    let done = done.unwrap();
    assert!(done.status.success(), "{done:?}");
    assert!(!is_there(&tmp.path().join("x".repeat(200))));
}

#[test]
#[ignore = "run by `a_deep_tree_needs_few_descriptors_and_no_stack` in a process of its own"]
fn deep_in_a_child() {
    use rustix::process::{Resource, Rlimit, setrlimit};
    let Some(root) = place() else { return };
    let dir = open(&root);
    let limit = Rlimit {
        current: Some(40),
        maximum: Some(40),
    };
    setrlimit(Resource::Nofile, limit).unwrap();
    let run = move || {
        let usage = crate::usage::usage(&dir).unwrap();
        assert_eq!((usage.files, usage.dirs), (2, 5001));
        crate::digest::tree_digest(&dir, |_| false).unwrap();
        let removed = remove_tree(&dir, &"x".repeat(200)).unwrap();
        assert_eq!((removed.files, removed.dirs), (2, 5001));
    };
    let thread = std::thread::Builder::new().stack_size(128 * 1024);
    thread.spawn(run).unwrap().join().unwrap();
}

/// A directory that the user without rights owns, with `t` in it.
fn of_nobody(root: &Path) {
    fs::set_permissions(root, Permissions::from_mode(0o777)).unwrap();
    as_nobody(|| {
        fs::create_dir_all(root.join("t/m/y/z")).unwrap();
        fs::write(root.join("t/m/y/f"), "").unwrap();
        fs::write(root.join("t/m/y/z/f"), "").unwrap();
    });
}

#[test]
fn directories_without_rights_get_them() {
    let tmp = scratch();
    of_nobody(tmp.path());
    for (path, mode) in [("t/m/y/z", 0o000), ("t/m/y", 0o555), ("t/m", 0o400)] {
        let mode = Permissions::from_mode(mode);
        fs::set_permissions(tmp.path().join(path), mode).unwrap();
    }
    let dir = open(tmp.path());
    as_nobody(|| {
        assert!(fs::remove_dir_all(tmp.path().join("t")).is_err());
        let removed = remove_tree(&dir, "t").unwrap();
        assert_eq!((removed.files, removed.dirs), (2, 4));
    });
    assert!(!is_there(&tmp.path().join("t")));
}

#[test]
fn what_others_own_is_named_and_the_rest_goes() {
    if !is_root() {
        return skipped("what_others_own_is_named_and_the_rest_goes", "not root");
    }
    let tmp = scratch();
    of_nobody(tmp.path());
    let theirs = tmp.path().join("t/m/theirs");
    fs::create_dir_all(theirs.join("empty")).unwrap();
    fs::write(theirs.join("f%\n"), "").unwrap();
    fs::create_dir(tmp.path().join("t/closed")).unwrap();
    fs::set_permissions(tmp.path().join("t/closed"), Permissions::from_mode(0o700)).unwrap();
    let dir = open(tmp.path());
    as_nobody(|| match remove_tree(&dir, "t") {
        Err(RemoveError::Kept {
            kept,
            total,
            removed,
        }) => {
            let mut paths: Vec<_> = kept.iter().map(|k| k.path.as_str()).collect();
            paths.sort_unstable();
            assert_eq!(paths, ["t/m/theirs/empty", "t/m/theirs/f%25%0A"]);
            assert_eq!((total, removed.files, removed.dirs), (2, 2, 3));
        }
        other => panic!("{other:?}"),
    });
    assert!(is_there(&theirs.join("f%\n")) && !is_there(&tmp.path().join("t/m/y")));
    assert!(remove_tree(&dir, "t").is_ok() && !is_there(&tmp.path().join("t")));
}

#[test]
fn a_protected_file_stays_until_it_is_freed() {
    let tmp = scratch();
    make_tree(&tmp.path().join("t"));
    let file = File::create(tmp.path().join("t/a/b/held")).unwrap();
    if let Err(e) = ioctl_setflags(&file, IFlags::IMMUTABLE) {
        return skipped("a_protected_file_stays_until_it_is_freed", e);
    }
    let dir = open(tmp.path());
    let error = remove_tree(&dir, "t").unwrap_err();
    ioctl_setflags(&file, IFlags::empty()).unwrap();
    assert_eq!(error.code(), "DeleteIncomplete");
    assert!(error.to_string().contains("`t/a/b/held`"), "{error}");
    let left = crate::usage::usage(&open(&tmp.path().join("t"))).unwrap();
    assert_eq!((left.files, left.dirs), (1, 2));
    assert_eq!(remove_tree(&dir, "t").unwrap().files, 1);
}

#[test]
fn the_list_of_what_stays_is_bounded() {
    let tmp = scratch();
    fs::create_dir(tmp.path().join("t")).unwrap();
    for i in 0..50 {
        fs::write(tmp.path().join(format!("t/{i}")), "").unwrap();
    }
    let held = File::open(tmp.path().join("t")).unwrap();
    if let Err(e) = ioctl_setflags(&held, IFlags::IMMUTABLE) {
        return skipped("the_list_of_what_stays_is_bounded", e);
    }
    let result = remove_tree(&open(tmp.path()), "t");
    ioctl_setflags(&held, IFlags::empty()).unwrap();
    match result {
        Err(RemoveError::Kept { kept, total, .. }) => {
            assert_eq!((kept.len(), total), (KEPT_NAMED_MAX, 50));
        }
        other => panic!("{other:?}"),
    }
}

#[test]
fn stops_at_mount_points() {
    let tmp = scratch();
    let keep = tmp.path().join("keep");
    make_tree(&keep);
    fs::write(tmp.path().join("file"), "").unwrap();
    let before = crate::digest::tree_digest(&open(&keep), |_| false).unwrap();
    let dir = open(tmp.path());
    for (on, path) in [
        (&keep, "t/a/m"),
        (&keep, "t"),
        (&tmp.path().join("file"), "t/a/f"),
    ] {
        let at = tmp.path().join(path);
        fs::create_dir_all(at.parent().unwrap()).unwrap();
        if on.is_dir() {
            fs::create_dir_all(&at).unwrap();
        } else {
            fs::write(&at, "").unwrap();
        }
        let Some(_mount) = Mount::bind(on, &at) else {
            return;
        };
        match remove_tree(&dir, "t") {
            Err(RemoveError::MountPoint { path: named }) => assert_eq!(named, path),
            other => panic!("{other:?}"),
        }
    }
    assert!(is_there(&tmp.path().join("file")));
    let after = crate::digest::tree_digest(&open(&keep), |_| false).unwrap();
    assert_eq!(before, after);
    remove_tree(&dir, "t").unwrap();
}

/// Swaps `a` and `b` until told to stop; both may be gone or anything meanwhile.
fn swap_until(stop: &AtomicBool, a: &Path, b: &Path) {
    while !stop.load(Ordering::Relaxed) {
        let _ = rustix::fs::renameat_with(CWD, a, CWD, b, RenameFlags::EXCHANGE);
    }
}

#[test]
fn a_swapper_leads_it_nowhere() {
    let tmp = scratch();
    let keep = tmp.path().join("keep");
    fs::create_dir(&keep).unwrap();
    for i in 0..20 {
        make_tree(&keep.join(format!("{i}")));
    }
    let before = crate::usage::usage(&open(&keep)).unwrap();
    let dir = open(tmp.path());
    let link = tmp.path().join("link");
    let at = tmp.path().join("t/x/d");
    // Rounds are slow where a rename waits for a disk.
    let end = Instant::now() + Duration::from_secs(4);
    let stop = AtomicBool::new(false);
    std::thread::scope(|scope| {
        scope.spawn(|| swap_until(&stop, &at, &link));
        let _stop = Stop(&stop);
        for _ in (0..400).take_while(|_| Instant::now() < end) {
            // `d` is now a directory, now a link to what must stay.
            remove_tree(&dir, "link").unwrap();
            let _ = symlink(&keep, &link);
            // Made elsewhere, as making it in place would follow the link.
            for i in 0..20 {
                fs::create_dir_all(tmp.path().join(format!("new/x/d/e{i}"))).unwrap();
            }
            let _ = fs::rename(tmp.path().join("new"), tmp.path().join("t"));
            let _ = remove_tree(&dir, "t");
        }
    });
    remove_tree(&dir, "t").unwrap();
    assert_eq!(crate::usage::usage(&open(&keep)).unwrap(), before);
}

#[test]
fn a_mover_leads_it_nowhere() {
    let tmp = scratch();
    let keep = tmp.path().join("keep");
    make_tree(&keep);
    fs::create_dir(keep.join("hole")).unwrap();
    let before = crate::usage::usage(&open(&keep)).unwrap();
    let dir = open(tmp.path());
    let stop = AtomicBool::new(false);
    let inner = tmp.path().join("t").join("d/".repeat(10));
    std::thread::scope(|scope| {
        scope.spawn(|| {
            while !stop.load(Ordering::Relaxed) {
                let hole = keep.join("hole/x");
                let _ = fs::rename(&inner, &hole);
                let _ = fs::rename(&hole, &inner);
            }
        });
        let _stop = Stop(&stop);
        for _ in 0..200 {
            let _ = fs::create_dir_all(inner.join("e/".repeat(30)));
            let _ = remove_tree(&dir, "t");
        }
    });
    remove_tree(&dir, "t").unwrap();
    remove_tree(&open(&keep.join("hole")), "x").unwrap();
    assert_eq!(crate::usage::usage(&open(&keep)).unwrap(), before);
}

#[test]
fn a_directory_that_was_filled_again_is_emptied_again_but_not_for_ever() {
    let tmp = scratch();
    make_tree(&tmp.path().join("t"));
    let parent = open(tmp.path());
    for (refills, depth, total) in [(0, 1, 0), (REFILLS_MAX, 0, 1)] {
        let mut place = Place::new(parent.as_fd(), Emptying::default()).unwrap();
        let mut work = Work::default();
        let left = Left {
            name: c"t".into(),
            data: Emptying {
                kept: false,
                refills,
            },
        };
        work.remove_dir(&mut place, left).unwrap();
        assert_eq!((place.depth(), work.total), (depth, total));
    }
}

#[test]
fn two_at_once_and_one_that_fills() {
    let tmp = scratch();
    let dir = open(tmp.path());
    for round in 0..50 {
        make_tree(&tmp.path().join("t"));
        std::thread::scope(|scope| {
            let other = scope.spawn(|| remove_tree(&dir, "t"));
            scope.spawn(|| {
                for i in 0..20 {
                    let _ = fs::write(tmp.path().join(format!("t/a/b/{i}")), "");
                }
            });
            let one = remove_tree(&dir, "t");
            let other = other.join().unwrap();
            assert!(one.is_ok() && other.is_ok(), "{round}: {one:?} {other:?}");
        });
        assert!(!is_there(&tmp.path().join("t")));
    }
}
