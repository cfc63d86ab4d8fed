//! URLs of remotes: one form, no login, and the host that was judged is the one connected to.

use std::sync::LazyLock;

use warren_mirror::UrlPolicy;

/// Every public host, and inner ones by name.
static ANY: LazyLock<UrlPolicy> = LazyLock::new(|| {
    let mut patterns: Vec<String> = ["https://**", "http://**", "ssh://**", "file:///**"]
        .map(str::to_owned)
        .into();
    for host in [
        "localhost",
        "127.0.0.1",
        "[::1]",
        "10.0.0.1",
        "169.254.169.254",
    ] {
        patterns.extend(["https", "http", "ssh"].map(|scheme| format!("{scheme}://{host}:*/**")));
    }
    policy(&patterns)
});

/// One place only.
static ONE: LazyLock<UrlPolicy> = LazyLock::new(|| policy(&["https://only.example/team/**"]));

fn policy<S: AsRef<str>>(patterns: &[S]) -> UrlPolicy {
    UrlPolicy::new(patterns).expect("these are patterns")
}

/// A URL in any form.
pub fn url(data: &[u8]) {
    let Ok(text) = std::str::from_utf8(data) else {
        return;
    };
    let password = password(text);
    match ANY.check(text) {
        Ok(url) => {
            let printed = url.to_string();
            assert!(password.is_none(), "{text:?} became {printed}");
            let again = ANY.check(&printed).expect("a canonical URL is a URL");
            assert_eq!(again, url, "{printed}");
            assert_eq!(again.to_string(), printed);
            check_canonical(&printed);
            // Allowed by exactly what it says it is.
            let (scheme, host, port, path) = pieces(&printed);
            let port = match scheme.as_str() {
                "file" => String::new(),
                _ => format!(":{port}"),
            };
            let exact = policy(&[format!("{scheme}://{host}{port}{path}")]);
            assert_eq!(exact.check(text).expect("its own pattern allows it"), url);
            if let Ok(url) = ONE.check(text) {
                assert!(
                    url.to_string().starts_with("https://only.example/team/"),
                    "{url}"
                );
            }
        }
        Err(error) => {
            let shown = error.to_string();
            if let Some(password) = password.filter(|password| is_telling(password)) {
                assert!(!shown.contains(password), "{shown}");
            }
            assert!(ONE.check(text).is_err(), "{text:?}: {shown}");
        }
    }
}

/// A pattern of an operator, and a URL.
pub fn url_patterns(data: &[u8]) {
    let Some((pattern, text)) = super::split(data) else {
        return;
    };
    let Ok(one) = UrlPolicy::new(&[pattern]) else {
        return;
    };
    let Ok(url) = one.check(text) else {
        return;
    };
    let (scheme, host, port, path) = pieces(&url.to_string());
    assert!(
        pattern.starts_with(&format!("{scheme}://")),
        "{pattern} for {url}"
    );
    let rest = &pattern[scheme.len() + 3..];
    if rest == "**" {
        return;
    }
    let (authority, wanted) = rest.find('/').map_or((rest, "/**"), |at| rest.split_at(at));
    // Without `**` a path has the parts that the pattern has.
    if !wanted.contains("**") {
        let parts = |text: &str| text.matches('/').count();
        assert_eq!(parts(wanted), parts(&path), "{pattern} for {url}");
    }
    // A host with letters and no star is the host itself, and so is its port.
    let plain = authority
        .chars()
        .all(|c| c.is_ascii_lowercase() || c == '.');
    let named = plain && !authority.ends_with('.') && !authority.is_empty();
    if named {
        assert_eq!(
            (host.as_str(), port),
            (authority, default_port(&scheme)),
            "{pattern}"
        );
    }
}

/// What holds of every URL that is kept, logged and handed on.
fn check_canonical(printed: &str) {
    assert!(printed.bytes().all(|b| b.is_ascii_graphic()), "{printed}");
    assert!(
        !printed.starts_with('-') && !printed.contains(['?', '#', '\\']),
        "{printed}"
    );
    let (scheme, host, _, path) = pieces(printed);
    assert!(host.is_empty() == (scheme == "file"), "{printed}");
    assert!(!host.starts_with('-') && !host.ends_with('.'), "{printed}");
    assert!(host == host.to_lowercase(), "{printed}");
    assert!(
        path.split('/').all(|part| !matches!(part, "." | "..")),
        "{printed}"
    );
    let path = path.to_ascii_lowercase();
    for code in ["%2e", "%2f", "%5c", "%25", "%00", "%0a", "%0d"] {
        assert!(!path.contains(code), "{printed}");
    }
    let decimal = host.bytes().all(|b| b.is_ascii_digit() || b == b'.');
    if decimal && !host.is_empty() {
        host.parse::<std::net::Ipv4Addr>()
            .expect("a number is an address");
    }
}

/// Scheme, host, port and path of a canonical URL, taken apart by hand: no parser that agrees with
/// the one under test by being the same.
fn pieces(printed: &str) -> (String, String, u16, String) {
    let (scheme, rest) = match printed.split_once("://") {
        Some((scheme, rest)) if !scheme.contains([':', '/']) => (scheme, rest.to_owned()),
        _ => {
            // `user@host:path`, the form of scp.
            let at = printed.find(']').unwrap_or(0);
            let colon = at + printed[at..].find(':').expect("scp form has a colon");
            (
                "ssh",
                format!("{}/{}", &printed[..colon], &printed[colon + 1..]),
            )
        }
    };
    let (authority, path) = rest.split_at(rest.find('/').expect("a path"));
    let place = match authority.split_once('@') {
        Some((user, place)) => {
            assert_eq!(scheme, "ssh", "a login in {printed}");
            assert!(!user.is_empty() && !user.contains(':'), "{printed}");
            place
        }
        None => authority,
    };
    assert!(!place.contains('@'), "{printed}");
    let (host, port) = match place.rsplit_once(':') {
        Some((host, port)) if !port.contains(']') => {
            (host, port.parse().expect("a port is a number"))
        }
        _ => (place, default_port(scheme)),
    };
    (scheme.to_owned(), host.to_owned(), port, path.to_owned())
}

fn default_port(scheme: &str) -> u16 {
    match scheme {
        "https" => 443,
        "http" => 80,
        "ssh" => 22,
        _ => 0,
    }
}

/// The password of a URL as people write them.
fn password(text: &str) -> Option<&str> {
    let (_, rest) = text.split_once("://")?;
    let authority = rest.split(['/', '?', '#', '\\']).next()?;
    let (login, _) = authority.rsplit_once('@')?;
    let (_, password) = login.split_once(':')?;
    Some(password).filter(|password| !password.is_empty())
}

/// Whether a text cannot be part of a message by chance.
fn is_telling(password: &str) -> bool {
    password.len() > 7 && password.bytes().any(|b| b.is_ascii_digit())
}
