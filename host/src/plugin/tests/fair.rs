//! What one Project does is no concern of another's.

use futures_util::future::{Either, join_all, select};
use std::pin::pin;

use super::*;

/// On one thread: whoever does not yield shows.
#[tokio::test]
async fn whatever_one_project_does_another_is_served_meanwhile() {
    let mut narrow = grants();
    narrow.limits.wall = Duration::from_secs(60);
    narrow.limits.disk_bytes = Some(4 << 20);
    let world = World::with(hostile(), narrow).await;
    // These do not end before they are stopped.
    for scenario in ["spin", "sleep"] {
        let many = join_all((0..40).map(|_| world.play_for("p", scenario)));
        let other = world.play_for("q", "none");
        match select(pin!(many), pin!(other)).await {
            Either::Right((served, _)) => assert_eq!(served.unwrap()["scenario"], "none"),
            Either::Left(_) => panic!("{scenario}: the other project waited for all of them"),
        }
    }
    for (scenario, code) in [
        ("allocate", "HandlerLimit"),
        ("recurse", "HandlerLimit"),
        ("handles", "HandlerLimit"),
        ("random", "HandlerTrapped"),
        ("flood-stdio", "HandlerTrapped"),
        ("disk-honest", "WorkspaceQuotaExceeded"),
    ] {
        let many = join_all((0..8).map(|_| world.play_for("p", scenario)));
        let (ended, other) = tokio::join!(many, world.play_for("q", "none"));
        assert_eq!(other.unwrap()["scenario"], "none", "{scenario}");
        for ended in ended {
            assert_eq!(ended.unwrap_err().code(), code, "{scenario}");
        }
    }
}

#[tokio::test]
async fn many_guests_of_one_project_have_the_cpu_of_one() {
    let mut limited = grants();
    limited.limits.cpu_epochs = 10;
    limited.limits.wall = Duration::from_secs(60);
    let world = World::with(hostile(), limited).await;
    // All have the same CPU time; the one that is alone is through before any of the eight.
    let many = select_first((0..8).map(|_| world.play_for("p", "spin")));
    let alone = world.play_for("q", "spin");
    match select(pin!(many), pin!(alone)).await {
        Either::Right((ended, _)) => assert_eq!(ended.unwrap_err().code(), "HandlerLimit"),
        Either::Left(_) => panic!("a guest of the crowd was through first"),
    }
}

async fn select_first<F: Future<Output = Result<Value, PluginError>>>(
    calls: impl Iterator<Item = F>,
) -> Result<Value, PluginError> {
    let calls: Vec<_> = calls.map(Box::pin).collect();
    futures_util::future::select_all(calls).await.0
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_trap_in_each_verb_is_an_error_of_that_call() {
    let world = World::with(hostile(), grants()).await;
    let bad = metadata(json!({ "scenario": "panic" }));
    let none = Metadata::default();
    let (runtime, plugin) = (&world.runtime, &world.plugin);
    let codes = [
        runtime.init(plugin, world.cx(), &bad).await.map(drop),
        runtime.suspend(plugin, world.cx(), &bad).await.map(drop),
        runtime.recover(plugin, world.cx(), &bad).await.map(drop),
        runtime.close(plugin, world.cx(), &bad).await,
        runtime
            .perform(plugin, world.cx(), "act", &none, &bad)
            .await
            .map(drop),
    ]
    .map(|ended| ended.unwrap_err().code());
    assert_eq!(codes, ["HandlerTrapped"; 5]);
    world.still_works().await;
}
