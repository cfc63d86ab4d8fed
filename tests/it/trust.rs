//! Grants, approvals and manifests through the program: what loads, what does not, and what is said.

use std::path::PathBuf;

use serde_json::Value;

use crate::world::World;

const POLICY: &str = "[plugin.hostile]\nroot = \"read-write\"\nlog = true\nprogress = true\n\
    [plugin.hostile.git]\nremotes = [\"@allow\"]\n[plugin.hostile.process]\nprograms = [\"sleep\"]\n";

/// A world with the guest of `tests/guests` in the plugin directory, under a policy.
fn world(policy: &str) -> World {
    let world = World::new();
    world.policy(policy);
    world.install("hostile.wasm", warren_testkit::hostile());
    world
}

/// What `plugin list` says of the one component that did not load.
fn refused(world: &World) -> Value {
    let listed = world.ok(&["plugin", "list"]);
    let failed = listed["failed"].as_array().unwrap();
    assert_eq!(failed.len(), 1, "{listed}");
    failed[0].clone()
}

fn loads(world: &World, handler: &str) -> bool {
    let listed = world.ok(&["plugin", "list"]);
    let items = listed["items"].as_array().unwrap();
    items.iter().any(|item| item["type"] == handler)
}

/// A component with another manifest in the place of its own, which must be the longer one.
fn with_manifest(component: &[u8], change: impl FnOnce(String) -> String) -> Vec<u8> {
    let old = warren_policy::find_section(component).unwrap();
    // The text may be elsewhere in the binary too.
    let at = old.as_ptr() as usize - component.as_ptr() as usize;
    let mut new = change(String::from_utf8(old.to_vec()).unwrap());
    assert!(new.len() <= old.len(), "the section keeps its length");
    new.push_str(&" ".repeat(old.len() - new.len()));
    let mut bytes = component.to_vec();
    bytes[at..at + old.len()].copy_from_slice(new.as_bytes());
    bytes
}

fn without(manifest: String, table: &str) -> String {
    let tables = manifest
        .split("\n\n")
        .filter(|part| !part.starts_with(table));
    tables.collect::<Vec<_>>().join("\n\n")
}

fn file(world: &World, name: &str, bytes: &[u8]) -> PathBuf {
    let path = world.work.join(name);
    std::fs::write(&path, bytes).unwrap();
    path
}

#[test]
fn a_plugin_loads_when_somebody_approved_it_and_not_before() {
    let world = world(POLICY);
    world.ok(&["workspace", "init", "p"]);
    let error = refused(&world);
    assert_eq!(error["code"], "PluginNotApproved", "{error}");
    assert_eq!(
        error["hint"],
        "`warren plugin approve hostile` shows it and asks"
    );
    let error = world.create_fails("p", &["--type", "hostile"], "PluginNotApproved");
    assert!(
        error["message"]
            .as_str()
            .unwrap()
            .contains("nobody approved"),
        "{error}"
    );
    // No terminal, no yes: nothing is approved.
    world.fails(&["plugin", "approve", "hostile"], "ConfirmationNeeded");
    assert!(!loads(&world, "hostile"));
    let said = world.ok(&["plugin", "approve", "hostile", "--yes", "--by", "ada"]);
    assert!(said["changes"].as_array().unwrap().len() > 3, "{said}");
    let shown = world.ok(&["plugin", "inspect", "hostile"]);
    assert_eq!(shown["wouldLoad"], true, "{shown}");
    let by = shown["approval"]["by"].as_str().unwrap();
    assert!(by.starts_with("ada (uid "), "{by}");
    assert_eq!(shown["grantId"], said["grantId"]);
    world.create("p", &["--type", "hostile"]);
    // A second approval has nothing to do.
    let again = world.ok(&["plugin", "approve", "hostile"]);
    assert_eq!(again["changes"].as_array().unwrap().len(), 0, "{again}");

    world.ok(&["plugin", "revoke", "hostile"]);
    world.create_fails("p", &["--type", "hostile"], "PluginNotApproved");
    world.approve("hostile");
    assert!(loads(&world, "hostile"));
}

