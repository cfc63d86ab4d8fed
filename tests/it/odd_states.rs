//! States that only a crash, a full disk or a hand on the folder can bring about: nothing that they
//! hold is thrown away, and every one of them can be left.

use std::process::Command;
use std::time::{Duration, Instant};

use crate::mount::Mount;
use crate::world::World;

/// A running Workspace with the git RootDir `one`, which holds work of its own.
fn world_with_work() -> World {
    let world = World::new();
    let (_, url) = world.remote("up.git", "main", &[("a", "a\n")]);
    world.ok(&["workspace", "init", "p"]);
    assert_eq!(world.create_git("p", &url, &["--label", "one"]), "one");
    std::fs::write(world.dir("p", "one").join("work"), "mine").unwrap();
    world
}

fn work(world: &World) -> String {
    std::fs::read_to_string(world.dir("p", "one").join("work")).unwrap()
}

fn move_remote(world: &World, from: &str, to: &str) {
    let at = |name: &str| world.work.join("remotes").join(name);
    std::fs::rename(at(from), at(to)).unwrap();
}

/// Suspends, and recovers while the remote is away: the Snapshot of `one` waits.
fn leave_waiting(world: &World) {
    world.ok(&["workspace", "suspend", "p"]);
    move_remote(world, "up.git", "away.git");
    let report = world.ok_or_partial(&["workspace", "recover", "p"]);
    assert_eq!(report["failed"][0]["dirName"], "one", "{report}");
}

#[test]
fn a_folder_in_the_way_of_recover_is_left_alone() {
    let world = world_with_work();
    world.ok(&["workspace", "suspend", "p"]);
    let dir = world.dir("p", "one");
    std::fs::create_dir_all(&dir).unwrap();
    std::fs::write(dir.join("precious"), "x").unwrap();
    for _ in 0..2 {
        let report = world.ok_or_partial(&["workspace", "recover", "p"]);
        assert_eq!(report["failed"][0]["code"], "OrphanedContent", "{report}");
        assert!(dir.join("precious").exists());
    }
    std::fs::rename(&dir, world.work.join("taken")).unwrap();
    world.ok(&["workspace", "recover", "p"]);
    assert_eq!(work(&world), "mine");
}

#[test]
fn a_root_dir_and_a_snapshot_of_one_name_never_replace_each_other() {
    let world = world_with_work();
    let descriptor = std::fs::read(world.root.join("p/one.json")).unwrap();
    leave_waiting(&world);
    // The name is held without anything on disk, too.
    std::fs::remove_file(world.root.join("p/one.json")).unwrap();
    let temp = world.create("p", &["--type", "temp", "--label", "One"]);
    assert_eq!(temp, "One-2");
    // The RootDir itself reappears, from a backup say.
    std::fs::write(world.root.join("p/one.json"), descriptor).unwrap();
    std::fs::create_dir_all(world.dir("p", "one")).unwrap();
    std::fs::write(world.dir("p", "one").join("other"), "x").unwrap();
    for args in [
        &["workspace", "suspend", "p", "--dry-run"][..],
        &["workspace", "suspend", "p"],
    ] {
        let error = world.fails(args, "RootDirNotReady");
        assert!(
            error["message"].as_str().unwrap().contains("snapshot"),
            "{error}"
        );
    }
    assert_eq!(world.ok(&["workspace", "get", "p"])["snapshots"], 1);
    assert!(world.dir("p", "one").join("other").exists());
    world.ok(&["rootdir", "dispose", "p", "one", "--force"]);
    move_remote(&world, "away.git", "up.git");
    world.ok(&["workspace", "recover", "p"]);
    assert_eq!(work(&world), "mine");
}

#[test]
fn half_a_root_dir_never_passes_for_all_of_it() {
    let world = world_with_work();
    let stuck = world.dir("p", "one").join(".git/stuck");
    let Some(mount) = Mount::tmpfs(&stuck, "size=1m") else {
        return;
    };
    let report = world.ok(&["workspace", "suspend", "p"]);
    assert_eq!(report["left"][0], "one", "{report}");
    for _ in 0..2 {
        let report = world.ok_or_partial(&["workspace", "init", "p"]);
        assert_eq!(report["failed"][0]["code"], "DeleteIncomplete", "{report}");
        assert_ne!(world.descriptor("p", "one")["state"], "ready");
        // What waits comes along.
        world.ok(&["workspace", "suspend", "p"]);
        assert_eq!(world.ok(&["workspace", "get", "p"])["snapshots"], 1);
    }
    drop(mount);
    world.ok(&["workspace", "init", "p"]);
    assert_eq!(work(&world), "mine");
}

