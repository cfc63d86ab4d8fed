//! What lies in a RootDir resists its deletion, leads it elsewhere, or uses up the disk.

use std::path::Path;

use rustix::fs::{IFlags, ioctl_setflags};

use crate::mount::{Mount, skipped};
use crate::world::World;

#[test]
fn a_protected_file_keeps_its_root_dir_in_deletion_until_it_is_freed() {
    let world = World::new();
    world.ok(&["workspace", "init", "p"]);
    let name = world.create("p", &["--type", "temp", "--label", "x"]);
    let file = std::fs::File::create(world.dir("p", &name).join("held")).unwrap();
    std::fs::write(world.dir("p", &name).join("free"), "f").unwrap();
    if let Err(error) = ioctl_setflags(&file, IFlags::IMMUTABLE) {
        return skipped(&format!("no immutable files here: {error}"));
    }
    let free = || ioctl_setflags(&file, IFlags::empty()).unwrap();
    let held = std::panic::catch_unwind(std::panic::AssertUnwindSafe(|| {
        for _ in 0..2 {
            let error = world.fails(&["rootdir", "dispose", "p", &name], "DeleteIncomplete");
            assert!(
                error["message"].as_str().unwrap().contains("held"),
                "{error}"
            );
            assert!(
                error["hint"].as_str().unwrap().contains("chattr"),
                "{error}"
            );
            assert_eq!(world.descriptor("p", &name)["state"], "deleting");
        }
        // Its name is not given to another, and it is no RootDir any more.
        let second = world.create("p", &["--type", "temp", "--label", "x"]);
        assert_ne!(second, name);
        assert!(!world.dir("p", &name).join("free").exists());
    }));
    free();
    if let Err(panic) = held {
        std::panic::resume_unwind(panic);
    }
    world.ok(&["workspace", "init", "p"]);
    if world.dir("p", &name).exists() {
        world.ok(&["rootdir", "dispose", "p", &name]);
    }
    assert!(!world.dir("p", &name).exists());
    assert!(!world.root.join("p").join(format!("{name}.json")).exists());
}

#[test]
fn a_mount_in_a_root_dir_is_not_emptied() {
    let world = World::new();
    world.ok(&["workspace", "init", "p"]);
    let keep = world.work.dir("keep/deep");
    std::fs::write(keep.join("f"), "precious").unwrap();
    let name = world.create("p", &["--type", "temp", "--label", "x"]);
    let at = world.dir("p", &name).join("m");
    let whole = |path: &Path| std::fs::read_to_string(path.join("deep/f")).unwrap();
    {
        let Some(_mount) = Mount::bind(&world.work.join("keep"), &at) else {
            return;
        };
        for more in [&[][..], &["--force"]] {
            let dispose = [&["rootdir", "dispose", "p", &name], more].concat();
            let error = world.fails(&dispose, "DeleteIncomplete");
            assert!(
                error["message"].as_str().unwrap().contains("mount"),
                "{error}"
            );
            assert!(
                error["hint"].as_str().unwrap().contains("unmount"),
                "{error}"
            );
        }
        assert_eq!(whole(&world.work.join("keep")), "precious");
        for command in ["suspend", "dispose"] {
            let output = world.output(&["workspace", command, "p"]);
            assert_eq!(whole(&world.work.join("keep")), "precious", "{command}");
            assert!(at.join("deep/f").exists(), "{command}: {output:?}");
        }
    }
    world.ok(&["workspace", "init", "p"]);
    world.ok(&["workspace", "dispose", "p"]);
    assert!(!world.root.join("p").exists());
    assert_eq!(whole(&world.work.join("keep")), "precious");
}

#[test]
fn when_the_inodes_run_out_it_says_so_and_what_is_there_can_go() {
    let world = World::new();
    let root = world.root.clone();
    let Some(_mount) = Mount::tmpfs(&root, "size=64m,nr_inodes=500") else {
        return;
    };
    world.ok(&["workspace", "init", "p"]);
    let first = world.create("p", &["--type", "temp", "--label", "r"]);
    for n in 0..440 {
        std::fs::write(world.dir("p", &first).join(n.to_string()), "").unwrap();
    }
    let create = ["rootdir", "create", "p", "--creator", "c", "--type", "temp"];
    let mut refused = None;
    for _ in 0..60 {
        let output = world.output(&create);
        if !output.status.success() {
            refused = Some(output);
            break;
        }
    }
    let refused = refused.expect("inodes have an end");
    let json: serde_json::Value = serde_json::from_slice(&refused.stdout).unwrap();
    assert_eq!(json["error"]["code"], "WorkspaceQuotaExceeded", "{json}");
    assert!(
        json["error"]["message"].as_str().unwrap().contains("inode"),
        "{json}"
    );
    let temp = ["temp", "file", "p", "--creator", "c1", "--prefix", "x"];
    world.fails(&temp, "WorkspaceQuotaExceeded");
    // There was room in bytes all the time.
    let quota = world.ok(&["quota"]);
    assert!(quota.to_string().contains("inode"), "{quota}");
    world.ok(&["rootdir", "dispose", "p", &first]);
    world.ok(&create);
    world.ok(&["workspace", "suspend", "p"]);
    assert!(!root.join("p").exists());
}
