//! The audit log, as a reviewer asks it.

use std::process::Output;

use serde_json::Value;

use crate::world::World;

const SECRET: &str = "s3cr3t-t0ken-0f-acme";
const CONFIG: &str =
    "[credentials.acme]\nusername = \"ada\"\npassword = { env = \"ACME_TOKEN\" }\n";

fn items(value: &Value) -> Vec<Value> {
    value["items"].as_array().unwrap().clone()
}

fn search(world: &World, args: &[&str]) -> Vec<Value> {
    items(&world.ok(&[&["audit", "search", "--limit", "1000"], args].concat()))
}

fn intact(world: &World) -> String {
    let found = world.ok(&["audit", "verify"]);
    assert_eq!(found["verdict"], "intact", "{found}");
    let head = &found["head"];
    format!("{}:{}", head["seq"], head["hash"].as_str().unwrap())
}

/// Runs the program with the token.
fn with_token(world: &World, args: &[&str]) -> Output {
    world
        .command(args)
        .env("ACME_TOKEN", SECRET)
        .output()
        .unwrap()
}

#[test]
fn a_git_round_trip_is_recorded_and_no_secret_with_it() {
    let world = World::with_config(CONFIG);
    let (_remote, url) = world.remote("private/up.git", "main", &[("a.txt", "a\n")]);
    world.http.require("/private", "ada", SECRET);
    world.ok(&["workspace", "init", "p"]);
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
        "--credential",
        "acme",
    ];
    let made = with_token(&world, &create);
    let made: Value = serde_json::from_slice(&made.stdout).unwrap();
    let dir = made["dirName"].as_str().unwrap().to_owned();
    world.repo("p", &dir).write("new.txt", "new\n");
    assert!(
        with_token(&world, &["workspace", "suspend", "p"])
            .status
            .success()
    );

    let uses = search(&world, &["--capability", "git", "--project", "p"]);
    let clones: Vec<_> = uses.iter().filter(|one| one["verb"] == "clone").collect();
    assert_eq!(clones.len(), 2, "{uses:?}");
    assert_eq!(
        (&clones[0]["outcome"], &clones[1]["outcome"]),
        (&"started".into(), &"ok".into())
    );
    let target = clones[1]["target"].as_str().unwrap();
    assert!(
        target.starts_with(&url) && target.ends_with(" credential=acme"),
        "{target}"
    );
    for field in [
        "tenant",
        "dirName",
        "handler",
        "plugin",
        "call",
        "durationUs",
    ] {
        assert!(!clones[1][field].is_null(), "{field}");
    }
    assert_eq!(clones[1]["dirName"], dir.as_str());
    let pushes: Vec<_> = uses.iter().filter(|one| one["verb"] == "push").collect();
    assert_eq!(pushes.len(), 2, "{uses:?}");
    assert!(pushes[1]["target"].as_str().unwrap().contains(" ref="));
    let calls = search(&world, &["--capability", "call", "--outcome", "ok"]);
    let verbs: Vec<_> = calls
        .iter()
        .map(|one| one["verb"].as_str().unwrap())
        .collect();
    assert_eq!(verbs, ["init", "suspend"]);
    assert!(!search(&world, &["--capability", "plugin", "--outcome", "ok"]).is_empty());

    // A remote that is not allowed, with a token where nobody should put one.
    let denied = format!("https://ada:{SECRET}@evil.example/x.git?key={SECRET}");
    world.ok(&["workspace", "init", "q"]);
    let create = [
        "rootdir",
        "create",
        "q",
        "--creator",
        "c",
        "--type",
        "git",
        "--repo",
        &denied,
    ];
    assert!(!world.output(&create).status.success());
    let refused = search(
        &world,
        &[
            "--project",
            "q",
            "--capability",
            "git",
            "--text",
            "evil.example",
        ],
    );
    assert!(
        refused
            .iter()
            .any(|one| one["outcome"] != "ok" && one["outcome"] != "started"),
        "{refused:?}"
    );
    let held = world.work.files_holding(SECRET.as_bytes());
    let held: Vec<_> = held
        .iter()
        .filter(|path| path.to_string_lossy().contains("audit"))
        .collect();
    assert!(held.is_empty(), "{held:?}");
    intact(&world);
}

