//! Credentials by alias. Only this crate sees one, and only to send it to the remote it is for.

use std::collections::BTreeMap;
use std::fmt;
use std::path::PathBuf;

use git2::{Cred, CredentialType};

use crate::MirrorError;
use crate::policy::Pattern;
use crate::remote_url::{RemoteUrl, Scheme};
use crate::secret::{Scrubber, Secret, SecretSource};

/// What an alias stands for.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Credential {
    /// A login for http and https.
    Password {
        /// User name, `x-access-token` say.
        username: String,
        /// Password or token.
        password: SecretSource,
    },
    /// A key for ssh.
    SshKey {
        /// Login; none: the URL's, else `git`.
        username: Option<String>,
        /// File with the private key.
        private_key: PathBuf,
        /// What the key is locked with.
        passphrase: Option<SecretSource>,
    },
}

#[derive(Debug, Clone)]
struct Entry {
    credential: Credential,
    /// Where it may be sent; empty: wherever the policy allows.
    remotes: Vec<Pattern>,
}

/// Credentials by alias.
#[derive(Debug, Clone, Default)]
pub struct CredentialStore(BTreeMap<String, Entry>);

impl CredentialStore {
    /// Adds a credential under an alias. It is only sent to remotes that match one of the patterns
    /// (see [`crate::UrlPolicy`]); without any, to every remote that the policy allows.
    ///
    /// # Errors
    /// When the alias is taken or not plain, or a pattern is none.
    pub fn insert<S: AsRef<str>>(
        &mut self,
        alias: &str,
        credential: Credential,
        remotes: &[S],
    ) -> Result<(), MirrorError> {
        check_alias(alias)?;
        let remotes = remotes
            .iter()
            .map(|pattern| Pattern::parse(pattern.as_ref()))
            .collect::<Result<_, _>>()?;
        let entry = Entry {
            credential,
            remotes,
        };
        if self.0.insert(alias.to_owned(), entry).is_some() {
            let why = format!("`{alias}` stands for two credentials");
            return Err(MirrorError::invalid("credential alias", why));
        }
        Ok(())
    }

    /// The aliases.
    pub fn aliases(&self) -> impl Iterator<Item = &str> {
        self.0.keys().map(String::as_str)
    }

    /// Reads the credential of an alias for a remote.
    pub(crate) fn login(&self, alias: &str, url: &RemoteUrl) -> Result<Login, MirrorError> {
        Login::read(&self.entry(alias, url)?.credential)
    }

    /// Whether an alias may be used for a remote; reads no secret.
    pub(crate) fn check(&self, alias: &str, url: &RemoteUrl) -> Result<(), MirrorError> {
        self.entry(alias, url).map(drop)
    }

    fn entry(&self, alias: &str, url: &RemoteUrl) -> Result<&Entry, MirrorError> {
        check_alias(alias)?;
        let Some(entry) = self.0.get(alias) else {
            let why = format!("there is no credential `{alias}`");
            return Err(MirrorError::Denied(why));
        };
        let fits = match entry.credential {
            Credential::Password { .. } => matches!(url.scheme, Scheme::Http | Scheme::Https),
            Credential::SshKey { .. } => url.scheme == Scheme::Ssh,
        };
        let listed =
            entry.remotes.is_empty() || entry.remotes.iter().any(|pattern| pattern.matches(url));
        if !fits || !listed {
            let why = format!("credential `{alias}` is not for `{url}`");
            return Err(MirrorError::Denied(why));
        }
        Ok(entry)
    }
}

fn check_alias(alias: &str) -> Result<(), MirrorError> {
    let plain = !alias.is_empty()
        && alias.len() <= 100
        && alias
            .chars()
            .all(|c| c.is_ascii_alphanumeric() || "._-".contains(c));
    if plain {
        return Ok(());
    }
    let why = "only letters, digits, `.`, `_` and `-` are allowed, at most 100";
    Err(MirrorError::invalid("credential alias", why))
}

