//! Recover of a `python` RootDir with three small wheels, with uv, against `python -m venv` and pip
//! by script.

use std::path::Path;
use std::process::Command;

use warren::service::CreateRootDir;
use warren_model::Metadata;
use warren_testkit::GitRepo;

use crate::table::{Table, in_turn, timed};
use crate::world::{World, key};

const ROUNDS: usize = 3;
const WHEELS: [&str; 3] = ["one", "two", "three"];

pub(crate) fn run(table: &mut Table) {
    let world = World::new();
    let url = seed(&world);
    let runtime = tokio::runtime::Runtime::new().expect("a runtime");
    let service = runtime.block_on(world.service("ws"));
    let key = key("p");
    let mut create = CreateRootDir::new(
        "python".parse().expect("a type"),
        "c".parse().expect("an id"),
    );
    create.metadata = Metadata::from_json(&format!(r#"{{"repoUrl":"{url}"}}"#)).expect("metadata");
    runtime.block_on(async {
        service.init(&key).await.expect("a workspace");
        service
            .create_root_dir(&key, create)
            .await
            .expect("a RootDir");
    });
    let twin = world.work.join("twin");
    let both = in_turn(
        ROUNDS,
        || {
            runtime
                .block_on(service.suspend_all(&key, false))
                .expect("suspended");
            timed(|| {
                let report = runtime
                    .block_on(service.recover_all(&key))
                    .expect("recovered");
                assert!(report.failed.is_empty(), "{:?}", report.failed);
            })
        },
        || {
            let took = timed(|| {
                GitRepo::at(world.work.path()).git(&["clone", "-q", &url, "twin"]);
                script(&twin, "python3", &["-I", "-m", "venv", ".venv"]);
                let pip = ["-I", "-m", "pip", "install", "-q", "-r", "requirements.txt"];
                script(&twin, ".venv/bin/python", &pip);
            });
            std::fs::remove_dir_all(&twin).expect("removed");
            took
        },
    );
    table.ratio(
        "python recover, three wheels, uv : venv and pip",
        "0.2",
        both,
    );
}

fn script(dir: &Path, program: &str, args: &[&str]) {
    let status = Command::new(program)
        .args(args)
        .current_dir(dir)
        .env_clear()
        .env("PATH", "/usr/local/bin:/usr/bin:/bin")
        .env("PIP_DISABLE_PIP_VERSION_CHECK", "1")
        .status()
        .expect("a program");
    assert!(status.success(), "{program} {args:?}");
}

fn seed(world: &World) -> String {
    let repo = GitRepo::init(world.work.join("seed"));
    let mut requirements = String::from("--no-index\n");
    for name in WHEELS {
        warren_testkit::wheel(repo.path(), name, "x");
        requirements.push_str(&format!("./{name}-0.1-py3-none-any.whl\n"));
    }
    repo.write("requirements.txt", requirements);
    repo.git(&["add", "-A"]);
    repo.commit("three wheels");
    let remote = GitRepo::bare(world.work.join("remotes/py.git"));
    let path = remote.path().to_str().expect("a path").to_owned();
    repo.git(&["push", "-q", &path, "HEAD:refs/heads/main"]);
    world.http.url("py.git")
}
