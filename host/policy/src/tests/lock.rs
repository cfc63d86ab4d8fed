//! What was approved, and what still is.

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
