//! Directories that turn into links, and back, while the host looks at them: nothing outside is
//! read, written or deleted.

use std::collections::BTreeSet;
use std::os::unix::fs::symlink;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::thread::JoinHandle;

use rustix::fs::{CWD, RenameFlags, renameat_with};

use crate::world::World;

const OUTSIDE: &str = "what lies outside stays outside";

/// Exchanges two entries, as fast as it can, until it is dropped.
struct Swapper {
    stop: Arc<AtomicBool>,
    thread: Option<JoinHandle<u64>>,
}

impl Swapper {
    fn start(one: PathBuf, other: PathBuf) -> Self {
        let stop = Arc::new(AtomicBool::new(false));
        let until = Arc::clone(&stop);
        let thread = std::thread::spawn(move || {
            let mut swaps = 0;
            while !until.load(Ordering::Relaxed) {
                if renameat_with(CWD, &one, CWD, &other, RenameFlags::EXCHANGE).is_ok() {
                    swaps += 1;
                }
                std::thread::yield_now();
            }
            swaps
        });
        Self {
            stop,
            thread: Some(thread),
        }
    }

    /// How often they changed places.
    fn end(mut self) -> u64 {
        self.stop.store(true, Ordering::Relaxed);
        self.thread.take().unwrap().join().unwrap()
    }
}

impl Drop for Swapper {
    fn drop(&mut self) {
        self.stop.store(true, Ordering::Relaxed);
    }
}

/// A directory that nobody may reach, and its entries.
struct Outside(PathBuf);

impl Outside {
    fn new(world: &World) -> Self {
        let dir = world.work.dir("outside");
        std::fs::write(dir.join("f"), OUTSIDE).unwrap();
        std::fs::create_dir(dir.join("sub")).unwrap();
        std::fs::write(dir.join("sub/g"), OUTSIDE).unwrap();
        Self(dir)
    }

    fn check(&self) {
        let names: BTreeSet<_> = std::fs::read_dir(&self.0)
            .unwrap()
            .map(|entry| entry.unwrap().file_name())
            .collect();
        assert_eq!(names, ["f", "sub"].map(Into::into).into(), "{:?}", self.0);
        for file in ["f", "sub/g"] {
            assert_eq!(std::fs::read_to_string(self.0.join(file)).unwrap(), OUTSIDE);
        }
    }
}

/// Runs a command that may fail, but only with a code.
fn typed(world: &World, args: &[&str]) -> bool {
    let output = world.output(args);
    let json: serde_json::Value = serde_json::from_slice(&output.stdout)
        .unwrap_or_else(|error| panic!("{args:?}: {error}: {output:?}"));
    // A report names those that failed.
    let code = json["error"]["code"]
        .as_str()
        .or_else(|| json["failed"][0]["code"].as_str());
    assert_eq!(code.is_none(), output.status.success(), "{args:?}: {json}");
    assert_ne!(code, Some("Internal"), "{args:?}: {json}");
    output.status.success()
}

#[test]
fn a_suspend_saves_nothing_from_outside() {
    let world = World::new();
    let outside = Outside::new(&world);
    let files = [("a/f", "inside\n"), ("a/sub/g", "inside\n"), ("z", "z\n")];
    let (remote, url) = world.remote("up.git", "main", &files);
    world.ok(&["workspace", "init", "p"]);
    let mut swaps = 0;
    for round in 0..6 {
        let name = world.create_git("p", &url, &["--label", &format!("r{round}")]);
        let dir = world.dir("p", &name);
        symlink(&outside.0, dir.join("b")).unwrap();
        std::fs::write(dir.join("work"), "w").unwrap();
        let swapper = Swapper::start(dir.join("a"), dir.join("b"));
        for args in [
            &["workspace", "suspend", "p", "--dry-run"][..],
            &["rootdir", "list", "p"],
            &["workspace", "suspend", "p"],
        ] {
            typed(&world, args);
            outside.check();
        }
        swaps += swapper.end();
        world.ok(&["workspace", "init", "p"]);
        world.ok(&["rootdir", "dispose", "p", &name, "--force"]);
    }
    assert!(swaps > 100, "{swaps} swaps are no race");
    // Every object that ever reached the remote, our refs and what they lead to.
    let objects = "git cat-file --batch-all-objects --batch";
    let all = std::process::Command::new("sh")
        .args(["-c", objects])
        .current_dir(remote.path())
        .output()
        .unwrap();
    assert!(all.status.success() && !all.stdout.is_empty());
    let holds = |text: &[u8]| all.stdout.windows(text.len()).any(|window| window == text);
    assert!(holds(b"inside\n"), "the search finds what is there");
    assert!(
        !holds(OUTSIDE.as_bytes()),
        "content from outside was pushed"
    );
    outside.check();
}

