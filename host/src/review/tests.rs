//! What a reviewer can answer from the report alone.

use std::collections::BTreeMap;

use warren_audit::{AuditLog, Entry, Filter, Outcome, Settings};
use warren_disk::Dir;
use warren_policy::{Access, Change, Direction, Manifest, Policy, effective};

use super::*;

const MANIFEST: &str = r#"
manifest = 1
name = "Checkouts <b>of</b> git"
version = "1.2.0"
type = "git"
[wants.root]
access = "read-write"
reason = "writes <script>alert(1)</script> the working tree"
[wants.git]
remotes = ["**"]
push = ["refs/heads/**"]
credentials = ["*"]
reason = "clones and pushes"
[wants.process]
programs = ["@python"]
reason = "runs hooks"
[wants.log]
reason = "says what it does"
"#;

const IMPORTS: [&str; 3] = [
    "warren:handler/git@0.1.0",
    "warren:handler/process@0.1.0",
    "warren:handler/log@0.1.0",
];

struct Made {
    _tmp: tempfile::TempDir,
    usage: Usage,
}

fn used() -> Made {
    let tmp = tempfile::tempdir().unwrap();
    let state: Dir = warren_disk::open_root(tmp.path()).unwrap();
    let log = AuditLog::open(&state, Settings::default()).unwrap();
    let put = |capability, verb, outcome, target: Option<&str>, detail: Option<&str>| {
        let entry = Entry {
            handler: Some("git"),
            target,
            detail,
            ..Entry::new(capability, verb, outcome)
        };
        log.append(&entry).unwrap();
    };
    let repo = "https://git.example/shop.git";
    put("git", "clone", Outcome::Started, Some(repo), None);
    put("git", "clone", Outcome::Ok, Some(repo), None);
    let push = format!("{repo} ref=refs/heads/main credential=acme");
    put("git", "push", Outcome::Ok, Some(&push), None);
    put(
        "git",
        "clone",
        Outcome::Denied,
        Some("https://evil.example/x.git"),
        None,
    );
    let push = format!("{repo} ref=refs/tags/v1");
    put(
        "git",
        "push",
        Outcome::Denied,
        Some(&push),
        Some("writing `refs/tags/v1` is refused"),
    );
    put(
        "process",
        "run",
        Outcome::Ok,
        Some("python"),
        Some("argv=00 env=PIP_INDEX_URL"),
    );
    put("process", "run", Outcome::Ok, Some("./.venv/bin/pip"), None);
    put("process", "run", Outcome::Denied, Some("/bin/sh"), None);
    put(
        "network",
        "connect",
        Outcome::Ok,
        Some("https://index.example"),
        None,
    );
    let call = Entry {
        handler: Some("git"),
        counts: &[("bytesWritten", 10), ("logLines", 3)],
        ..Entry::new("call", "init", Outcome::Ok)
    };
    log.append(&call).unwrap();
    let usage = Usage::collect(&state, &Filter::default()).unwrap();
    Made { _tmp: tmp, usage }
}

fn subject() -> Subject {
    let manifest = Manifest::parse(MANIFEST.as_bytes()).unwrap();
    let policy = Policy::shipped().unwrap();
    let grant = effective(
        policy.plugin.get(&"git".parse().unwrap()),
        &manifest.wants,
        &IMPORTS,
    );
    Subject {
        handler: "git".into(),
        origin: "shipped `git`".into(),
        name: Some(manifest.name),
        version: Some(manifest.version),
        digest: Some("abc".into()),
        imports: IMPORTS.map(str::to_owned).into(),
        wants: Some(manifest.wants),
        grant: Some(grant),
        grant_id: Some("0123456789abcdef".into()),
        words: BTreeMap::from([("@allow".to_owned(), vec!["https://**".to_owned()])]),
        approval: Some(Approved {
            by: "ann".into(),
            at: None,
            digest: Some("abc".into()),
        }),
        changes: vec![Change {
            path: "grant.git.push.policy".into(),
            direction: Direction::Widens,
            before: None,
            after: Some("refs/tags/**".into()),
        }],
        refused: None,
    }
}

fn made() -> Report {
    report(&[subject()], &used().usage, Timestamp::UNIX_EPOCH)
}

fn row<'a>(report: &'a Report, key: &str) -> &'a Row {
    let rows = &report.plugins[0].matrix;
    rows.iter().find(|row| row.key == key).unwrap()
}

#[test]
fn it_says_what_was_asked_granted_used_and_refused() {
    let report = made();
    let remotes = row(&report, "git.remotes");
    assert_eq!(remotes.asked, ["**"]);
    assert_eq!(remotes.reason.as_deref(), Some("clones and pushes"));
    assert_eq!(remotes.granted, ["@allow"]);
    assert_eq!(remotes.stands_for, ["https://**"]);
    assert_eq!((remotes.uses.ok, remotes.uses.denied), (2, 1));
    assert!(remotes.uses.last_used.is_some() && remotes.uses.last_denied.is_some());
    let push = row(&report, "git.push");
    assert_eq!((push.uses.ok, push.uses.denied), (1, 1));
    assert_eq!(push.targets[1].target, "refs/tags/v1");
    // Asked for, and not granted by the policy.
    let programs = row(&report, "process.programs");
    assert!(programs.granted.is_empty());
    assert_eq!((programs.uses.ok, programs.uses.denied), (1, 1));
    assert_eq!(row(&report, "log").uses.ok, 3);
    let found: Vec<_> = report.plugins[0]
        .findings
        .iter()
        .map(|one| one.rule)
        .collect();
    for rule in ["changed", "denied", "wildcard", "ungranted-wish"] {
        assert!(found.contains(&rule), "{rule} in {found:?}");
    }
    assert!(!found.contains(&"not-approved"));
}

