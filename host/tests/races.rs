//! Two hosts on one workspace root, at the same time.

mod kit;

use std::collections::BTreeSet;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

use kit::{Place, key, temp};
use warren::service::DisposeOptions;

const CREATES: usize = 25;

#[tokio::test(flavor = "multi_thread", worker_threads = 4)]
async fn two_hosts_that_create_with_one_hint_never_share_a_folder() {
    let place = Place::new();
    let hosts = [place.host().await, place.host().await];
    hosts[0].init(&key()).await.unwrap();
    let mut tasks = tokio::task::JoinSet::new();
    for _ in 0..CREATES {
        for host in &hosts {
            let host = host.clone();
            tasks.spawn(async move { host.create_root_dir(&key(), temp(Some("x"))).await });
        }
    }
    let mut names = BTreeSet::new();
    while let Some(made) = tasks.join_next().await {
        let made = made.unwrap().unwrap();
        let path = hosts[1]
            .root_dir_path(&key(), &made.dir_name)
            .await
            .unwrap();
        assert_eq!(std::fs::read_dir(&path).unwrap().count(), 0, "{path:?}");
        std::fs::write(path.join("mine"), "").unwrap();
        assert!(names.insert(made.dir_name.to_string()));
    }
    assert_eq!(names.len(), 2 * CREATES);
    assert!(names.contains("x") && names.contains("x-50"), "{names:?}");
    let listed = hosts[0].list_root_dirs(&key(), None, 100).await.unwrap();
    assert_eq!(listed.items.len(), names.len());
    assert!(listed.orphans.is_empty() && listed.damaged.is_empty());
}

/// Writers put files into a RootDir by the host while the other host disposes of it and makes one
/// of the same name.
#[tokio::test(flavor = "multi_thread", worker_threads = 4)]
async fn a_dispose_ends_all_writing_and_the_next_root_starts_empty() {
    let place = Place::new();
    let hosts = [place.host().await, place.host().await];
    hosts[0].init(&key()).await.unwrap();
    let stop = Arc::new(AtomicBool::new(false));
    let mut writers = tokio::task::JoinSet::new();
    for writer in 0..8 {
        let (host, stop) = (hosts[writer % 2].clone(), stop.clone());
        writers.spawn(async move {
            let mut written = 0;
            while !stop.load(Ordering::Relaxed) {
                let creator = "w".parse().unwrap();
                match host.create_temp_file(&key(), &creator, "f", "").await {
                    Ok(_) => written += 1,
                    Err(error) => assert!(
                        ["RootDirNotFound", "RootDirNotReady"].contains(&error.code()),
                        "{error:?}"
                    ),
                }
            }
            written
        });
    }
    let creator = "w".parse().unwrap();
    for round in 0..15 {
        let old = hosts[0]
            .get_or_create_temp_root_dir(&key(), &creator)
            .await
            .unwrap();
        let report = hosts[1]
            .dispose_by_creator(&key(), &creator, DisposeOptions::default())
            .await
            .unwrap();
        assert!(report.failed.is_empty(), "{:?}", report.failed);
        let gone = place.join("ws/p").join(old.dir_name.as_str());
        assert!(!gone.exists(), "round {round}");
        // A fixed name, made, filled and disposed of beside the writers.
        let made = hosts[0]
            .create_root_dir(&key(), temp(Some("x")))
            .await
            .unwrap();
        assert_eq!(made.dir_name.as_str(), "x", "round {round}");
        let path = hosts[1]
            .root_dir_path(&key(), &made.dir_name)
            .await
            .unwrap();
        assert_eq!(std::fs::read_dir(&path).unwrap().count(), 0);
        std::fs::write(path.join("old"), "").unwrap();
        hosts[1]
            .dispose_root_dir(&key(), &made.dir_name, DisposeOptions::default())
            .await
            .unwrap();
    }
    stop.store(true, Ordering::Relaxed);
    let mut written = 0;
    while let Some(count) = writers.join_next().await {
        written += count.unwrap();
    }
    assert!(written > 0);
    let listed = hosts[0].list_root_dirs(&key(), None, 100).await.unwrap();
    assert!(
        listed.orphans.is_empty() && listed.damaged.is_empty(),
        "{listed:?}"
    );
    assert!(
        listed.items.len() <= 1,
        "one temp RootDir a creator: {listed:?}"
    );
}

/// As soon as the Workspace is disposed of, every create fails typed, and nothing comes back.
#[tokio::test(flavor = "multi_thread", worker_threads = 4)]
async fn nothing_is_made_in_a_workspace_that_is_disposed_of() {
    let place = Place::new();
    let hosts = [place.host().await, place.host().await];
    for _ in 0..5 {
        hosts[0].init(&key()).await.unwrap();
        let mut tasks = tokio::task::JoinSet::new();
        for n in 0..16 {
            let host = hosts[n % 2].clone();
            tasks.spawn(async move { host.create_root_dir(&key(), temp(Some("x"))).await });
        }
        hosts[1]
            .dispose(&key(), DisposeOptions::default())
            .await
            .unwrap();
        while let Some(made) = tasks.join_next().await {
            if let Err(error) = made.unwrap() {
                assert_eq!(error.code(), "WorkspaceDisposed", "{error:?}");
            }
        }
        assert!(!place.join("ws/p").exists());
        let late = hosts[0]
            .create_root_dir(&key(), temp(None))
            .await
            .unwrap_err();
        assert_eq!(late.code(), "WorkspaceDisposed");
    }
}