#[test]
fn a_new_binary_or_a_wider_wish_needs_a_new_approval() {
    let honest = with_manifest(warren_testkit::hostile(), |manifest| {
        manifest.replace("remotes = [\"**\"]", "remotes = []")
    });
    let world = world(POLICY);
    world.install("hostile.wasm", &honest);
    world.approve("hostile");
    assert!(loads(&world, "hostile"));
    // It comes back wanting every remote.
    world.install("hostile.wasm", warren_testkit::hostile());
    let error = refused(&world);
    assert_eq!(error["code"], "PluginNotApproved", "{error}");
    let message = error["message"].as_str().unwrap();
    for part in [
        "digest",
        "widens wants.git.remotes",
        "widens grant.git.remotes.wanted",
    ] {
        assert!(message.contains(part), "{part}: {message}");
    }
    let old = file(&world, "old.wasm", &honest);
    let diff = world.ok(&["plugin", "diff", old.to_str().unwrap(), "hostile"]);
    assert!(
        diff["changes"].to_string().contains("wants.git.remotes"),
        "{diff}"
    );
    world.approve("hostile");
    assert!(loads(&world, "hostile"));
    // The old one is not approved any more either.
    world.install("hostile.wasm", &honest);
    assert_eq!(refused(&world)["code"], "PluginNotApproved");
}

#[test]
fn an_import_without_a_wish_does_not_load_whatever_the_policy_grants() {
    let world = world(POLICY);
    let silent = with_manifest(warren_testkit::hostile(), |manifest| {
        without(manifest, "[wants.git]")
    });
    world.install("hostile.wasm", &silent);
    let error = refused(&world);
    assert_eq!(error["code"], "UnwantedImport", "{error}");
    assert!(
        error["message"]
            .as_str()
            .unwrap()
            .contains("`warren:handler/git@0.1.0`")
    );
    world.fails(&["plugin", "approve", "hostile", "--yes"], "UnwantedImport");
}

#[test]
fn an_import_without_a_grant_does_not_load_and_cannot_be_approved() {
    let world = world("[plugin.hostile]\nlog = true\nprogress = true\n");
    let error = refused(&world);
    assert_eq!(error["code"], "UngrantedImport", "{error}");
    for name in ["git", "process"] {
        let import = format!("`warren:handler/{name}@0.1.0`");
        assert!(
            error["message"].as_str().unwrap().contains(&import),
            "{error}"
        );
    }
    world.fails(
        &["plugin", "approve", "hostile", "--yes"],
        "UngrantedImport",
    );
    // A type that no policy names has nothing.
    world.policy("");
    let shown = world.ok(&["plugin", "inspect", "hostile"]);
    assert_eq!(shown["grant"]["root"], "none", "{shown}");
    assert_eq!(shown["grant"]["log"], false);
    assert_eq!(shown["wouldLoad"], false);
    assert_eq!(shown["problem"]["code"], "UngrantedImport");
}

#[test]
fn a_narrower_policy_holds_at_once_and_a_wider_one_after_approval() {
    let world = world(POLICY);
    world.approve("hostile");
    world.ok(&["workspace", "init", "p"]);
    let before = world.ok(&["plugin", "inspect", "hostile"])["grantId"].clone();
    let run = [
        "--type",
        "hostile",
        "--meta",
        "scenario=process",
        "--meta",
        "argv:=[\"sleep\",\"0\"]",
    ];
    let made = world.create("p", &run);
    assert_eq!(world.descriptor("p", &made)["metadata"]["code"], 0);

    world.policy(&POLICY.replace("\"sleep\"", ""));
    assert!(loads(&world, "hostile"), "less needs nobody's word");
    assert_ne!(
        world.ok(&["plugin", "inspect", "hostile"])["grantId"],
        before
    );
    world.create_fails("p", &run, "ProcessDenied");

    world.policy(&POLICY.replace("\"sleep\"", "\"sleep\", \"echo\""));
    let error = refused(&world);
    assert_eq!(error["code"], "PluginNotApproved");
    let message = error["message"].as_str().unwrap();
    assert!(
        message.contains("widens grant.process.programs: `echo` is new"),
        "{message}"
    );
    world.approve("hostile");
    assert!(loads(&world, "hostile"));
}

