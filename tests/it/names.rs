//! Names, ids, URLs and branches from hostile callers.

use std::collections::BTreeSet;

use crate::world::World;

#[test]
fn sixty_four_creates_with_one_hint_give_sixty_four_names() {
    let world = World::new();
    world.ok(&["workspace", "init", "p"]);
    let children: Vec<_> = (0..64)
        .map(|_| {
            world.spawn(&[
                "rootdir",
                "create",
                "p",
                "--type",
                "temp",
                "--creator",
                "c",
                "--label",
                "x",
            ])
        })
        .collect();
    let mut names = BTreeSet::new();
    for child in children {
        let output = child.wait_with_output().unwrap();
        assert!(
            output.status.success(),
            "{}",
            String::from_utf8_lossy(&output.stderr)
        );
        let json: serde_json::Value = serde_json::from_slice(&output.stdout).unwrap();
        assert!(names.insert(json["dirName"].as_str().unwrap().to_owned()));
    }
    assert_eq!(names.len(), 64);
    assert!(names.contains("x") && names.contains("x-64"), "{names:?}");
    for name in &names {
        assert!(world.dir("p", name).is_dir());
        assert_eq!(world.descriptor("p", name)["label"], "x");
    }
}

#[test]
fn service_files_cannot_be_claimed() {
    let world = World::new();
    world.ok(&["workspace", "init", "p"]);
    let file = world.root.join("p/workspace.json");
    let before = std::fs::read(&file).unwrap();
    let mut names = BTreeSet::new();
    for hint in [
        "a.json",
        "a",
        "workspace",
        "workspace.json",
        ".",
        "..",
        "",
        "a/b",
        "-rf",
        "a\nb",
        "\u{202e}gnp.exe",
    ] {
        let name = world.create("p", &["--type", "temp", "--label", hint]);
        assert!(
            names.insert(name.to_lowercase()),
            "{hint:?} gave {name} again"
        );
        assert!(
            !name.starts_with(['-', '.']) && !name.ends_with(".json"),
            "{name}"
        );
        assert_eq!(world.descriptor("p", &name)["label"], hint);
    }
    assert_eq!(std::fs::read(&file).unwrap(), before);
    let listed = world.ok(&["rootdir", "list", "p"]);
    assert_eq!(listed["items"].as_array().unwrap().len(), names.len());
    assert!(listed.get("orphans").is_none(), "{listed}");
}

#[test]
fn twins_get_names_of_their_own() {
    let world = World::new();
    world.ok(&["workspace", "init", "p"]);
    let mut names = BTreeSet::new();
    for hint in ["x-2", "x", "x", "X", "é", "e\u{301}", "x.", "x "] {
        let name = world.create("p", &["--type", "temp", "--label", hint]);
        assert!(
            names.insert(name.to_lowercase()),
            "{hint:?} gave {name} again"
        );
    }
    assert_eq!(names.len(), 8);
}

#[test]
fn long_hints_fit_with_every_suffix() {
    let world = World::new();
    world.ok(&["workspace", "init", "p"]);
    let (_remote, url) = world.remote("up.git", "main", &[("a", "a\n")]);
    let long = "a".repeat(250);
    for _ in 0..3 {
        let name = world.create_git("p", &url, &["--label", &long]);
        world.repo("p", &name).write("new", "new\n");
    }
    let hangul = "한".repeat(100);
    let name = world.create("p", &["--type", "temp", "--label", &hangul]);
    assert_eq!(world.descriptor("p", &name)["label"], hangul);
    world.ok(&["workspace", "suspend", "p"]);
}

#[test]
fn ids_that_are_paths_are_refused_before_anything_is_touched() {
    let world = World::new();
    for id in ["..", "a/../b", "", ".", "a\\b", "a\nb"] {
        world.fails(&["workspace", "init", id], "InvalidName");
        world.fails(&["workspace", "dispose", id], "InvalidName");
        world.fails(&["workspace", "init", "p", "--tenant", id], "InvalidName");
    }
    assert!(!world.root.exists() || std::fs::read_dir(&world.root).unwrap().next().is_none());
    world.ok(&["workspace", "init", "..%2fP2"]);
    assert!(world.root.join("%2E.%252fP2").is_dir());
    world.fails(&["workspace", "get", "workspaces"], "WorkspaceNotFound");
}