/// A credential with its secret read.
#[derive(Clone)]
pub(crate) enum Login {
    Password(String, Secret),
    Key(Option<String>, Secret, Option<Secret>),
}

impl fmt::Debug for Login {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("Login")
    }
}

impl Login {
    fn read(credential: &Credential) -> Result<Self, MirrorError> {
        Ok(match credential {
            Credential::Password { username, password } => {
                Self::Password(username.clone(), password.read()?)
            }
            Credential::SshKey {
                username,
                private_key,
                passphrase,
            } => {
                let passphrase = passphrase.as_ref().map(SecretSource::read).transpose()?;
                let key = Secret::read_key(private_key)?;
                Self::Key(username.clone(), key, passphrase)
            }
        })
    }

    /// Makes a scrubber know its secrets.
    pub(crate) fn teach(&self, scrubber: &mut Scrubber) {
        match self {
            Self::Password(user, secret) => scrubber.learn(user, secret),
            Self::Key(_, _, Some(secret)) => scrubber.learn("", secret),
            Self::Key(_, _, None) => {}
        }
    }

    /// What libgit2 asks for, if this credential can give it.
    pub(crate) fn answer(
        &self,
        url_user: Option<&str>,
        asked: CredentialType,
    ) -> Result<Option<Cred>, git2::Error> {
        match self {
            Self::Password(user, secret) if asked.is_user_pass_plaintext() => {
                Cred::userpass_plaintext(user, secret.expose()).map(Some)
            }
            Self::Key(user, key, passphrase) => {
                let user = user.as_deref().or(url_user).unwrap_or("git");
                if asked.is_ssh_key() {
                    let passphrase = passphrase.as_ref().map(Secret::expose);
                    Cred::ssh_key_from_memory(user, None, key.expose(), passphrase).map(Some)
                } else if asked.is_username() {
                    Cred::username(user).map(Some)
                } else {
                    Ok(None)
                }
            }
            Self::Password(..) => Ok(None),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn token() -> Credential {
        Credential::Password {
            username: "ada".into(),
            password: SecretSource::Command(vec!["echo".into(), "hunter2".into()]),
        }
    }

    #[test]
    fn a_credential_goes_only_where_it_is_for() {
        let mut store = CredentialStore::default();
        store
            .insert("acme", token(), &["https://git.acme.example/**"])
            .unwrap();
        store.insert("any", token(), &[] as &[&str]).unwrap();
        let code = |alias: &str, url: &str| {
            let url = RemoteUrl::parse(url).unwrap();
            store.login(alias, &url).map_err(|error| error.code()).err()
        };
        assert_eq!(code("acme", "https://git.acme.example/a"), None);
        assert_eq!(code("acme", "https://evil.example/a"), Some("GitDenied"));
        assert_eq!(code("acme", "http://git.acme.example/a"), Some("GitDenied"));
        assert_eq!(code("acme", "ssh://git.acme.example/a"), Some("GitDenied"));
        assert_eq!(code("any", "https://evil.example/a"), None);
        assert_eq!(
            code("none", "https://git.acme.example/a"),
            Some("GitDenied")
        );
        assert_eq!(
            code("a/b", "https://git.acme.example/a"),
            Some("GitInvalidArgument")
        );
        assert!(!format!("{store:?}").contains("hunter2"));
        let login = store
            .login("any", &RemoteUrl::parse("https://h.example/a").unwrap())
            .unwrap();
        assert_eq!(format!("{login:?}"), "Login");
    }

    #[test]
    fn two_credentials_of_one_alias_are_an_error() {
        let mut store = CredentialStore::default();
        store.insert("a", token(), &[] as &[&str]).unwrap();
        assert!(store.insert("a", token(), &[] as &[&str]).is_err());
        assert_eq!(store.aliases().collect::<Vec<_>>(), ["a"]);
    }
}
