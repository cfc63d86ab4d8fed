//! One call into a handler, and the start of a host.

use std::path::Path;
use std::sync::Arc;
use std::time::{Duration, Instant};

use warren::plugin::{CallContext, CallMode, Cancel};
use warren::service::Service;
use warren_model::{DirName, Metadata, TenantId};

use crate::table::{Table, median};
use crate::world::World;

const CALLS: usize = 2000;

pub(crate) async fn run(table: &mut Table) {
    let world = World::new();
    let plugins = world.work.dir("state/plugins");
    std::fs::write(plugins.join("hostile.wasm"), warren_testkit::hostile()).expect("written");
    let plugins = world.work.dir("state/plugins");
    std::fs::write(plugins.join("hostile.wasm"), warren_testkit::hostile()).expect("written");
    let service = world.service("ws").await;
    let temp = "temp".parse().expect("a type");
    let plugin = service
        .runtime()
        .plugin(&temp)
        .expect("the temp handler")
        .clone();
    let root_path = world.work.dir("ws/root");
    let context = || CallContext {
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
    let nothing = Metadata::default();
    let mut samples = Vec::with_capacity(CALLS);
    for round in 0..CALLS + 100 {
        let context = context();
        let start = Instant::now();
        let closed = service.runtime().close(&plugin, context, &nothing).await;
        let took = start.elapsed();
        closed.expect("a call");
        if round >= 100 {
            samples.push(took);
        }
    }
    table.time(
        "handler call, fresh instance, no file work (p50)",
        "60 µs",
        median(samples),
    );

    small_file(table, &service, &context, &root_path).await;
    std::fs::remove_file(world.work.join("state/plugins/hostile.wasm")).expect("the guest");

    let mut starts: Vec<Duration> = Vec::new();
    for _ in 0..20 {
        let config = world.config("ws");
        let start = Instant::now();
        let opened = config.open().await.expect("a host");
        starts.push(start.elapsed());
        drop(opened);
    }
    table.time(
        "host start, three plugins, compiled-code cache",
        "50 ms",
        median(starts),
    );
}

/// A call that writes one small file, beside the write alone.
async fn small_file(
    table: &mut Table,
    service: &Service,
    context: &dyn Fn() -> CallContext,
    root: &Path,
) {
    let guest = "hostile".parse().expect("a type");
    let guest = service.runtime().plugin(&guest).expect("the guest");
    let small = Metadata::from_json(r#"{"scenario":"small-file"}"#).expect("metadata");
    let file = root.join("small");
    let (mut ours, mut native) = (Vec::new(), Vec::new());
    for _ in 0..CALLS {
        let context = context();
        let start = Instant::now();
        let made = service.runtime().init(&guest, context, &small).await;
        ours.push(start.elapsed());
        made.expect("a call");
        std::fs::remove_file(&file).expect("a file");
        let start = Instant::now();
        std::fs::write(&file, [b'x'; 100]).expect("a file");
        native.push(start.elapsed());
        std::fs::remove_file(&file).expect("a file");
    }
    let both = (median(ours), median(native));
    table.ratio(
        "handler call that writes a small file : native write",
        "",
        both,
    );
}
