//! The host's settings: flag before variable before file before default.
//!
//! Nothing is read unless [`Config::load`] is called, and then only what it is given.

mod build;
mod document;
mod error;
mod file;
mod load;
mod logins;
mod nearest;
mod policy;
mod programs;
mod secret;
mod show;
#[cfg(test)]
mod tests;
mod words;

use std::collections::BTreeMap;
use std::fmt;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use serde::Serialize;

use crate::service::Layout;

pub use build::{OpenError, Opened};
pub use error::ConfigError;
pub use load::{Overrides, Surroundings};
pub use policy::read_policy;
pub use secret::{Credential, SecretSource};
pub use show::Entry;

/// Where a value comes from.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Origin {
    /// A flag of the command.
    Flag(&'static str),
    /// An environment variable.
    Env(&'static str),
    /// The configuration file.
    File {
        /// Which file.
        path: Arc<Path>,
        /// Which line, from 1.
        line: usize,
    },
    /// Nobody said anything.
    Default,
}

impl fmt::Display for Origin {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Flag(name) => write!(f, "flag {name}"),
            Self::Env(name) => write!(f, "env {name}"),
            Self::File { path, line } => write!(f, "{}:{line}", path.display()),
            Self::Default => f.write_str("default"),
        }
    }
}

/// A value and where it comes from.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Setting<T> {
    /// The value.
    pub value: T,
    /// Where it comes from.
    pub origin: Origin,
}

impl<T> Setting<T> {
    /// A value that nobody set.
    pub fn default_of(value: T) -> Self {
        Self {
            value,
            origin: Origin::Default,
        }
    }
}

/// What makes Python environments and installs into them.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
#[serde(rename_all = "lowercase")]
pub enum Installer {
    /// `uv` when it is on the Pod, else pip.
    Auto,
    /// `uv`, which must be on the Pod.
    Uv,
    /// `venv` and pip of the interpreter.
    Pip,
}

/// Every setting of the host.
#[derive(Debug, Clone)]
pub struct Config {
    /// `workspace.root`: where RootDirs live.
    pub workspace_root: Setting<PathBuf>,
    /// `workspace.layout`: where a Project's folder stands.
    pub layout: Setting<Layout>,
    /// `workspace.soft-limit-percent`: how full the disk is when warnings start.
    pub soft_limit_percent: Setting<u8>,
    /// `workspace.hard-limit-percent`: how full the disk is when creates are refused.
    pub hard_limit_percent: Setting<u8>,
    /// `state.dir`: where the host keeps its own state.
    pub state_dir: Setting<PathBuf>,
    /// `store.url`: which store keeps Snapshots.
    pub store_url: Setting<String>,
    /// `exec.base-dir`: where logs of jobs go.
    pub exec_base_dir: Setting<PathBuf>,
    /// `git.allow`: patterns of remotes.
    pub git_allow: Setting<Vec<String>>,
    /// `git.exclude`: patterns of files that no snapshot and no commit may hold.
    pub git_exclude: Setting<Vec<String>>,
    /// `git.known-hosts`: keys of ssh servers; the file may be missing.
    pub git_known_hosts: Setting<PathBuf>,
    /// `git.ca-file`: certificates to trust for https beside the system's, in PEM.
    pub git_ca_file: Setting<Option<PathBuf>>,
    /// `git.timeout-seconds`: longest wait for a byte from a remote.
    pub git_timeout_seconds: Setting<u32>,
    /// `credentials.<alias>`.
    pub credentials: BTreeMap<String, Credential>,
    /// `python.interpreter`: name on the host's `PATH`, or path.
    pub python_interpreter: Setting<String>,
    /// `python.installer`.
    pub python_installer: Setting<Installer>,
    /// `python.index`: URL of the index that packages come from; none: they come with the sources.
    pub python_index: Setting<Option<String>>,
    /// `plugins.shipped`: which of the shipped plugins are loaded.
    pub plugins_shipped: Setting<Vec<String>>,
    /// `plugins.dir`: where more plugins lie.
    pub plugins_dir: Setting<PathBuf>,
    /// `plugins.policy`: what each plugin may reach; none: as it is shipped.
    pub policy_file: Setting<Option<PathBuf>>,
    /// `launcher.path`: the program that starts children; none: the one beside this program.
    pub launcher_path: Setting<Option<PathBuf>>,
    /// The file that was read, if any.
    pub file: Option<PathBuf>,
}
