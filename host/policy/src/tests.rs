//! Rules over whole documents, each with its denied twin.

use proptest::prelude::*;

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

fn full() -> Grant {
    let policy = policy(
        "root = \"read-write\"\nlog = true\nprogress = true\n\
         [plugin.notes.git]\nremotes = [\"https://git.example/team/**\"]\npush = [\"refs/heads/**\"]\n\
         credentials = [\"team\"]\nreceived-bytes = 100\n\
         [plugin.notes.process]\nprograms = [\"@python\"]\nnetwork = [\"https://pypi.example\"]\n\
         processes = 10\n[plugin.notes.limits]\ndisk-bytes = 1000\n",
    );
    let asks = manifest(&format!(
        "{WANTS_GIT}[wants.root]\naccess = \"read-write\"\nreason = \"x\"\n[wants.log]\nreason = \"x\"\n\
         [wants.process]\nprograms = [\"@python\"]\nnetwork = [\"*\"]\nreason = \"x\"\n"
    ));
    grant(&policy, &asks, &[GIT, LOG, PROCESS])
}

#[test]
fn more_of_anything_widens_and_less_narrows() {
    let base = full();
    let wider: [(&str, fn(&mut Grant)); 13] = [
        ("progress", |g| g.progress = true),
        ("http", |g| g.http = Some(HttpGrant::default())),
        ("git.remotes.policy", |g| {
            push(
                &mut g.git.as_mut().unwrap().remotes.policy,
                "https://git.example/**",
            )
        }),
        ("git.remotes.policy", |g| {
            push(&mut g.git.as_mut().unwrap().remotes.policy, "@allow")
        }),
        ("git.push.policy", |g| {
            push(&mut g.git.as_mut().unwrap().push.policy, "refs/tags/**")
        }),
        ("git.credentials", |g| {
            push(&mut g.git.as_mut().unwrap().credentials, "other")
        }),
        ("git.received-bytes", |g| {
            g.git.as_mut().unwrap().received_bytes = None
        }),
        ("process.programs", |g| {
            push(&mut g.process.as_mut().unwrap().programs, "sh")
        }),
        ("process.network.policy", |g| {
            push(
                &mut g.process.as_mut().unwrap().network.policy,
                "https://a:443",
            )
        }),
        ("process.unconfined", |g| {
            g.process.as_mut().unwrap().unconfined = true
        }),
        ("process.processes", |g| {
            g.process.as_mut().unwrap().limits.processes = Some(11)
        }),
        ("limits.disk-bytes", |g| g.limits.disk_bytes = None),
        ("limits.memory-bytes", |g| {
            g.limits.memory_bytes = Some(1 << 40)
        }),
    ];
    for (path, widen) in wider {
        let mut other = base.clone();
        widen(&mut other);
        let changes = diff(&base, &other);
        assert!(
            changes
                .iter()
                .any(|c| c.path == format!("grant.{path}") && c.direction == Direction::Widens),
            "{path}: {changes:?}"
        );
        assert!(!base.covers(&other), "{path}");
        assert!(other.covers(&base), "{path}");
        let back = diff(&other, &base);
        assert!(
            back.iter().all(|c| c.direction != Direction::Widens),
            "{path}: {back:?}"
        );
        assert_ne!(id(&base), id(&other), "{path}");
    }
}

fn push(list: &mut Vec<String>, item: &str) {
    list.push(item.to_owned());
}

fn id(grant: &Grant) -> GrantId {
    GrantId::of(&"notes".parse().unwrap(), "d", grant)
}

#[test]
fn a_narrower_entry_in_place_of_a_wide_one_is_no_widening() {
    let base = full();
    let mut other = base.clone();
    other.git.as_mut().unwrap().remotes.policy = vec!["https://git.example/team/a/**".into()];
    other.git.as_mut().unwrap().push.policy = vec!["refs/heads/x/**".into()];
    assert!(base.covers(&other));
    assert!(!other.covers(&base));
    // A host by name may be inside, which `https://**` never is.
    let mut any = base.clone();
    any.git.as_mut().unwrap().remotes.policy = vec!["https://**".into()];
    let mut named = base.clone();
    named.git.as_mut().unwrap().remotes.policy = vec!["https://127.0.0.1/**".into()];
    assert!(!any.covers(&named));
    // Paths are compared by whole parts.
    let mut sibling = base.clone();
    sibling.git.as_mut().unwrap().remotes.policy = vec!["https://git.example/teams/**".into()];
    assert!(!base.covers(&sibling));
}

