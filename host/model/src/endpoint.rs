//! Servers that a program may talk to: one parser for what is granted and for what is asked.

use std::fmt;
use std::net::{IpAddr, Ipv4Addr};
use std::str::FromStr;

use url::Host;

use crate::address::{is_link_local, is_public};

/// Longest text of an endpoint, in bytes.
const BYTES_MAX: usize = 512;

/// A text that is no endpoint; says why.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("endpoint `{text}` {why}")]
pub struct InvalidEndpoint {
    text: String,
    why: &'static str,
}

/// What is spoken with a server.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum WebScheme {
    /// In the clear.
    Http,
    /// Over TLS.
    Https,
}

impl WebScheme {
    /// As in a URL.
    pub fn as_str(self) -> &'static str {
        match self {
            Self::Http => "http",
            Self::Https => "https",
        }
    }

    /// The port of a URL that names none.
    pub fn default_port(self) -> u16 {
        match self {
            Self::Http => 80,
            Self::Https => 443,
        }
    }

    fn split(text: &str) -> Option<(Self, &str)> {
        let (scheme, rest) = text.split_once("://")?;
        [Self::Http, Self::Https]
            .into_iter()
            .find(|known| scheme.eq_ignore_ascii_case(known.as_str()))
            .map(|known| (known, rest))
    }
}

/// One server, as a request names it: the host is canonical, whatever its form was.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub struct Target {
    /// What is spoken.
    pub scheme: WebScheme,
    /// A name in lower case without the dot at its end, or an address; one of IPv4 that was wrapped
    /// in IPv6 is IPv4.
    pub host: Host,
    /// Port.
    pub port: u16,
}

impl Target {
    /// The server of `host[:port]`.
    ///
    /// # Errors
    /// User names, bad hosts, bad ports.
    pub fn from_authority(scheme: WebScheme, authority: &str) -> Result<Self, InvalidEndpoint> {
        let invalid = |why| invalid(authority, why);
        if authority.len() > BYTES_MAX {
            return Err(invalid("is too long"));
        }
        let (host, port) = split_port(authority);
        let port = match port {
            None => scheme.default_port(),
            Some(text) => parse_port(text).ok_or_else(|| invalid("has a bad port"))?,
        };
        let host = parse_host(host).map_err(invalid)?;
        Ok(Self { scheme, host, port })
    }

    /// The server of a URL; path, query and fragment are left out.
    ///
    /// # Errors
    /// Schemes other than `http` and `https`, user names, bad hosts, bad ports.
    pub fn from_url(url: &str) -> Result<Self, InvalidEndpoint> {
        let (scheme, rest) =
            WebScheme::split(url).ok_or_else(|| invalid(url, "is neither http nor https"))?;
        let end = rest.find(['/', '?', '#', '\\']).unwrap_or(rest.len());
        Self::from_authority(scheme, &rest[..end])
    }

    /// `host:port`, the port always given: what a `CONNECT` names.
    pub fn authority(&self) -> String {
        format!("{}:{}", self.host, self.port)
    }
}

impl fmt::Display for Target {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write_server(f, self.scheme, &self.host, self.port)
    }
}

/// A pattern of servers: `https://host[:port]`, `https://*.domain[:port]` for the names below a
/// domain, or `*` for all on the public internet. Without a port, the scheme's own is meant.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Endpoint(Pattern);

#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord, Hash)]
enum Pattern {
    Any,
    /// With the dot in front.
    Below(WebScheme, String, u16),
    Exact(WebScheme, Host, u16),
}

impl Endpoint {
    /// The pattern that is this server and no other.
    pub fn exact(target: Target) -> Self {
        Self(Pattern::Exact(target.scheme, target.host, target.port))
    }

    /// Whether it stands for all servers on the public internet.
    pub fn is_any(&self) -> bool {
        self.0 == Pattern::Any
    }

    /// Whether the server is one of these.
    pub fn matches(&self, target: &Target) -> bool {
        match &self.0 {
            Pattern::Any => true,
            Pattern::Below(scheme, ending, port) => {
                (*scheme, *port) == (target.scheme, target.port)
                    && matches!(&target.host, Host::Domain(name) if name.ends_with(ending))
            }
            Pattern::Exact(scheme, host, port) => {
                (*scheme, host, *port) == (target.scheme, &target.host, target.port)
            }
        }
    }

    fn names_host(&self) -> bool {
        matches!(self.0, Pattern::Exact(..))
    }
}

impl FromStr for Endpoint {
    type Err = InvalidEndpoint;

