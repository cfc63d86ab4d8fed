//! What it costs to count the bytes of a guest.

use std::sync::Arc;
use std::time::{Duration, Instant};

use warren::plugin::{
    CallContext, CallMode, Cancel, GitGrant, GrantTable, Grants, Plugin, ProcessGrant, Runtime,
    RuntimeConfig, Sources, Trust,
};
use warren_model::{DirName, Metadata, TenantId};
use warren_testkit::Work;

use crate::table::{Table, median};

const ROUNDS: usize = 40;

const BYTES: u64 = 64 << 20;

struct Side {
    runtime: Runtime,
    plugin: Arc<Plugin>,
}

impl Side {
    /// A host whose guest may write as much as there is, or is counted against a limit.
    async fn new(work: &Work, disk_bytes: Option<u64>) -> Self {
        let mut grants = Grants {
            git: Some(GitGrant::default()),
            process: Some(ProcessGrant::default()),
            ..Grants::default()
        };
        grants.limits.disk_bytes = disk_bytes;
        grants.limits.inodes = disk_bytes;
        let mut table = GrantTable::default();
        table.set("hostile", grants);
        let config = RuntimeConfig {
            state_dir: work.dir("quota-state"),
            sources: Sources {
                shipped: vec![("hostile", warren_testkit::hostile())],
                trust: Trust::Given(Box::new(table)),
                ..Sources::default()
            },
            ..RuntimeConfig::default()
        };
        let (runtime, failures) = Runtime::start(config).await.expect("a host");
        assert!(failures.is_empty(), "{failures:?}");
        let plugin = runtime
            .plugin(&"hostile".parse().expect("a type"))
            .expect("the guest");
        Self { runtime, plugin }
    }

    async fn write(&self, work: &Work, spec: &Metadata) -> Duration {
        let root_path = work.dir("quota-root");
        let context = CallContext {
            tenant: TenantId::default(),
            project: "p".parse().expect("an id"),
            dir_name: DirName::anonymous(),
            label: None,
            root: warren_disk::open_root(&root_path).expect("a root"),
            root_path: root_path.clone(),
            mode: CallMode::ReadWrite,
            deadline: None,
            progress: Arc::new(|_, _, _| {}),
            cancel: Cancel::default(),
        };
        let start = Instant::now();
        let made = self.runtime.init(&self.plugin, context, spec).await;
        let took = start.elapsed();
        made.expect("a call");
        std::fs::remove_file(root_path.join("big")).expect("a file");
        took
    }
}

pub(crate) async fn run(table: &mut Table) {
    let work = Work::new();
    let (counted, free) = (
        Side::new(&work, Some(1 << 40)).await,
        Side::new(&work, None).await,
    );
    let text = format!(r#"{{"scenario":"disk-honest","bytes":{BYTES}}}"#);
    let spec = Metadata::from_json(&text).expect("metadata");
    let (mut ours, mut theirs) = (Vec::new(), Vec::new());
    for round in 0..ROUNDS + 4 {
        let took = (
            counted.write(&work, &spec).await,
            free.write(&work, &spec).await,
        );
        if round >= 4 {
            ours.push(took.0);
            theirs.push(took.1);
        }
    }
    table.ratio(
        "guest write of 64 MiB, counted : not counted",
        "1.05",
        (median(ours), median(theirs)),
    );
}
