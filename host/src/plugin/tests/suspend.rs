//! A suspend counts only when it is proved.

use super::*;

async fn suspend(world: &World, cx: CallContext, scenario: &str) -> Result<Suspended, PluginError> {
    let current = metadata(json!({ "scenario": scenario }));
    world.runtime.suspend(&world.plugin, cx, &current).await
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn ok_without_a_receipt_is_refused_when_there_is_content() {
    let world = World::with(hostile(), grants()).await;
    // Nothing there: nothing can be lost.
    suspend(&world, world.cx(), "nothing").await.unwrap();
    std::fs::write(world.root().join("work"), "mine").unwrap();
    let error = suspend(&world, world.cx(), "nothing").await.unwrap_err();
    assert_eq!(error.code(), "SuspendUnproven");
    assert!(error.hint().is_some());
    // A dry run deletes nothing afterwards.
    let mut cx = world.cx();
    cx.mode = CallMode::DryRun;
    suspend(&world, cx, "nothing").await.unwrap();
    // A handler that empties the root does not pass either.
    let error = suspend(&world, world.cx(), "empty-root").await.unwrap_err();
    assert_eq!(error.code(), "SuspendUnproven");
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn the_temp_handler_is_ephemeral_and_lists_what_goes() {
    let temp = ("temp", warren_plugins::TEMP);
    let world = World::with(temp, Grants::default()).await;
    std::fs::write(world.root().join("work"), "12345").unwrap();
    let suspended = suspend(&world, world.cx(), "x").await.unwrap();
    assert!(suspended.receipts.is_empty());
    assert_eq!(suspended.loss.len(), 1);
    assert_eq!(
        (suspended.loss[0].path.as_str(), suspended.loss[0].bytes),
        ("work", 5)
    );
    assert!(world.root().join("work").exists());
    let close = world
        .runtime
        .close(&world.plugin, world.cx(), &suspended.metadata);
    close.await.unwrap();
    let back = world
        .runtime
        .recover(&world.plugin, world.cx(), &suspended.metadata);
    assert_eq!(back.await.unwrap(), suspended.metadata);
}
