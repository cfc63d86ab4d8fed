//! URLs of remotes, parsed once: what the policy judges is what is connected to.

use std::fmt;

use url::{Host, Url};

use crate::MirrorError;

/// Longest URL in bytes.
const URL_BYTES_MAX: usize = 2048;

/// How a remote is talked to.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub(crate) enum Scheme {
    Https,
    Http,
    Ssh,
    File,
}

impl Scheme {
    pub(crate) fn parse(text: &str) -> Option<Self> {
        Some(match text {
            "https" => Self::Https,
            "http" => Self::Http,
            "ssh" => Self::Ssh,
            "file" => Self::File,
            _ => return None,
        })
    }

    fn as_str(self) -> &'static str {
        match self {
            Self::Https => "https",
            Self::Http => "http",
            Self::Ssh => "ssh",
            Self::File => "file",
        }
    }

    pub(crate) fn default_port(self) -> u16 {
        match self {
            Self::Https => 443,
            Self::Http => 80,
            Self::Ssh => 22,
            Self::File => 0,
        }
    }
}

/// The URL of a remote in canonical form, without a secret. Only [`crate::UrlPolicy`] makes one
/// that may be used.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub struct RemoteUrl {
    pub(crate) scheme: Scheme,
    /// Login of ssh.
    pub(crate) user: Option<String>,
    /// None for `file`.
    pub(crate) host: Option<Host>,
    pub(crate) port: u16,
    /// Absolute, or relative to the login's home directory when it came in scp form.
    pub(crate) path: String,
}

fn refuse<T>(why: impl Into<String>) -> Result<T, MirrorError> {
    Err(MirrorError::invalid("url", why))
}

impl RemoteUrl {
    /// Parses a URL or `user@host:path`. Errors never repeat the text: it may hold a password.
    pub(crate) fn parse(text: &str) -> Result<Self, MirrorError> {
        if text.is_empty() || text.len() > URL_BYTES_MAX {
            return refuse("it is empty or longer than 2048 bytes");
        }
        if !text.bytes().all(|byte| byte.is_ascii_graphic()) {
            return refuse("it holds a space, a control character or one that is not ASCII");
        }
        if text.contains('\\') {
            return refuse("it holds a `\\`");
        }
        if text.starts_with('-') {
            return refuse("it starts with `-`");
        }
        let url = match text.split_once("://") {
            Some((scheme, _)) => Self::parse_url(&scheme.to_ascii_lowercase(), text)?,
            None => Self::parse_scp(text)?,
        };
        url.check()?;
        Ok(url)
    }

    fn parse_url(scheme: &str, text: &str) -> Result<Self, MirrorError> {
        let Some(scheme) = Scheme::parse(scheme) else {
            return Err(MirrorError::Denied(
                "only https, http and ssh URLs can be used".to_owned(),
            ));
        };
        let Ok(url) = Url::parse(text) else {
            return refuse("it cannot be parsed");
        };
        if url.password().is_some() {
            return refuse("it holds a password; name a credential alias instead");
        }
        if scheme != Scheme::Ssh && !url.username().is_empty() {
            return refuse("it holds a user name or token; name a credential alias instead");
        }
        if url.query().is_some() || url.fragment().is_some() {
            return refuse("it holds a query or fragment");
        }
        let host = match (scheme, url.host_str().filter(|host| !host.is_empty())) {
            (Scheme::File, None) => None,
            (Scheme::File, Some(_)) => return refuse("a file URL names no host"),
            (_, None) => return refuse("it names no host"),
            (_, Some(host)) => Some(parse_host(host)?),
        };
        Ok(Self {
            scheme,
            user: Some(url.username().to_owned()).filter(|user| !user.is_empty()),
            host,
            port: url.port().unwrap_or_else(|| scheme.default_port()),
            path: url.path().trim_end_matches('/').to_owned(),
        })
    }