#[test]
fn what_was_denied_is_found_by_who_what_and_when() {
    let world = World::new();
    world.ok(&["workspace", "init", "p"]);
    world.create_fails(
        "p",
        &["--type", "git", "--repo", "https://10.0.0.1/x.git"],
        "GitDenied",
    );
    let denied = search(
        &world,
        &[
            "--outcome",
            "denied",
            "--handler",
            "git",
            "--since",
            "today",
        ],
    );
    assert_eq!(denied.len(), 1, "{denied:?}");
    assert_eq!(denied[0]["code"], "GitDenied");
    assert!(denied[0]["detail"].is_string());
    assert!(search(&world, &["--outcome", "denied", "--until", "yesterday"]).is_empty());
    let failed = search(&world, &["--capability", "call", "--outcome", "failed"]);
    assert_eq!(failed[0]["code"], "GitDenied");
    world.fails(&["audit", "search", "--since", "soon"], "InvalidArgument");

    // Pages, and the last ones.
    let all = search(&world, &[]);
    let page = world.ok(&["audit", "search", "--limit", "2"]);
    let next = page["next"].to_string();
    let more = world.ok(&["audit", "search", "--limit", "1000", "--after", &next]);
    let both: Vec<_> = items(&page).into_iter().chain(items(&more)).collect();
    // Reading loads no plugin, so that the log is as it was.
    assert_eq!(both, all);
    let tail = items(&world.ok(&["audit", "tail", "-n", "1"]));
    assert_eq!(tail[0], *all.last().unwrap());
}

#[test]
fn a_log_that_was_changed_or_cut_is_found_offline() {
    let world = World::new();
    world.ok(&["workspace", "init", "p"]);
    world.create("p", &["--type", "temp"]);
    let pin = intact(&world);
    world.ok(&["audit", "verify", "--pin", &pin]);

    let file = world.work.join("state/audit/audit-000001.jsonl");
    let text = std::fs::read_to_string(&file).unwrap();
    std::fs::write(&file, text.replacen("\"ok\"", "\"no\"", 1)).unwrap();
    let output = world.output(&["audit", "verify"]);
    assert_eq!(output.status.code(), Some(1));
    let found: Value = serde_json::from_slice(&output.stdout).unwrap();
    assert_eq!(found["verdict"], "broken");
    let broken = &found["broken"];
    assert_eq!(broken["fault"], "changed");
    assert_eq!(broken["file"], "audit-000001.jsonl");
    assert_eq!(broken["line"], broken["seq"]);

    let lines: Vec<_> = text.split_inclusive('\n').collect();
    std::fs::write(&file, lines[..lines.len() - 1].concat()).unwrap();
    assert_eq!(
        intact(&world).split(':').next().unwrap(),
        (lines.len() - 1).to_string()
    );
    let output = world.output(&["audit", "verify", "--pin", &pin]);
    assert_eq!(output.status.code(), Some(1), "the end was cut off");
}

#[test]
fn a_use_that_cannot_be_recorded_does_not_happen() {
    let world = World::new();
    world.ok(&["workspace", "init", "p"]);
    let file = world.work.join("state/audit/audit-000001.jsonl");
    let text = std::fs::read_to_string(&file).unwrap();
    // The last record is not as it was written: nothing goes on behind that.
    let (head, last) = text.trim_end().rsplit_once('\n').unwrap();
    std::fs::write(&file, format!("{head}\n{}\n", last.replace("load", "lo4d"))).unwrap();
    world.create_fails("p", &["--type", "temp"], "AuditDamaged");
    assert!(
        !world
            .root
            .join("p")
            .read_dir()
            .unwrap()
            .any(|entry| entry.unwrap().path().is_dir())
    );
    std::fs::write(&file, text).unwrap();
    world.create("p", &["--type", "temp"]);
    intact(&world);
}

fn plugin<'a>(report: &'a Value, handler: &str) -> &'a Value {
    let plugins = report["plugins"].as_array().unwrap();
    let found = plugins.iter().find(|one| one["handler"] == handler);
    found.unwrap_or_else(|| panic!("{handler} is not in {report}"))
}

fn row<'a>(plugin: &'a Value, key: &str) -> &'a Value {
    let rows = plugin["matrix"].as_array().unwrap();
    let found = rows.iter().find(|row| row["key"] == key);
    found.unwrap_or_else(|| panic!("{key} is not in {plugin}"))
}

