//! Workspaces and RootDirs from their first to their last day.

use crate::world::World;

#[test]
fn init_is_idempotent_and_a_disposed_workspace_starts_afresh() {
    let world = World::new();
    world.fails(&["workspace", "get", "p"], "WorkspaceNotFound");
    world.fails(
        &["rootdir", "create", "p", "--type", "temp", "--creator", "c"],
        "WorkspaceNotFound",
    );
    for _ in 0..2 {
        assert_eq!(
            world.ok(&["workspace", "init", "p"])["workspace"]["status"],
            "RUNNING"
        );
    }
    let name = world.create("p", &["--type", "temp", "--label", "x"]);
    std::fs::write(world.dir("p", &name).join("f"), "f").unwrap();
    let plan = world.ok(&["workspace", "dispose", "p", "--dry-run"]);
    assert_eq!(plan["lost"][0]["files"], 1, "{plan}");
    assert!(world.dir("p", &name).join("f").exists());
    world.ok(&["workspace", "dispose", "p"]);
    assert!(!world.root.join("p").exists());
    assert_eq!(world.status("p"), "DISPOSED");
    world.fails(
        &["rootdir", "create", "p", "--type", "temp", "--creator", "c"],
        "WorkspaceDisposed",
    );
    world.fails(&["workspace", "suspend", "p"], "WorkspaceDisposed");
    world.fails(&["workspace", "recover", "p"], "WorkspaceDisposed");
    world.ok(&["workspace", "init", "p"]);
    assert_eq!(
        world.ok(&["rootdir", "list", "p"])["items"]
            .as_array()
            .map(Vec::len),
        Some(0)
    );
}

#[test]
fn temp_content_is_named_as_lost_and_comes_back_empty() {
    let mut world = World::new();
    world.ok(&["workspace", "init", "p"]);
    let name = world.create("p", &["--type", "temp", "--label", "scratch"]);
    std::fs::write(world.dir("p", &name).join("notes.txt"), "x").unwrap();
    let plan = world.ok(&["workspace", "suspend", "p", "--dry-run"]);
    assert_eq!(plan["dryRun"], true);
    assert_eq!(plan["roots"][0]["loss"][0]["kind"], "ephemeral", "{plan}");
    assert_eq!(plan["roots"][0]["loss"][0]["path"], "notes.txt");
    assert!(world.dir("p", &name).join("notes.txt").exists());
    world.move_away("p");
    assert_eq!(std::fs::read_dir(world.dir("p", &name)).unwrap().count(), 0);
}

#[test]
fn the_creator_takes_its_own_and_only_that() {
    let world = World::new();
    world.ok(&["workspace", "init", "p"]);
    let make = |creator: &str, more: &[&str]| {
        let args = [
            &[
                "rootdir",
                "create",
                "p",
                "--type",
                "temp",
                "--creator",
                creator,
            ],
            more,
        ]
        .concat();
        world.ok(&args)["dirName"].as_str().unwrap().to_owned()
    };
    let gone = make("p-1", &["--delete-on-close"]);
    let kept = make("p-1", &[]);
    let other = make("p-10", &["--delete-on-close"]);
    world.ok(&["workdir", "set", "p", "--creator", "p-1", &gone]);
    let report = world.ok(&["rootdir", "dispose", "p", "--creator", "p-1", "--dry-run"]);
    assert_eq!(report["disposed"][0], gone.as_str());
    assert!(world.dir("p", &gone).exists());
    let report = world.ok(&["rootdir", "dispose", "p", "--creator", "p-1"]);
    assert_eq!(report["disposed"].as_array().unwrap().len(), 1);
    assert_eq!(report["kept"][0], kept.as_str());
    assert!(!world.dir("p", &gone).exists());
    assert!(world.dir("p", &kept).exists() && world.dir("p", &other).exists());
    world.fails(&["rootdir", "dispose", "p", "--creator", ""], "InvalidName");
}

