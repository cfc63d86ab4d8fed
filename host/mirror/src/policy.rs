//! Which remotes may be used.

use std::net::{IpAddr, Ipv4Addr};

use globset::{GlobBuilder, GlobMatcher};
use url::Host;
use warren_model::is_public;

use crate::MirrorError;
use crate::names::NO_GLOB;
use crate::remote_url::{RemoteUrl, Scheme, parse_host};

/// What an operator allows when nothing is said.
pub const DEFAULT_ALLOW: [&str; 2] = ["https://**", "ssh://**"];

/// Endings of names that only resolve inside of a network.
const INNER_ENDINGS: [&str; 7] = [
    "localhost",
    "local",
    "internal",
    "intranet",
    "lan",
    "localdomain",
    "home.arpa",
];

/// The URLs that an operator allows.
///
/// A pattern is `scheme://host:port/path`: the host may be `*`, or `*.` and an ending; the port may
/// be `*`, and without one the scheme's own is meant; in the path `*` stays in one part and `**`
/// does not; `scheme://**` means any. A URL that is not on the public internet — loopback, private,
/// link-local, metadata — needs a pattern that names its host in full.
///
/// No redirect to another scheme, host or port is followed. One to another path of the same server
/// is, since that is how servers rename repositories, as long as the new path is allowed, too.
#[derive(Debug, Clone)]
pub struct UrlPolicy {
    patterns: Vec<Pattern>,
    /// Whether every URL matches: a layer that does not narrow.
    any: bool,
}

#[derive(Debug, Clone)]
pub(crate) struct Pattern {
    scheme: Scheme,
    host: HostPattern,
    /// None: any.
    port: Option<u16>,
    path: GlobMatcher,
}

#[derive(Debug, Clone, PartialEq, Eq)]
enum HostPattern {
    Any,
    /// With the dot in front.
    Ending(String),
    Exact(Option<Host>),
}

/// A URL that may be used, and how far.
#[derive(Debug, Clone)]
pub(crate) struct Permit {
    pub(crate) url: RemoteUrl,
    /// Whether the host was named in full, so that it may be anywhere.
    pub(crate) named: bool,
}

impl Default for UrlPolicy {
    fn default() -> Self {
        Self::new(&DEFAULT_ALLOW).unwrap_or_else(|_| Self {
            patterns: Vec::new(),
            any: false,
        })
    }
}

impl UrlPolicy {
    /// Parses patterns.
    ///
    /// # Errors
    /// When one is not a pattern.
    pub fn new<S: AsRef<str>>(allow: &[S]) -> Result<Self, MirrorError> {
        allow
            .iter()
            .map(|pattern| Pattern::parse(pattern.as_ref()))
            .collect::<Result<_, _>>()
            .map(|patterns| Self {
                patterns,
                any: false,
            })
    }

    /// Parses the patterns of a layer that narrows what an operator allows. In it `**` stands for
    /// all of that.
    ///
    /// # Errors
    /// When one is not a pattern.
    pub fn layer<S: AsRef<str>>(allow: &[S]) -> Result<Self, MirrorError> {
        let (any, named): (Vec<_>, Vec<_>) = allow
            .iter()
            .map(AsRef::as_ref)
            .partition(|pattern| *pattern == "**");
        Ok(Self {
            any: !any.is_empty(),
            ..Self::new(&named)?
        })
    }

    /// Whether a layer lets a URL through. Whether it is inside of a network is asked by the policy
    /// that it narrows.
    pub(crate) fn lets_through(&self, url: &RemoteUrl) -> bool {
        self.any || self.patterns.iter().any(|pattern| pattern.matches(url))
    }

    /// Parses a URL, in any form, and holds it against the patterns. Nothing is resolved.
    ///
    /// # Errors
    /// [`MirrorError::InvalidArgument`] or [`MirrorError::Denied`], neither with a secret in it.
    pub fn check(&self, url: &str) -> Result<RemoteUrl, MirrorError> {
        self.permit(url).map(|permit| permit.url)
    }

    pub(crate) fn permit(&self, url: &str) -> Result<Permit, MirrorError> {
        let url = RemoteUrl::parse(url)?;
        let mut matching = self.patterns.iter().filter(|pattern| pattern.matches(&url));
        if matching.clone().any(Pattern::names_host) {
            return Ok(Permit { url, named: true });
        }
        let denied = |why: &str| {
            let shown = url.to_string();
            Err(MirrorError::Denied(format!("`{shown}` {why}")))
        };
        if matching.next().is_none() {
            return denied("is not on the list of allowed remotes");
        }
        if is_inner(&url) {
            return denied("is not on the public internet, and its host is not listed by name");
        }
        Ok(Permit { url, named: false })
    }
}