    /// `[user@]host:path`. A helper (`ext::…`), a path or a drive letter is none.
    fn parse_scp(text: &str) -> Result<Self, MirrorError> {
        let denied = || {
            Err(MirrorError::Denied(
                "paths and remote helpers cannot be used as a remote".to_owned(),
            ))
        };
        let (user, rest) = match text.split_once('@') {
            Some((user, rest)) if !user.contains([':', '/']) => (Some(user), rest),
            Some((user, _)) if user.contains(':') && !user.contains('/') => {
                return refuse("it holds a password; name a credential alias instead");
            }
            _ => (None, text),
        };
        let split = if rest.starts_with('[') {
            rest.find("]:").map(|at| (&rest[..=at], &rest[at + 2..]))
        } else {
            rest.split_once(':')
        };
        let Some((host, path)) = split.filter(|(host, _)| !host.contains('/')) else {
            return denied();
        };
        if path.starts_with(':') || host.len() < 2 {
            return denied();
        }
        Ok(Self {
            scheme: Scheme::Ssh,
            user: user.map(str::to_owned),
            host: Some(parse_host(host)?),
            port: Scheme::Ssh.default_port(),
            path: path.trim_end_matches('/').to_owned(),
        })
    }

    fn check(&self) -> Result<(), MirrorError> {
        let user_ok = self.user.as_ref().is_none_or(|user| {
            user.starts_with(|c: char| c.is_ascii_alphanumeric() || c == '_')
                && user
                    .chars()
                    .all(|c| c.is_ascii_alphanumeric() || "._-+".contains(c))
        });
        if !user_ok {
            return refuse("its user name is not plain");
        }
        if self.path.is_empty() {
            return refuse("it names no repository");
        }
        if self.path.starts_with('-') {
            return refuse("its path starts with `-`");
        }
        // What is left of an encoded character might be undone again behind the policy's back.
        let lower = self.path.to_ascii_lowercase();
        if ["%2e", "%2f", "%5c", "%25", "%0", "%1", "%7f"]
            .iter()
            .any(|code| lower.contains(code))
        {
            return refuse("its path holds an encoded `.`, `/`, `\\`, `%` or control character");
        }
        if self.path.split('/').any(|part| matches!(part, "." | "..")) {
            return refuse("its path holds `.` or `..`");
        }
        if !self
            .path
            .chars()
            .all(|c| c.is_ascii_alphanumeric() || "/._~+@:=,%-".contains(c))
        {
            return refuse("its path holds a character that is not plain");
        }
        Ok(())
    }

    /// The same place with another absolute path, as a server may name one.
    pub(crate) fn at(&self, path: &str) -> Result<Self, MirrorError> {
        let own = Self {
            path: String::new(),
            ..self.clone()
        };
        Self::parse(&format!("{own}{path}"))
    }

    /// The path with `/` in front, as patterns match it.
    pub(crate) fn absolute_path(&self) -> String {
        if self.path.starts_with('/') {
            self.path.clone()
        } else {
            format!("/{}", self.path)
        }
    }

    /// The host as text, IPv6 in brackets; empty for `file`.
    pub(crate) fn host_text(&self) -> String {
        self.host.as_ref().map(Host::to_string).unwrap_or_default()
    }

    /// Host, with the port where it is not the scheme's own, and path, for messages.
    pub(crate) fn place(&self) -> String {
        let path = warren_disk::text::excerpt(self.path.as_bytes(), 200);
        if self.scheme == Scheme::File {
            return path;
        }
        let host = self.host_text();
        let port = match self.port {
            port if port == self.scheme.default_port() => String::new(),
            port => format!(":{port}"),
        };
        let slash = if path.starts_with('/') { "" } else { "/" };
        format!("{host}{port}{slash}{path}")
    }
}

/// Parses any way to write a host: IPv4 in decimal, octal or hex, IPv6, IDN, a trailing dot.
pub(crate) fn parse_host(text: &str) -> Result<Host, MirrorError> {
    let Ok(host) = Host::parse(text.strip_suffix('.').unwrap_or(text)) else {
        return refuse("its host is not valid");
    };
    if let Host::Domain(name) = &host {
        let plain = name
            .chars()
            .all(|c| c.is_ascii_alphanumeric() || "._-".contains(c));
        let labels_ok = name
            .split('.')
            .all(|label| !label.is_empty() && !label.starts_with('-'));
        if !plain || !labels_ok {
            return refuse("its host is not valid");
        }
    }
    Ok(host)
}

