//! Manifests, policies and locks: what is read is what is written, and nothing is granted that is
//! not named.

use warren_mirror::{RefPatterns, UrlPolicy};
use warren_policy::{
    Candidate, Grant, Lock, Manifest, PluginPolicy, Policy, SECTION, SectionError, Verdict, Wants,
    append_section, effective, find_section,
};

/// What parts two documents of one input.
const BETWEEN: &str = "\n---\n";

/// Every capability there is.
const IMPORTS: &[&str] = &[
    "warren:handler/git@0.1.0",
    "warren:handler/process@0.1.0",
    "warren:handler/log@0.1.0",
    "warren:handler/progress@0.1.0",
    "wasi:http/outgoing-handler@0.2.0",
];

/// A manifest that asks for everything.
const GREEDY: &str = r#"
manifest = 1
name = "all"
version = "1"
type = "x"
[wants.root]
access = "read-write"
reason = "r"
[wants.git]
remotes = ["**"]
push = ["refs/**"]
credentials = ["*"]
reason = "r"
[wants.process]
programs = ["/usr/", "@python", "@uv", "python", "sh"]
in-root = [".venv/bin/python", "x"]
network = ["*", "@index"]
environment = ["PIP_*", "A*", "LD_PRELOAD"]
reason = "r"
[wants.http]
hosts = ["*"]
reason = "r"
[wants.log]
reason = "r"
[wants.progress]
reason = "r"
"#;

/// A component, and a manifest.
pub fn manifest(data: &[u8]) {
    if let Ok(section) = find_section(data) {
        assert!(data.windows(SECTION.len()).any(|w| w == SECTION.as_bytes()));
        assert!(section.len() < data.len());
        let stamped = append_section(data, b"x");
        let two = find_section(&stamped);
        assert!(matches!(two, Err(SectionError::Several)), "{two:?}");
    }
    let stamped = append_section(b"\0asm\x0d\0\x01\0", data);
    assert_eq!(find_section(&stamped), Ok(data));
    match Manifest::parse(data) {
        Ok(manifest) => {
            let written = toml::to_string(&manifest).expect("what was read can be written");
            assert_eq!(Manifest::parse(written.as_bytes()).as_ref(), Ok(&manifest));
            let reasons = manifest.wants.reasons();
            for text in [manifest.name.as_str(), &manifest.version]
                .into_iter()
                .chain(reasons.iter().map(|(_, reason)| *reason))
            {
                assert!(!text.trim().is_empty() && !text.chars().any(char::is_control));
            }
            // It wants; without a policy it gets nothing.
            let grant = effective(None, &manifest.wants, IMPORTS);
            assert_eq!(grant, effective(None, &Wants::default(), IMPORTS));
            assert!(grant.git.is_none() && grant.process.is_none() && grant.http.is_none());
        }
        Err(error) => one_line(&error.to_string()),
    }
}

/// Two policies of one plugin, that of type `x` in each.
pub fn policy(data: &[u8]) {
    let Ok(text) = std::str::from_utf8(data) else {
        return;
    };
    let (first, second) = text.split_once(BETWEEN).unwrap_or((text, ""));
    let greedy = Manifest::parse(GREEDY.as_bytes()).expect("it is a manifest");
    let read = |text: &str| match Policy::parse(text.as_bytes()) {
        Ok(policy) => Some(policy),
        Err(error) => {
            one_line(&error.to_string());
            None
        }
    };
    let policies: Vec<Policy> = [first, second].into_iter().filter_map(read).collect();
    let mut grants = Vec::new();
    for policy in &policies {
        let written = policy.to_toml().expect("what was read can be written");
        assert_eq!(Policy::parse(written.as_bytes()).as_ref(), Ok(policy));
        for plugin in policy.plugin.values() {
            let grant = effective(Some(plugin), &greedy.wants, IMPORTS);
            within(plugin, &grant);
            assert!(grant.covers(&grant));
            assert!(grant.covers(&effective(Some(plugin), &Wants::default(), IMPORTS)));
            assert!(grant.covers(&effective(Some(plugin), &greedy.wants, &IMPORTS[..0])));
            grants.push(grant);
        }
    }
    for wide in &grants {
        for narrow in grants.iter().filter(|narrow| wide.covers(narrow)) {
            covers(wide, narrow);
        }
    }
}