impl Permit {
    /// Whether an address that the host resolved to may be connected to.
    pub(crate) fn may_connect(&self, address: IpAddr) -> bool {
        self.named || is_public(address)
    }
}

/// Whether a host is known to be inside without asking anybody.
fn is_inner(url: &RemoteUrl) -> bool {
    match &url.host {
        None => true,
        Some(Host::Ipv4(address)) => !is_public(IpAddr::V4(*address)),
        Some(Host::Ipv6(address)) => !is_public(IpAddr::V6(*address)),
        Some(Host::Domain(name)) => {
            !name.contains('.')
                || INNER_ENDINGS
                    .iter()
                    .any(|ending| name.ends_with(&format!(".{ending}")))
        }
    }
}

impl Pattern {
    pub(crate) fn parse(text: &str) -> Result<Self, MirrorError> {
        let bad = |why: &str| MirrorError::invalid("url pattern", format!("`{text}` {why}"));
        let (scheme, rest) = text
            .split_once("://")
            .ok_or_else(|| bad("has no scheme, as `https://**` has"))?;
        let scheme = Scheme::parse(scheme)
            .ok_or_else(|| bad("has a scheme other than https, http, ssh and file"))?;
        if rest == "**" {
            if scheme == Scheme::File {
                return Err(bad("would give every file; name a directory"));
            }
            return Ok(Self {
                scheme,
                host: HostPattern::Any,
                port: None,
                path: path_glob("/**").map_err(|_| bad("is not a pattern"))?,
            });
        }
        let (authority, path) = rest.find('/').map_or((rest, "/**"), |at| rest.split_at(at));
        if path.contains(NO_GLOB) {
            return Err(bad("has a path with a special character other than `*`"));
        }
        if authority.contains('@') {
            return Err(bad("holds a user name"));
        }
        let path = path_glob(path).map_err(|_| bad("has a path that is not a pattern"))?;
        if scheme == Scheme::File {
            if !authority.is_empty() {
                return Err(bad("names a host"));
            }
            return Ok(Self {
                scheme,
                host: HostPattern::Exact(None),
                port: None,
                path,
            });
        }
        let (host, port) = split_port(authority);
        let port = match port {
            None => Some(scheme.default_port()),
            Some("*") => None,
            Some(digits) => Some(digits.parse().map_err(|_| bad("has a bad port"))?),
        };
        let host = parse_host_pattern(host).map_err(|_| bad("has a bad host"))?;
        Ok(Self {
            scheme,
            host,
            port,
            path,
        })
    }

    pub(crate) fn matches(&self, url: &RemoteUrl) -> bool {
        self.scheme == url.scheme
            && self.port.is_none_or(|port| port == url.port)
            && self.path.is_match(url.absolute_path())
            && match (&self.host, &url.host) {
                (HostPattern::Any, _) => true,
                (HostPattern::Ending(ending), Some(Host::Domain(name))) => name.ends_with(ending),
                (HostPattern::Ending(_), _) => false,
                (HostPattern::Exact(wanted), host) => same_host(wanted.as_ref(), host.as_ref()),
            }
    }

    fn names_host(&self) -> bool {
        matches!(self.host, HostPattern::Exact(_))
    }
}

/// Whether two hosts are the same, an IPv4 address wrapped in IPv6 included.
fn same_host(wanted: Option<&Host>, host: Option<&Host>) -> bool {
    let plain = |host: &Host| match host {
        Host::Ipv6(address) => address
            .to_ipv4_mapped()
            .map_or(Host::Ipv6(*address), |address: Ipv4Addr| {
                Host::Ipv4(address)
            }),
        host => host.clone(),
    };
    wanted.map(plain) == host.map(plain)
}

fn path_glob(path: &str) -> Result<GlobMatcher, globset::Error> {
    GlobBuilder::new(path)
        .literal_separator(true)
        .backslash_escape(false)
        .build()
        .map(|glob| glob.compile_matcher())
}

fn split_port(authority: &str) -> (&str, Option<&str>) {
    match authority.rsplit_once(':') {
        Some((host, port)) if !port.contains(']') => (host, Some(port)),
        _ => (authority, None),
    }
}

fn parse_host_pattern(text: &str) -> Result<HostPattern, MirrorError> {
    if matches!(text, "*" | "**") {
        return Ok(HostPattern::Any);
    }
    if let Some(ending) = text.strip_prefix("*.") {
        return match parse_host(ending)? {
            Host::Domain(name) => Ok(HostPattern::Ending(format!(".{name}"))),
            _ => Err(MirrorError::invalid("host", "an address has no ending")),
        };
    }
    parse_host(text).map(|host| HostPattern::Exact(Some(host)))
}

#[cfg(test)]
mod tests {
    use super::*;

    /// `+`: allowed because its host is named; `~`: allowed, on the public internet; `-`: denied.
    fn judge(policy: &UrlPolicy, url: &str) -> char {
        match policy.permit(url) {
            Ok(permit) if permit.named => '+',
            Ok(_) => '~',
            Err(_) => '-',
        }
    }

