//! What a Project's folder may hold beside what the host put there: leftovers, files of other
//! people, folders of other tenants, documents that somebody has edited.

use std::os::unix::fs::symlink;
use std::time::{Duration, SystemTime};

use crate::world::World;

/// Names of files that a killed writer leaves behind.
fn leftover(n: u8) -> String {
    format!(".warren-{}{n:02x}.tmp", "0".repeat(30))
}

fn write_old(path: &std::path::Path) {
    std::fs::write(path, "half").unwrap();
    let file = std::fs::File::options().write(true).open(path).unwrap();
    let then = SystemTime::now() - Duration::from_secs(2 * 3600);
    file.set_modified(then).unwrap();
}

fn is_there(path: &std::path::Path) -> bool {
    path.symlink_metadata().is_ok()
}

#[test]
fn init_takes_away_what_killed_writers_left() {
    let world = World::new();
    let (remote, url) = world.remote("up.git", "main", &[("a", "a\n")]);
    world.ok(&["workspace", "init", "p"]);
    world.create_git("p", &url, &["--label", "repo"]);
    let state = world.work.join("state");
    let mirror = std::fs::read_dir(state.join("mirrors")).unwrap().next();
    let mirror = mirror.unwrap().unwrap().path();

    let in_project = [1, 2].map(|n| world.root.join("p").join(leftover(n)));
    for path in &in_project {
        std::fs::write(path, "half").unwrap();
    }
    // Other hosts may be writing here: only what is old goes.
    let old = [
        state.join(leftover(3)),
        state.join("cache").join(leftover(4)),
    ];
    let young = state.join("cache").join(leftover(5));
    old.iter().for_each(|path| write_old(path));
    std::fs::write(&young, "half").unwrap();
    // Boxes whose owner was killed; its lock went with it.
    let boxes = ["a1-0", "a1-1"].map(|name| state.join("scratch").join(name));
    for path in &boxes {
        std::fs::create_dir_all(path.join("repo.git/objects")).unwrap();
        std::fs::write(path.join("lock"), "").unwrap();
    }
    let in_mirror = [
        mirror.join(leftover(6)),
        mirror.join("upstream.git").join(leftover(7)),
    ];
    for path in &in_mirror {
        std::fs::write(path, "half").unwrap();
    }

    world.ok(&["workspace", "init", "p"]);
    for path in in_project.iter().chain(&old).chain(&boxes) {
        assert!(!is_there(path), "{path:?}");
    }
    assert!(is_there(&young));
    // A mirror is swept when it is next changed, under its lock.
    remote.seed("other", &[("b", "b\n")]);
    world.create_git("p", &url, &["--label", "again"]);
    for path in &in_mirror {
        assert!(!is_there(path), "{path:?}");
    }
}

#[test]
fn a_hidden_file_of_somebody_is_never_thrown_away() {
    let world = World::new();
    world.ok(&["workspace", "init", "p"]);
    world.create("p", &["--type", "temp", "--label", "x"]);
    let file = world.root.join("p/.env");
    let folder = world.root.join("p/.notes");
    let almost = world.root.join("p/.warren-mine.tmp");
    let folder_like_ours = world.root.join("p").join(leftover(9));
    std::fs::write(&file, "KEY=1").unwrap();
    std::fs::create_dir(&folder).unwrap();
    std::fs::write(folder.join("n"), "n").unwrap();
    std::fs::write(&almost, "mine").unwrap();
    std::fs::create_dir(&folder_like_ours).unwrap();
    std::fs::write(folder_like_ours.join("m"), "m").unwrap();
    world.ok(&["workspace", "init", "p"]);
    for command in ["suspend", "dispose"] {
        let error = world.fails(&["workspace", command, "p"], "OrphanedContent");
        let said = error["message"].as_str().unwrap();
        assert!(said.contains(".env") && said.contains(".notes"), "{error}");
    }
    for path in [
        &file,
        &folder.join("n"),
        &almost,
        &folder_like_ours.join("m"),
    ] {
        assert!(is_there(path), "{path:?}");
    }
    world.ok(&["workspace", "dispose", "p", "--force"]);
    assert!(!world.root.join("p").exists());
}

