//! Flag before variable before file before default.

use std::ffi::OsString;
use std::path::{Path, PathBuf};

use etcetera::BaseStrategy;
use warren_model::Target;

use super::document::Document;
use super::error::ConfigError;
use super::file::FileConfig;
use super::{Config, Installer, Origin, Setting};
use crate::service::Layout;

/// What the command's flags say.
#[derive(Debug, Clone, Default)]
pub struct Overrides {
    /// `--workspace-root`.
    pub workspace_root: Option<PathBuf>,
    /// `--state-dir`.
    pub state_dir: Option<PathBuf>,
    /// `--config`.
    pub config: Option<PathBuf>,
    /// `--policy`.
    pub policy: Option<PathBuf>,
}

/// The user's surroundings, as far as settings depend on them.
pub struct Surroundings<'a> {
    /// Looks up an environment variable; an empty one counts as not set.
    pub env: &'a dyn Fn(&str) -> Option<OsString>,
    /// The home directory.
    pub home: Option<PathBuf>,
    /// Where programs keep state: `$XDG_STATE_HOME`.
    pub state_home: Option<PathBuf>,
    /// Where programs keep configuration: `$XDG_CONFIG_HOME`.
    pub config_home: Option<PathBuf>,
}

impl<'a> Surroundings<'a> {
    /// The directories of this platform.
    pub fn of_platform(env: &'a dyn Fn(&str) -> Option<OsString>) -> Self {
        let base = etcetera::choose_base_strategy().ok();
        Self {
            env,
            home: base.as_ref().map(|base| base.home_dir().to_owned()),
            state_home: base
                .as_ref()
                .map(|base| base.state_dir().unwrap_or_else(|| base.data_dir())),
            config_home: base.as_ref().map(BaseStrategy::config_dir),
        }
    }

    fn path(&self, name: &'static str) -> Option<Setting<PathBuf>> {
        let value = (self.env)(name).filter(|value| !value.is_empty())?;
        Some(Setting {
            value: value.into(),
            origin: Origin::Env(name),
        })
    }
}

fn flag(name: &'static str, value: Option<&PathBuf>) -> Option<Setting<PathBuf>> {
    let value = value?.clone();
    Some(Setting {
        value,
        origin: Origin::Flag(name),
    })
}

/// The policy beside a configuration.
const POLICY_FILE: &str = "policy.toml";

impl Config {
    /// Collects every setting.
    ///
    /// # Errors
    /// When the file that was named does not exist, or any value cannot be used.
    pub fn load(overrides: &Overrides, around: &Surroundings<'_>) -> Result<Self, ConfigError> {
        let named = flag("--config", overrides.config.as_ref())
            .or_else(|| around.path("WARREN_CONFIG"))
            .map(|setting| setting.value);
        let usual = || Some(around.config_home.as_ref()?.join("warren/config.toml"));
        let place = named.clone().or_else(usual);
        let document = match &place {
            Some(path) => Document::read(path)?.map(|document| (path.clone(), document)),
            None => None,
        };
        if let (Some(path), None) = (named, &document) {
            return Err(ConfigError::Read {
                path,
                source: std::io::ErrorKind::NotFound.into(),
            });
        }
        let file = match &document {
            Some((_, document)) => FileConfig::read(document, around.home.as_deref())?,
            None => FileConfig::default(),
        };
        let mut config = Self::merge(overrides, around, file)?;
        if config.policy_file.value.is_none() {
            let beside = place.and_then(|place| Some(place.parent()?.join(POLICY_FILE)));
            config.policy_file.value = beside.filter(|path| path.exists());
        }
        config.file = document.map(|(path, _)| path);
        config.check()?;
        Ok(config)
    }