#[test]
fn temp_files_are_made_in_their_root_dir_or_nowhere() {
    let world = World::new();
    let outside = Outside::new(&world);
    world.ok(&["workspace", "init", "p"]);
    let file = ["temp", "file", "p", "--creator", "c1", "--prefix", "x"];
    let made = world.ok(&file)["dirName"].as_str().unwrap().to_owned();
    let link = world.work.join("link");
    symlink(&outside.0, &link).unwrap();
    let swapper = Swapper::start(world.dir("p", &made), link.clone());
    for _ in 0..25 {
        typed(&world, &file);
        typed(
            &world,
            &["temp", "dir", "p", "--creator", "c1", "--prefix", "d"],
        );
        typed(&world, &["rootdir", "get", "p", &made]);
        outside.check();
    }
    typed(&world, &["rootdir", "dispose", "p", &made, "--force"]);
    outside.check();
    typed(&world, &["workspace", "dispose", "p", "--force"]);
    assert!(swapper.end() > 100);
    outside.check();
}

#[test]
fn a_project_that_turns_into_a_link_leads_nowhere() {
    let world = World::new();
    let outside = Outside::new(&world);
    world.ok(&["workspace", "init", "p"]);
    let link = world.work.join("link");
    symlink(&outside.0, &link).unwrap();
    let swapper = Swapper::start(world.root.join("p"), link);
    let create = ["rootdir", "create", "p", "--creator", "c", "--type", "temp"];
    for round in 0..15 {
        typed(&world, &create);
        typed(&world, &["workspace", "init", "p"]);
        typed(&world, &["rootdir", "list", "p"]);
        if round % 5 == 4 {
            typed(&world, &["workspace", "suspend", "p"]);
        }
        outside.check();
    }
    typed(&world, &["workspace", "dispose", "p", "--force"]);
    assert!(swapper.end() > 100);
    outside.check();
}

#[test]
fn links_that_lead_nowhere_yet_are_not_written_through() {
    let world = World::new();
    let outside = Outside::new(&world);
    world.ok(&["workspace", "init", "p"]);
    let project = world.root.join("p");
    for (link, target) in [
        ("x", "new-folder"),
        ("x.json", "new-file"),
        ("y.json", "new-descriptor"),
    ] {
        symlink(outside.0.join(target), project.join(link)).unwrap();
    }
    for label in ["x", "y"] {
        let name = world.create("p", &["--type", "temp", "--label", label]);
        assert!(real_dir(&world.dir("p", &name)), "{name}");
        let file = project.join(format!("{name}.json"));
        assert!(file.symlink_metadata().unwrap().is_file(), "{name}");
        outside.check();
    }
    // The file of the Workspace itself.
    let file = project.join("workspace.json");
    std::fs::remove_file(&file).unwrap();
    symlink(outside.0.join("new-workspace"), &file).unwrap();
    typed(&world, &["workspace", "init", "p"]);
    typed(&world, &["workspace", "suspend", "p"]);
    outside.check();
    // A temp RootDir that is a dangling link.
    let temp = ["temp", "file", "p", "--creator", "c1", "--prefix", "x"];
    if let Ok(made) = serde_json::from_slice::<serde_json::Value>(&world.output(&temp).stdout)
        && let Some(name) = made["dirName"].as_str()
    {
        std::fs::rename(world.dir("p", name), world.work.join("aside")).unwrap();
        symlink(outside.0.join("new-temp"), world.dir("p", name)).unwrap();
        assert!(!typed(&world, &temp), "a link is no RootDir");
    }
    outside.check();
}

fn real_dir(path: &Path) -> bool {
    path.symlink_metadata().is_ok_and(|found| found.is_dir())
}
