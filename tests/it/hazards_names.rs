//! Names that resemble each other, fill their budget, or speak to a terminal; creators whose id
//! comes again; trees that resist.

use std::os::unix::fs::symlink;

use crate::world::World;

#[test]
fn a_common_start_is_not_the_same_name() {
    let world = World::new();
    for project in ["p", "p1", "P"] {
        world.ok(&["workspace", "init", project]);
        for label in ["ab", "abc"] {
            let name = world.create(project, &["--type", "temp", "--label", label]);
            std::fs::write(world.dir(project, &name).join("x"), project).unwrap();
        }
    }
    for name in ["../abc", "ab/../abc", "ab/", "./ab", "..", "a*", ""] {
        world.fails(&["rootdir", "get", "p", name], "InvalidName");
        world.fails(&["rootdir", "dispose", "p", name, "--force"], "InvalidName");
    }
    world.fails(&["rootdir", "get", "p", "a"], "RootDirNotFound");
    world.ok(&["rootdir", "dispose", "p", "ab"]);
    assert!(!world.dir("p", "ab").exists() && world.dir("p", "abc").join("x").exists());
    world.ok(&["workspace", "dispose", "p"]);
    for project in ["p1", "P"] {
        for name in ["ab", "abc"] {
            let text = std::fs::read_to_string(world.dir(project, name).join("x")).unwrap();
            assert_eq!(text, project);
        }
        assert_eq!(world.status(project), "RUNNING");
    }
}

#[test]
fn the_longest_hints_go_away_and_come_back_with_their_suffixes() {
    let mut world = World::new();
    let (_remote, url) = world.remote("up.git", "main", &[("a", "a\n")]);
    world.ok(&["workspace", "init", "p"]);
    let hints = ["a".repeat(255), "한".repeat(100), "a".repeat(250)];
    let hints = hints.iter().chain(std::iter::repeat_n(&hints[2], 10));
    let mut names = Vec::new();
    for hint in hints {
        let name = world.create_git("p", &url, &["--label", hint]);
        world.repo("p", &name).write("new", &name);
        assert_eq!(world.descriptor("p", &name)["label"], hint.as_str());
        assert!(!names.contains(&name), "{name}");
        names.push(name);
    }
    world.move_away("p");
    for name in &names {
        assert_eq!(
            std::fs::read_to_string(world.dir("p", name).join("new")).unwrap(),
            *name
        );
    }
}

#[test]
fn a_label_speaks_to_no_terminal() {
    let world = World::new();
    world.ok(&["workspace", "init", "p"]);
    for label in ["\x1b[2J\x07", "a\nb\rc", "\u{202e}gnp.exe", "\u{9b}31m"] {
        let name = world.create("p", &["--type", "temp", "--label", label]);
        let shown = world.ok(&["rootdir", "get", "p", &name]);
        assert_eq!(shown["label"], label, "JSON gives it back whole");
        for args in [
            &["rootdir", "list", "p"][..],
            &["rootdir", "get", "p", &name],
        ] {
            let output = world.output(&[args, &["--output", "text"]].concat());
            assert!(output.status.success());
            let text = String::from_utf8(output.stdout).unwrap();
            let bad = |c: char| (c.is_control() && c != '\n') || c == '\u{202e}';
            assert!(!text.contains(bad), "{text:?}");
            assert!(!text.lines().any(|line| line == "b"), "{text:?}");
        }
    }
}