#[test]
fn a_folder_of_another_tenant_in_place_is_left_as_it_is() {
    let mut world = World::new();
    let (_remote, url) = world.remote("up.git", "main", &[("a", "a\n")]);
    world.ok(&["workspace", "init", "p"]);
    let name = world.create_git("p", &url, &[]);
    world.repo("p", &name).write("a", "mine\n");
    world.ok(&["workspace", "suspend", "p"]);

    let home = world.root.clone();
    world.root = world.work.join("elsewhere");
    world.ok(&["workspace", "init", "p", "--tenant", "b"]);
    let theirs = [
        "rootdir",
        "create",
        "p",
        "--tenant",
        "b",
        "--type",
        "temp",
        "--creator",
        "c",
    ];
    let made = world.ok(&theirs)["dirName"].as_str().unwrap().to_owned();
    std::fs::write(world.dir("p", &made).join("theirs"), "t").unwrap();
    std::fs::create_dir_all(&home).unwrap();
    std::fs::rename(world.root.join("p"), home.join("p")).unwrap();
    world.root = home;

    // The Snapshots wait and a folder is there, but it is not ours.
    for command in ["init", "recover", "suspend", "dispose"] {
        world.fails(&["workspace", command, "p"], "WorkspaceConflict");
    }
    world.fails(
        &["workspace", "dispose", "p", "--force"],
        "WorkspaceConflict",
    );
    world.fails(&["rootdir", "list", "p"], "WorkspaceConflict");
    assert!(world.dir("p", &made).join("theirs").exists());

    std::fs::rename(world.root.join("p"), world.work.join("aside")).unwrap();
    world.ok(&["workspace", "recover", "p"]);
    assert_eq!(
        std::fs::read_to_string(world.dir("p", &name).join("a")).unwrap(),
        "mine\n"
    );
}

#[test]
fn a_link_in_the_place_of_a_folder_is_not_followed() {
    let world = World::new();
    world.ok(&["workspace", "init", "p"]);
    let name = world.create("p", &["--type", "temp", "--label", "x"]);
    let elsewhere = world.work.dir("elsewhere");
    std::fs::write(elsewhere.join("keep"), "k").unwrap();
    // The RootDir.
    std::fs::remove_dir(world.dir("p", &name)).unwrap();
    symlink(&elsewhere, world.dir("p", &name)).unwrap();
    assert!(
        !world
            .output(&["workspace", "suspend", "p"])
            .status
            .success()
    );
    world.ok(&["rootdir", "dispose", "p", &name, "--force"]);
    assert!(elsewhere.join("keep").exists() && !is_there(&world.dir("p", &name)));
    // The Project.
    std::fs::rename(world.root.join("p"), world.root.join("moved")).unwrap();
    symlink(&elsewhere, world.root.join("p")).unwrap();
    for command in ["init", "suspend", "dispose"] {
        assert!(!world.output(&["workspace", command, "p"]).status.success());
    }
    let names: Vec<_> = std::fs::read_dir(&elsewhere).unwrap().collect();
    assert_eq!(names.len(), 1, "{names:?}");
}

#[test]
fn two_names_of_one_root_are_one_root() {
    let world = World::new();
    world.ok(&["workspace", "init", "p"]);
    let alias = world.work.join("alias");
    symlink(&world.root, &alias).unwrap();
    let create = [
        "rootdir",
        "create",
        "p",
        "--type",
        "temp",
        "--creator",
        "c",
        "--label",
        "x",
    ];
    let mut children = Vec::new();
    for _ in 0..6 {
        children.push(world.spawn(&create));
        let mut command = world.command(&create);
        command.env("WARREN_WORKSPACE_ROOT", &alias);
        children.push(
            command
                .stdout(std::process::Stdio::piped())
                .spawn()
                .unwrap(),
        );
    }
    for child in children {
        assert!(child.wait_with_output().unwrap().status.success());
    }
    let listed = world.ok(&["rootdir", "list", "p"]);
    assert_eq!(
        listed["items"].as_array().map(Vec::len),
        Some(12),
        "{listed}"
    );
    assert!(listed.get("orphans").is_none(), "{listed}");
}

