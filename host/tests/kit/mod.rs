//! A host in this process, on a disk in memory where there is one.

use std::path::{Path, PathBuf};

use tempfile::TempDir;
use warren::config::{Config, Overrides, Surroundings};
use warren::service::{CreateRootDir, Service};
use warren::store::ProjectKey;

pub(crate) struct Place {
    dir: TempDir,
}

impl Place {
    pub(crate) fn new() -> Self {
        let shm = Path::new("/dev/shm");
        let dir = if shm.is_dir() {
            tempfile::tempdir_in(shm)
        } else {
            tempfile::tempdir()
        }
        .unwrap();
        std::fs::write(dir.path().join("warren.toml"), "").unwrap();
        Self { dir }
    }

    pub(crate) fn join(&self, name: &str) -> PathBuf {
        self.dir.path().join(name)
    }

    /// A host of its own; several share the directories as several processes would.
    pub(crate) async fn host(&self) -> Service {
        let overrides = Overrides {
            workspace_root: Some(self.join("ws")),
            state_dir: Some(self.join("state")),
            config: Some(self.join("warren.toml")),
            policy: None,
        };
        let env = |name: &str| std::env::var_os(name).filter(|_| name == "PATH");
        let config = Config::load(&overrides, &Surroundings::of_platform(&env)).unwrap();
        let opened = config.open().await.unwrap();
        assert!(opened.failures.is_empty(), "{:?}", opened.failures);
        opened.service
    }
}

pub(crate) fn key() -> ProjectKey {
    ProjectKey {
        tenant: warren_model::TenantId::default(),
        project: "p".parse().unwrap(),
    }
}

pub(crate) fn temp(label: Option<&str>) -> CreateRootDir {
    let mut spec = CreateRootDir::new("temp".parse().unwrap(), "c".parse().unwrap());
    spec.label = label.map(str::to_owned);
    spec
}
