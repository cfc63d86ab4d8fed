//! From `[credentials]` to what the mirrors log in with.

use std::path::PathBuf;

use warren_mirror::{Credential as Login, CredentialStore, SecretSource as Source};

use super::{Config, ConfigError, Credential, Origin, SecretSource};

/// The credentials by alias. No secret is read.
pub(super) fn store(config: &Config) -> Result<CredentialStore, ConfigError> {
    let mut store = CredentialStore::default();
    for (alias, credential) in &config.credentials {
        let remotes = credential.remotes.as_ref();
        let remotes = remotes.map_or(&[][..], |remotes| &remotes.value);
        store
            .insert(alias, login(credential), remotes)
            .map_err(|error| ConfigError::Invalid {
                key: format!("credentials.{alias}"),
                origin: origin(credential),
                reason: error.to_string(),
            })?;
    }
    Ok(store)
}

fn login(credential: &Credential) -> Login {
    let username = credential.username.as_ref().map(|name| name.value.clone());
    let secret = |setting: &Option<super::Setting<SecretSource>>| {
        setting.as_ref().map(|setting| source(&setting.value))
    };
    match secret(&credential.password) {
        Some(password) => Login::Password {
            // Reading the file has made sure of it.
            username: username.unwrap_or_default(),
            password,
        },
        None => Login::SshKey {
            username,
            private_key: credential
                .ssh_key
                .as_ref()
                .map_or_else(PathBuf::new, |key| key.value.clone()),
            passphrase: secret(&credential.passphrase),
        },
    }
}

fn source(source: &SecretSource) -> Source {
    match source {
        SecretSource::Env(name) => Source::Env(name.clone()),
        SecretSource::File(path) => Source::File(path.clone()),
        SecretSource::Command(words) => Source::Command(words.clone()),
    }
}

fn origin(credential: &Credential) -> Origin {
    let remotes = credential.remotes.as_ref().map(|setting| &setting.origin);
    let username = credential.username.as_ref().map(|setting| &setting.origin);
    let key = credential.ssh_key.as_ref().map(|setting| &setting.origin);
    remotes
        .or(username)
        .or(key)
        .cloned()
        .unwrap_or(Origin::Default)
}
