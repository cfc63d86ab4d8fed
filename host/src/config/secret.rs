//! Credentials by alias: where a secret comes from, never the secret.

use std::path::{Path, PathBuf};

use super::Setting;
use super::document::Section;
use super::error::ConfigError;

const KEYS: [&str; 5] = ["username", "password", "ssh-key", "passphrase", "remotes"];

/// Where a secret comes from.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum SecretSource {
    /// An environment variable of the host.
    Env(String),
    /// A file's content without the line ends behind it.
    File(PathBuf),
    /// The output of a program, likewise: the program and its arguments.
    Command(Vec<String>),
}

/// One `[credentials.<alias>]`.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Credential {
    /// User name for the remote.
    pub username: Option<Setting<String>>,
    /// Password or token, for https and http.
    pub password: Option<Setting<SecretSource>>,
    /// File with the private key, for ssh.
    pub ssh_key: Option<Setting<PathBuf>>,
    /// What the key is locked with.
    pub passphrase: Option<Setting<SecretSource>>,
    /// Remotes that it may be sent to, as patterns like those of `[git] allow`; none: to every
    /// remote that is allowed.
    pub remotes: Option<Setting<Vec<String>>>,
}

impl Credential {
    pub(super) fn read(section: Section<'_>, home: Option<&Path>) -> Result<Self, ConfigError> {
        let section = section.only(&KEYS)?;
        let credential = Self {
            username: section.text("username")?,
            password: secret(&section, "password", home)?,
            ssh_key: key_file(&section, home)?,
            passphrase: secret(&section, "passphrase", home)?,
            remotes: section.texts("remotes")?,
        };
        match credential.problem() {
            None => Ok(credential),
            Some(reason) => Err(ConfigError::Invalid {
                key: section.name().to_owned(),
                origin: section.start(),
                reason: reason.to_owned(),
            }),
        }
    }

    fn problem(&self) -> Option<&'static str> {
        match (&self.password, &self.ssh_key) {
            (Some(_), Some(_)) => Some("it is either a `password` or an `ssh-key`"),
            (None, None) => Some("it needs a `password` or an `ssh-key`"),
            (Some(_), None) if self.username.is_none() => Some("a `password` needs a `username`"),
            (Some(_), None) if self.passphrase.is_some() => {
                Some("a `passphrase` belongs to an `ssh-key`")
            }
            _ => None,
        }
    }
}

fn key_file(
    section: &Section<'_>,
    home: Option<&Path>,
) -> Result<Option<Setting<PathBuf>>, ConfigError> {
    match secret(section, "ssh-key", home)? {
        None => Ok(None),
        Some(Setting {
            value: SecretSource::File(value),
            origin,
        }) => Ok(Some(Setting { value, origin })),
        Some(Setting { origin, .. }) => Err(ConfigError::Invalid {
            key: section.key("ssh-key"),
            origin,
            reason: "it takes a file: `{ file = \"PATH\" }`".to_owned(),
        }),
    }
}

fn secret(
    section: &Section<'_>,
    key: &str,
    home: Option<&Path>,
) -> Result<Option<Setting<SecretSource>>, ConfigError> {
    let Some(origin) = section.origin(key) else {
        return Ok(None);
    };
    let expected = "a table with one of `env`, `file` and `command`";
    let Ok(Some(table)) = section.section(key) else {
        return Err(section.wrong_type(key, expected));
    };
    let table = table.only(&["env", "file", "command"])?;
    let env = table.text("env")?.map(|s| SecretSource::Env(s.value));
    let file = table
        .path("file", home)?
        .map(|s| SecretSource::File(s.value));
    let command = table
        .texts("command")?
        .map(|s| SecretSource::Command(s.value));
    let mut sources = [env, file, command].into_iter().flatten();
    let (Some(value), None) = (sources.next(), sources.next()) else {
        return Err(ConfigError::Invalid {
            key: section.key(key),
            origin,
            reason: format!("it takes {expected}"),
        });
    };
    let empty = match &value {
        SecretSource::Env(name) => name.is_empty() || name.contains(['=', '\0']),
        SecretSource::Command(words) => words.first().is_none_or(String::is_empty),
        SecretSource::File(_) => false,
    };
    if empty {
        return Err(ConfigError::Invalid {
            key: section.key(key),
            origin,
            reason: "it names nothing that a secret could come from".to_owned(),
        });
    }
    Ok(Some(Setting { value, origin }))
}