#[test]
fn the_report_answers_what_a_reviewer_asks() {
    let world = World::new();
    let (_remote, url) = world.remote("up.git", "main", &[("a.txt", "a\n")]);
    world.ok(&["workspace", "init", "p"]);
    world.create_git("p", &url, &[]);
    let evil = "https://10.0.0.1/x.git";
    world.create_fails("p", &["--type", "git", "--repo", evil], "GitDenied");
    world.ok(&["plugin", "revoke", "python", "--by", "ann"]);
    let decided = search(&world, &["--capability", "plugin", "--text", "revoke"]);
    let outcomes: Vec<_> = decided.iter().map(|one| one["outcome"].clone()).collect();
    assert_eq!(outcomes, ["started", "ok"]);
    let detail = decided[1]["detail"].as_str().unwrap();
    assert!(detail.starts_with("by ann (uid "), "{detail}");

    let report = world.ok(&["plugin", "report"]);
    let git = plugin(&report, "git");
    // What can it reach?
    let remotes = row(git, "git.remotes");
    assert_eq!(remotes["granted"][0], "@allow");
    let allowed = remotes["standsFor"][0].as_str().unwrap();
    assert!(allowed.starts_with("http://127.0.0.1:"), "{allowed}");
    assert!(remotes["reason"].is_string());
    // What did it do, and what was it refused?
    let target = |wanted: &str| {
        let all = remotes["targets"].as_array().unwrap();
        let found = all.iter().find(|one| one["target"] == wanted);
        found.unwrap_or_else(|| panic!("{wanted} is not in {remotes}"))
    };
    assert_eq!(
        (&target(&url)["ok"], &target(&url)["denied"]),
        (&1.into(), &0.into())
    );
    assert_eq!(
        (&target(evil)["ok"], &target(evil)["denied"]),
        (&0.into(), &1.into())
    );
    assert!(target(evil)["lastDenied"].is_string());
    assert_eq!(git["calls"]["init"]["ok"], 1);
    // Who approved it?
    assert_eq!(git["approval"]["by"], "this version of Warren");
    let python = plugin(&report, "python");
    assert_eq!(python["refused"]["code"], "PluginNotApproved");
    assert!(python["approval"].is_null());
    // Nothing of yesterday is in a report of today.
    let before = world.ok(&["plugin", "report", "--until", "today"]);
    assert_eq!(row(plugin(&before, "git"), "git.remotes")["uses"]["ok"], 0);

    let page = world.work.join("report.html");
    world.ok(&[
        "plugin",
        "report",
        "--format",
        "html",
        "--out",
        page.to_str().unwrap(),
    ]);
    let page = std::fs::read_to_string(page).unwrap();
    assert!(page.contains(evil) && page.contains(&url) && page.ends_with("</html>\n"));
    let sarif = world.ok(&["plugin", "report", "--format", "sarif"]);
    let results = sarif["runs"][0]["results"].as_array().unwrap();
    for rule in ["denied", "not-loaded", "not-approved"] {
        assert!(
            results.iter().any(|one| one["ruleId"] == rule),
            "{rule}: {results:?}"
        );
    }
}

#[test]
fn the_suggested_policy_lets_the_same_work_pass_and_no_other() {
    let world = World::new();
    let (_remote, url) = world.remote("up.git", "main", &[("a.txt", "a\n")]);
    let (_other, other) = world.remote("other.git", "main", &[("a.txt", "a\n")]);
    world.ok(&["workspace", "init", "p"]);
    let dir = world.create_git("p", &url, &["--label", "shop"]);
    let work = |text: &str| {
        world.repo("p", &dir).write("new.txt", text);
        world.ok(&["workspace", "suspend", "p"]);
        world.ok(&["workspace", "recover", "p"]);
    };
    work("one\n");
    let suggested = world.ok(&["plugin", "suggest", "git"]);
    let policy = suggested["policy"].as_str().unwrap();
    assert!(policy.contains(&url) && !policy.contains("**"), "{policy}");
    std::fs::write(world.work.join("policy.toml"), policy).unwrap();

    let report = world.ok(&["plugin", "report"]);
    let remotes = row(plugin(&report, "git"), "git.remotes");
    assert_eq!(
        remotes["granted"],
        serde_json::json!([url]),
        "the policy is in force"
    );
    work("two\n");
    world.create_fails("p", &["--type", "git", "--repo", &other], "GitDenied");
    // Another name is another ref, which was never pushed.
    let second = world.create_git("p", &url, &["--label", "second"]);
    world.repo("p", &second).write("new.txt", "x\n");
    world.fails(&["workspace", "suspend", "p"], "GitDenied");
    intact(&world);
}