    fn from_str(text: &str) -> Result<Self, InvalidEndpoint> {
        if text == "*" {
            return Ok(Self(Pattern::Any));
        }
        let (scheme, rest) = WebScheme::split(text)
            .ok_or_else(|| invalid(text, "is neither `*` nor http:// nor https://"))?;
        let rest = rest.strip_suffix('/').unwrap_or(rest);
        if rest.contains(['/', '?', '#', '\\']) {
            return Err(invalid(text, "has a path: it is a server"));
        }
        if let Some(domain) = rest.strip_prefix("*.") {
            let below =
                Target::from_authority(scheme, domain).map_err(|error| invalid(text, error.why))?;
            let Host::Domain(name) = below.host else {
                return Err(invalid(text, "has an address below which there is no name"));
            };
            return Ok(Self(Pattern::Below(scheme, format!(".{name}"), below.port)));
        }
        Target::from_authority(scheme, rest)
            .map(Self::exact)
            .map_err(|error| invalid(text, error.why))
    }
}

impl fmt::Display for Endpoint {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match &self.0 {
            Pattern::Any => f.write_str("*"),
            Pattern::Below(scheme, ending, port) => {
                write_server(f, *scheme, &format!("*{ending}"), *port)
            }
            Pattern::Exact(scheme, host, port) => write_server(f, *scheme, host, *port),
        }
    }
}

/// The servers that a grant gives: on its list, and on every further list that narrows it.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Endpoints {
    granted: Vec<Endpoint>,
    within: Vec<Vec<Endpoint>>,
}

/// How far a server may be talked to.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct EndpointPermit {
    /// The grant names the host in full.
    named: bool,
    /// And it names it by its address.
    literal: bool,
}

impl Endpoints {
    /// What an operator grants. Only this list can give servers that are not on the public internet,
    /// by naming each in full.
    pub fn new(granted: Vec<Endpoint>) -> Self {
        Self {
            granted,
            within: Vec::new(),
        }
    }

    /// Narrows it to what this list, a plugin's wish say, has as well.
    #[must_use]
    pub fn within(mut self, list: Vec<Endpoint>) -> Self {
        self.within.push(list);
        self
    }

    /// Whether no server can be on it.
    pub fn is_empty(&self) -> bool {
        self.granted.is_empty() || self.within.iter().any(Vec::is_empty)
    }

    /// Whether a server may be talked to, before its name is resolved.
    pub fn permit(&self, target: &Target) -> Option<EndpointPermit> {
        let on = |list: &[Endpoint]| list.iter().any(|endpoint| endpoint.matches(target));
        if !on(&self.granted) || !self.within.iter().all(|list| on(list)) {
            return None;
        }
        let mut matching = self.granted.iter().filter(|entry| entry.matches(target));
        let named = matching.any(Endpoint::names_host);
        Some(EndpointPermit {
            named,
            literal: named && !matches!(target.host, Host::Domain(_)),
        })
    }
}

impl EndpointPermit {
    /// Whether this address, to which the host resolved, may be connected to. One that is not public
    /// needs a grant that names the host; a link-local one (metadata services) needs one that names
    /// the address, since nobody's server has a name there.
    pub fn may_connect(self, address: IpAddr) -> bool {
        is_public(address) || self.literal || (self.named && !is_link_local(address))
    }
}

fn invalid(text: &str, why: &'static str) -> InvalidEndpoint {
    // Nothing behind an `@` can be a secret; in front of it there may be one.
    let shown = text.rsplit('@').next().unwrap_or_default();
    let shown = shown.chars().take(100).flat_map(char::escape_debug);
    InvalidEndpoint {
        text: shown.collect(),
        why,
    }
}

fn write_server(
    f: &mut fmt::Formatter<'_>,
    scheme: WebScheme,
    host: &dyn fmt::Display,
    port: u16,
) -> fmt::Result {
    write!(f, "{}://{host}", scheme.as_str())?;
    match port == scheme.default_port() {
        true => Ok(()),
        false => write!(f, ":{port}"),
    }
}

fn split_port(authority: &str) -> (&str, Option<&str>) {
    match authority.rsplit_once(':') {
        Some((host, port)) if !port.contains(']') => (host, Some(port)),
        _ => (authority, None),
    }
}

fn parse_port(text: &str) -> Option<u16> {
    let digits = !text.is_empty() && text.bytes().all(|byte| byte.is_ascii_digit());
    text.parse().ok().filter(|&port| digits && port != 0)
}

