//! A host in this process, on /dev/shm, with remotes over real smart HTTP.

use std::path::PathBuf;
use std::sync::Arc;

use warren::config::{Config, Overrides, Surroundings};
use warren::plugin::LoadError;
use warren::service::Service;
use warren::store::ProjectKey;
use warren_testkit::{GitHttp, Work};

/// What the guest of `tests/guests` may reach.
const POLICY: &str = "version = 1\n[plugin.hostile]\nroot = \"read-write\"\nlog = true\n\
    progress = true\n[plugin.hostile.git]\nremotes = [\"@allow\"]\n\
    [plugin.hostile.process]\nprograms = [\"sleep\"]\n";

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
        let text = format!("[git]\nallow = [\"http://127.0.0.1:{}/**\"]\n", http.port());
        std::fs::write(&config, text).expect("a configuration");
        std::fs::write(work.join("policy.toml"), POLICY).expect("a policy");
        Self { work, http, config }
    }

    /// Settings with the workspace root `root` in this world.
    pub(crate) fn config(&self, root: &str) -> Config {
        let overrides = Overrides {
            workspace_root: Some(self.work.join(root)),
            state_dir: Some(self.work.join("state")),
            config: Some(self.config.clone()),
            policy: None,
        };
        let env = |name: &str| std::env::var_os(name).filter(|_| name == "PATH");
        Config::load(&overrides, &Surroundings::of_platform(&env)).expect("a configuration")
    }

    pub(crate) async fn service(&self, root: &str) -> Arc<Service> {
        let config = self.config(root);
        approve_all(&config).await;
        let opened = config.open().await.expect("a host");
        assert!(opened.failures.is_empty());
        Arc::new(opened.service)
    }
}

/// Approves what a bench has put into the plugin directory.
async fn approve_all(config: &Config) {
    let opened = config.open().await.expect("a host");
    let runtime = opened.service.runtime();
    let approvals = config
        .approvals(&config.state_dir.value)
        .expect("approvals");
    for (origin, bytes) in runtime.found() {
        let bytes = bytes.expect("a component");
        let found = runtime.examine(origin, &bytes).expect("a component");
        if let Some(LoadError::NotApproved(_)) = &found.problem {
            found.approve(&approvals, "bench").expect("an approval");
        }
    }
}

pub(crate) fn key(project: &str) -> ProjectKey {
    ProjectKey {
        tenant: warren_model::TenantId::default(),
        project: project.parse().expect("an id"),
    }
}
