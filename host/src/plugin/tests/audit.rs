//! What a call did and was refused is in the audit log; what cannot be recorded is refused.

use warren_audit::{AuditLog, Filter, Outcome, Record, Settings, Verdict, read, verify};

use super::*;

struct Audited {
    world: World,
    state: TempDir,
}

impl Audited {
    async fn new(grants: Grants) -> Self {
        let state = scratch();
        let mut config = config(&[hostile()], grants);
        config.services.audit = Some(AuditLog::open(&open(&state), Settings::default()).unwrap());
        let world = World::of(config, "hostile").await;
        Self { world, state }
    }

    fn records(&self) -> Vec<Record> {
        let state = open(&self.state);
        assert_eq!(verify(&state, None).unwrap().verdict(), Verdict::Intact);
        let page = read(&state, &Filter::default(), 0, 10_000).unwrap();
        assert_eq!((page.next, page.unreadable), (None, 0));
        page.records
    }

    /// Records of calls, by verb and outcome.
    fn of(&self, capability: &str) -> Vec<Record> {
        let mut records = self.records();
        records.retain(|record| record.capability == capability);
        records
    }
}

fn open(state: &TempDir) -> Dir {
    Dir::open_ambient_dir(state.path(), ambient_authority()).unwrap()
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_call_is_recorded_before_and_after_with_who_and_how_much() {
    let audited = Audited::new(grants()).await;
    audited.world.play("flood-log").await.unwrap();
    let loads = audited.of("plugin");
    assert_eq!(
        (loads.len(), &*loads[0].verb, loads[0].outcome),
        (1, "load", Outcome::Ok)
    );
    let calls = audited.of("call");
    assert_eq!(calls.len(), 2);
    let (before, after) = (&calls[0], &calls[1]);
    assert_eq!(
        (before.outcome, after.outcome),
        (Outcome::Started, Outcome::Ok)
    );
    assert_eq!(
        (before.duration_us, after.duration_us.is_some()),
        (None, true)
    );
    for record in &calls {
        assert_eq!(record.verb, "init");
        assert_eq!(record.tenant.as_deref(), Some("t"));
        assert_eq!(record.project.as_deref(), Some("p"));
        assert_eq!(record.dir_name.as_deref(), Some("d"));
        assert_eq!(record.handler.as_deref(), Some("hostile"));
        assert_eq!(
            record.plugin.as_ref(),
            Some(&audited.world.plugin.inspection().digest)
        );
        assert_eq!(record.call, before.call);
    }
    assert!(before.call.as_deref().unwrap().starts_with("init-"));
    assert!(after.counts["logLines"] > 0 && after.counts["logLinesDropped"] > 0);
    audited.world.play("flood-progress").await.unwrap();
    let calls = audited.of("call");
    assert!(calls[3].counts["progressReports"] > 0);
    assert_ne!(calls[3].call, before.call);
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_limit_that_was_hit_is_named() {
    let audited = Audited::new(grants()).await;
    audited.world.play("allocate").await.unwrap_err();
    audited.world.play("flood-stdio").await.unwrap_err();
    let calls = audited.of("call");
    assert_eq!(calls[1].outcome, Outcome::Failed);
    assert_eq!(calls[1].code.as_deref(), Some("HandlerLimit"));
    assert_eq!(calls[1].detail.as_deref(), Some("memory"));
    assert_eq!(calls[3].code.as_deref(), Some("HandlerTrapped"));
    assert!(calls[3].counts["outputBytes"] > 16 * 1024);
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn programs_are_recorded_and_their_arguments_are_not() {
    let audited = Audited::new(grants()).await;
    audited.world.play("process").await.unwrap_err();
    let uses = audited.of("process");
    // The world has no launcher: what is asked for is refused, and recorded.
    assert!(!uses.is_empty());
    for record in uses
        .iter()
        .filter(|record| record.outcome != Outcome::Started)
    {
        assert_eq!(record.outcome, Outcome::Denied);
        assert_eq!(record.code.as_deref(), Some("ProcessDenied"));
        assert!(record.target.is_some() && record.duration_us.is_some());
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn verbs_of_git_are_recorded() {
    let audited = Audited::new(grants()).await;
    audited.world.play("git").await.unwrap_err();
    let uses = audited.of("git");
    assert_eq!(uses.len(), 1);
    assert_eq!(
        (uses[0].outcome, uses[0].code.as_deref()),
        (Outcome::Denied, Some("GitDenied"))
    );
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn what_cannot_be_recorded_is_refused() {
    let audited = Audited::new(grants()).await;
    audited.world.still_works().await;
    // Somebody cuts the log: no writer goes on behind that.
    let file = audited.state.path().join("audit/audit-000001.jsonl");
    let text = std::fs::read_to_string(&file).unwrap();
    let first = text.split_inclusive('\n').next().unwrap();
    std::fs::write(&file, first).unwrap();
    let root = audited.world.root();
    let error = audited.world.play("small-file").await.unwrap_err();
    assert_eq!(error.code(), "AuditUnavailable");
    assert!(!root.join("small").exists(), "it was done all the same");
    std::fs::write(&file, text).unwrap();
    audited.world.play("small-file").await.unwrap();
    assert!(root.join("small").exists());
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn refused_paths_are_recorded_but_not_each() {
    let audited = Audited::new(grants()).await;
    audited.world.play("escape").await.unwrap();
    let refused = audited.of("files");
    assert!(!refused.is_empty());
    assert!(
        refused
            .iter()
            .all(|record| record.outcome == Outcome::Denied)
    );
    assert!(
        refused
            .iter()
            .any(|record| record.target.as_deref().unwrap().contains(".."))
    );
    let counted = audited.of("call")[1].counts["refusedPaths"];
    assert!(counted >= refused.len() as u64);
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_call_that_nobody_waits_for_any_more_has_an_end_too() {
    let audited = Audited::new(grants()).await;
    let call = audited.world.play("sleep");
    assert!(
        tokio::time::timeout(Duration::from_millis(100), call)
            .await
            .is_err()
    );
    let calls = audited.of("call");
    assert_eq!(calls.len(), 2);
    assert_eq!(calls[1].code.as_deref(), Some("Abandoned"));
}
