//! kill -9 at many moments of each operation; after `workspace init` nothing is lost and nothing is
//! there twice. The moments are spread over the time that the operation takes undisturbed.

use std::time::{Duration, Instant};

use crate::world::{Seen, World};

/// Moments at which each operation is killed.
const MOMENTS: u32 = 14;

const FILES: &[(&str, &str)] = &[("a.txt", "a\n"), ("dir/b.txt", "b\n"), ("c.txt", "c\n")];

struct Scene {
    world: World,
    /// What each of the two git RootDirs looks like.
    before: [Seen; 2],
}

const ROOTS: [&str; 2] = ["one", "two"];

fn scene() -> Scene {
    let world = World::new();
    let (_remote, url) = world.remote("up.git", "main", FILES);
    world.ok(&["workspace", "init", "p"]);
    let before = ROOTS.map(|name| {
        assert_eq!(world.create_git("p", &url, &["--label", name]), name);
        let repo = world.repo("p", name);
        repo.write("a.txt", format!("work in {name}\n"));
        repo.write("new.txt", "new\n");
        repo.git(&["add", "new.txt"]);
        Seen::of(&repo)
    });
    Scene { world, before }
}

impl Scene {
    /// Runs a command to its end and says how long it took.
    fn time(&self, args: &[&str]) -> Duration {
        let start = Instant::now();
        self.world.ok(args);
        start.elapsed()
    }

    /// Runs a command and kills it after `delay`, if it has not ended by then.
    fn kill(&self, args: &[&str], delay: Duration) {
        let mut child = self.world.spawn(args);
        std::thread::sleep(delay);
        // An error means that it has ended, which is a moment like any other.
        let _ = child.kill();
        child.wait().unwrap();
    }

    fn whole(&self, context: &str) {
        for (name, before) in ROOTS.iter().zip(&self.before) {
            assert_eq!(
                *before,
                Seen::of(&self.world.repo("p", name)),
                "{name} {context}"
            );
        }
        self.tidy(context);
    }

    /// Every RootDir is ready, no folder lies about, and no Snapshot waits.
    fn tidy(&self, context: &str) {
        let listed = self.world.ok(&["rootdir", "list", "p"]);
        for field in ["orphans", "damaged"] {
            assert!(listed.get(field).is_none(), "{field} {context}: {listed}");
        }
        for root in listed["items"].as_array().unwrap() {
            assert_eq!(root["state"], "ready", "{context}: {root}");
        }
        let workspace = self.world.ok(&["workspace", "get", "p"]);
        assert_eq!(workspace["status"], "RUNNING", "{context}: {workspace}");
        assert_eq!(workspace["snapshots"], 0, "{context}: {workspace}");
    }

    fn init(&self) {
        let report = self.world.ok(&["workspace", "init", "p"]);
        assert_eq!(
            report["failed"].as_array().map(Vec::len),
            Some(0),
            "{report}"
        );
    }
}

fn moments(whole: Duration) -> impl Iterator<Item = Duration> {
    (0..MOMENTS).map(move |i| whole * i / (MOMENTS - 1))
}

#[test]
fn create_is_whole_or_not_there() {
    let scene = scene();
    let url = scene.world.http.url("up.git");
    let create = [
        "rootdir",
        "create",
        "p",
        "--creator",
        "c",
        "--type",
        "git",
        "--repo",
        &url,
    ];
    let whole = scene.time(&create);
    for (i, delay) in moments(whole).enumerate() {
        scene.kill(&create, delay);
        scene.init();
        scene.whole(&format!("after create was killed at moment {i}"));
    }
}

#[test]
fn suspend_loses_nothing() {
    let scene = scene();
    let suspend = ["workspace", "suspend", "p"];
    let whole = scene.time(&suspend);
    scene.init();
    for (i, delay) in moments(whole).enumerate() {
        scene.kill(&suspend, delay);
        scene.init();
        scene.whole(&format!("after suspend was killed at moment {i}"));
    }
}

#[test]
fn recover_loses_nothing() {
    let scene = scene();
    let recover = ["workspace", "recover", "p"];
    scene.world.ok(&["workspace", "suspend", "p"]);
    let whole = scene.time(&recover);
    for (i, delay) in moments(whole).enumerate() {
        scene.world.ok(&["workspace", "suspend", "p"]);
        scene.kill(&recover, delay);
        scene.init();
        scene.whole(&format!("after recover was killed at moment {i}"));
    }
}

#[test]
fn disposing_of_a_root_dir_takes_all_of_it_or_nothing() {
    let scene = scene();
    let made = |label: &str| {
        let name = scene
            .world
            .create("p", &["--type", "temp", "--label", label]);
        for i in 0..500 {
            std::fs::write(scene.world.dir("p", &name).join(i.to_string()), "x").unwrap();
        }
        name
    };
    let name = made("scratch");
    let whole = scene.time(&["rootdir", "dispose", "p", &name]);
    for (i, delay) in moments(whole).enumerate() {
        let name = made("scratch");
        scene.kill(&["rootdir", "dispose", "p", &name], delay);
        scene.init();
        scene.whole(&format!("after dispose was killed at moment {i}"));
        let dir = scene.world.dir("p", &name);
        if dir.exists() {
            assert_eq!(std::fs::read_dir(&dir).unwrap().count(), 500, "moment {i}");
            scene.world.ok(&["rootdir", "dispose", "p", &name]);
        }
        assert!(!dir.with_extension("json").exists());
    }
}

#[test]
fn disposing_of_a_workspace_takes_all_of_it_or_nothing() {
    let whole = scene().time(&["workspace", "dispose", "p"]);
    for (i, delay) in moments(whole).enumerate().step_by(3) {
        let scene = scene();
        scene.kill(&["workspace", "dispose", "p"], delay);
        scene.init();
        let count = scene.world.ok(&["rootdir", "list", "p"])["items"]
            .as_array()
            .map(Vec::len);
        if count == Some(0) {
            scene.tidy(&format!("after dispose was killed at moment {i}"));
        } else {
            scene.whole(&format!("after dispose was killed at moment {i}"));
        }
    }
}