fn parse_host(text: &str) -> Result<Host, &'static str> {
    if text.contains('@') {
        return Err("holds a user name");
    }
    if text.contains('%') {
        return Err("has a host that is encoded");
    }
    let text = text.strip_suffix('.').unwrap_or(text);
    match Host::parse(text).map_err(|_| "has a bad host")? {
        Host::Domain(name) => {
            let plain = |c: char| c.is_ascii_alphanumeric() || "_-".contains(c);
            let label_ok = |label: &str| {
                !label.is_empty() && !label.starts_with('-') && label.chars().all(plain)
            };
            match name.split('.').all(label_ok) {
                true => Ok(Host::Domain(name)),
                false => Err("has a bad host"),
            }
        }
        Host::Ipv6(address) => Ok(address
            .to_ipv4_mapped()
            .map_or(Host::Ipv6(address), |inner: Ipv4Addr| Host::Ipv4(inner))),
        host @ Host::Ipv4(_) => Ok(host),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn target(url: &str) -> Target {
        Target::from_url(url).unwrap()
    }

    fn endpoints(list: &[&str]) -> Endpoints {
        Endpoints::new(list.iter().map(|text| text.parse().unwrap()).collect())
    }

    #[test]
    fn one_server_has_one_form() {
        for (text, canonical) in [
            ("https://Index.Example", "https://index.example"),
            ("HTTPS://index.example.:443/a?b", "https://index.example"),
            ("http://index.example:443", "http://index.example:443"),
            ("http://127.1/", "http://127.0.0.1"),
            ("http://2130706433", "http://127.0.0.1"),
            ("http://0x7f.0.0.1", "http://127.0.0.1"),
            ("http://0177.0.0.1:080", "http://127.0.0.1"),
            ("http://[::ffff:127.0.0.1]:81", "http://127.0.0.1:81"),
            ("http://[0:0::1]", "http://[::1]"),
            ("https://bücher.example", "https://xn--bcher-kva.example"),
        ] {
            assert_eq!(target(text).to_string(), canonical, "{text}");
        }
        assert_eq!(target("https://a.b").authority(), "a.b:443");
        assert_eq!(target("http://[::1]").authority(), "[::1]:80");
    }

    #[test]
    fn what_is_no_server_is_refused() {
        for text in [
            "https://user@host.example",
            "https://user:SECRET@host.example",
            "https://host.example:99999",
            "https://host.example:0",
            "https://host.example:",
            "https://host.example:+80",
            "https://",
            "https://..",
            "https://a..b",
            "https://-a.b",
            "https://a b",
            "https://a%2eb",
            "https://1.2.3.4.5",
            "ftp://a.b",
            "a.b",
        ] {
            let error = Target::from_url(text).unwrap_err();
            assert!(!error.to_string().contains("SECRET"), "{error}");
        }
        assert!(Target::from_url(&format!("https://{}", "a".repeat(600))).is_err());
        for text in ["https://a.b/path", "https://*", "https://*.1.2.3.4", "**"] {
            assert!(text.parse::<Endpoint>().is_err(), "{text}");
        }
        for text in ["*", "https://a.b", "http://*.a.b:8080", "https://[::1]:1"] {
            assert_eq!(text.parse::<Endpoint>().unwrap().to_string(), text);
        }
    }

    #[test]
    fn scheme_host_and_port_all_count() {
        let list = endpoints(&["https://index.example", "http://*.files.example:8080"]);
        for yes in [
            "https://index.example:443",
            "https://INDEX.example.",
            "http://a.files.example:8080",
            "http://a.b.files.example:8080",
        ] {
            assert!(list.permit(&target(yes)).is_some(), "{yes}");
        }
        for no in [
            "http://index.example",
            "https://index.example:444",
            "https://index.example.evil",
            "https://evilindex.example",
            "http://files.example:8080",
            "http://evilfiles.example:8080",
            "http://a.files.example",
            "https://127.0.0.1",
        ] {
            assert!(list.permit(&target(no)).is_none(), "{no}");
        }
        assert!(endpoints(&[]).permit(&target("https://a.b")).is_none());
    }

    #[test]
    fn a_wish_narrows_and_never_widens() {
        let any = || vec!["*".parse().unwrap()];
        let named = || vec!["http://127.0.0.1:9".parse().unwrap()];
        let local = target("http://127.0.0.1:9");
        let address = "127.0.0.1".parse().unwrap();
        let connects = |list: &Endpoints| {
            list.permit(&local)
                .is_some_and(|permit| permit.may_connect(address))
        };
        assert!(connects(&Endpoints::new(named()).within(any())));
        assert!(!connects(&Endpoints::new(any()).within(named())));
        let other = vec!["https://a.b".parse().unwrap()];
        assert!(!connects(&Endpoints::new(named()).within(other)));
        assert!(Endpoints::new(any()).within(Vec::new()).is_empty());
        assert!(!Endpoints::new(any()).is_empty());
    }

    #[test]
    fn inner_addresses_need_their_name_and_link_local_ones_their_address() {
        let connects = |granted: &str, url: &str, address: &str| {
            let permit = endpoints(&[granted]).permit(&target(url)).unwrap();
            permit.may_connect(address.parse().unwrap())
        };
        assert!(connects("*", "https://a.b", "1.1.1.1"));
        assert!(!connects("*", "https://a.b", "10.0.0.1"));
        assert!(!connects("*", "http://169.254.169.254", "169.254.169.254"));
        assert!(!connects("https://*.b", "https://a.b", "10.0.0.1"));
        assert!(connects("https://a.b", "https://a.b", "10.0.0.1"));
        for inner in ["169.254.169.254", "fe80::1", "::ffff:169.254.1.1"] {
            assert!(!connects("https://a.b", "https://a.b", inner), "{inner}");
        }
        let metadata = "http://169.254.169.254";
        assert!(connects(metadata, metadata, "169.254.169.254"));
    }
}
