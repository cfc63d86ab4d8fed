//! Handles that are made up, closed or of another kind, and numbers that are too large.

use super::*;

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_handle_that_is_none_ends_that_call_only() {
    let world = World::with(hostile(), grants()).await;
    for scenario in [
        "raw-made-up",
        "raw-zero",
        "raw-largest",
        "raw-closed",
        "raw-closed-base",
        "raw-dropped-twice",
        "raw-other-kind",
        "raw-file-as-stream",
        "raw-closed-stream",
        "raw-closed-pollable",
        "raw-empty-poll",
        "raw-parent-first",
    ] {
        let error = world.play(scenario).await.unwrap_err();
        assert_eq!(error.code(), "HandlerTrapped", "{scenario}: {error}");
        assert_eq!(error.to_string().lines().count(), 1, "{scenario}: {error}");
        world.still_works().await;
    }
    assert!(!world.root().join("raw-dir").exists());
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn numbers_that_are_too_large_end_nothing_but_the_call() {
    let world = World::with(hostile(), grants()).await;
    for scenario in [
        "raw-zeroes",
        "raw-read-all",
        "raw-write-far",
        "raw-size",
        "raw-splice-far",
        "raw-timer",
    ] {
        // An answer or a trap: both are of that guest alone.
        match world.play(scenario).await {
            Ok(said) => assert_eq!(said, json!({ "ok": false }), "{scenario}"),
            Err(error) => assert_eq!(error.code(), "HandlerTrapped", "{scenario}: {error}"),
        }
        world.still_works().await;
    }
}
