//! Rules over whole documents, each with its denied twin.

mod differences;
mod lock;
mod properties;

use super::*;

fn manifest(wants: &str) -> Manifest {
    let head = "manifest = 1\nname = \"Notes\"\nversion = \"0.1.0\"\ntype = \"notes\"\n";
    Manifest::parse(format!("{head}{wants}").as_bytes()).unwrap()
}

fn policy(plugin: &str) -> Policy {
    Policy::parse(format!("version = 1\n[plugin.notes]\n{plugin}").as_bytes()).unwrap()
}

fn grant(policy: &Policy, manifest: &Manifest, imports: &[&str]) -> Grant {
    effective(
        policy.plugin.get(&manifest.handler_type),
        &manifest.wants,
        imports,
    )
}

const GIT: &str = "warren:handler/git@0.1.0";
const LOG: &str = "warren:handler/log@0.1.0";
const PROCESS: &str = "warren:handler/process@0.1.0";

const WANTS_GIT: &str = "[wants.git]\nremotes = [\"**\"]\npush = [\"refs/heads/**\"]\n\
    credentials = [\"*\"]\nreason = \"clones\"\n";

#[test]
fn the_shipped_policy_is_one_and_grants_three() {
    let shipped = Policy::shipped().unwrap();
    let types: Vec<_> = shipped.plugin.keys().map(|key| key.as_str()).collect();
    assert_eq!(types, ["git", "python", "temp"]);
    assert!(shipped.plugin.values().all(|plugin| plugin.http.is_none()));
    let uids = shipped.confinement.unwrap().uids.unwrap();
    assert_eq!((uids.first, uids.count), (200_000, 65_536));
}

#[test]
fn an_operators_table_replaces_the_shipped_one_whole() {
    let mine = Policy::parse(b"version = 1\n[plugin.git]\nroot = \"read-only\"\n").unwrap();
    let merged = mine.over_shipped().unwrap();
    let git = &merged.plugin[&"git".parse().unwrap()];
    assert_eq!(git.root, Access::ReadOnly);
    assert!(
        git.git.is_none() && !git.log,
        "nothing of the shipped table is left"
    );
    assert!(merged.plugin[&"python".parse().unwrap()].process.is_some());
    assert!(merged.confinement.is_some());
}

#[test]
fn a_grant_takes_the_wish_the_policy_and_the_import() {
    let full =
        policy("log = true\nroot = \"read-write\"\n[plugin.notes.git]\nremotes = [\"@allow\"]\n");
    let wants = format!("[wants.root]\naccess = \"read-write\"\nreason = \"x\"\n{WANTS_GIT}");
    let asks = manifest(&wants);
    let all = grant(&full, &asks, &[GIT, LOG]);
    assert!(all.git.is_some());
    assert_eq!(all.root, Access::ReadWrite);
    assert!(!all.log, "granted and imported, but not wanted");
    assert!(grant(&full, &asks, &[LOG]).git.is_none(), "not imported");
    assert!(
        grant(&full, &manifest(""), &[GIT]).git.is_none(),
        "not wanted"
    );
    assert!(
        grant(&policy(""), &asks, &[GIT]).git.is_none(),
        "not granted"
    );
    let nobody = Policy::default();
    let nothing = grant(&nobody, &asks, &[GIT, LOG, PROCESS]);
    assert_eq!(
        nothing,
        Grant {
            limits: Limits::default(),
            ..Grant::default()
        }
    );
    assert_eq!(nothing.root, Access::None);
    // The lower of the two.
    let less = manifest("[wants.root]\naccess = \"read-only\"\nreason = \"x\"\n");
    assert_eq!(grant(&full, &less, &[]).root, Access::ReadOnly);
}

#[test]
fn lists_meet() {
    let granted = policy(
        "[plugin.notes.process]\nprograms = [\"@python\", \"make\", \"/opt/tool\"]\n\
         in-root = [\"bin/x\"]\nnetwork = [\"https://pypi.example\", \"@index\"]\n\
         environment = [\"PIP_*\", \"LANG\"]\n",
    );
    let asks = manifest(
        "[wants.process]\nprograms = [\"python\", \"sh\", \"/opt/tool/bin/x\", \"/opt/toolbox/x\"]\n\
         in-root = [\"bin/x\", \"bin/y\"]\nnetwork = [\"*\"]\n\
         environment = [\"PIP_PROXY\", \"LD_PRELOAD\", \"LANG\"]\nreason = \"runs\"\n",
    );
    let got = grant(&granted, &asks, &[PROCESS]).process.unwrap();
    assert_eq!(got.programs, ["/opt/tool/bin/x", "python"]);
    assert_eq!(got.in_root, ["bin/x"]);
    assert_eq!(got.network.policy, ["@index", "https://pypi.example"]);
    assert_eq!(got.network.wanted, ["*"]);
    assert_eq!(got.environment, ["LANG", "PIP_PROXY"]);
    assert_eq!(got.limits.wall_seconds, ChildLimits::WALL_SECONDS);
}