/// Nothing is in a grant that is not in the policy, whatever the plugin wants.
fn within(policy: &PluginPolicy, grant: &Grant) {
    assert!(grant.root <= policy.root);
    assert!(policy.log || !grant.log);
    assert!(policy.progress || !grant.progress);
    assert!(policy.git.is_some() || grant.git.is_none());
    assert!(policy.process.is_some() || grant.process.is_none());
    assert!(policy.http.is_some() || grant.http.is_none());
    if let (Some(policy), Some(grant)) = (&policy.git, &grant.git) {
        for alias in &grant.credentials {
            assert!(
                policy.credentials.contains(alias) || any(&policy.credentials),
                "{alias}"
            );
        }
        assert_eq!(policy.remotes.is_empty(), grant.remotes.policy.is_empty());
        assert_eq!(policy.push.is_empty(), grant.push.policy.is_empty());
        // What the policy takes for a pattern, the one who holds names against it does too.
        RefPatterns::new(&grant.push.policy).expect("refs of a policy are patterns");
    }
    if let (Some(policy), Some(grant)) = (&policy.process, &grant.process) {
        assert!(policy.unconfined || !grant.unconfined);
        for item in &grant.in_root {
            assert!(policy.in_root.contains(item), "{item}");
        }
        for item in &grant.programs {
            let below = |folder: &String| {
                folder.starts_with('/') && item.starts_with(folder.trim_end_matches('/'))
            };
            let tokens = [("@python", "python"), ("@uv", "uv")];
            let alias = |policy: &String| tokens.contains(&(policy.as_str(), item.as_str()));
            let named = |policy: &String| policy == item || below(policy) || alias(policy);
            assert!(
                policy.programs.iter().any(named),
                "{item} of {:?}",
                policy.programs
            );
        }
        for item in &grant.environment {
            let start = |policy: &String| match policy.strip_suffix('*') {
                Some(start) => item.starts_with(start),
                None => policy == item,
            };
            assert!(policy.environment.iter().any(start), "{item}");
        }
    }
}

fn any(aliases: &[String]) -> bool {
    aliases.iter().any(|alias| alias == "@all" || alias == "*")
}

/// What is called no wider allows nothing more.
fn covers(wide: &Grant, narrow: &Grant) {
    let (Some(wide), Some(narrow)) = (&wide.git, &narrow.git) else {
        return;
    };
    let refs = |list: &[String]| RefPatterns::new(list).expect("refs of a policy are patterns");
    let (more, less) = (refs(&wide.push.policy), refs(&narrow.push.policy));
    for pattern in &narrow.push.policy {
        for name in [
            pattern.replace('*', "a"),
            pattern.replace("**", "a/b").replace('*', "c"),
        ] {
            assert!(
                !less.allows(&name) || more.allows(&name),
                "{name} by {narrow:?}, {wide:?}"
            );
        }
    }
    let urls = |list: &[String]| match list {
        list if list.iter().any(|item| item == "@allow") => None,
        list => UrlPolicy::new(list).ok(),
    };
    let (Some(more), Some(less)) = (urls(&wide.remotes.policy), urls(&narrow.remotes.policy))
    else {
        return;
    };
    for pattern in &narrow.remotes.policy {
        for url in [
            pattern.replace('*', "a"),
            pattern.replace("**", "a/b").replace('*', "1"),
        ] {
            assert!(
                less.check(&url).is_err() || more.check(&url).is_ok(),
                "{url} by {narrow:?}, {wide:?}"
            );
        }
    }
}

/// A lock.
pub fn lock(data: &[u8]) {
    let lock = match Lock::parse(data) {
        Ok(lock) => lock,
        Err(error) => return one_line(&error.to_string()),
    };
    let written = lock.to_toml().expect("what was read can be written");
    assert_eq!(Lock::parse(written.as_bytes()).as_ref(), Ok(&lock));
    for (handler, approval) in &lock.plugin {
        let manifest = Manifest {
            manifest: 1,
            name: "n".to_owned(),
            version: approval.version.clone(),
            handler_type: handler.clone(),
            wants: approval.wants.clone(),
        };
        let judge = |digest: &str, grant: &Grant| {
            lock.judge(Candidate {
                digest,
                imports: &approval.imports,
                manifest: &manifest,
                grant,
                shipped: None,
            })
        };
        let same = judge(&approval.digest, &approval.grant);
        let revoked = lock.revoked.contains_key(handler);
        let wanted = if revoked {
            Verdict::Revoked
        } else {
            Verdict::Approved
        };
        assert_eq!(same, wanted, "{handler}");
        let other = judge(&format!("{}0", approval.digest), &approval.grant);
        assert_ne!(other, Verdict::Approved, "{handler}");
        let mut wider = approval.grant.clone();
        wider.log = true;
        wider.limits.memory_bytes = None;
        let wider = judge(&approval.digest, &wider);
        let grew = !approval.grant.log || approval.grant.limits.memory_bytes.is_some();
        assert!(!grew || wider != Verdict::Approved, "{handler}");
    }
}

fn one_line(text: &str) {
    assert!(!text.chars().any(char::is_control), "{text:?}");
    assert!(text.len() < 8192, "{} bytes", text.len());
}
