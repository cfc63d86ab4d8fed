//! What holds for every policy.

use proptest::prelude::*;

use super::*;

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
                remotes, push, credentials, received_bytes, unconfined: log,
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
