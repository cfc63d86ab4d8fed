//! A handler that misbehaves, in the program as an operator would install it.

use serde_json::Value;

use crate::world::World;

/// A world whose host has the guest of `tests/guests`, which does what `scenario` in the metadata
/// says.
fn world() -> World {
    world_with("")
}

/// As [`world`], with more in the policy.
fn world_with(more: &str) -> World {
    let world = World::new();
    let policy = "[plugin.hostile]\nroot = \"read-write\"\nlog = true\nprogress = true\n\
         [plugin.hostile.git]\nremotes = [\"@allow\"]\npush = [\"refs/heads/**\"]\n\
         credentials = [\"@all\"]\n[plugin.hostile.process]\nprograms = [\"sleep\"]\n";
    world.policy(&(policy.to_owned() + more));
    world.install("hostile.wasm", warren_testkit::hostile());
    world.approve("hostile");
    world.ok(&["workspace", "init", "p"]);
    world
}

fn create<'a>(scenario: &'a str, more: &[&'a str]) -> Vec<&'a str> {
    let args = [
        "rootdir",
        "create",
        "p",
        "--type",
        "hostile",
        "--creator",
        "c1",
    ];
    let mut args = [&args, more].concat();
    args.extend(["--meta", scenario]);
    args
}

/// Makes a RootDir that behaves, then lets it do what `scenario` says from its next call on.
fn turns_bad(world: &World, scenario: &str, more: &[&str]) -> String {
    let made = world.ok(&create("scenario=none", more));
    let name = made["dirName"].as_str().unwrap().to_owned();
    let mut descriptor = world.descriptor("p", &name);
    descriptor["metadata"]["scenario"] = scenario.into();
    let file = world.root.join("p").join(format!("{name}.json"));
    std::fs::write(file, descriptor.to_string()).unwrap();
    world.ok(&["workspace", "reseal", "p"]);
    std::fs::write(world.dir("p", &name).join("work"), "mine").unwrap();
    name
}

fn count(listed: &Value) -> usize {
    listed["items"].as_array().unwrap().len()
}

#[test]
fn a_call_that_fails_leaves_nothing_and_the_next_one_works() {
    let world = world();
    for (scenario, code) in [
        ("scenario=panic", "HandlerTrapped"),
        ("scenario=exit", "HandlerTrapped"),
        ("scenario=recurse", "HandlerLimit"),
        ("scenario=allocate", "HandlerLimit"),
        ("scenario=huge-result", "HandlerLimit"),
        ("scenario=bad-json", "HandlerBadMetadata"),
        ("scenario=lie", "HandlerBadMetadata"),
        ("scenario=git", "GitNotARepository"),
    ] {
        world.fails(&create(scenario, &[]), code);
        let listed = world.ok(&["rootdir", "list", "p"]);
        assert_eq!(count(&listed), 0, "{scenario}: {listed}");
        assert!(listed.get("orphans").is_none(), "{scenario}: {listed}");
    }
    let made = world.ok(&create("scenario=none", &[]));
    assert_eq!(made["metadata"]["scenario"], "none");
}

#[test]
fn a_crash_is_told_in_one_line_with_the_guests_own_words() {
    let world = world();
    let args = [
        &create("scenario=panic", &["--label", "x"])[..],
        &["--output", "text"],
    ]
    .concat();
    let output = world.output(&args);
    assert!(!output.status.success());
    let text = String::from_utf8(output.stderr).unwrap();
    let words: Vec<_> = text
        .lines()
        .filter(|line| line.contains("disk layout"))
        .collect();
    assert_eq!(words.len(), 1, "{text}");
    assert!(words[0].contains("hostile"), "{text}");
    assert!(
        text.contains("`x`") && !text.contains("wasm backtrace"),
        "{text}"
    );
    assert!(text.lines().count() < 8, "{text}");
}

#[test]
fn a_suspend_that_saved_nothing_deletes_nothing() {
    let world = world();
    let name = turns_bad(&world, "none", &[]);
    let temp = world.create("p", &["--type", "temp"]);
    let error = world.fails(&["workspace", "suspend", "p"], "SuspendUnproven");
    assert!(error["hint"].is_string(), "{error}");
    for scenario in ["panic", "lie", "empty-root", "many-losses"] {
        let name = turns_bad(&world, scenario, &["--label", scenario]);
        assert!(
            !world
                .output(&["workspace", "suspend", "p"])
                .status
                .success()
        );
        assert_eq!(world.status("p"), "RUNNING", "{scenario}");
        world.ok(&["rootdir", "dispose", "p", &name, "--force"]);
    }
    assert!(world.dir("p", &name).join("work").exists() && world.dir("p", &temp).exists());
    assert_eq!(world.ok(&["workspace", "get", "p"])["snapshots"], 0);
}

#[test]
fn a_close_that_crashes_stays_and_the_others_go() {
    let world = world();
    let bad = turns_bad(&world, "panic", &["--delete-on-close"]);
    let good = turns_bad(&world, "none", &["--delete-on-close"]);
    let report = world.ok_or_partial(&["rootdir", "dispose", "p", "--creator", "c1"]);
    assert_eq!(report["failed"][0]["dirName"], bad.as_str(), "{report}");
    assert_eq!(report["failed"][0]["code"], "HandlerTrapped", "{report}");
    assert_eq!(report["disposed"][0], good.as_str(), "{report}");
    assert!(world.dir("p", &bad).join("work").exists());
    assert!(!world.dir("p", &good).exists());
    world.fails(&["workspace", "dispose", "p"], "HandlerTrapped");
    assert!(world.dir("p", &bad).join("work").exists());
    world.ok(&["workspace", "dispose", "p", "--force"]);
    assert!(!world.root.join("p").exists());
}

/// Arguments of every import that nobody should pass: typed errors, no end of the host.
#[test]
fn odd_arguments_of_every_import_are_refused() {
    let world = world();
    let made = world.ok(&create("scenario=fuzz", &[]));
    let count = |key: &str| made["metadata"][key].as_u64().unwrap();
    assert!(count("calls") > 4000, "{made}");
    // `find` says that there is no such alias and none in the root; all else is an error.
    let finds = 18 * 18 * 2;
    assert_eq!(count("calls") - count("refused"), finds, "{made}");
    let name = made["dirName"].as_str().unwrap();
    let entries = std::fs::read_dir(world.dir("p", name)).unwrap();
    assert_eq!(entries.count(), 0);
    world.ok(&create("scenario=none", &[]));
}

#[test]
fn a_rootdir_has_the_room_of_the_policy_and_the_error_names_it() {
    let world = world_with("[plugin.hostile.limits]\ndisk-bytes = 1048576\ninodes = 10\n");
    let error = world.fails(
        &create("scenario=disk-honest", &[]),
        "WorkspaceQuotaExceeded",
    );
    let text = error["message"].to_string();
    assert!(text.contains("may use 1048576 bytes"), "{error}");
    assert_eq!(count(&world.ok(&["rootdir", "list", "p"])), 0);
    let made = world.ok(&create("scenario=disk-inodes", &[]));
    assert_eq!(made["metadata"]["error"], "quota", "{made}");
    assert_eq!(made["metadata"]["made"], 10, "{made}");
}

fn alive(words: &[&str]) -> Vec<String> {
    let wanted = words.join("\0") + "\0";
    let of_pid = |pid: &String| {
        std::fs::read(format!("/proc/{pid}/cmdline")).is_ok_and(|line| {
            line.windows(wanted.len())
                .any(|window| window == wanted.as_bytes())
        })
    };
    let names = std::fs::read_dir("/proc").unwrap();
    names
        .filter_map(|entry| entry.ok()?.file_name().into_string().ok())
        .filter(|name| name.bytes().all(|b| b.is_ascii_digit()))
        .filter(of_pid)
        .collect()
}

#[test]
fn a_host_that_is_killed_takes_its_children_along_and_leaves_nothing() {
    let world = world();
    let seconds = (7_000_000 + std::process::id()).to_string();
    let argv = format!("argv:=[\"sleep\", \"{seconds}\"]");
    let args = create("scenario=process", &["--meta", &argv]);
    let mut host = world.spawn(&args);
    let words = ["sleep", &seconds];
    let until = |done: &dyn Fn() -> bool, what: &str| {
        for _ in 0..600 {
            if done() {
                return;
            }
            std::thread::sleep(std::time::Duration::from_millis(100));
        }
        panic!("{what}");
    };
    until(&|| !alive(&words).is_empty(), "the child does not start");
    host.kill().unwrap();
    host.wait().unwrap();
    until(&|| alive(&words).is_empty(), "the child lives on");
    world.ok(&["workspace", "init", "p"]);
    assert_eq!(count(&world.ok(&["rootdir", "list", "p"])), 0);
    let left = std::fs::read_dir(world.work.join("state/scratch")).unwrap();
    let left: Vec<_> = left.map(|entry| entry.unwrap().file_name()).collect();
    assert_eq!(left, [".lock"]);
}

#[test]
fn without_a_grant_it_does_not_load_and_the_others_do() {
    let world = world();
    world.policy("[plugin.hostile]\nlog = true\n");
    let listed = world.ok_or_partial(&["plugin", "list"]);
    assert_eq!(count(&listed), 3, "{listed}");
    assert_eq!(listed["failed"][0]["code"], "UngrantedImport", "{listed}");
    world.fails(&create("scenario=none", &[]), "UngrantedImport");
    world.create("p", &["--type", "temp"]);
}