#[test]
fn what_is_shipped_loads_as_shipped_less_at_once_and_more_after_approval() {
    let world = World::new();
    world.policy("[plugin.temp]\nroot = \"read-write\"\nlog = true\n");
    assert!(loads(&world, "temp") && loads(&world, "git"));
    world.policy(
        "[plugin.temp]\nroot = \"read-write\"\nlog = true\n[plugin.temp.limits]\ndisk-bytes = 1000\n",
    );
    assert!(loads(&world, "temp"));
    world.policy(
        "[plugin.git]\nroot = \"read-write\"\nlog = true\n[plugin.git.git]\nremotes = [\"@allow\"]\n\
         push = [\"refs/**\"]\ncredentials = [\"@all\"]\nreceived-bytes = 5\n",
    );
    let error = refused(&world);
    assert_eq!(error["type"], "git", "{error}");
    let message = error["message"].as_str().unwrap();
    assert!(
        message.contains("widens grant.git.push.policy: `refs/**` is new"),
        "{message}"
    );
    world.approve("git");
    assert!(loads(&world, "git"));
    world.ok(&["plugin", "revoke", "git"]);
    assert_eq!(refused(&world)["code"], "PluginNotApproved");
    world.policy("");
    assert_eq!(
        refused(&world)["code"],
        "PluginNotApproved",
        "revoked is revoked"
    );
}

#[test]
fn approvals_that_somebody_else_wrote_load_nothing() {
    let world = world(POLICY);
    world.approve("hostile");
    let path = world.work.join("state/plugins.lock");
    let text = std::fs::read_to_string(&path).unwrap();
    std::fs::write(&path, text.replace("\"tests (", "\"admin (")).unwrap();
    let listed = world.ok(&["plugin", "list"]);
    assert_eq!(
        listed["items"].as_array().map(Vec::len),
        Some(0),
        "{listed}"
    );
    let failed = listed["failed"].as_array().unwrap();
    assert_eq!(failed.len(), 4, "{listed}");
    assert!(
        failed.iter().all(|failed| failed["code"] == "PluginLock"),
        "{listed}"
    );
    world.fails(&["plugin", "approve", "hostile", "--yes"], "PluginLock");
    world.fails(&["plugin", "revoke", "hostile"], "PluginLock");
    std::fs::write(&path, text).unwrap();
    assert!(loads(&world, "hostile"));
}

#[test]
fn a_component_without_a_manifest_does_not_load_until_it_is_stamped() {
    let world = world(POLICY);
    // Under another name, the section is nothing to us.
    let mut bare = warren_testkit::hostile().to_vec();
    let name = b"warren:manifest";
    let at = bare
        .windows(name.len())
        .position(|part| part == name)
        .unwrap();
    bare[at] = b'x';
    world.install("hostile.wasm", &bare);
    let error = refused(&world);
    assert_eq!(error["code"], "PluginManifest", "{error}");
    assert!(
        error["hint"]
            .as_str()
            .unwrap()
            .contains("warren plugin stamp"),
        "{error}"
    );

    let path = file(&world, "bare.wasm", &bare);
    let manifest = concat!(env!("CARGO_MANIFEST_DIR"), "/../guests/manifest.toml");
    let out = world.work.join("stamped.wasm");
    let stamp = |file: &PathBuf| {
        [
            "plugin",
            "stamp",
            file.to_str().unwrap(),
            "--manifest",
            manifest,
            "--out",
            out.to_str().unwrap(),
        ]
        .map(str::to_owned)
    };
    let stamped = stamp(&path);
    let stamped: Vec<_> = stamped.iter().map(String::as_str).collect();
    world.ok(&stamped);
    world.install("hostile.wasm", &std::fs::read(&out).unwrap());
    world.approve("hostile");
    assert!(loads(&world, "hostile"));
    // One is enough.
    let twice = stamp(&out);
    let twice: Vec<_> = twice.iter().map(String::as_str).collect();
    world.fails(&twice, "InvalidArgument");
    let both = warren_policy::append_section(warren_testkit::hostile(), b"manifest = 1");
    world.install("hostile.wasm", &both);
    assert_eq!(refused(&world)["code"], "PluginManifest");
}