#[test]
fn a_limit_above_the_default_needs_both() {
    let more = policy("[plugin.notes.limits]\nmemory-bytes = 1073741824\nlog-bytes = 10\n");
    let plain = manifest("");
    let asks = manifest("[wants.limits]\nmemory-bytes = 536870912\nreason = \"sorts\"\n");
    assert_eq!(
        grant(&more, &plain, &[]).limits.memory_bytes,
        Some(256 << 20)
    );
    assert_eq!(
        grant(&more, &asks, &[]).limits.memory_bytes,
        Some(512 << 20)
    );
    assert_eq!(
        grant(&policy(""), &asks, &[]).limits.memory_bytes,
        Some(256 << 20)
    );
    assert_eq!(
        grant(&more, &plain, &[]).limits.log_bytes,
        Some(10),
        "less needs nobody's wish"
    );
    let disk = policy("[plugin.notes.limits]\ndisk-bytes = 5\n");
    assert_eq!(grant(&disk, &plain, &[]).limits.disk_bytes, Some(5));
    assert_eq!(grant(&more, &plain, &[]).limits.disk_bytes, None);
}

#[test]
fn what_is_wrong_is_named_with_its_line_and_the_nearest_key() {
    let error = Policy::parse(b"version = 1\n[plugin.git]\nlogg = true\n").unwrap_err();
    assert_eq!(error.to_string(), "line 3: unknown key `logg`");
    assert_eq!(error.hint().as_deref(), Some("did you mean `log`?"));
    let error = Policy::parse(b"version = 1\n\n[plugin.git.git]\nremote = []\n").unwrap_err();
    assert_eq!(
        error.hint().as_deref(),
        Some("did you mean `remotes`?"),
        "{error}"
    );
    let error = Policy::parse(b"version = 1\n[plugin.git]\nlog = 3\n").unwrap_err();
    assert!(
        error.to_string().starts_with("line 3: invalid type"),
        "{error}"
    );
    let error = Policy::parse(b"version = 1\n[plugin.git\n").unwrap_err();
    assert!(
        matches!(error, DocumentError::Syntax { line: 2, .. }),
        "{error:?}"
    );
    let error = Policy::parse(b"version = 1\n[plugin.Git]\n").unwrap_err();
    assert!(
        matches!(error, DocumentError::Value { line: 2, .. }),
        "{error:?}"
    );
    let error = Policy::parse(b"version = 2\n").unwrap_err();
    assert_eq!(
        error.to_string(),
        "`version`: this host reads version 1, not 2"
    );
    assert!(matches!(
        Policy::parse(b""),
        Err(DocumentError::Value { .. })
    ));
    assert!(matches!(
        Policy::parse(&[0xff]),
        Err(DocumentError::NotText)
    ));
    let error = Policy::parse(b"version = 1\n\"\\u001b[2J\" = 1\n").unwrap_err();
    assert!(!error.to_string().contains('\u{1b}'), "{error}");
}

#[test]
fn entries_that_mean_nothing_are_refused_in_policies() {
    let refused = |plugin: &str| {
        let text = format!("version = 1\n[plugin.notes]\n{plugin}");
        Policy::parse(text.as_bytes()).unwrap_err().to_string()
    };
    for (plugin, at) in [
        (
            "[plugin.notes.git]\nremotes = [\"@alow\"]",
            "plugin.notes.git.remotes",
        ),
        (
            "[plugin.notes.git]\nremotes = [\"git.example\"]",
            "plugin.notes.git.remotes",
        ),
        (
            "[plugin.notes.git]\npush = [\"main\"]",
            "plugin.notes.git.push",
        ),
        (
            "[plugin.notes.git]\ncredentials = [\"a*\"]",
            "plugin.notes.git.credentials",
        ),
        (
            "[plugin.notes.git]\nreceived-bytes = 0",
            "plugin.notes.git.received-bytes",
        ),
        (
            "[plugin.notes.process]\nprograms = [\"bin/x\"]",
            "plugin.notes.process.programs",
        ),
        (
            "[plugin.notes.process]\nprograms = [\"/opt/../bin/sh\"]",
            "plugin.notes.process.programs",
        ),
        (
            "[plugin.notes.process]\nin-root = [\"/bin/sh\"]",
            "plugin.notes.process.in-root",
        ),
        (
            "[plugin.notes.process]\nin-root = [\"../x\"]",
            "plugin.notes.process.in-root",
        ),
        (
            "[plugin.notes.process]\nnetwork = [\"https://a/b\"]",
            "plugin.notes.process.network",
        ),
        (
            "[plugin.notes.process]\nnetwork = [\"pypi.example\"]",
            "plugin.notes.process.network",
        ),
        (
            "[plugin.notes.process]\nenvironment = [\"*\"]",
            "plugin.notes.process.environment",
        ),
        (
            "[plugin.notes.process]\nenvironment = [\"A=B\"]",
            "plugin.notes.process.environment",
        ),
        (
            "[plugin.notes.process]\nwall-seconds = 99999999",
            "plugin.notes.process.wall-seconds",
        ),
        (
            "[plugin.notes.http]\nhosts = [\"https://a/b\"]",
            "plugin.notes.http.hosts",
        ),
        (
            "[plugin.notes.http]\nconnections = 65",
            "plugin.notes.http.connections",
        ),
        (
            "[plugin.notes.http]\nreceived-bytes = 0",
            "plugin.notes.http.received-bytes",
        ),
        (
            "[plugin.notes.limits]\nhandles = 0",
            "plugin.notes.limits.handles",
        ),
        (
            "[confinement]\nuids = { first = 0, count = 5 }",
            "confinement.uids",
        ),
        (
            "[confinement]\nuids = { first = 4000000000, count = 4000000000 }",
            "confinement.uids",
        ),
    ] {
        let error = refused(plugin);
        assert!(error.starts_with(&format!("`{at}`: ")), "{plugin}: {error}");
    }
}

