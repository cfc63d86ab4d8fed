//! From settings to a running host: the one place that puts its parts together.

use std::path::Path;

use warren_audit::{AuditError, AuditLog};
use warren_disk::space::Limits;
use warren_mirror::{Exclude, MirrorError, Mirrors, MirrorsSpec, UrlPolicy};
use warren_process::{Identities, Launcher, ProcessError};

use super::{Config, ConfigError, Setting, logins};
use crate::error::Error;
use crate::plugin::{
    CompileConfig, HttpClient, LoadFailure, PluginError, PoolSize, Runtime, RuntimeConfig,
    Services, Sources,
};
use crate::service::{Service, ServiceConfig, directories};

/// Longest time to connect to a remote, in milliseconds.
const CONNECT_TIMEOUT_MS_MAX: u64 = 10_000;

/// A running host.
pub struct Opened {
    /// Its operations.
    pub service: Service,
    /// Plugins that did not load.
    pub failures: Vec<LoadFailure>,
}

/// Why a host cannot start.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum OpenError {
    /// A setting cannot be used.
    #[error(transparent)]
    Config(#[from] ConfigError),
    /// The plugin runtime cannot start.
    #[error("cannot start the plugin runtime")]
    Runtime(#[source] Box<PluginError>),
    /// The directories cannot be used.
    #[error(transparent)]
    Service(#[from] Error),
    /// The audit log cannot be opened.
    #[error("cannot open the audit log")]
    Audit(#[source] AuditError),
    /// The mirrors cannot be opened.
    #[error("cannot open the mirrors")]
    Mirrors(#[source] MirrorError),
    /// The programs that children are cannot be looked up.
    #[error("cannot prepare the programs of the plugins")]
    Programs(#[source] ProcessError),
}

impl OpenError {
    /// Stable code of the error.
    pub fn code(&self) -> &'static str {
        match self {
            Self::Config(error) => error.code(),
            Self::Runtime(error) => error.code(),
            Self::Service(error) => error.code(),
            Self::Audit(AuditError::Damaged { .. }) => "AuditDamaged",
            Self::Audit(_) => "AuditUnavailable",
            Self::Mirrors(error) => error.code(),
            Self::Programs(_) => "Internal",
        }
    }

    /// What to do next.
    pub fn hint(&self) -> Option<String> {
        match self {
            Self::Config(error) => error.hint(),
            Self::Runtime(error) => error.hint(),
            Self::Service(error) => error.hint(),
            Self::Audit(error) => error.hint(),
            Self::Mirrors(error) => error.hint(),
            Self::Programs(_) => None,
        }
    }
}

impl Config {
    /// Starts a host with these settings. Makes its directories when they are missing.
    ///
    /// # Errors
    /// When a setting or a directory cannot be used. A plugin that does not load is no error; it is
    /// left out and reported.
    pub async fn open(&self) -> Result<Opened, OpenError> {
        let (_, state) = directories(&self.workspace_root.value, &self.state_dir.value)?;
        let sources = self.sources(&state)?;
        let services = self.services(&state)?;
        let (runtime, failures) = Runtime::start(RuntimeConfig {
            state_dir: state,
            sources,
            pool: PoolSize::default(),
            services,
            compile: CompileConfig::beside_this_program(),
        })
        .await
        .map_err(|error| OpenError::Runtime(Box::new(error)))?;
        let config = ServiceConfig {
            workspace_root: self.workspace_root.value.clone(),
            state_dir: self.state_dir.value.clone(),
            layout: self.layout.value,
            limits: self.disk_limits(),
        };
        Ok(Opened {
            service: Service::open(&config, runtime)?,
            failures,
        })
    }

    fn disk_limits(&self) -> Limits {
        Limits {
            soft_percent: self.soft_limit_percent.value,
            hard_percent: self.hard_limit_percent.value,
        }
    }

    fn sources(&self, state: &Path) -> Result<Sources, OpenError> {
        let shipped = warren_plugins::all();
        let omit = shipped
            .iter()
            .filter(|(name, _)| {
                !self
                    .plugins_shipped
                    .value
                    .iter()
                    .any(|wanted| wanted == name)
            })
            .map(|(name, _)| name.parse())
            .collect::<Result<_, _>>()
            .map_err(Error::from)?;
        Ok(Sources {
            shipped: shipped.to_vec(),
            omit,
            dir: Some(self.plugins_dir.value.clone()),
            trust: self.trust(state)?,
        })
    }

    fn services(&self, state: &Path) -> Result<Services, OpenError> {
        let open = |path: &Path| {
            warren_disk::open_root(path).map_err(Error::io(format!("open `{}`", path.display())))
        };
        let timeout_ms = u64::from(self.git_timeout_seconds.value) * 1000;
        let mirrors = Mirrors::open(MirrorsSpec {
            state: open(state)?,
            state_path: state.to_owned(),
            policy: self.url_policy()?,
            credentials: logins::store(self)?,
            known_hosts: self.git_known_hosts.value.clone(),
            ca_file: self.git_ca_file.value.clone(),
            limits: warren_mirror::Limits {
                timeout_ms,
                connect_timeout_ms: timeout_ms.min(CONNECT_TIMEOUT_MS_MAX),
                ..warren_mirror::Limits::default()
            },
            repo_limits: warren_repo::Limits::default(),
            exclude: self.exclude()?,
            disk: Some(self.disk_limits()),
        })
        .map_err(OpenError::Mirrors)?;
        // Made above. A leftover that resists costs disk and nothing else.
        match warren_disk::scratch::clean(&open(&state.join("scratch"))?) {
            Ok(0) => {}
            Ok(count) => tracing::info!(count, "took away what dead processes left in `scratch`"),
            Err(error) => tracing::warn!(
                error = crate::error::chain(&error),
                "cannot clean `scratch`"
            ),
        }
        Ok(Services {
            mirrors: Some(mirrors),
            launcher: self.launcher()?,
            http: Some(HttpClient::new(self.git_ca_file.value.clone())),
            scratch: state.join("scratch"),
            identities: Some(Identities::new(open(state)?)),
            connector: warren_egress::Connector::system(),
            disk: Some(self.disk_limits()),
            audit: Some(
                AuditLog::open(&open(state)?, Default::default()).map_err(OpenError::Audit)?,
            ),
        })
    }

    fn exclude(&self) -> Result<Exclude, ConfigError> {
        let Setting { value, origin } = &self.git_exclude;
        Exclude::new(value).map_err(|error| ConfigError::Invalid {
            key: "git.exclude".to_owned(),
            origin: origin.clone(),
            reason: error.to_string(),
        })
    }

    fn url_policy(&self) -> Result<UrlPolicy, ConfigError> {
        let Setting { value, origin } = &self.git_allow;
        UrlPolicy::new(value).map_err(|error| ConfigError::Invalid {
            key: "git.allow".to_owned(),
            origin: origin.clone(),
            reason: error.to_string(),
        })
    }

    /// None: there is no launcher, and nobody named one. Then no plugin runs a program.
    pub(crate) fn launcher(&self) -> Result<Option<Launcher>, ConfigError> {
        let Setting { value, origin } = &self.launcher_path;
        match (Launcher::locate(value.as_deref()), value) {
            (Ok(launcher), _) => Ok(Some(launcher)),
            (Err(error), Some(_)) => Err(ConfigError::Invalid {
                key: "launcher.path".to_owned(),
                origin: origin.clone(),
                reason: error.to_string(),
            }),
            (Err(error), None) => {
                tracing::warn!(%error, "no plugin can run a program");
                Ok(None)
            }
        }
    }
}