#[test]
fn a_folder_of_a_suspend_that_was_rolled_back_is_not_garbage() {
    let world = world_with_work();
    let remote = warren_testkit::GitRepo::at(world.work.join("remotes/up.git"));
    remote.hook("pre-receive", "sleep 3");
    let mut suspend = world.spawn(&["workspace", "suspend", "p"]);
    while world.status("p") != "SUSPENDING" {
        std::thread::sleep(Duration::from_millis(10));
    }
    suspend.kill().unwrap();
    suspend.wait().unwrap();
    let workspace = world.ok(&["workspace", "get", "p"]);
    let generation = workspace["suspend"]["generation"].as_u64().unwrap();
    // As if it had been killed a moment later; then the disk is away for a while.
    let file = world.root.join("p/workspace.json");
    let mut text: serde_json::Value =
        serde_json::from_slice(&std::fs::read(&file).unwrap()).unwrap();
    text["status"] = "SUSPENDING".into();
    text["generation"] = generation.into();
    std::fs::write(&file, text.to_string()).unwrap();
    let away = world.work.join("away");
    std::fs::rename(world.root.join("p"), &away).unwrap();
    world.ok(&["workspace", "init", "p"]);
    world.ok(&["workspace", "suspend", "p"]);
    std::fs::rename(&away, world.root.join("p")).unwrap();
    world.ok(&["workspace", "init", "p"]);
    assert_eq!(work(&world), "mine");
}

#[test]
fn a_stale_folder_does_not_cost_a_snapshot_that_was_made_elsewhere() {
    let mut world = world_with_work();
    leave_waiting(&world);
    move_remote(&world, "away.git", "up.git");
    let stale = std::mem::replace(&mut world.root, world.work.join("ws2"));
    world.ok(&["workspace", "init", "p", "--take-over"]);
    assert_eq!(work(&world), "mine");
    world.ok(&["workspace", "suspend", "p"]);
    let fresh = std::mem::replace(&mut world.root, stale);
    world.fails(&["rootdir", "dispose", "p", "one"], "WorkspaceNotRunning");
    world.root = fresh;
    world.ok(&["workspace", "recover", "p"]);
    assert_eq!(work(&world), "mine");
}

#[test]
fn an_interrupted_suspend_keeps_others_out_until_its_deletes_have_ended() {
    let world = World::new();
    world.ok(&["workspace", "init", "p"]);
    let names = ["d1", "d2", "d3", "d4"];
    for name in names {
        world.create("p", &["--type", "temp", "--label", name]);
    }
    for i in 0..20_000 {
        std::fs::write(world.dir("p", "d2").join(i.to_string()), "").unwrap();
    }
    let mut suspend = world.spawn(&["workspace", "suspend", "p"]);
    let patience = Instant::now() + Duration::from_secs(30);
    while world.root.join("p/d1.json").exists() && Instant::now() < patience {
        std::thread::sleep(Duration::from_millis(1));
    }
    let pid = suspend.id().to_string();
    let signal = |name: &str| {
        let sent = Command::new("kill").args([name, &pid]).status().unwrap();
        assert!(sent.success());
    };
    signal("-INT");
    // It gives up, but a thread of it is still at work, and slow.
    std::thread::sleep(Duration::from_millis(10));
    signal("-STOP");
    let recover = world.spawn(&["workspace", "recover", "p"]);
    std::thread::sleep(Duration::from_secs(1));
    signal("-CONT");
    assert!(recover.wait_with_output().unwrap().status.success());
    suspend.wait().unwrap();
    for name in names {
        assert!(world.dir("p", name).exists(), "{name}");
        assert_eq!(world.descriptor("p", name)["state"], "ready");
    }
}

#[test]
fn a_full_disk_stops_neither_suspend_nor_dispose() {
    let world =
        World::with_config("[workspace]\nsoft-limit-percent = 100\nhard-limit-percent = 100\n");
    let root = world.root.clone();
    let Some(mount) = Mount::tmpfs(&root, "size=1m") else {
        return;
    };
    world.ok(&["workspace", "init", "p"]);
    for name in ["one", "two"] {
        world.create("p", &["--type", "temp", "--label", name]);
    }
    std::fs::write(world.dir("p", "one").join("f"), "x").unwrap();
    mount.fill();
    world.ok(&["rootdir", "dispose", "p", "one"]);
    assert!(!world.dir("p", "one").exists() && !root.join("p/one.json").exists());
    mount.fill();
    world.ok(&["workspace", "suspend", "p"]);
    assert!(!root.join("p").exists());
    // Room for nothing at all: what cannot come back waits, and comes back later.
    mount.fill();
    let output = world.output(&["workspace", "recover", "p"]);
    assert!(!output.status.success());
    assert_eq!(world.ok(&["workspace", "get", "p"])["snapshots"], 1);
    for name in ["fill", "fill2", "more"] {
        let _ = std::fs::remove_file(root.join(name));
    }
    world.ok(&["workspace", "recover", "p"]);
    assert!(world.dir("p", "two").exists());
    mount.fill();
    world.ok(&["workspace", "dispose", "p"]);
    assert!(!root.join("p").exists());
}

