//! A place in the network that something may talk to.

use std::fmt;
use std::net::{Ipv4Addr, Ipv6Addr};
use std::str::FromStr;

use serde::{Deserialize, Serialize};

/// How an endpoint is spoken to.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Scheme {
    /// Plain.
    Http,
    /// Over TLS.
    Https,
}

impl Scheme {
    /// `http` or `https`.
    pub fn as_str(self) -> &'static str {
        match self {
            Self::Http => "http",
            Self::Https => "https",
        }
    }

    /// The port when none is named.
    pub fn default_port(self) -> u16 {
        match self {
            Self::Http => 80,
            Self::Https => 443,
        }
    }
}

/// A scheme, a host and a port, `https://host[:port]`: no user, no path, no pattern.
///
/// The host is a name in lower case without a dot at its end, an IPv4 address in its usual form, or
/// an IPv6 address without brackets.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[serde(try_from = "String", into = "String")]
pub struct Endpoint {
    /// How it is spoken to.
    pub scheme: Scheme,
    /// Name or address.
    pub host: String,
    /// Port, never 0.
    pub port: u16,
}

/// Why a text is no endpoint.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("`{text}` is no endpoint like `https://host:443`: {reason}")]
pub struct InvalidEndpoint {
    text: String,
    reason: &'static str,
}

impl InvalidEndpoint {
    pub(crate) fn reason(&self) -> &'static str {
        self.reason
    }
}

const HOST_BYTES_MAX: usize = 253;

impl FromStr for Endpoint {
    type Err = InvalidEndpoint;

    fn from_str(text: &str) -> Result<Self, InvalidEndpoint> {
        let bad = |reason| InvalidEndpoint {
            text: text
                .chars()
                .take(100)
                .flat_map(char::escape_debug)
                .collect(),
            reason,
        };
        let (scheme, rest) = text
            .split_once("://")
            .ok_or_else(|| bad("it has no scheme"))?;
        let scheme = match scheme {
            "http" => Scheme::Http,
            "https" => Scheme::Https,
            _ => return Err(bad("its scheme is neither `https` nor `http`")),
        };
        if rest.contains(['/', '?', '#', '@', '\\']) {
            return Err(bad("it has more than a host and a port"));
        }
        let (host, port) = split(rest).ok_or_else(|| bad("its host is not closed by `]`"))?;
        let port = match port {
            None => scheme.default_port(),
            Some(digits) if digits.bytes().all(|byte| byte.is_ascii_digit()) => digits
                .parse()
                .ok()
                .filter(|port| *port != 0)
                .ok_or_else(|| bad("its port is none"))?,
            Some(_) => return Err(bad("its port is none")),
        };
        let host = host_of(host).ok_or_else(|| bad("its host is neither a name nor an address"))?;
        Ok(Self { scheme, host, port })
    }
}

/// Host and port; brackets stay.
fn split(authority: &str) -> Option<(&str, Option<&str>)> {
    if authority.starts_with('[') {
        let end = authority.find(']')?;
        let (host, rest) = authority.split_at(end + 1);
        return match rest.strip_prefix(':') {
            Some(port) => Some((host, Some(port))),
            None if rest.is_empty() => Some((host, None)),
            None => None,
        };
    }
    Some(match authority.rsplit_once(':') {
        Some((host, port)) => (host, Some(port)),
        None => (authority, None),
    })
}

/// The host in its one form.
fn host_of(text: &str) -> Option<String> {
    if let Some(inner) = text.strip_prefix('[') {
        let address: Ipv6Addr = inner.strip_suffix(']')?.parse().ok()?;
        return Some(match address.to_ipv4_mapped() {
            Some(inner) => inner.to_string(),
            None => address.to_string(),
        });
    }
    let name = text.strip_suffix('.').unwrap_or(text).to_ascii_lowercase();
    if name.is_empty() || name.len() > HOST_BYTES_MAX {
        return None;
    }
    let label = |label: &str| {
        !label.is_empty()
            && label.len() <= 63
            && !label.starts_with('-')
            && !label.ends_with('-')
            && label
                .bytes()
                .all(|byte| byte.is_ascii_alphanumeric() || matches!(byte, b'-' | b'_'))
    };
    if !name.split('.').all(label) {
        return None;
    }
    // `127.1`, `0x7f.1` and `2130706433` are addresses to some and names to others.
    let last = name.rsplit('.').next()?;
    let number = last.bytes().all(|byte| byte.is_ascii_digit()) || last.starts_with("0x");
    if number {
        return name
            .parse::<Ipv4Addr>()
            .ok()
            .map(|address| address.to_string());
    }
    Some(name)
}

impl fmt::Display for Endpoint {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self { scheme, host, port } = self;
        let scheme = scheme.as_str();
        if host.contains(':') {
            write!(f, "{scheme}://[{host}]:{port}")
        } else {
            write!(f, "{scheme}://{host}:{port}")
        }
    }
}

impl TryFrom<String> for Endpoint {
    type Error = InvalidEndpoint;

    fn try_from(text: String) -> Result<Self, InvalidEndpoint> {
        text.parse()
    }
}

impl From<Endpoint> for String {
    fn from(endpoint: Endpoint) -> Self {
        endpoint.to_string()
    }
}

#[cfg(test)]
mod tests {
    use super::Endpoint;

    #[test]
    fn an_endpoint_has_one_form() {
        for (text, form) in [
            ("https://pypi.example", "https://pypi.example:443"),
            ("https://PyPI.example.:8443", "https://pypi.example:8443"),
            ("http://127.0.0.1:3141", "http://127.0.0.1:3141"),
            ("http://localhost", "http://localhost:80"),
            ("https://[::1]", "https://[::1]:443"),
            ("https://[0:0::1]:9", "https://[::1]:9"),
            ("https://[::ffff:10.0.0.1]:9", "https://10.0.0.1:9"),
            ("https://a_b.example", "https://a_b.example:443"),
        ] {
            let parsed: Endpoint = text.parse().unwrap();
            assert_eq!(parsed.to_string(), form);
            assert_eq!(form.parse::<Endpoint>().unwrap(), parsed);
        }
    }

    #[test]
    fn what_is_more_or_less_is_refused() {
        for bad in [
            "",
            "pypi.example",
            "ftp://pypi.example",
            "HTTPS://pypi.example",
            "https://",
            "https://:443",
            "https://a:0",
            "https://a:65536",
            "https://a:+80",
            "https://a:",
            "https://a/",
            "https://a/simple",
            "https://a?x",
            "https://u@a",
            "https://u:p@a",
            "https://a\\b",
            "https://*.a",
            "https://a..b",
            "https://-a",
            "https://a b",
            "https://\u{430}.example",
            "https://127.1",
            "https://2130706433",
            "https://0x7f000001",
            "https://0177.0.0.1",
            "https://1.2.3.4.5",
            "https://[::1",
            "https://[::1]x",
            "https://[fe80::1%eth0]",
            "https://::1",
            "https://a\n",
        ] {
            assert!(bad.parse::<Endpoint>().is_err(), "{bad:?}");
        }
    }

    #[test]
    fn a_bad_one_is_shown_escaped() {
        let error = "x\u{1b}[2J".parse::<Endpoint>().unwrap_err();
        assert!(!error.to_string().contains('\u{1b}'), "{error}");
    }
}
