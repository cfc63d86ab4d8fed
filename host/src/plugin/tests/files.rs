//! What a guest can reach through WASI: its root and nothing else.

use std::os::unix::fs::symlink;

use super::*;

fn is_refused(value: &Value) -> bool {
    value.get("error").is_some()
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn no_path_leaves_the_root() {
    let world = World::with(hostile(), grants()).await;
    let root = world.root();
    std::fs::write(world.dir.path().join("secret"), "secret").unwrap();
    std::fs::write(root.join("file"), "mine").unwrap();
    symlink(world.dir.path().join("secret"), root.join("out")).unwrap();
    symlink("..", root.join("out-dir")).unwrap();
    symlink("loop", root.join("loop")).unwrap();
    let said = world.play("escape").await.unwrap();
    let tried = said["tried"].as_array().unwrap();
    assert_eq!(tried.len(), 12);
    for pair in tried {
        assert!(is_refused(&pair[1]), "{pair}");
    }
    assert!(!world.dir.path().join("moved").exists());
    assert!(root.join("file").exists());
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_dry_run_changes_nothing() {
    let world = World::with(hostile(), grants()).await;
    let root = world.root();
    std::fs::write(root.join("file"), "mine").unwrap();
    let mut cx = world.cx();
    cx.mode = CallMode::DryRun;
    let said = world
        .play_in(cx, json!({ "scenario": "write" }))
        .await
        .unwrap();
    for (way, value) in said.as_object().unwrap() {
        if way == "read" {
            assert_eq!(value, "mine");
        } else {
            assert!(is_refused(value), "{way}: {value}");
        }
    }
    let names: Vec<_> = std::fs::read_dir(&root)
        .unwrap()
        .map(|e| e.unwrap().file_name())
        .collect();
    assert_eq!(names, ["file"]);
    assert_eq!(std::fs::read_to_string(root.join("file")).unwrap(), "mine");
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_read_only_grant_holds_and_a_read_write_one_gives() {
    let mut narrow = grants();
    narrow.root = RootAccess::ReadOnly;
    let world = World::with(hostile(), narrow).await;
    std::fs::write(world.root().join("file"), "mine").unwrap();
    let said = world.play("write").await.unwrap();
    assert!(
        is_refused(&said["append"]) && is_refused(&said["truncate"]),
        "{said}"
    );

    let world = World::with(hostile(), grants()).await;
    std::fs::write(world.root().join("file"), "mine").unwrap();
    let said = world.play("write").await.unwrap();
    assert_eq!(said["create"], true);
    assert!(world.root().join("new").exists());
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_root_that_is_not_granted_is_not_there() {
    let mut none = grants();
    none.root = RootAccess::None;
    let world = World::with(hostile(), none).await;
    std::fs::write(world.root().join("file"), "mine").unwrap();
    let said = world.play("open").await.unwrap();
    assert!(is_refused(&said["file"]), "{said}");
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_fifo_does_not_hold_the_host() {
    let world = World::with(hostile(), grants()).await;
    std::fs::write(world.root().join("file"), "mine").unwrap();
    let fifo = world.root().join("fifo");
    rustix::fs::mknodat(
        rustix::fs::CWD,
        &fifo,
        rustix::fs::FileType::Fifo,
        rustix::fs::Mode::from(0o600),
        0,
    )
    .unwrap();
    let said = world.play("open").await.unwrap();
    assert!(is_refused(&said["fifo"]), "{said}");
    assert_eq!(said["file"], "mine");
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn the_guest_gets_the_directory_that_was_opened() {
    let world = World::with(hostile(), grants()).await;
    std::fs::write(world.root().join("file"), "right").unwrap();
    let cx = world.cx();
    // Between opening and the call, the name comes to mean another directory.
    std::fs::rename(world.root(), world.dir.path().join("moved")).unwrap();
    std::fs::create_dir(world.root()).unwrap();
    std::fs::write(world.root().join("file"), "wrong").unwrap();
    let said = world
        .play_in(cx, json!({ "scenario": "open" }))
        .await
        .unwrap();
    assert_eq!(said["file"], "right");
}