#[test]
fn one_grant_has_one_id() {
    let (type_a, type_b) = ("notes".parse().unwrap(), "noted".parse().unwrap());
    let grant = full();
    assert_eq!(
        GrantId::of(&type_a, "d", &grant),
        GrantId::of(&type_a, "d", &grant.clone())
    );
    assert_ne!(
        GrantId::of(&type_a, "d", &grant),
        GrantId::of(&type_b, "d", &grant)
    );
    assert_ne!(
        GrantId::of(&type_a, "d", &grant),
        GrantId::of(&type_a, "e", &grant)
    );
    assert_eq!(GrantId::of(&type_a, "d", &grant).as_str().len(), 16);
    // The order of a list, and how an entry is written, are no difference.
    let written = |list: &str| {
        let policy = policy(&format!("[plugin.notes.git]\nremotes = [{list}]\n"));
        id(&grant_of_git(&policy))
    };
    assert_eq!(
        written("\"**\", \"https://a/**\""),
        written("\"https://a/**\", \"@allow\", \"**\"")
    );
}

fn grant_of_git(policy: &Policy) -> Grant {
    grant(policy, &manifest(WANTS_GIT), &[GIT])
}

#[test]
fn wishes_and_imports_are_compared() {
    let plain = manifest("[wants.log]\nreason = \"x\"\n");
    let more = manifest(&format!("[wants.log]\nreason = \"y\"\n{WANTS_GIT}"));
    let changes = diff_wants(&plain.wants, &more.wants);
    let at = |path: &str| changes.iter().find(|c| c.path == path).map(|c| c.direction);
    assert_eq!(at("wants.git"), Some(Direction::Widens));
    assert_eq!(at("wants.git.remotes"), Some(Direction::Widens));
    assert_eq!(at("wants.log.reason"), Some(Direction::Changed));
    assert!(
        diff_wants(&more.wants, &plain.wants)
            .iter()
            .all(|c| c.direction != Direction::Widens)
    );
    let asks = manifest("[wants.limits]\nhandles = 5000\nreason = \"x\"\n");
    let changes = diff_wants(&manifest("").wants, &asks.wants);
    assert_eq!(changes[0].path, "wants.limits.handles");
    assert_eq!(changes[0].direction, Direction::Widens);

    let names = |list: &[&str]| -> Vec<String> { list.iter().map(ToString::to_string).collect() };
    let ways = |before: &[&str], after: &[&str]| -> Vec<Direction> {
        diff_imports(&names(before), &names(after))
            .iter()
            .map(|c| c.direction)
            .collect()
    };
    assert_eq!(ways(&[LOG], &[LOG, GIT]), [Direction::Widens]);
    assert_eq!(ways(&[LOG, GIT], &[LOG]), [Direction::Narrows]);
    assert_eq!(
        ways(&[LOG], &["warren:handler/log@0.1.1"]),
        [Direction::Changed, Direction::Changed]
    );
    assert_eq!(ways(&[], &["wasi:io/streams@0.2.0"]), [Direction::Changed]);
    assert_eq!(ways(&[], &["wasi:http/types@0.2.0"]), [Direction::Widens]);
}

mod lock {
    use super::*;

    struct Plugin {
        digest: &'static str,
        imports: Vec<String>,
        manifest: Manifest,
        grant: Grant,
    }

    fn plugin(digest: &'static str, policy: &Policy, wants: &str, imports: &[&str]) -> Plugin {
        let manifest = manifest(wants);
        Plugin {
            digest,
            imports: imports.iter().map(ToString::to_string).collect(),
            grant: grant(policy, &manifest, imports),
            manifest,
        }
    }

