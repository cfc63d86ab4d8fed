//! Tests over real components: the shipped ones and one that misbehaves in every way.

mod audit;
mod cache;
mod fair;
mod files;
mod hostile;
mod http;
mod load;
mod quota;
mod raw;
mod room;
mod suspend;

use std::path::{Path, PathBuf};
use std::sync::{Arc, LazyLock};
use std::time::Duration;

use cap_std::ambient_authority;
use cap_std::fs::Dir;
use serde_json::{Value, json};
use tempfile::TempDir;
use warren_model::Metadata;

use super::*;

/// One state directory for all tests, so that components are compiled once.
static STATE: LazyLock<TempDir> = LazyLock::new(scratch);

fn scratch() -> TempDir {
    let shm = Path::new("/dev/shm");
    if shm.is_dir() {
        tempfile::tempdir_in(shm).unwrap()
    } else {
        tempfile::tempdir().unwrap()
    }
}

fn hostile() -> (&'static str, &'static [u8]) {
    ("hostile", warren_testkit::hostile())
}

/// Grants of everything, with limits that a test can reach.
fn grants() -> Grants {
    Grants {
        git: Some(GitGrant::default()),
        process: Some(process_grant()),
        limits: Limits {
            memory_bytes: 32 << 20,
            wall: Duration::from_secs(20),
            ..Limits::default()
        },
        ..Grants::default()
    }
}

fn process_grant() -> ProcessGrant {
    let search = [PathBuf::from("/bin"), PathBuf::from("/usr/bin")];
    let mut programs = warren_process::Programs::new(&search, &[]).unwrap();
    programs.alias("sleep", &["sleep"]);
    programs.alias("echo", &["echo"]);
    ProcessGrant {
        programs: Arc::new(programs),
        in_root: Vec::new(),
        environment: Vec::new(),
        variables: Vec::new(),
        network: warren_model::Endpoints::default(),
        network_limits: warren_egress::proxy::Limits::default(),
        uids: None,
        unconfined: true,
        wall_max: Duration::from_secs(60),
        limits: warren_process::ChildLimits::default(),
    }
}

fn config(shipped: &[(&'static str, &'static [u8])], grants: Grants) -> RuntimeConfig {
    let mut table = GrantTable::default();
    for (name, _) in shipped {
        table.set(*name, grants.clone());
    }
    RuntimeConfig {
        state_dir: STATE.path().to_owned(),
        sources: Sources {
            shipped: shipped.to_vec(),
            trust: Trust::Given(table.into()),
            ..Sources::default()
        },
        ..RuntimeConfig::default()
    }
}

/// A host with one component, and a RootDir.
struct World {
    runtime: Runtime,
    plugin: Arc<Plugin>,
    dir: TempDir,
}

impl World {
    async fn with(component: (&'static str, &'static [u8]), grants: Grants) -> Self {
        Self::of(config(&[component], grants), component.0).await
    }

    async fn of(config: RuntimeConfig, handler: &str) -> Self {
        let (runtime, failures) = Runtime::start(config).await.unwrap();
        assert!(failures.is_empty(), "{failures:?}");
        let plugin = runtime.plugin(&handler.parse().unwrap()).unwrap();
        let dir = scratch();
        std::fs::create_dir(dir.path().join("root")).unwrap();
        Self {
            runtime,
            plugin,
            dir,
        }
    }

    fn root(&self) -> PathBuf {
        self.dir.path().join("root")
    }

    fn cx(&self) -> CallContext {
        CallContext {
            tenant: "t".parse().unwrap(),
            project: "p".parse().unwrap(),
            dir_name: "d".parse().unwrap(),
            label: None,
            root: Dir::open_ambient_dir(self.root(), ambient_authority()).unwrap(),
            root_path: self.root(),
            mode: CallMode::ReadWrite,
            deadline: None,
            progress: Arc::new(|_, _, _| {}),
            cancel: Cancel::default(),
        }
    }

    /// A call of another Project.
    fn cx_of(&self, project: &str) -> CallContext {
        CallContext {
            project: project.parse().unwrap(),
            ..self.cx()
        }
    }

    async fn play_for(&self, project: &str, scenario: &str) -> Result<Value, PluginError> {
        let spec = json!({ "scenario": scenario });
        self.play_in(self.cx_of(project), spec).await
    }

    async fn play(&self, scenario: &str) -> Result<Value, PluginError> {
        self.play_in(self.cx(), json!({ "scenario": scenario }))
            .await
    }

    async fn play_in(&self, cx: CallContext, spec: Value) -> Result<Value, PluginError> {
        let spec = metadata(spec);
        let made = self.runtime.init(&self.plugin, cx, &spec).await?;
        Ok(serde_json::from_str(&made.to_json()).unwrap())
    }

    /// The next call works, whatever the last one did.
    async fn still_works(&self) {
        let said = self.play_in(self.cx(), json!({ "a": 1 })).await.unwrap();
        assert_eq!(said, json!({ "a": 1 }));
    }
}

fn metadata(value: Value) -> Metadata {
    Metadata::from_json(&value.to_string()).unwrap()
}

/// Threads of this process.
fn threads() -> usize {
    std::fs::read_dir("/proc/self/task").unwrap().count()
}