#[test]
fn a_manifest_that_lies_about_its_type_does_not_load() {
    let world = world(POLICY);
    let liar = with_manifest(warren_testkit::hostile(), |manifest| {
        manifest.replace("type = \"hostile\"", "type = \"notes\"")
    });
    world.policy(&POLICY.replace("hostile", "notes"));
    world.install("hostile.wasm", &liar);
    world.approve("notes");
    let error = refused(&world);
    assert_eq!(error["code"], "PluginManifest", "{error}");
    let message = error["message"].as_str().unwrap();
    assert!(
        message.contains("`notes`") && message.contains("`hostile`"),
        "{message}"
    );
}

#[test]
fn two_files_of_one_type_share_no_grant() {
    let world = world(POLICY);
    world.approve("hostile");
    let other = with_manifest(warren_testkit::hostile(), |manifest| {
        manifest.replace("name = \"Misbehaves\"", "name = \"Other\"")
    });
    // Named to come first.
    world.install("a.wasm", &other);
    let error = refused(&world);
    assert_eq!(error["code"], "PluginNotApproved", "{error}");
    assert!(error["origin"].as_str().unwrap().contains("a.wasm"));
    assert!(loads(&world, "hostile"));
    world.fails(
        &["plugin", "approve", "hostile", "--yes"],
        "DuplicateHandlerType",
    );
}

#[test]
fn another_version_of_the_contract_is_named_before_anything_else() {
    let world = world(POLICY);
    let mut old = warren_testkit::hostile().to_vec();
    let (from, to) = (
        b"warren:handler/handler@0.1.0",
        b"warren:handler/handler@0.9.0",
    );
    for at in 0..old.len() - from.len() {
        if old[at..].starts_with(from) {
            old[at..at + to.len()].copy_from_slice(to);
        }
    }
    let path = file(&world, "old.wasm", &old);
    let error = world.fails(
        &["plugin", "add", path.to_str().unwrap()],
        "PluginIncompatible",
    );
    let message = error["message"].as_str().unwrap();
    assert!(
        message.contains("0.9.0") && message.contains("0.1.0"),
        "{message}"
    );
    assert!(!world.work.join("state/plugins/old.wasm").exists());
}

#[test]
fn add_and_remove_know_what_they_do() {
    let world = World::new();
    world.policy(POLICY);
    let path = file(&world, "guest.wasm", warren_testkit::hostile());
    let added = world.ok(&["plugin", "add", path.to_str().unwrap()]);
    assert_eq!(added["type"], "hostile");
    assert_eq!(added["problem"]["code"], "PluginNotApproved", "{added}");
    assert!(world.work.join("state/plugins/hostile.wasm").exists());
    world.approve("hostile");
    world.ok(&["workspace", "init", "p"]);
    let name = world.create("p", &["--type", "hostile"]);
    let error = world.fails(&["plugin", "remove", "hostile"], "PluginInUse");
    assert!(
        error["message"]
            .as_str()
            .unwrap()
            .contains(&format!("p/{name}")),
        "{error}"
    );
    world.ok(&["rootdir", "dispose", "p", &name]);
    world.ok(&["plugin", "remove", "hostile"]);
    assert!(!world.work.join("state/plugins/hostile.wasm").exists());
    world.fails(&["plugin", "remove", "hostile"], "PluginNotFound");
    // Its approval went with it.
    world.install("hostile.wasm", warren_testkit::hostile());
    assert_eq!(refused(&world)["code"], "PluginNotApproved");
    // What is shipped cannot be claimed.
    let temp = file(&world, "temp.wasm", warren_plugins::TEMP);
    world.fails(
        &["plugin", "add", temp.to_str().unwrap()],
        "ReservedHandlerType",
    );
    let text = file(&world, "text.wasm", b"hello");
    world.fails(
        &["plugin", "add", text.to_str().unwrap()],
        "PluginMalformed",
    );
}