    #[test]
    fn the_default_allows_the_public_internet_over_https_and_ssh() {
        let policy = UrlPolicy::default();
        for (url, verdict) in [
            ("https://git.example/a.git", '~'),
            ("https://git.example:8443/a.git", '~'),
            ("git@git.example:a.git", '~'),
            ("ssh://git@git.example:2222/a.git", '~'),
            ("https://1.1.1.1/a", '~'),
            ("http://git.example/a.git", '-'),
            ("git://git.example/a.git", '-'),
            ("file:///srv/a.git", '-'),
            ("/srv/a.git", '-'),
            ("up.git", '-'),
            ("ext::sh", '-'),
            ("https://localhost/a", '-'),
            ("https://LOCALHOST./a", '-'),
            ("https://git.localhost/a", '-'),
            ("https://metadata.google.internal/a", '-'),
            ("https://printer.local/a", '-'),
            ("https://intranet/a", '-'),
            ("https://127.0.0.1/a", '-'),
            ("https://2130706433/a", '-'),
            ("https://0x7f000001/a", '-'),
            ("https://0177.0.0.1/a", '-'),
            ("https://127.1/a", '-'),
            ("https://169.254.169.254/a", '-'),
            ("https://10.0.0.1/a", '-'),
            ("https://[::1]/a", '-'),
            ("https://[::ffff:127.0.0.1]/a", '-'),
            ("https://[fd00::1]/a", '-'),
            ("git@169.254.169.254:x", '-'),
            ("git@0xa9fea9fe:x", '-'),
            ("git@[::1]:x", '-'),
            ("https://good.example@127.0.0.1/a", '-'),
        ] {
            assert_eq!(judge(&policy, url), verdict, "{url}");
        }
    }

    #[test]
    fn listed_hosts_ports_and_paths_are_allowed_and_no_others() {
        let policy = UrlPolicy::new(&[
            "http://127.0.0.1:*/**",
            "https://git.example/team/**",
            "https://*.trusted.example/**",
            "https://at.example/a@b/**",
            "ssh://inner.lan:2222/**",
            "file:///srv/**",
            "https://[fd00::7]/x/*",
        ])
        .unwrap();
        for (url, verdict) in [
            ("http://127.0.0.1:4711/up.git", '+'),
            ("http://127.0.0.1/up.git", '+'),
            ("http://2130706433:1/up.git", '+'),
            ("http://[::ffff:7f00:1]:1/up.git", '+'),
            ("http://localhost:4711/up.git", '-'),
            ("http://127.0.0.2/up.git", '-'),
            ("https://127.0.0.1/up.git", '-'),
            ("https://git.example/team/a", '+'),
            ("https://git.example/team/../other/a", '-'),
            ("https://git.example/teams/a", '-'),
            ("https://git.example:444/team/a", '-'),
            ("https://at.example/a@b/c", '+'),
            ("https://a.trusted.example/x", '~'),
            ("https://trusted.example/x", '-'),
            ("https://eviltrusted.example/x", '-'),
            ("https://trusted.example.evil.example/x", '-'),
            ("ssh://git@inner.lan:2222/a", '+'),
            ("ssh://git@inner.lan/a", '-'),
            ("file:///srv/a/b.git", '+'),
            ("file:///etc/x", '-'),
            ("file:///srv/../etc", '-'),
            ("https://[fd00::7]/x/a", '+'),
            ("https://[fd00::7]/x/a/b", '-'),
        ] {
            assert_eq!(judge(&policy, url), verdict, "{url}");
        }
    }

    #[test]
    fn a_public_name_may_not_lead_inside() {
        let policy = UrlPolicy::default();
        let permit = policy.permit("https://rebind.example/a").unwrap();
        assert!(!permit.may_connect("127.0.0.1".parse().unwrap()));
        assert!(!permit.may_connect("::ffff:169.254.169.254".parse().unwrap()));
        assert!(permit.may_connect("1.1.1.1".parse().unwrap()));
        let named = UrlPolicy::new(&["https://git.corp/**"]).unwrap();
        let permit = named.permit("https://git.corp/a").unwrap();
        assert!(permit.may_connect("10.0.0.1".parse().unwrap()));
    }

    #[test]
    fn bad_patterns_are_refused() {
        for bad in [
            "",
            "**",
            "ftp://**",
            "file://**",
            "file://h/x",
            "https://u@h/**",
            "https://h:x/**",
            "https://a*b/**",
            "https://h/[",
            "https://h/a[!x]b/**",
            "https://h/{a,b}",
            "https://h/?",
        ] {
            assert!(UrlPolicy::new(&[bad]).is_err(), "{bad}");
        }
    }
}
