//! A host in this process, on /dev/shm, with remotes over real smart HTTP.

use std::path::PathBuf;
use std::sync::Arc;

use warren::config::{Config, Overrides, Surroundings};
use warren::service::Service;
use warren::store::ProjectKey;
use warren_testkit::{GitHttp, Work};

pub(crate) struct World {
    pub(crate) work: Work,
    pub(crate) http: GitHttp,
    config: PathBuf,
}

impl World {
    pub(crate) fn new() -> Self {
        Self::at(Work::new())
    }

    /// On the disk that holds the temp directory, where an fsync costs what it costs.
    pub(crate) fn on_disk() -> Self {
        Self::at(Work::on_disk())
    }

    fn at(work: Work) -> Self {
        let http = GitHttp::serve(work.dir("remotes"));
        let config = work.join("warren.toml");
        let text = format!(
            "[git]\nallow = [\"http://127.0.0.1:{}/**\"]\n[plugins.grants.hostile]\ngit = true\nprograms = [\"python3\"]\n",
            http.port()
        );
        std::fs::write(&config, text).expect("a configuration");
        Self { work, http, config }
    }

    /// Settings with the workspace root `root` in this world.
    pub(crate) fn config(&self, root: &str) -> Config {
        let overrides = Overrides {
            workspace_root: Some(self.work.join(root)),
            state_dir: Some(self.work.join("state")),
            config: Some(self.config.clone()),
        };
        let env = |name: &str| std::env::var_os(name).filter(|_| name == "PATH");
        Config::load(&overrides, &Surroundings::of_platform(&env)).expect("a configuration")
    }

    pub(crate) async fn service(&self, root: &str) -> Arc<Service> {
        let opened = self.config(root).open().await.expect("a host");
        assert!(opened.failures.is_empty());
        Arc::new(opened.service)
    }
}

pub(crate) fn key(project: &str) -> ProjectKey {
    ProjectKey {
        tenant: warren_model::TenantId::default(),
        project: project.parse().expect("an id"),
    }
}