impl fmt::Display for RemoteUrl {
    /// The canonical form: what is connected to, kept as `origin`, and hashed for the mirror.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        if self.scheme == Scheme::Ssh && !self.path.starts_with('/') {
            if let Some(user) = &self.user {
                write!(f, "{user}@")?;
            }
            return write!(f, "{}:{}", self.host_text(), self.path);
        }
        write!(f, "{}://", self.scheme.as_str())?;
        if let Some(user) = &self.user {
            write!(f, "{user}@")?;
        }
        f.write_str(&self.host_text())?;
        if self.port != self.scheme.default_port() {
            write!(f, ":{}", self.port)?;
        }
        f.write_str(&self.path)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn urls_have_one_form() {
        for (text, canonical) in [
            ("https://Git.Example/a/b.git", "https://git.example/a/b.git"),
            ("https://git.example:443/a/", "https://git.example/a"),
            ("https://git.example./a", "https://git.example/a"),
            ("HTTPS://git.example/a/../b", "https://git.example/b"),
            ("http://2130706433/a", "http://127.0.0.1/a"),
            ("http://0x7f.1:8080/a", "http://127.0.0.1:8080/a"),
            ("http://[::ffff:127.0.0.1]/a", "http://[::ffff:7f00:1]/a"),
            ("https://bücher.example/a", ""),
            (
                "https://xn--bcher-kva.example/a",
                "https://xn--bcher-kva.example/a",
            ),
            ("ssh://git@git.example:22/a", "ssh://git@git.example/a"),
            ("ssh://0x7f000001/a", "ssh://127.0.0.1/a"),
            ("git@git.example:team/a.git", "git@git.example:team/a.git"),
            (
                "git@git.example:/srv/a.git",
                "ssh://git@git.example/srv/a.git",
            ),
            ("git.example:a", "git.example:a"),
            ("git@[::1]:a", "git@[::1]:a"),
            ("file:///srv/a.git", "file:///srv/a.git"),
        ] {
            let parsed = RemoteUrl::parse(text).map(|url| url.to_string());
            if canonical.is_empty() {
                assert!(parsed.is_err(), "{text}");
                continue;
            }
            let parsed = parsed.unwrap();
            assert_eq!(parsed, canonical, "{text}");
            assert_eq!(RemoteUrl::parse(&parsed).unwrap().to_string(), parsed);
        }
    }

    #[test]
    fn everything_else_is_refused_without_repeating_a_secret() {
        for bad in [
            "",
            "-oProxyCommand=x",
            "ext::sh -c x",
            "ext::sh",
            "fd::17",
            "/srv/a.git",
            "up.git",
            "../up.git",
            "./a:b",
            "a/b:c",
            "C:/x",
            "git://git.example/a",
            "ftp://git.example/a",
            "git+ssh://git.example/a",
            "file://host/srv",
            "https://git.example",
            "https://git.example/",
            "https:///a",
            "https://u:SECRET@git.example/a",
            "https://SECRET@git.example/a",
            "u:SECRET@git.example:a",
            "https://git.example/a?token=SECRET",
            "https://git.example/a#SECRET",
            "ssh://-oProxyCommand=x/a",
            "ssh://-x@git.example/a",
            "-x@git.example:a",
            "git@git.example:-a",
            "git@git.example:../a",
            "git@git.example:a/../../b",
            "https://git.example/a%2f..%2fb",
            "https://git.example/a%252e",
            "https://git.example/a%0ab",
            "https://git.example/a\nb",
            "https://git.example\\@evil/a",
            "https://git.example/a b",
            "ssh://git.example/a'b",
            "ssh://git.example/a;b",
            "ssh://git.example/$(x)",
            "https://-git.example/a",
            "https://git..example/a",
            "https://git.example:99999/a",
        ] {
            let error = RemoteUrl::parse(bad).expect_err(bad);
            assert!(!error.to_string().contains("SECRET"), "{bad}: {error}");
        }
    }

    proptest::proptest! {
        #[test]
        fn any_text_is_refused_or_has_one_form(
            scheme in "(https?://|ssh://|file://|git@|)",
            rest in "[a-zA-Z0-9.:/@%~_\\[\\]-]{0,40}|\\PC{0,40}",
        ) {
            if let Ok(url) = RemoteUrl::parse(&format!("{scheme}{rest}")) {
                let text = url.to_string();
                proptest::prop_assert_eq!(RemoteUrl::parse(&text).unwrap(), url, "{}", text);
                proptest::prop_assert!(!text.contains("..") || !text.contains("/../"));
            }
        }
    }
}
