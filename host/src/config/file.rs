//! What may stand in the configuration file.

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};

use super::document::{Document, Section};
use super::error::ConfigError;
use super::{Credential, Installer, Setting};
use crate::service::Layout;

type Read<T> = Result<Option<Setting<T>>, ConfigError>;

/// What a file says; nothing is filled in.
#[derive(Default)]
pub(super) struct FileConfig {
    pub(super) workspace_root: Option<Setting<PathBuf>>,
    pub(super) layout: Option<Setting<Layout>>,
    pub(super) soft_limit_percent: Option<Setting<u8>>,
    pub(super) hard_limit_percent: Option<Setting<u8>>,
    pub(super) state_dir: Option<Setting<PathBuf>>,
    pub(super) store_url: Option<Setting<String>>,
    pub(super) exec_base_dir: Option<Setting<PathBuf>>,
    pub(super) git_allow: Option<Setting<Vec<String>>>,
    pub(super) git_exclude: Option<Setting<Vec<String>>>,
    pub(super) git_known_hosts: Option<Setting<PathBuf>>,
    pub(super) git_ca_file: Option<Setting<PathBuf>>,
    pub(super) git_timeout_seconds: Option<Setting<u32>>,
    pub(super) credentials: BTreeMap<String, Credential>,
    pub(super) python_interpreter: Option<Setting<String>>,
    pub(super) python_installer: Option<Setting<Installer>>,
    pub(super) python_index: Option<Setting<String>>,
    pub(super) plugins_shipped: Option<Setting<Vec<String>>>,
    pub(super) plugins_dir: Option<Setting<PathBuf>>,
    pub(super) policy_file: Option<Setting<PathBuf>>,
    pub(super) launcher_path: Option<Setting<PathBuf>>,
}

const PERCENT_MAX: u8 = 100;

/// A day.
const SECONDS_MAX: u32 = 24 * 60 * 60;

const SECTIONS: [&str; 9] = [
    "workspace",
    "state",
    "store",
    "exec",
    "git",
    "credentials",
    "python",
    "plugins",
    "launcher",
];

impl FileConfig {
    /// Reads a document; relative paths count from its directory.
    pub(super) fn read(document: &Document, home: Option<&Path>) -> Result<Self, ConfigError> {
        let table = document.parse()?;
        let top = document.top(&table).only(&SECTIONS)?;
        let mut config = Self::default();
        if let Some(section) = top.section("workspace")? {
            config.workspace(section, home)?;
        }
        if let Some(section) = top.section("state")? {
            config.state_dir = section.only(&["dir"])?.path("dir", home)?;
        }
        if let Some(section) = top.section("store")? {
            config.store_url = section.only(&["url"])?.text("url")?;
        }
        if let Some(section) = top.section("exec")? {
            config.exec_base_dir = section.only(&["base-dir"])?.path("base-dir", home)?;
        }
        if let Some(section) = top.section("git")? {
            let section = section.only(&[
                "allow",
                "exclude",
                "known-hosts",
                "ca-file",
                "timeout-seconds",
            ])?;
            config.git_allow = section.texts("allow")?;
            config.git_exclude = section.texts("exclude")?;
            config.git_known_hosts = section.path("known-hosts", home)?;
            config.git_ca_file = section.path("ca-file", home)?;
            config.git_timeout_seconds = section.number("timeout-seconds", SECONDS_MAX)?;
        }
        if let Some(section) = top.section("credentials")? {
            for (alias, section) in section.sections()? {
                config
                    .credentials
                    .insert(alias, Credential::read(section, home)?);
            }
        }
        if let Some(section) = top.section("python")? {
            let section = section.only(&["interpreter", "installer", "index"])?;
            config.python_interpreter = section.text("interpreter")?;
            config.python_installer = installer(&section)?;
            config.python_index = section.text("index")?;
        }
        if let Some(section) = top.section("plugins")? {
            let section = section.only(&["shipped", "dir", "policy"])?;
            config.plugins_shipped = section.texts("shipped")?;
            config.plugins_dir = section.path("dir", home)?;
            config.policy_file = section.path("policy", home)?;
        }
        if let Some(section) = top.section("launcher")? {
            config.launcher_path = section.only(&["path"])?.path("path", home)?;
        }
        Ok(config)
    }

    fn workspace(&mut self, section: Section<'_>, home: Option<&Path>) -> Result<(), ConfigError> {
        let section =
            section.only(&["root", "layout", "soft-limit-percent", "hard-limit-percent"])?;
        self.workspace_root = section.path("root", home)?;
        self.layout = layout(&section)?;
        self.soft_limit_percent = section.number("soft-limit-percent", PERCENT_MAX)?;
        self.hard_limit_percent = section.number("hard-limit-percent", PERCENT_MAX)?;
        Ok(())
    }
}

fn installer(section: &Section<'_>) -> Read<Installer> {
    let all = [
        ("auto", Installer::Auto),
        ("uv", Installer::Uv),
        ("pip", Installer::Pip),
    ];
    one_of(section, "installer", &all)
}

fn layout(section: &Section<'_>) -> Read<Layout> {
    let all = [("project", Layout::Project), ("tenant", Layout::Tenant)];
    one_of(section, "layout", &all)
}

/// A text that is one of a few.
fn one_of<T: Copy>(section: &Section<'_>, key: &str, all: &[(&str, T)]) -> Read<T> {
    let Some(Setting { value, origin }) = section.text(key)? else {
        return Ok(None);
    };
    match all.iter().find(|(name, _)| *name == value) {
        Some((_, value)) => Ok(Some(Setting {
            value: *value,
            origin,
        })),
        None => {
            let names: Vec<String> = all.iter().map(|(name, _)| format!("`{name}`")).collect();
            Err(ConfigError::Invalid {
                key: section.key(key),
                origin,
                reason: format!("it is one of {}", names.join(", ")),
            })
        }
    }
}
