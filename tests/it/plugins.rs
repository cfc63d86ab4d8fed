//! The handlers are the components: taking one away or replacing it changes what the host does.

use crate::world::World;

#[test]
fn the_list_is_read_from_the_binaries() {
    let world = World::new();
    let listed = world.ok(&["plugin", "list"]);
    let items = listed["items"].as_array().unwrap();
    let types: Vec<_> = items
        .iter()
        .map(|item| item["type"].as_str().unwrap())
        .collect();
    assert_eq!(types, ["git", "python", "temp"]);
    let imports = |name: &str| {
        let shown = world.ok(&["plugin", "inspect", name]);
        assert_eq!(shown["witVersion"], "0.1.0", "{shown}");
        assert_eq!(shown["digest"].as_str().map(str::len), Some(64));
        shown["imports"].to_string()
    };
    assert!(!imports("temp").contains("warren:handler/git"));
    assert!(!imports("temp").contains("warren:handler/process"));
    assert!(imports("git").contains("warren:handler/git@0.1.0"));
    assert!(!imports("git").contains("warren:handler/process"));
    assert!(imports("python").contains("warren:handler/process@0.1.0"));
    let file = world.work.join("temp.wasm");
    std::fs::write(&file, warren_plugins::TEMP).unwrap();
    let shown = world.ok(&["plugin", "inspect", file.to_str().unwrap()]);
    assert_eq!(
        shown["digest"],
        world.ok(&["plugin", "inspect", "temp"])["digest"]
    );
}

#[test]
fn a_component_that_is_taken_away_takes_its_type_with_it() {
    let world = World::new();
    let (_remote, url) = world.remote("up.git", "main", &[("a", "a\n")]);
    world.ok(&["workspace", "init", "p"]);
    let name = world.create_git("p", &url, &["--label", "repo"]);
    let temp = world.create("p", &["--type", "temp", "--label", "scratch"]);
    world.repo("p", &name).write("new", "new\n");
    world.ok(&["workspace", "suspend", "p"]);

    world.configure("[plugins]\nshipped = [\"temp\"]\n");
    world.fails(
        &[
            "rootdir",
            "create",
            "p",
            "--type",
            "git",
            "--creator",
            "c",
            "--repo",
            &url,
        ],
        "UnknownHandler",
    );
    let report = world.ok_or_partial(&["workspace", "recover", "p"]);
    assert_eq!(report["failed"][0]["code"], "UnknownHandler", "{report}");
    assert_eq!(report["recovered"][0]["dirName"], temp.as_str());
    let listed = world.ok(&["rootdir", "list", "p"]);
    assert_eq!(listed["missingHandlers"][0], "git", "{listed}");
    assert_eq!(world.ok(&["workspace", "get", "p"])["snapshots"], 1);
    // A second suspend and a recover with the handler back still know it.
    world.ok(&["workspace", "suspend", "p"]);
    world.configure("");
    world.ok(&["workspace", "recover", "p"]);
    assert!(world.dir("p", &name).join("new").exists());
}

#[test]
fn a_component_that_is_replaced_is_what_runs() {
    let world = World::with_config("[plugins]\nshipped = [\"git\", \"python\"]\n");
    // A shipped type may be claimed by a file once the shipped component is left out.
    let dir = world.work.dir("state/plugins");
    std::fs::write(dir.join("temp.wasm"), warren_plugins::TEMP).unwrap();
    world.approve("temp");
    world.ok(&["workspace", "init", "p"]);
    let name = world.create("p", &["--type", "temp"]);
    let digest = world.descriptor("p", &name)["handler"]["digest"].clone();
    assert_eq!(digest, world.ok(&["plugin", "inspect", "temp"])["digest"]);
    // The same component with one more custom section is another one.
    let mut other = warren_plugins::TEMP.to_vec();
    other.extend_from_slice(&[0, 5, 4, b'n', b'o', b't', b'e']);
    std::fs::write(dir.join("temp.wasm"), other).unwrap();
    let refused = world.create_fails("p", &["--type", "temp"], "PluginNotApproved");
    assert!(
        refused["message"].as_str().unwrap().contains("digest"),
        "{refused}"
    );
    world.approve("temp");
    let name = world.create("p", &["--type", "temp"]);
    assert_ne!(digest, world.descriptor("p", &name)["handler"]["digest"]);
    // Without it nobody answers for the type.
    std::fs::remove_file(dir.join("temp.wasm")).unwrap();
    world.fails(
        &["rootdir", "create", "p", "--type", "temp", "--creator", "c"],
        "UnknownHandler",
    );
}

#[test]
fn files_that_are_no_components_are_named_and_cost_nobody_anything() {
    let world = World::new();
    let dir = world.work.dir("state/plugins");
    for (name, bytes) in [
        ("empty.wasm", &b""[..]),
        ("text.wasm", b"hello"),
        ("core.wasm", b"\0asm\x01\0\0\0"),
    ] {
        let file = dir.join(name);
        std::fs::write(&file, bytes).unwrap();
        let output = world.output(&["plugin", "inspect", file.to_str().unwrap()]);
        assert!(!output.status.success());
        world.ok(&["workspace", "init", "p"]);
        world.create("p", &["--type", "temp"]);
    }
}

#[test]
fn two_claims_of_one_type_are_an_error() {
    let world = World::new();
    let dir = world.work.dir("state/plugins");
    std::fs::write(dir.join("mine.wasm"), warren_plugins::TEMP).unwrap();
    std::fs::write(dir.join("other.wasm"), warren_plugins::GIT).unwrap();
    let listed = world.ok_or_partial(&["plugin", "list"]);
    assert_eq!(
        listed["items"].as_array().map(Vec::len),
        Some(3),
        "{listed}"
    );
    let failed = listed["failed"].as_array().unwrap();
    // Whatever the files are called: what they say that they are is shipped.
    for (failed, file) in failed.iter().zip(["mine.wasm", "other.wasm"]) {
        assert_eq!(failed["code"], "ReservedHandlerType", "{listed}");
        assert!(
            failed["origin"].as_str().unwrap().contains(file),
            "{listed}"
        );
    }
    assert_eq!(failed.len(), 2, "{listed}");
}
