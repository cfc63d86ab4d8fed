//! How two grants, wishes or lists of imports differ.

use super::*;

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
    type Wider = (&'static str, fn(&mut Grant));
    let wider: [Wider; 14] = [
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
        ("git.unconfined", |g| {
            g.git.as_mut().unwrap().unconfined = true
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