#[test]
fn what_is_not_approved_not_loaded_or_unconfined_is_found() {
    let mut open = subject();
    open.approval = None;
    open.refused = Some(Refusal {
        code: "PluginNotApproved".into(),
        message: "nobody approved it".into(),
        hint: None,
    });
    let manifest = Manifest::parse(MANIFEST.as_bytes()).unwrap();
    let policy = "version = 1\n[plugin.git.process]\nprograms = [\"@python\"]\nunconfined = true\n";
    let policy = Policy::parse(policy.as_bytes()).unwrap();
    open.grant = Some(effective(
        policy.plugin.get(&"git".parse().unwrap()),
        &manifest.wants,
        &IMPORTS,
    ));
    let report = report(&[open], &Usage::default(), Timestamp::UNIX_EPOCH);
    let found: Vec<_> = report.plugins[0]
        .findings
        .iter()
        .map(|one| one.rule)
        .collect();
    for rule in ["unconfined", "not-loaded", "not-approved", "unused-grant"] {
        assert!(found.contains(&rule), "{rule} in {found:?}");
    }
    assert_eq!(report.plugins[0].findings[0].rule, "unconfined");
    assert!(text(&report).contains("UNCONFINED"));
    assert!(html(&report).contains("<strong>unconfined</strong>"));
}

#[test]
fn the_page_is_whole_and_obeys_nobody() {
    let page = html(&made());
    assert!(
        !page.contains("<script"),
        "a text of the manifest became code"
    );
    assert!(page.contains("&lt;script&gt;alert(1)"));
    for outside in ["src=", "url(", "@import", "<link"] {
        assert!(!page.contains(outside), "{outside}");
    }
    for fact in ["evil.example", "refs/tags/v1", "ann", "0123456789abcdef"] {
        assert!(page.contains(fact), "{fact}");
        assert!(text(&made()).contains(fact), "{fact}");
    }
}

#[test]
fn sarif_names_a_rule_for_each_result() {
    let sarif = sarif(&made());
    assert_eq!(sarif["version"], "2.1.0");
    let driver = &sarif["runs"][0]["tool"]["driver"];
    let results = sarif["runs"][0]["results"].as_array().unwrap();
    assert!(!results.is_empty());
    for result in results {
        let index = result["ruleIndex"].as_u64().unwrap() as usize;
        assert_eq!(driver["rules"][index]["id"], result["ruleId"]);
        assert!(["none", "note", "warning", "error"].contains(&result["level"].as_str().unwrap()));
        assert!(result["message"]["text"].is_string());
        assert!(result["locations"][0]["logicalLocations"][0]["name"].is_string());
    }
}

#[test]
fn the_suggestion_covers_what_was_used_and_nothing_that_was_refused() {
    let used = used();
    let handler = "git".parse().unwrap();
    let shipped = Policy::shipped().unwrap();
    let mut current = shipped.plugin[&"python".parse().unwrap()].clone();
    current.process.as_mut().unwrap().unconfined = true;
    let file = to_file(&handler, Some(&current), &IMPORTS, &used.usage).unwrap();
    let policy = Policy::parse(file.as_bytes()).unwrap();
    let granted = &policy.plugin[&handler];
    let git = granted.git.as_ref().unwrap();
    assert_eq!(git.remotes, ["https://git.example/shop.git"]);
    assert_eq!(git.push, ["refs/heads/main"]);
    assert_eq!(git.credentials, ["acme"]);
    assert_eq!(git.received_bytes, current.git.unwrap().received_bytes);
    let process = granted.process.as_ref().unwrap();
    assert!(!process.unconfined);
    assert_eq!(process.wall_seconds, Some(600));
    assert_eq!(process.programs, ["@python"]);
    assert_eq!(process.in_root, [".venv/bin/pip"]);
    assert_eq!(process.environment, ["PIP_INDEX_URL"]);
    assert_eq!(process.network.len(), 1);
    assert_eq!(granted.root, Access::ReadWrite);
    assert_eq!((granted.log, granted.progress), (true, false));
    assert!(!file.contains("evil") && !file.contains("/bin/sh") && !file.contains("tags"));
    // The patterns mean what they say to those who check them.
    let remotes = warren_mirror::UrlPolicy::new(&git.remotes).unwrap();
    assert!(remotes.check("https://git.example/shop.git").is_ok());
    assert!(remotes.check("https://git.example/other.git").is_err());
    let refs = warren_mirror::RefPatterns::new(&git.push).unwrap();
    assert!(refs.allows("refs/heads/main") && !refs.allows("refs/heads/other"));

    let unseen = suggest(&"temp".parse().unwrap(), None, &[""; 0], &used.usage);
    assert_eq!(unseen.plugin.values().next(), Some(&Default::default()));
}
