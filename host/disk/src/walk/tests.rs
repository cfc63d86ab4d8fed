use super::*;
use crate::testing::{Mount, make_deep, open, scratch};
use std::collections::BTreeMap;
use std::ffi::OsStr;
use std::fs;
use std::io::Read as _;
use std::os::unix::ffi::OsStrExt;
use std::os::unix::fs::symlink;
use std::path::Path;

fn all(dir: &Dir, limits: WalkLimits) -> Result<BTreeMap<Vec<u8>, Kind>, WalkError> {
    let mut seen = BTreeMap::new();
    walk(dir, limits, |entry| {
        let old = seen.insert(entry.path().to_vec(), entry.stat().kind);
        assert!(old.is_none(), "twice: {:?}", entry.path());
        assert!(entry.path().ends_with(entry.name()));
        Ok::<_, WalkError>(Flow::Go)
    })?;
    Ok(seen)
}

fn limits(entries_max: u64, depth_max: u32) -> WalkLimits {
    WalkLimits {
        entries_max,
        depth_max,
    }
}

fn tree(root: &Path) {
    fs::create_dir_all(root.join("d/e")).unwrap();
    fs::write(root.join("d/f"), "text").unwrap();
    fs::write(root.join(OsStr::from_bytes(b"\xff")), "").unwrap();
    symlink("/", root.join("d/e/l")).unwrap();
    symlink("..", root.join("up")).unwrap();
}

#[test]
fn meets_every_entry_once_and_follows_nothing() {
    let tmp = scratch();
    tree(tmp.path());
    let expected = [
        (&b"d"[..], Kind::Dir),
        (b"d/e", Kind::Dir),
        (b"d/e/l", Kind::Symlink),
        (b"d/f", Kind::File),
        (b"up", Kind::Symlink),
        (b"\xff", Kind::File),
    ];
    let seen = all(&open(tmp.path()), WalkLimits::NONE).unwrap();
    assert_eq!(seen, expected.map(|(p, k)| (p.to_vec(), k)).into());
}

#[test]
fn entries_can_be_read() {
    let tmp = scratch();
    tree(tmp.path());
    let mut found = Vec::new();
    walk(&open(tmp.path()), WalkLimits::NONE, |entry| {
        if entry.path() == b"d/f" {
            let mut text = String::new();
            entry
                .open_file()
                .unwrap()
                .read_to_string(&mut text)
                .unwrap();
            found.push(text);
            assert_eq!(entry.stat().size, 4);
        }
        if entry.path() == b"d/e/l" {
            found.push(entry.read_link().unwrap().to_str().unwrap().to_owned());
            assert!(beneath::is_refused(&entry.open_file().unwrap_err()));
        }
        Ok::<_, WalkError>(Flow::Go)
    })
    .unwrap();
    found.sort();
    assert_eq!(found, ["/", "text"]);
}

#[test]
fn limits_are_exact() {
    let tmp = scratch();
    tree(tmp.path());
    let dir = open(tmp.path());
    assert_eq!(all(&dir, limits(6, 3)).unwrap().len(), 6);
    match all(&dir, limits(5, 3)) {
        Err(WalkError::TooMany { entries_max: 5 }) => {}
        other => panic!("{other:?}"),
    }
    match all(&dir, limits(6, 2)) {
        Err(WalkError::TooDeep { path, depth_max: 2 }) => assert_eq!(path, "d/e/l"),
        other => panic!("{other:?}"),
    }
}

#[test]
fn a_deep_tree_is_too_deep() {
    let tmp = scratch();
    make_deep(tmp.path(), 300);
    match all(&open(tmp.path()), limits(u64::MAX, 256)) {
        Err(error @ WalkError::TooDeep { .. }) => assert!(error.to_string().len() < 1200),
        other => panic!("{other:?}"),
    }
    crate::remove::remove_tree(&open(tmp.path()), &"x".repeat(200)).unwrap();
}

#[test]
fn visitors_skip_stop_and_fail() {
    let tmp = scratch();
    tree(tmp.path());
    let dir = open(tmp.path());
    let mut paths = Vec::new();
    walk(&dir, WalkLimits::NONE, |entry| {
        paths.push(entry.path().to_vec());
        Ok::<_, WalkError>(if entry.path() == b"d" {
            Flow::Skip
        } else {
            Flow::Go
        })
    })
    .unwrap();
    assert_eq!(paths.len(), 3);
    let mut count = 0;
    walk(&dir, WalkLimits::NONE, |_| {
        count += 1;
        Ok::<_, WalkError>(Flow::Stop)
    })
    .unwrap();
    assert_eq!(count, 1);
    let own = walk(&dir, WalkLimits::NONE, |_| Err(Own::Mine));
    assert!(matches!(own, Err(Own::Mine)));
}

#[derive(Debug)]
enum Own {
    Mine,
    Walk,
}

impl From<WalkError> for Own {
    fn from(_: WalkError) -> Self {
        Self::Walk
    }
}

#[test]
fn mount_points_are_an_error_unless_skipped() {
    let tmp = scratch();
    fs::create_dir_all(tmp.path().join("d/m")).unwrap();
    fs::create_dir_all(tmp.path().join("out/in")).unwrap();
    let Some(_mount) = Mount::bind(&tmp.path().join("out"), &tmp.path().join("d/m")) else {
        return;
    };
    let dir = open(tmp.path()).open_dir("d").unwrap();
    match all(&dir, WalkLimits::NONE) {
        Err(WalkError::MountPoint { path }) => assert_eq!(path, "m"),
        other => panic!("{other:?}"),
    }
    let mut mounts = 0;
    walk(&dir, WalkLimits::NONE, |entry| {
        mounts += u32::from(entry.stat().mount_point);
        Ok::<_, WalkError>(Flow::Skip)
    })
    .unwrap();
    assert_eq!(mounts, 1);
    let usage = crate::usage::usage(&dir).unwrap();
    assert_eq!((usage.files, usage.dirs), (0, 0));
}