    impl Plugin {
        fn ask(&self) -> Candidate<'_> {
            Candidate {
                digest: self.digest,
                imports: &self.imports,
                manifest: &self.manifest,
                grant: &self.grant,
                shipped: None,
            }
        }
    }

    fn at() -> jiff::Timestamp {
        "2026-01-02T03:04:05Z".parse().unwrap()
    }

    const WIDE: &str = "log = true\n[plugin.notes.git]\nremotes = [\"@allow\"]\n";
    const NARROW: &str = "[plugin.notes.git]\nremotes = [\"https://git.example/**\"]\n";

    #[test]
    fn only_what_was_approved_loads() {
        let wide = policy(WIDE);
        let first = plugin("aa", &wide, WANTS_GIT, &[GIT]);
        let mut lock = Lock::default();
        assert_eq!(lock.judge(first.ask()), Verdict::Unknown);
        lock.approve(first.ask(), "me", at());
        assert_eq!(lock.judge(first.ask()), Verdict::Approved);

        // Another binary, though it wants nothing more.
        let patched = plugin("bb", &wide, WANTS_GIT, &[GIT]);
        let Verdict::Differs(changes) = lock.judge(patched.ask()) else {
            panic!()
        };
        assert_eq!(changes.len(), 1);
        assert_eq!(changes[0].path, "digest");

        // One that widens itself.
        let wants = format!("{WANTS_GIT}[wants.log]\nreason = \"x\"\n");
        let widened = plugin("cc", &wide, &wants, &[GIT, LOG]);
        let Verdict::Differs(changes) = lock.judge(widened.ask()) else {
            panic!()
        };
        let paths: Vec<_> = changes
            .iter()
            .filter(|c| c.direction == Direction::Widens)
            .map(|c| c.path.as_str())
            .collect();
        assert_eq!(paths, ["imports", "wants.log", "grant.log"]);

        lock.revoke(&"notes".parse().unwrap(), "me", at());
        assert_eq!(lock.judge(first.ask()), Verdict::Revoked);
        lock.approve(first.ask(), "me", at());
        assert_eq!(lock.judge(first.ask()), Verdict::Approved);
    }

    #[test]
    fn a_narrower_policy_holds_at_once_and_a_wider_one_needs_approval() {
        let narrow = plugin("aa", &policy(NARROW), WANTS_GIT, &[GIT]);
        let wide = plugin("aa", &policy(WIDE), WANTS_GIT, &[GIT]);
        let mut lock = Lock::default();
        lock.approve(narrow.ask(), "me", at());
        let Verdict::Differs(changes) = lock.judge(wide.ask()) else {
            panic!()
        };
        assert_eq!(changes[0].path, "grant.git.remotes.policy");
        assert_eq!(changes[0].direction, Direction::Widens);
        lock.approve(wide.ask(), "me", at());
        assert_eq!(lock.judge(narrow.ask()), Verdict::Approved);
    }

    #[test]
    fn what_is_shipped_is_approved_as_it_is_shipped_and_no_further() {
        let narrow = plugin("aa", &policy(NARROW), WANTS_GIT, &[GIT]);
        let wide = plugin("aa", &policy(WIDE), WANTS_GIT, &[GIT]);
        let shipped = |plugin| Candidate {
            shipped: Some(&narrow.grant),
            ..Plugin::ask(plugin)
        };
        let mut lock = Lock::default();
        assert_eq!(lock.judge(shipped(&narrow)), Verdict::Approved);
        let Verdict::Differs(changes) = lock.judge(shipped(&wide)) else {
            panic!()
        };
        assert!(
            changes.iter().all(|c| c.path.starts_with("grant.")),
            "{changes:?}"
        );
        lock.approve(shipped(&wide), "me", at());
        assert_eq!(lock.judge(shipped(&wide)), Verdict::Approved);
        lock.revoke(&"notes".parse().unwrap(), "me", at());
        assert_eq!(lock.judge(shipped(&narrow)), Verdict::Revoked);
    }

    #[test]
    fn a_lock_reads_back_and_its_ids_are_checked() {
        let first = plugin("aa", &policy(WIDE), WANTS_GIT, &[GIT]);
        let mut lock = Lock::default();
        lock.approve(first.ask(), "me", at());
        lock.revoke(&"temp".parse().unwrap(), "you", at());
        let text = lock.to_toml().unwrap();
        assert_eq!(Lock::parse(text.as_bytes()).unwrap(), lock);
        let forged = text.replace("root = \"none\"", "root = \"read-write\"");
        assert_ne!(forged, text);
        let error = Lock::parse(forged.as_bytes()).unwrap_err();
        assert_eq!(
            error.to_string(),
            "`plugin.notes.grant-id`: it is not the id of the grant"
        );
    }
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

prop_compose! {
    fn items(pool: &'static [&'static str])(
        picked in proptest::sample::subsequence(pool, 0..=pool.len())
    ) -> Vec<String> {
        picked.into_iter().map(str::to_owned).collect()
    }
}

const REMOTES: [&str; 5] = [
    "@allow",
    "https://**",
    "https://a.example/**",
    "https://a.example/x/**",
    "file:///srv/**",
];
const REFS: [&str; 4] = [
    "refs/heads/**",
    "refs/heads/a/**",
    "refs/heads/main",
    "refs/tags/**",
];
const ALIASES: [&str; 3] = ["@all", "a", "b"];
const PROGRAMS: [&str; 5] = ["@python", "@uv", "python", "make", "/opt/x"];
const NETWORK: [&str; 3] = ["@index", "https://a.example", "http://127.0.0.1:8080"];
const VARIABLES: [&str; 3] = ["PIP_*", "PIP_X", "LANG"];