#[test]
fn folders_where_files_of_ours_should_be_can_be_got_rid_of() {
    let world = World::new();
    world.ok(&["workspace", "init", "p"]);
    let file = world.root.join("p/workspace.json");
    std::fs::remove_file(&file).unwrap();
    std::fs::create_dir(&file).unwrap();
    std::fs::write(file.join("precious"), "x").unwrap();
    world.ok(&["workspace", "init", "p"]);
    let error = world.fails(&["workspace", "suspend", "p"], "OrphanedContent");
    assert!(
        error["message"].as_str().unwrap().contains("damaged"),
        "{error}"
    );
    std::fs::create_dir(world.root.join("p/x.json")).unwrap();
    world.ok(&["workspace", "dispose", "p", "--force"]);
    assert!(!world.root.join("p").exists());
    world.ok(&["workspace", "init", "p"]);
}

#[test]
fn a_root_dir_whose_folder_is_gone_is_told_of_and_can_be_disposed_of() {
    let world = World::new();
    world.ok(&["workspace", "init", "p"]);
    let name = world.create("p", &["--type", "temp", "--label", "w"]);
    world.create("p", &["--type", "temp", "--label", "x"]);
    std::fs::remove_dir(world.dir("p", &name)).unwrap();
    let plan = world.ok(&["workspace", "dispose", "p", "--dry-run"]);
    assert_eq!(plan["disposed"].as_array().map(Vec::len), Some(2), "{plan}");
    assert_eq!(plan["lost"][0]["saved"], false, "{plan}");
    world.fails(&["workspace", "suspend", "p"], "RootDirUnreadable");
    world.ok(&["rootdir", "dispose", "p", &name, "--force"]);
    world.ok(&["workspace", "suspend", "p"]);
}

#[test]
fn a_name_that_is_given_again_is_nobodys_old_working_dir() {
    let world = World::new();
    world.ok(&["workspace", "init", "p"]);
    let name = world.create("p", &["--type", "temp", "--label", "w"]);
    world.ok(&["workdir", "set", "p", "--creator", "c1", &name]);
    world.ok(&["workspace", "suspend", "p"]);
    world.ok(&["workspace", "recover", "p"]);
    let get = ["workdir", "get", "p", "--creator", "c1"];
    assert_eq!(world.ok(&get)["dirName"], name.as_str());
    world.ok(&["rootdir", "dispose", "p", &name]);
    assert_eq!(world.create("p", &["--type", "temp", "--label", "w"]), name);
    assert!(world.ok(&get).is_null());
}

#[test]
fn a_store_that_was_half_made_is_made_anew() {
    let world = World::new();
    std::fs::create_dir(world.work.join("state")).unwrap();
    std::fs::write(world.work.join("state/store.redb.new"), [0; 4096]).unwrap();
    world.ok(&["workspace", "init", "p"]);
    assert_eq!(world.status("p"), "RUNNING");
    assert!(!world.work.join("state/store.redb.new").exists());
}

#[test]
fn dispose_names_the_snapshots_that_go() {
    let world = world_with_work();
    world.ok(&["workspace", "suspend", "p"]);
    let report = world.ok(&["workspace", "dispose", "p"]);
    assert_eq!(report["disposed"][0], "one", "{report}");
}

#[test]
fn a_workspace_is_in_one_root_at_a_time() {
    let mut world = World::new();
    let (_remote, url) = world.remote("up.git", "main", &[("a", "a\n")]);
    world.ok(&["workspace", "init", "p"]);
    let name = world.create_git("p", &url, &["--label", "repo"]);
    world.repo("p", &name).write("new", "new\n");
    world.move_away("p");
    // The shell still names the root that it was in before.
    world.root = world.work.join("ws");
    let temp = ["rootdir", "create", "p", "--type", "temp", "--creator", "c"];
    for args in [
        &["workspace", "init", "p"][..],
        &["workspace", "suspend", "p"],
        &["workspace", "recover", "p"],
        &["workspace", "dispose", "p"],
        &["rootdir", "list", "p"],
        &temp,
    ] {
        let error = world.fails(args, "WorkspaceElsewhere");
        assert!(
            error["message"].as_str().unwrap().contains("/ws2"),
            "{error}"
        );
    }
    assert!(!world.root.join("p").exists());
    world.root = world.work.join("ws2");
    assert!(world.dir("p", &name).join("new").exists());
    world.ok(&["workspace", "suspend", "p"]);
    world.ok(&["workspace", "init", "p"]);
    assert!(world.dir("p", &name).join("new").exists());
    // That Pod is gone for good: what it held and did not save is given up.
    world.root = world.work.join("ws3");
    world.ok(&["workspace", "init", "p", "--take-over"]);
    assert_eq!(
        world.ok(&["rootdir", "list", "p"])["items"]
            .as_array()
            .map(Vec::len),
        Some(0)
    );
    world.root = world.work.join("ws2");
    world.fails(&["workspace", "suspend", "p"], "WorkspaceElsewhere");
    assert!(world.dir("p", &name).join("new").exists());
}
