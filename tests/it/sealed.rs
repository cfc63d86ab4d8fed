//! Descriptors and `workspace.json` that somebody else wrote.

use serde_json::Value;

use crate::world::World;

fn one_temp() -> (World, String) {
    let world = World::new();
    world.ok(&["workspace", "init", "p"]);
    let name = world.create("p", &["--type", "temp", "--label", "one"]);
    std::fs::write(world.dir("p", &name).join("work"), "mine").unwrap();
    (world, name)
}

/// Changes a file of the Project's folder as a process that could write there would.
fn forge(world: &World, file: &str, change: impl FnOnce(&mut Value)) {
    let path = world.root.join("p").join(file);
    let mut document: Value = serde_json::from_slice(&std::fs::read(&path).unwrap()).unwrap();
    change(&mut document);
    std::fs::write(&path, serde_json::to_vec_pretty(&document).unwrap()).unwrap();
}

#[test]
fn a_changed_descriptor_is_refused_and_nothing_goes() {
    let (world, name) = one_temp();
    let other = world.create("p", &["--type", "temp", "--label", "other"]);
    for change in [
        (|d: &mut Value| d["type"] = "git".into()) as fn(&mut Value),
        |d| d["deleteOnCreatorClose"] = true.into(),
        |d| d["creatorProcessId"] = "somebody".into(),
        |d| d["metadata"] = serde_json::json!({"repoUrl": "https://evil.example/x"}),
        |d| drop(d.as_object_mut().unwrap().remove("seal")),
        |d| d["seal"] = format!("v1:{}", "0".repeat(64)).into(),
    ] {
        let path = world.root.join("p/one.json");
        let good = std::fs::read(&path).unwrap();
        forge(&world, "one.json", change);
        world.fails(&["rootdir", "get", "p", &name], "DescriptorDamaged");
        let error = world.fails(&["workspace", "suspend", "p"], "DescriptorDamaged");
        assert!(
            error["message"].as_str().unwrap().contains("seal"),
            "{error}"
        );
        world.fails(&["rootdir", "dispose", "p", &name], "DescriptorDamaged");
        world.ok(&["workspace", "init", "p"]);
        let listed = world.ok(&["rootdir", "list", "p"]);
        assert_eq!(listed["damaged"][0]["file"], "one.json", "{listed}");
        assert_eq!(listed["items"][0]["dirName"], *other, "{listed}");
        assert_eq!(
            std::fs::read(world.dir("p", &name).join("work")).unwrap(),
            b"mine"
        );
        std::fs::write(&path, good).unwrap();
        world.ok(&["rootdir", "get", "p", &name]);
    }
}

#[test]
fn a_seal_does_not_move_to_another_project_or_name() {
    let (world, name) = one_temp();
    world.ok(&["workspace", "init", "q"]);
    std::fs::create_dir(world.root.join("q/one")).unwrap();
    std::fs::copy(world.root.join("p/one.json"), world.root.join("q/one.json")).unwrap();
    world.fails(&["rootdir", "get", "q", &name], "DescriptorDamaged");
    std::fs::create_dir(world.root.join("p/two")).unwrap();
    std::fs::copy(world.root.join("p/one.json"), world.root.join("p/two.json")).unwrap();
    world.fails(&["rootdir", "get", "p", "two"], "DescriptorDamaged");
    // Nor does another state directory on the same root accept what it did not write itself.
    let stranger = world.command(&["rootdir", "get", "p", &name]);
    let mut stranger = stranger;
    stranger.env("WARREN_STATE_DIR", world.work.join("state2"));
    assert!(!stranger.output().unwrap().status.success());
}

#[test]
fn a_forged_workspace_file_cannot_make_a_folder_garbage() {
    let (world, name) = one_temp();
    // What a committed suspend leaves, so that the generation exists.
    world.create("p", &["--type", "temp", "--label", "more"]);
    for change in [
        (|d: &mut Value| {
            d["status"] = "SUSPENDING".into();
            d["generation"] = 0.into();
        }) as fn(&mut Value),
        |d| d["status"] = "DISPOSED".into(),
    ] {
        forge(&world, "workspace.json", change);
        world.fails(&["rootdir", "list", "p"], "DescriptorDamaged");
        world.ok(&["workspace", "init", "p"]);
        assert_eq!(
            std::fs::read(world.dir("p", &name).join("work")).unwrap(),
            b"mine"
        );
        world.ok(&["rootdir", "get", "p", &name]);
    }
}

#[test]
fn an_operator_can_accept_what_stands_there() {
    let (world, name) = one_temp();
    forge(&world, "one.json", |d| d["label"] = "renamed".into());
    std::fs::write(world.root.join("p/junk.json"), "{").unwrap();
    world.fails(&["rootdir", "get", "p", &name], "DescriptorDamaged");
    let resealed = world.ok(&["workspace", "reseal", "p"]);
    assert_eq!(resealed["resealed"], serde_json::json!(["one.json"]));
    assert_eq!(
        world.ok(&["rootdir", "get", "p", &name])["label"],
        "renamed"
    );
    let again = world.ok(&["workspace", "reseal", "p"]);
    assert_eq!(again["resealed"], serde_json::json!([]));
    // What is no Descriptor stays as it is.
    assert_eq!(std::fs::read(world.root.join("p/junk.json")).unwrap(), b"{");
    world.fails(&["workspace", "reseal", "nobody"], "WorkspaceNotFound");
}

#[test]
fn a_workspace_that_this_host_does_not_know_is_taken_over_once() {
    let (world, name) = one_temp();
    // As a host that seals nothing would have left it, with a store that knows nothing of it.
    for file in ["one.json", "workspace.json"] {
        forge(&world, file, |d| {
            drop(d.as_object_mut().unwrap().remove("seal"))
        });
    }
    std::fs::remove_dir_all(world.work.join("state")).unwrap();
    world.fails(&["rootdir", "get", "p", &name], "DescriptorDamaged");
    world.ok(&["workspace", "init", "p"]);
    assert_eq!(world.descriptor("p", &name)["label"], "one");
    // From now on, a file without a seal is somebody's forgery.
    forge(&world, "one.json", |d| {
        drop(d.as_object_mut().unwrap().remove("seal"))
    });
    world.ok(&["workspace", "init", "p"]);
    world.fails(&["rootdir", "get", "p", &name], "DescriptorDamaged");
}