    fn merge(
        overrides: &Overrides,
        around: &Surroundings<'_>,
        file: FileConfig,
    ) -> Result<Self, ConfigError> {
        let workspace_root = flag("--workspace-root", overrides.workspace_root.as_ref())
            .or_else(|| around.path("WARREN_WORKSPACE_ROOT"))
            .or(file.workspace_root)
            .or_else(|| below(around.home.as_deref(), ".vancetope/workspaces"))
            .ok_or(ConfigError::HomeUnknown {
                key: "workspace.root",
            })
            .and_then(|setting| absolute("workspace.root", setting))?;
        let state_dir = flag("--state-dir", overrides.state_dir.as_ref())
            .or_else(|| around.path("WARREN_STATE_DIR"))
            .or(file.state_dir)
            .or_else(|| below(around.state_home.as_deref(), "warren"))
            .ok_or(ConfigError::HomeUnknown { key: "state.dir" })
            .and_then(|setting| absolute("state.dir", setting))?;
        let in_state = |name| Setting::default_of(state_dir.value.join(name));
        Ok(Self {
            layout: or_default(file.layout, Layout::default),
            soft_limit_percent: file.soft_limit_percent.unwrap_or(Setting::default_of(80)),
            hard_limit_percent: file.hard_limit_percent.unwrap_or(Setting::default_of(95)),
            store_url: or_default(file.store_url, || "embedded:".to_owned()),
            exec_base_dir: file.exec_base_dir.unwrap_or_else(|| in_state("exec")),
            git_allow: or_default(file.git_allow, || {
                ["https://**", "ssh://**"].map(str::to_owned).into()
            }),
            git_exclude: or_default(file.git_exclude, Vec::new),
            git_known_hosts: file
                .git_known_hosts
                .or_else(|| below(around.home.as_deref(), ".ssh/known_hosts"))
                .unwrap_or_else(|| in_state("known_hosts")),
            git_ca_file: optional(file.git_ca_file),
            git_timeout_seconds: or_default(file.git_timeout_seconds, || 30),
            credentials: file.credentials,
            python_interpreter: or_default(file.python_interpreter, || "python3".to_owned()),
            python_installer: or_default(file.python_installer, || Installer::Auto),
            python_index: optional(file.python_index),
            plugins_shipped: or_default(file.plugins_shipped, || {
                warren_plugins::all()
                    .map(|(name, _)| name.to_owned())
                    .into()
            }),
            plugins_dir: file.plugins_dir.unwrap_or_else(|| in_state("plugins")),
            policy_file: optional(
                flag("--policy", overrides.policy.as_ref())
                    .or_else(|| around.path("WARREN_POLICY"))
                    .or(file.policy_file),
            ),
            launcher_path: optional(file.launcher_path),
            file: None,
            workspace_root,
            state_dir,
        })
    }

    fn check(&self) -> Result<(), ConfigError> {
        let invalid = |key: &str, origin: &Origin, reason: String| {
            Err(ConfigError::Invalid {
                key: key.to_owned(),
                origin: origin.clone(),
                reason,
            })
        };
        let (soft, hard) = (&self.soft_limit_percent, &self.hard_limit_percent);
        if soft.value > hard.value {
            let reason = format!(
                "the soft limit {} is above the hard limit {}",
                soft.value, hard.value
            );
            let origin = if soft.origin == Origin::Default {
                &hard.origin
            } else {
                &soft.origin
            };
            return invalid("workspace.soft-limit-percent", origin, reason);
        }
        let scheme = self.store_url.value.split(':').next().unwrap_or_default();
        if scheme != "embedded" {
            return Err(ConfigError::UnsupportedStore {
                origin: self.store_url.origin.clone(),
                scheme: warren_disk::text::excerpt(scheme.as_bytes(), 32),
            });
        }
        if self.store_url.value != "embedded:" {
            let reason = "the embedded store lies in the state directory: write `embedded:`";
            return invalid("store.url", &self.store_url.origin, reason.to_owned());
        }
        let shipped = warren_plugins::all().map(|(name, _)| name);
        for name in &self.plugins_shipped.value {
            if !shipped.contains(&name.as_str()) {
                let reason = format!(
                    "no plugin `{name}` is shipped; there are {}",
                    shipped.join(", ")
                );
                return invalid("plugins.shipped", &self.plugins_shipped.origin, reason);
            }
        }
        let interpreter = Path::new(&self.python_interpreter.value);
        let is_name = interpreter.components().count() == 1;
        if !interpreter.is_absolute() && !is_name {
            let reason = "it is neither a name nor an absolute path".to_owned();
            return invalid(
                "python.interpreter",
                &self.python_interpreter.origin,
                reason,
            );
        }
        if let Some(index) = &self.python_index.value
            && let Err(error) = Target::from_url(index)
        {
            return invalid("python.index", &self.python_index.origin, error.to_string());
        }
        Ok(())
    }
}

/// A path from the working directory on.
fn absolute(key: &str, setting: Setting<PathBuf>) -> Result<Setting<PathBuf>, ConfigError> {
    let Setting { value, origin } = setting;
    match std::path::absolute(&value) {
        Ok(value) => Ok(Setting { value, origin }),
        Err(error) => Err(ConfigError::Invalid {
            key: key.to_owned(),
            origin,
            reason: format!("`{}` is no path: {error}", value.display()),
        }),
    }
}

fn below(base: Option<&Path>, name: &str) -> Option<Setting<PathBuf>> {
    base.map(|base| Setting::default_of(base.join(name)))
}

fn optional<T>(setting: Option<Setting<T>>) -> Setting<Option<T>> {
    match setting {
        Some(Setting { value, origin }) => Setting {
            value: Some(value),
            origin,
        },
        None => Setting::default_of(None),
    }
}

fn or_default<T>(setting: Option<Setting<T>>, default: impl FnOnce() -> T) -> Setting<T> {
    setting.unwrap_or_else(|| Setting::default_of(default()))
}