#[test]
fn one_folder_is_never_shared_by_two_tenants() {
    let world = World::new();
    world.ok(&["workspace", "init", "p", "--tenant", "a"]);
    world.fails(
        &["workspace", "init", "p", "--tenant", "b"],
        "WorkspaceConflict",
    );
    world.fails(
        &[
            "rootdir",
            "create",
            "p",
            "--tenant",
            "b",
            "--type",
            "temp",
            "--creator",
            "c",
        ],
        "WorkspaceConflict",
    );
}

#[test]
fn urls_that_reach_further_are_refused_without_a_trace() {
    let world = World::new();
    world.ok(&["workspace", "init", "p"]);
    let (_remote, _url) = world.remote("up.git", "main", &[("a", "a\n")]);
    let path = world.work.join("remotes/up.git");
    let path = path.to_str().unwrap();
    for url in [
        "ext::sh -c touch% PWN",
        "fd::17",
        "-oProxyCommand=touch PWN",
        "ssh://-oProxyCommand=x/a",
        path,
        "up.git",
        &format!("file://{path}"),
        "git@169.254.169.254:x",
        "http://good.example@127.0.0.1/x",
        "http://2130706433/x.git",
        "http://[::ffff:127.0.0.1]/x.git",
        "https://localhost/x.git",
        "git://example.com/x.git",
        "",
    ] {
        let output = world.output(&[
            "rootdir",
            "create",
            "p",
            "--creator",
            "c",
            "--type",
            "git",
            &format!("--repo={url}"),
        ]);
        let json: serde_json::Value = serde_json::from_slice(&output.stdout).unwrap();
        let code = json["error"]["code"].as_str().unwrap_or_default();
        assert!(
            ["GitDenied", "GitInvalidArgument", "InvalidMetadata"].contains(&code),
            "{url:?} gave {json}"
        );
    }
    let listed = world.ok(&["rootdir", "list", "p"]);
    assert_eq!(listed["items"].as_array().map(Vec::len), Some(0));
    assert!(!world.work.join("PWN").exists());
    assert!(
        world.http.seen().is_empty(),
        "nothing was asked of the server"
    );
}

#[test]
fn branches_that_are_options_are_refused() {
    let world = World::new();
    let (_remote, url) = world.remote("up.git", "main", &[("a", "a\n")]);
    world.ok(&["workspace", "init", "p"]);
    for branch in [
        "--upload-pack=touch PWN",
        "-x",
        "a..b",
        "a b",
        "refs/../x",
        "@{upstream}",
        "a\nb",
    ] {
        let branch = format!("--branch={branch}");
        world.create_fails(
            "p",
            &["--type", "git", "--repo", &url, &branch],
            "GitInvalidArgument",
        );
    }
    assert!(
        world.http.seen().is_empty(),
        "nothing was asked of the server"
    );
}

#[test]
fn temp_parts_are_no_paths() {
    let world = World::new();
    world.ok(&["workspace", "init", "p"]);
    for prefix in ["../x", "a/b", "-rf"] {
        let prefix = format!("--prefix={prefix}");
        world.fails(
            &["temp", "file", "p", "--creator", "c", &prefix],
            "InvalidArgument",
        );
    }
    let first = world.ok(&[
        "temp",
        "file",
        "p",
        "--creator",
        "c",
        "--prefix",
        "x",
        "--suffix",
        ".json",
    ]);
    let second = world.ok(&["temp", "dir", "p", "--creator", "c", "--prefix", "x"]);
    assert_eq!(
        first["dirName"], second["dirName"],
        "one temp RootDir a creator"
    );
    assert!(std::path::Path::new(first["path"].as_str().unwrap()).is_file());
    assert!(std::path::Path::new(second["path"].as_str().unwrap()).is_dir());
    let other = world.ok(&["temp", "dir", "p", "--creator", "c2", "--prefix", "x"]);
    assert_ne!(first["dirName"], other["dirName"]);
}