/// A child that escapes its RootDir must not steer the host by its Descriptor.
#[test]
fn an_edited_descriptor_saves_and_deletes_nothing() {
    let world = World::new();
    let (remote, url) = world.remote("up.git", "main", &[("a", "a\n")]);
    world.ok(&["workspace", "init", "p"]);
    let name = world.create_git("p", &url, &["--label", "repo"]);
    let victim = world.create("p", &["--type", "temp", "--label", "victim"]);
    std::fs::write(world.dir("p", &victim).join("keep"), "k").unwrap();
    world.repo("p", &name).write("a", "mine\n");
    let file = world.root.join("p/repo.json");
    let good = world.descriptor("p", &name);
    for (field, value, code) in [
        ("dirName", "victim", "DescriptorDamaged"),
        ("dirName", "../p2", "DescriptorDamaged"),
        ("tenant", "other", "DescriptorDamaged"),
        ("projectId", "other", "DescriptorDamaged"),
        ("type", "../temp", "DescriptorDamaged"),
        ("type", "nobody", "UnknownHandler"),
    ] {
        let mut bad = good.clone();
        bad[field] = value.into();
        std::fs::write(&file, bad.to_string()).unwrap();
        world.fails(&["workspace", "suspend", "p"], "DescriptorDamaged");
        // Behind the seal, what it says is held against its place.
        world.ok(&["workspace", "reseal", "p"]);
        world.fails(&["workspace", "suspend", "p"], code);
        world.fails(&["workspace", "dispose", "p"], code);
        world.fails(&["rootdir", "dispose", "p", &name], code);
    }
    for url in ["https://169.254.169.254/x.git", "/etc", "ext::sh -c id"] {
        let mut bad = good.clone();
        bad["metadata"]["repoUrl"] = url.into();
        std::fs::write(&file, bad.to_string()).unwrap();
        world.ok(&["workspace", "reseal", "p"]);
        let output = world.output(&["workspace", "suspend", "p"]);
        assert!(!output.status.success(), "{url}");
    }
    assert!(world.dir("p", &victim).join("keep").exists());
    assert!(world.dir("p", &name).join("a").exists());
    assert_eq!(remote.git(&["branch", "--list", "vance/*"]), "");
    std::fs::write(&file, good.to_string()).unwrap();
    world.ok(&["workspace", "reseal", "p"]);
    world.ok(&["workspace", "suspend", "p"]);
}

#[test]
fn a_type_that_nobody_handles_is_shown_and_goes_only_by_force() {
    let world = World::new();
    world.ok(&["workspace", "init", "p"]);
    let name = world.create("p", &["--type", "temp", "--label", "old"]);
    let fine = world.create("p", &["--type", "temp", "--label", "fine"]);
    let mut descriptor = world.descriptor("p", &name);
    descriptor["type"] = "persistent".into();
    std::fs::write(world.root.join("p/old.json"), descriptor.to_string()).unwrap();
    world.ok(&["workspace", "reseal", "p"]);
    world.ok(&["workspace", "init", "p"]);
    let listed = world.ok(&["rootdir", "list", "p"]);
    assert_eq!(listed["missingHandlers"][0], "persistent", "{listed}");
    assert_eq!(listed["items"].as_array().map(Vec::len), Some(2));
    world.fails(&["workspace", "suspend", "p"], "UnknownHandler");
    assert!(world.dir("p", &name).exists() && world.dir("p", &fine).exists());
    world.fails(&["rootdir", "dispose", "p", &name], "UnknownHandler");
    world.ok(&["rootdir", "dispose", "p", &name, "--force"]);
    assert!(!world.dir("p", &name).exists());
    world.ok(&["workspace", "suspend", "p"]);
}

#[test]
fn a_second_recover_does_only_what_failed() {
    let world = World::new();
    let (remote, url) = world.remote("up.git", "main", &[("a", "a\n")]);
    world.ok(&["workspace", "init", "p"]);
    let [one, two] = ["one", "two"].map(|label| {
        let name = world.create_git("p", &url, &["--label", label]);
        world.repo("p", &name).write("work", "w\n");
        name
    });
    let temp = world.create("p", &["--type", "temp", "--label", "scratch"]);
    world.ok(&["workspace", "suspend", "p"]);
    let at = "refs/heads/vance/suspend/two";
    let saved = remote.git(&["rev-parse", at]);
    remote.git(&["update-ref", "refs/keep/two", at]);
    remote.git(&["update-ref", "-d", at]);

    let report = world.ok_or_partial(&["workspace", "recover", "p"]);
    assert_eq!(report["failed"][0]["dirName"], two.as_str(), "{report}");
    assert_eq!(report["recovered"].as_array().map(Vec::len), Some(2));
    // Work goes on in what is back.
    std::fs::write(world.dir("p", &one).join("later"), "l").unwrap();
    std::fs::write(world.dir("p", &temp).join("later"), "l").unwrap();
    let again = world.ok_or_partial(&["workspace", "recover", "p"]);
    assert_eq!(again["failed"].as_array().map(Vec::len), Some(1), "{again}");

    remote.git(&["update-ref", at, saved.trim()]);
    let last = world.ok(&["workspace", "recover", "p"]);
    assert_eq!(
        last["recovered"].as_array().map(Vec::len),
        Some(1),
        "{last}"
    );
    assert!(world.dir("p", &two).join("work").exists());
    assert!(world.dir("p", &one).join("later").exists());
    assert!(world.dir("p", &temp).join("later").exists());
    assert_eq!(world.ok(&["workspace", "get", "p"])["snapshots"], 0);
}