#[test]
fn one_that_cannot_be_closed_does_not_stop_the_others() {
    let world = World::new();
    let (remote, url) = world.remote("up.git", "main", &[("a", "a\n")]);
    remote.hook("pre-receive", "#!/bin/sh\nexit 1\n");
    world.ok(&["workspace", "init", "p"]);
    let stuck = world.create_git(
        "p",
        &url,
        &[
            "--label",
            "stuck",
            "--delete-on-close",
            "--meta",
            "commitOnClose:=true",
        ],
    );
    let temp = world.create("p", &["--type", "temp", "--delete-on-close"]);
    world.repo("p", &stuck).write("a", "edited\n");
    let report = world.ok_or_partial(&["rootdir", "dispose", "p", "--creator", "c1"]);
    assert_eq!(report["failed"][0]["dirName"], stuck.as_str(), "{report}");
    assert_eq!(report["failed"][0]["code"], "GitRejected");
    assert!(world.dir("p", &stuck).join("a").exists());
    assert!(!world.dir("p", &temp).exists());
    world.fails(&["rootdir", "dispose", "p", &stuck], "GitRejected");
    world.ok(&["rootdir", "dispose", "p", &stuck, "--force"]);
    assert!(!world.dir("p", &stuck).exists());
}

#[test]
fn commit_on_close_pushes_to_the_branch() {
    let world = World::new();
    let (remote, url) = world.remote("up.git", "main", &[("a", "a\n")]);
    world.ok(&["workspace", "init", "p"]);
    let name = world.create_git("p", &url, &["--meta", "commitOnClose:=true"]);
    world.repo("p", &name).write("a", "edited\n");
    world.repo("p", &name).write("b", "new\n");
    world.ok(&["rootdir", "dispose", "p", &name]);
    assert_eq!(remote.git(&["show", "main:a"]), "edited");
    assert_eq!(remote.git(&["show", "main:b"]), "new");
}

#[test]
fn working_dirs_follow_their_creator() {
    let world = World::new();
    world.ok(&["workspace", "init", "p"]);
    let name = world.create("p", &["--type", "temp", "--label", "w"]);
    assert!(
        world
            .ok(&["workdir", "get", "p", "--creator", "c1"])
            .is_null()
    );
    world.ok(&["workdir", "set", "p", "--creator", "c1", &name]);
    assert_eq!(
        world.ok(&["workdir", "get", "p", "--creator", "c1"])["dirName"],
        name.as_str()
    );
    assert!(
        world
            .ok(&["workdir", "get", "p", "--creator", "c2"])
            .is_null()
    );
    world.fails(
        &["workdir", "set", "p", "--creator", "c1", "nowhere"],
        "RootDirNotFound",
    );
    world.ok(&["workdir", "clear", "p", "--creator", "c1"]);
    assert!(
        world
            .ok(&["workdir", "get", "p", "--creator", "c1"])
            .is_null()
    );
}

#[test]
fn lists_page() {
    let world = World::new();
    for project in ["a", "b", "c"] {
        world.ok(&["workspace", "init", project]);
    }
    for label in ["x", "y", "z"] {
        world.create("a", &["--type", "temp", "--label", label]);
    }
    let names = |page: &serde_json::Value, key: &str| -> Vec<String> {
        let items = page["items"].as_array().unwrap().iter();
        items
            .map(|item| item[key].as_str().unwrap().to_owned())
            .collect()
    };
    let first = world.ok(&["workspace", "list", "--limit", "2"]);
    assert_eq!(names(&first, "projectId"), ["a", "b"]);
    let next = first["next"].as_str().unwrap();
    let second = world.ok(&["workspace", "list", "--limit", "2", "--after", next]);
    assert_eq!(names(&second, "projectId"), ["c"]);
    assert!(second["next"].is_null());
    let first = world.ok(&["rootdir", "list", "a", "--limit", "2"]);
    assert_eq!(names(&first, "dirName"), ["x", "y"]);
    let next = first["next"].as_str().unwrap();
    assert_eq!(
        names(
            &world.ok(&["rootdir", "list", "a", "--after", next]),
            "dirName"
        ),
        ["z"]
    );
}