#[test]
fn a_creator_id_that_comes_again_gets_nothing_of_the_first() {
    let mut world = World::new();
    world.ok(&["workspace", "init", "p"]);
    let file = |world: &World| {
        world.ok(&[
            "temp",
            "file",
            "p",
            "--creator",
            "c1",
            "--prefix",
            "x",
            "--suffix",
            ".json",
        ])
    };
    let (first, second) = (file(&world), file(&world));
    assert_ne!(first["name"], second["name"]);
    let name = first["name"].as_str().unwrap();
    assert!(name.starts_with('x') && name.ends_with(".json") && name.len() == 1 + 32 + 5);
    world.ok(&["rootdir", "dispose", "p", "--creator", "c1"]);
    let again = file(&world);
    assert_ne!(first["dirName"], again["dirName"]);
    // Temp files do not outlive a suspend either.
    world.move_away("p");
    let dir_name = file(&world)["dirName"].as_str().unwrap().to_owned();
    let count = std::fs::read_dir(world.dir("p", &dir_name))
        .unwrap()
        .count();
    assert_eq!(count, 1);
    for bad in [["--prefix", &"x".repeat(300)], ["--prefix", "a\nb"]] {
        let args = [&["temp", "file", "p", "--creator", "c1"], &bad[..]].concat();
        world.fails(&args, "InvalidArgument");
    }
    let suffix = ["--prefix", "x", "--suffix", "/../y"];
    let args = [&["temp", "file", "p", "--creator", "c1"], &suffix[..]].concat();
    world.fails(&args, "InvalidArgument");
}

/// Far deeper than a path may be long, or than there are descriptors.
fn make_deep(root: &std::path::Path, levels: usize) {
    use rustix::fs::{Mode, OFlags, mkdirat, openat};
    let name = "d".repeat(200);
    let flags = OFlags::RDONLY | OFlags::DIRECTORY;
    let mut dir = rustix::fs::open(root, flags, Mode::empty()).unwrap();
    for _ in 0..levels {
        mkdirat(&dir, &name, Mode::RWXU).unwrap();
        dir = openat(&dir, &name, flags, Mode::empty()).unwrap();
    }
}

#[test]
fn a_very_deep_tree_is_refused_typed_and_can_be_disposed_of() {
    let world = World::new();
    let (_remote, url) = world.remote("up.git", "main", &[("a", "a\n")]);
    world.ok(&["workspace", "init", "p"]);
    let git = world.create_git("p", &url, &["--label", "git"]);
    make_deep(&world.dir("p", &git), 2000);
    let error = world.fails(&["workspace", "suspend", "p"], "GitTooLarge");
    assert!(error["message"].as_str().unwrap().len() < 1000, "{error}");
    assert!(world.dir("p", &git).join("a").exists());
    assert_eq!(world.status("p"), "RUNNING");
    world.ok(&["rootdir", "list", "p"]);
    world.ok(&["rootdir", "dispose", "p", &git]);
    assert!(!world.dir("p", &git).exists());

    let temp = world.create("p", &["--type", "temp", "--label", "temp"]);
    make_deep(&world.dir("p", &temp), 2000);
    world.ok(&["workspace", "suspend", "p"]);
    assert!(!world.root.join("p").exists());
}

#[test]
fn dispose_removes_links_and_not_what_they_name() {
    let world = World::new();
    world.ok(&["workspace", "init", "p"]);
    let keep = world.work.dir("keep");
    std::fs::write(keep.join("f"), "f").unwrap();
    let name = world.create("p", &["--type", "temp", "--label", "x"]);
    let dir = world.dir("p", &name);
    symlink(&keep, dir.join("out")).unwrap();
    symlink(keep.join("f"), dir.join("file")).unwrap();
    symlink("../../keep", dir.join("up")).unwrap();
    std::fs::create_dir(dir.join("closed")).unwrap();
    symlink(&keep, dir.join("closed/out")).unwrap();
    use std::os::unix::fs::PermissionsExt;
    let closed = std::fs::Permissions::from_mode(0o555);
    std::fs::set_permissions(dir.join("closed"), closed).unwrap();
    let plan = world.ok(&["rootdir", "dispose", "p", &name, "--dry-run"]);
    assert_eq!(plan["disposed"][0], name.as_str());
    world.ok(&["rootdir", "dispose", "p", &name]);
    assert!(!dir.exists() && keep.join("f").exists());
}
