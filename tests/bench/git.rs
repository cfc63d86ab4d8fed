//! A dirty git RootDir of 5,000 files, ten of them changed, against the git program by script.

use std::path::{Path, PathBuf};
use std::time::Duration;

use warren::service::{CreateRootDir, Service};
use warren_model::Metadata;
use warren_testkit::{GitRepo, Work};

use crate::table::{Table, in_turn, timed};
use crate::world::{World, key};

const FILES: usize = 5000;
const ROUNDS: usize = 7;

pub(crate) fn run(table: &mut Table) {
    let world = World::new();
    let remote = seed(&world.work);
    let url = world.http.url("up.git");
    let runtime = tokio::runtime::Runtime::new().expect("a runtime");
    let service = runtime.block_on(world.service("ws"));
    let key = key("p");
    let mut create =
        CreateRootDir::new("git".parse().expect("a type"), "c".parse().expect("an id"));
    create.label = Some("repo".into());
    create.metadata = Metadata::from_json(&format!(r#"{{"repoUrl":"{url}"}}"#)).expect("metadata");
    runtime.block_on(async {
        service.init(&key).await.expect("a workspace");
        service
            .create_root_dir(&key, create)
            .await
            .expect("a RootDir");
    });
    let root = world.work.join("ws/p/repo");
    let twin = world.work.join("twin");

    let mut round = 0;
    let mut next = || {
        round += 1;
        round
    };
    let suspend = in_turn(
        ROUNDS,
        || {
            dirty(&root, next());
            let took = timed(|| {
                runtime
                    .block_on(service.suspend_all(&key, false))
                    .expect("suspended")
            });
            let report = runtime
                .block_on(service.recover_all(&key))
                .expect("recovered");
            assert!(report.failed.is_empty());
            took
        },
        || {
            GitRepo::at(world.work.path()).git(&["clone", "-q", &url, "twin"]);
            let twin_repo = GitRepo::at(&twin);
            dirty(&twin, 7);
            let took = timed(|| {
                twin_repo.git(&["add", "-A"]);
                twin_repo.git(&["commit", "-q", "-m", "suspend"]);
                twin_repo.git(&[
                    "push",
                    "-q",
                    "--force",
                    "origin",
                    "HEAD:refs/heads/vance/suspend/twin",
                ]);
            });
            std::fs::remove_dir_all(&twin).expect("removed");
            took
        },
    );
    table.ratio(
        "suspend, dirty 5,000-file root : add, commit, push",
        "1",
        suspend,
    );

    let patch = patch(&world.work, &url);
    let local = world.work.join("local.git");
    GitRepo::at(world.work.path()).git(&["clone", "-q", "--bare", &url, "local.git"]);
    let warm = in_turn(
        ROUNDS,
        || {
            dirty(&root, next());
            runtime
                .block_on(service.suspend_all(&key, false))
                .expect("suspended");
            timed(|| recover(&runtime, &service))
        },
        || by_script(&world.work, local.to_str().expect("a path"), &patch),
    );
    table.ratio("recover, warm mirror : local clone, apply", "1", warm);

    let cold = in_turn(
        ROUNDS,
        || {
            dirty(&root, next());
            runtime
                .block_on(service.suspend_all(&key, false))
                .expect("suspended");
            for mirror in std::fs::read_dir(world.work.join("state/mirrors")).expect("mirrors") {
                std::fs::remove_dir_all(mirror.expect("a mirror").path()).expect("removed");
            }
            timed(|| recover(&runtime, &service))
        },
        || by_script(&world.work, &url, &patch),
    );
    table.ratio("recover, cold mirror : http clone, apply", "1.3", cold);
    drop(remote);
}

fn recover(runtime: &tokio::runtime::Runtime, service: &Service) {
    let report = runtime
        .block_on(service.recover_all(&key("p")))
        .expect("recovered");
    assert!(report.failed.is_empty(), "{:?}", report.failed);
}

fn seed(work: &Work) -> GitRepo {
    let repo = GitRepo::init(work.join("seed"));
    for i in 0..FILES {
        let name = format!("src/d{}/e{}/f{i}.txt", i % 50, i % 7);
        let text = format!("file {i}\n").repeat(20 + i % 60);
        repo.write(&name, text);
    }
    repo.git(&["add", "-A"]);
    repo.commit("5,000 files");
    let remote = GitRepo::bare(work.join("remotes/up.git"));
    let path = remote.path().to_str().expect("a path").to_owned();
    repo.git(&["push", "-q", &path, "HEAD:refs/heads/main"]);
    remote.git(&["repack", "-a", "-d", "-q"]);
    remote
}

/// Changes ten files.
fn dirty(root: &Path, round: usize) {
    for i in 0..10 {
        let i = i * 400;
        let path = root.join(format!("src/d{}/e{}/f{i}.txt", i % 50, i % 7));
        std::fs::write(path, format!("changed {round} {i}\n").repeat(30)).expect("written");
    }
}

fn patch(work: &Work, url: &str) -> PathBuf {
    GitRepo::at(work.path()).git(&["clone", "-q", url, "twin"]);
    let twin = work.join("twin");
    dirty(&twin, 1);
    let patch = GitRepo::at(&twin).git(&["diff", "--binary"]);
    std::fs::remove_dir_all(&twin).expect("removed");
    let path = work.join("work.patch");
    std::fs::write(&path, patch + "\n").expect("written");
    path
}

/// What a script does to bring work back: clone, apply.
fn by_script(work: &Work, from: &str, patch: &Path) -> Duration {
    let twin = work.join("twin");
    let took = timed(|| {
        GitRepo::at(work.path()).git(&["clone", "-q", from, "twin"]);
        GitRepo::at(&twin).git(&["apply", patch.to_str().expect("a path")]);
    });
    std::fs::remove_dir_all(&twin).expect("removed");
    took
}