#[test]
fn a_manifest_has_a_line_for_each_wish() {
    let refused = |text: &str| Manifest::parse(text.as_bytes()).unwrap_err().to_string();
    let head = "manifest = 1\nname = \"N\"\nversion = \"1\"\ntype = \"notes\"\n";
    let error = refused(&format!("{head}[wants.log]\n"));
    assert!(error.contains("missing field `reason`"), "{error}");
    let error = refused(&format!("{head}[wants.log]\nreason = \" \"\n"));
    assert!(error.starts_with("`wants.log.reason`: "), "{error}");
    let error = refused(&format!("{head}[wants.log]\nreason = \"a\\nb\"\n"));
    assert!(error.contains("control or invisible"), "{error}");
    let error = refused(&format!("{head}[wants.log]\nreason = \"\\u202Eok\"\n"));
    assert!(error.contains("control or invisible"), "{error}");
    let error = refused(&format!(
        "{head}[wants.root]\naccess = \"none\"\nreason = \"x\"\n"
    ));
    assert!(error.starts_with("`wants.root.access`"), "{error}");
    assert_eq!(
        refused(&head.replace("= 1\nname", "= 2\nname")),
        "`manifest`: this host reads format 1, not 2"
    );
    assert!(
        refused(&head.replace("notes", "../x")).contains("line 4"),
        "the type is checked"
    );
    let long = format!("{head}# {}", "x".repeat(MANIFEST_BYTES_MAX));
    assert!(matches!(
        Manifest::parse(long.as_bytes()),
        Err(DocumentError::TooLarge { .. })
    ));
}

#[test]
fn an_import_belongs_to_one_capability_whatever_its_version() {
    assert_eq!(
        Capability::of_import("warren:handler/git@0.9.0"),
        Some(Capability::Git)
    );
    assert_eq!(
        Capability::of_import("wasi:http/outgoing-handler@0.2.3"),
        Some(Capability::Http)
    );
    assert_eq!(Capability::of_import("warren:handler/types@0.1.0"), None);
    assert_eq!(Capability::of_import("evil:handler/git@0.1.0"), None);
}

#[test]
fn requests_have_limits_that_an_operator_moves() {
    let wanting = manifest("[wants.http]\nhosts = [\"*\"]\nreason = \"x\"\n");
    let granted = |more: &str| {
        let hosts = format!("[plugin.notes.http]\nhosts = [\"https://a.example\"]\n{more}");
        grant(&policy(&hosts), &wanting, &["wasi:http/types@0.2.0"])
    };
    let base = granted("");
    let limits = &base.http.as_ref().unwrap().limits;
    assert_eq!(*limits, HttpLimits::default());
    for key in [
        "requests",
        "header-bytes",
        "sent-bytes",
        "received-bytes",
        "silence-seconds",
    ] {
        let less = granted(&format!("{key} = 2\n"));
        assert!(base.covers(&less) && !less.covers(&base), "{key}");
    }
    let more = granted("connections = 9\n");
    assert!(more.covers(&base) && !base.covers(&more));
    assert_eq!(more.http.unwrap().limits.connections, 9);
}

#[test]
fn the_schema_in_docs_is_the_schema() {
    let path = concat!(env!("CARGO_MANIFEST_DIR"), "/../../docs/policy.schema.json");
    let there: serde_json::Value = serde_json::from_slice(&std::fs::read(path).unwrap()).unwrap();
    assert_eq!(
        there,
        schema(),
        "write it anew: warren policy schema > docs/policy.schema.json"
    );
}