#[test]
fn a_damaged_descriptor_costs_nobody_anything() {
    let world = World::new();
    world.ok(&["workspace", "init", "p"]);
    let bad = world.create("p", &["--type", "temp", "--label", "bad"]);
    let good = world.create("p", &["--type", "temp", "--label", "good"]);
    std::fs::write(world.dir("p", &bad).join("f"), "f").unwrap();
    let file = world.root.join("p/bad.json");
    let whole = std::fs::read(&file).unwrap();
    for damage in [
        &b""[..],
        &[0; 300],
        &whole[..whole.len() / 2],
        &[&whole[..], b"x"].concat(),
    ] {
        std::fs::write(&file, damage).unwrap();
        world.ok(&["workspace", "init", "p"]);
        let listed = world.ok(&["rootdir", "list", "p"]);
        assert_eq!(listed["damaged"][0]["file"], "bad.json", "{listed}");
        assert_eq!(listed["items"][0]["dirName"], good.as_str());
        world.fails(&["workspace", "suspend", "p"], "DescriptorDamaged");
        world.fails(&["rootdir", "get", "p", &bad], "DescriptorDamaged");
        world.fails(&["workspace", "dispose", "p"], "DescriptorDamaged");
        assert!(world.dir("p", &bad).join("f").exists());
    }
    std::fs::write(&file, &whole).unwrap();
    world.ok(&["workspace", "suspend", "p"]);
}

#[test]
fn a_damaged_workspace_file_is_set_aside_and_written_anew() {
    let world = World::new();
    world.ok(&["workspace", "init", "p"]);
    let name = world.create("p", &["--type", "temp", "--label", "x"]);
    let file = world.root.join("p/workspace.json");
    for damage in [&b""[..], &[0; 100], b"{\"tenant\":"] {
        std::fs::write(&file, damage).unwrap();
        world.fails(&["rootdir", "list", "p"], "DescriptorDamaged");
        world.ok(&["workspace", "init", "p"]);
        assert_eq!(
            world.ok(&["rootdir", "list", "p"])["items"][0]["dirName"],
            name.as_str()
        );
    }
}

#[test]
fn content_that_no_descriptor_knows_is_never_thrown_away() {
    let world = World::new();
    world.ok(&["workspace", "init", "p"]);
    let stranger = world.root.join("p/stranger");
    std::fs::create_dir(&stranger).unwrap();
    std::fs::write(stranger.join("work"), "w").unwrap();
    for command in ["suspend", "dispose"] {
        let error = world.fails(&["workspace", command, "p"], "OrphanedContent");
        assert!(
            error["message"].as_str().unwrap().contains("stranger"),
            "{error}"
        );
    }
    assert!(stranger.join("work").exists());
    // Its name is never given away.
    assert_eq!(
        world.create("p", &["--type", "temp", "--label", "stranger"]),
        "stranger-2"
    );
}

#[test]
fn tenants_may_have_folders_of_their_own() {
    let mut world = World::with_config("[workspace]\nlayout = \"tenant\"\n");
    for tenant in ["a", "b"] {
        world.ok(&["workspace", "init", "p", "--tenant", tenant]);
        let args = [
            "rootdir", "create", "p", "--tenant", tenant, "--type", "temp",
        ];
        world.ok(&[&args[..], &["--creator", "c", "--label", "x"]].concat());
        assert!(world.root.join(tenant).join("p/x").is_dir());
    }
    world.ok(&["workspace", "suspend", "p", "--tenant", "a"]);
    assert!(!world.root.join("a/p").exists() && world.root.join("b/p/x").is_dir());
    world.root = world.work.join("ws2");
    world.ok(&["workspace", "recover", "p", "--tenant", "a"]);
    assert!(world.root.join("a/p/x").is_dir());
    world.configure("[workspace]\nlayout = \"flat\"\n");
    world.fails(&["workspace", "list"], "ConfigInvalid");
}