#[test]
fn a_policy_is_shown_checked_and_refused_with_its_line() {
    let world = World::new();
    let shown = world.ok(&["policy", "show"]);
    assert_eq!(
        shown["policy"]["plugin"]["temp"]["root"], "read-write",
        "{shown}"
    );
    assert_eq!(shown["file"], Value::Null);
    world.policy("[plugin.git]\nroot = \"read-only\"\n");
    let shown = world.ok(&["policy", "show"]);
    assert_eq!(shown["policy"]["plugin"]["git"]["root"], "read-only");
    assert_eq!(world.ok(&["policy", "schema"])["title"], "Policy");

    let good = file(&world, "good.toml", b"version = 1\n");
    world.ok(&["policy", "check", good.to_str().unwrap()]);
    for (text, part) in [
        (&b"version = 1\n[plugin.git]\nlogg = true\n"[..], "line 3"),
        (
            b"version = 1\n[plugin.git.git]\nremotes = [\"ftp://x/**\"]\n",
            "plugin.git.git.remotes",
        ),
        (
            b"version = 1\n[plugin.git.git]\npush = [\"refs/[\"]\n",
            "plugin.git.git.push",
        ),
    ] {
        let bad = file(&world, "bad.toml", text);
        let error = world.fails(&["policy", "check", bad.to_str().unwrap()], "PolicyInvalid");
        assert!(error["message"].as_str().unwrap().contains(part), "{error}");
    }
    // A host does not start on one that it cannot read, whoever named it.
    let bad = world.work.join("bad.toml");
    world.fails(
        &["--policy", bad.to_str().unwrap(), "plugin", "list"],
        "PolicyInvalid",
    );
    world.fails(
        &["--policy", "/nowhere.toml", "plugin", "list"],
        "ConfigUnreadable",
    );
}

#[test]
fn a_layer_of_remotes_refs_and_aliases_denies_what_the_other_grants() {
    let world = World::with_config("[credentials.team]\nusername = \"u\"\npassword.env = \"T\"\n");
    let (_repo, url) = world.remote("team/up.git", "main", &[("a", "a\n")]);
    let (_other, other) = world.remote("else/up.git", "main", &[("a", "a\n")]);
    let port = world.http.port();
    world.policy(&format!(
        "[plugin.git]\nroot = \"read-write\"\nlog = true\n[plugin.git.git]\n\
         remotes = [\"http://127.0.0.1:{port}/team/**\"]\npush = [\"refs/heads/mine/**\"]\n\
         received-bytes = 1000000\n"
    ));
    world.ok(&["workspace", "init", "p"]);
    let name = world.create_git("p", &url, &["--label", "repo"]);
    let denied =
        |args: &[&str]| world.create_fails("p", &[&["--type", "git"], args].concat(), "GitDenied");
    denied(&["--repo", &other]);
    let error = denied(&["--repo", &url, "--credential", "team"]);
    assert!(
        error["message"].as_str().unwrap().contains("team"),
        "{error}"
    );
    // The shipped suspend branch is not on the operator's list.
    world.repo("p", &name).write("new", "new\n");
    world.fails(&["workspace", "suspend", "p"], "GitDenied");
}

/// A program and a verb of git write into the RootDir like the handler itself: one grant for all.
#[test]
fn who_may_not_write_its_root_gets_nobody_to_write_there() {
    let policy = |root: &str| {
        format!(
            "[plugin.hostile]\nroot = \"{root}\"\nlog = true\nprogress = true\n\
             [plugin.hostile.git]\nremotes = [\"@allow\"]\n\
             [plugin.hostile.process]\nprograms = [\"sh\"]\n\
             [plugin.git]\nroot = \"{root}\"\nlog = true\nprogress = true\n\
             [plugin.git.git]\nremotes = [\"@allow\"]\npush = [\"refs/heads/**\"]\ncredentials = [\"@all\"]\n\
             received-bytes = 1000000\n"
        )
    };
    let world = world(&policy("read-write"));
    let (_, url) = world.remote("up.git", "main", &[("a", "a\n")]);
    world.approve("hostile");
    world.ok(&["workspace", "init", "p"]);
    let run = [
        "--type",
        "hostile",
        "--meta",
        "scenario=process",
        "--meta",
        "argv:=[\"sh\",\"-c\",\"echo x > written\"]",
    ];
    let name = world.create("p", &run);
    assert!(world.dir("p", &name).join("written").exists());
    world.create_git("p", &url, &["--label", "fine"]);

    for root in ["read-only", "none"] {
        world.policy(&policy(root));
        world.create_fails("p", &run, "ProcessDenied");
        world.create_fails("p", &["--type", "git", "--repo", &url], "GitDenied");
    }
}