fn some(max: u64) -> impl Strategy<Value = Option<u64>> {
    proptest::option::of(1..=max)
}

prop_compose! {
    fn any_plugin()(
        root in prop_oneof![Just(Access::None), Just(Access::ReadOnly), Just(Access::ReadWrite)],
        log: bool,
        progress: bool,
        git in proptest::option::of((items(&REMOTES), items(&REFS), items(&ALIASES), some(9))),
        process in proptest::option::of((items(&PROGRAMS), items(&NETWORK), items(&VARIABLES),
            any::<bool>(), some(9), some(9))),
        http in proptest::option::of(items(&NETWORK[1..])),
        limits in (some(9), some(9), some(9)),
    ) -> PluginPolicy {
        PluginPolicy {
            root,
            log,
            progress,
            git: git.map(|(remotes, push, credentials, received_bytes)| GitPolicy {
                remotes, push, credentials, received_bytes,
            }),
            process: process.map(|(programs, network, environment, unconfined, processes, wall)| {
                ProcessPolicy {
                    programs, network, environment, unconfined, processes,
                    wall_seconds: wall,
                    ..ProcessPolicy::default()
                }
            }),
            http: http.map(|hosts| HttpPolicy {
                hosts,
                ..HttpPolicy::default()
            }),
            limits: LimitsPolicy {
                handles: limits.0,
                disk_bytes: limits.1,
                inodes: limits.2,
                ..LimitsPolicy::default()
            },
        }
    }
}

fn wants_all() -> Wants {
    manifest(&format!(
        "{WANTS_GIT}[wants.root]\naccess = \"read-write\"\nreason = \"x\"\n[wants.log]\nreason = \"x\"\n\
         [wants.progress]\nreason = \"x\"\n[wants.http]\nhosts = [\"*\"]\nreason = \"x\"\n\
         [wants.process]\nprograms = [\"@python\", \"@uv\", \"make\", \"/opt/x\"]\nnetwork = [\"*\"]\n\
         environment = [\"PIP_*\", \"LANG\"]\nreason = \"x\"\n"
    ))
    .wants
}

fn granted(policy: &PluginPolicy) -> Grant {
    let imports = [
        GIT,
        LOG,
        PROCESS,
        "warren:handler/progress@0.1.0",
        "wasi:http/types@0.2.0",
    ];
    effective(Some(policy), &wants_all(), &imports)
}

proptest! {
    #[test]
    fn a_policy_reads_back_as_it_is_printed(plugin in any_plugin()) {
        let mut policy = Policy::default();
        policy.plugin.insert("notes".parse().unwrap(), plugin);
        let text = policy.to_toml().unwrap();
        prop_assert_eq!(Policy::parse(text.as_bytes()).unwrap(), policy);
    }

    #[test]
    fn covers_is_reflexive_and_a_grant_that_covers_both_ways_differs_in_words_only(
        a in any_plugin(), b in any_plugin()
    ) {
        let (a, b) = (granted(&a), granted(&b));
        prop_assert!(a.covers(&a));
        prop_assert!(diff(&a, &a).is_empty());
        let there = diff(&a, &b);
        if a.covers(&b) && b.covers(&a) {
            prop_assert!(there.iter().all(|change| change.direction == Direction::Changed));
        }
        // What widens one way narrows the other.
        let count = |changes: &[Change], way| changes.iter().filter(|c| c.direction == way).count();
        let back = diff(&b, &a);
        prop_assert_eq!(count(&there, Direction::Widens), count(&back, Direction::Narrows));
    }

    #[test]
    fn covers_is_transitive(a in any_plugin(), b in any_plugin(), c in any_plugin()) {
        let (a, b, c) = (granted(&a), granted(&b), granted(&c));
        if a.covers(&b) && b.covers(&c) {
            prop_assert!(a.covers(&c));
        }
    }

    #[test]
    fn no_grant_goes_beyond_the_wish(plugin in any_plugin()) {
        let all = granted(&plugin);
        let none = effective(Some(&plugin), &Wants::default(), &[GIT, LOG, PROCESS]);
        prop_assert!(all.covers(&none));
        prop_assert!(none.git.is_none() && none.process.is_none() && !none.log);
        prop_assert_eq!(none.root, Access::None);
    }

    #[test]
    fn nothing_panics_on_any_text(text in ".{0,200}") {
        let _ = Policy::parse(text.as_bytes());
        let _ = Manifest::parse(text.as_bytes());
        let _ = Lock::parse(text.as_bytes());

    }
}
