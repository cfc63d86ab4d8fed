//! The settings as a list, for people and programs.

use std::path::Path;

use serde::Serialize;
use serde_json::{Value, json};

use super::{Config, Credential, SecretSource, Setting};

/// One setting. No value is a secret: credentials show where theirs come from.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct Entry {
    /// The key, with its section.
    pub key: String,
    /// Its value.
    pub value: Value,
    /// Where it comes from.
    pub origin: String,
}

impl Config {
    /// Every setting, in the order of the documentation.
    pub fn entries(&self) -> Vec<Entry> {
        let mut entries = vec![
            entry("workspace.root", &self.workspace_root, |v| path(v)),
            entry("workspace.layout", &self.layout, |v| json!(v)),
            entry(
                "workspace.soft-limit-percent",
                &self.soft_limit_percent,
                |v| json!(v),
            ),
            entry(
                "workspace.hard-limit-percent",
                &self.hard_limit_percent,
                |v| json!(v),
            ),
            entry("state.dir", &self.state_dir, |v| path(v)),
            entry("store.url", &self.store_url, |v| json!(v)),
            entry("exec.base-dir", &self.exec_base_dir, |v| path(v)),
            entry("git.allow", &self.git_allow, |v| json!(v)),
            entry("git.exclude", &self.git_exclude, |v| json!(v)),
            entry("git.known-hosts", &self.git_known_hosts, |v| path(v)),
            entry("git.ca-file", &self.git_ca_file, optional_path),
            entry("git.timeout-seconds", &self.git_timeout_seconds, |v| {
                json!(v)
            }),
            entry("python.interpreter", &self.python_interpreter, |v| json!(v)),
            entry("python.installer", &self.python_installer, |v| json!(v)),
            entry("python.index", &self.python_index, |v| json!(v)),
            entry("plugins.shipped", &self.plugins_shipped, |v| json!(v)),
            entry("plugins.dir", &self.plugins_dir, |v| path(v)),
            entry("plugins.policy", &self.policy_file, optional_path),
            entry("launcher.path", &self.launcher_path, optional_path),
        ];
        for (alias, credential) in &self.credentials {
            entries.extend(credential_entries(alias, credential));
        }
        entries
    }
}

fn credential_entries(alias: &str, credential: &Credential) -> Vec<Entry> {
    let key = |key| format!("credentials.{alias}.{key}");
    let secret = |name, setting: &Option<Setting<SecretSource>>| {
        setting.as_ref().map(|s| entry(key(name), s, source))
    };
    [
        credential
            .username
            .as_ref()
            .map(|s| entry(key("username"), s, |v| json!(v))),
        secret("password", &credential.password),
        credential
            .ssh_key
            .as_ref()
            .map(|s| entry(key("ssh-key"), s, |v| json!({ "file": path(v) }))),
        secret("passphrase", &credential.passphrase),
        credential
            .remotes
            .as_ref()
            .map(|s| entry(key("remotes"), s, |v| json!(v))),
    ]
    .into_iter()
    .flatten()
    .collect()
}

fn entry<T>(key: impl Into<String>, setting: &Setting<T>, show: impl Fn(&T) -> Value) -> Entry {
    Entry {
        key: key.into(),
        value: show(&setting.value),
        origin: setting.origin.to_string(),
    }
}

fn path(path: &Path) -> Value {
    json!(path.to_string_lossy())
}

fn optional_path(value: &Option<std::path::PathBuf>) -> Value {
    value.as_deref().map_or(Value::Null, path)
}

fn source(source: &SecretSource) -> Value {
    match source {
        SecretSource::Env(name) => json!({ "env": name }),
        SecretSource::File(file) => json!({ "file": path(file) }),
        SecretSource::Command(words) => json!({ "command": words }),
    }
}
