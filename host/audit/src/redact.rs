//! No secret reaches the log, whoever forgot to take it out.

use std::borrow::Cow;

/// What stands for what was taken out.
const MARK: &str = "***";

/// The text with what may hold a secret taken out of every URL in it: user and password, query and
/// fragment.
///
/// ```
/// let text = "GET https://me:token@git.example/r.git?key=s3cret failed";
/// assert_eq!(warren_audit::redact(text), "GET https://***@git.example/r.git?*** failed");
/// ```
pub fn redact(text: &str) -> Cow<'_, str> {
    if !text.contains("://") {
        return Cow::Borrowed(text);
    }
    let mut out = String::with_capacity(text.len());
    let mut rest = text;
    while let Some(at) = rest.find("://") {
        let (head, tail) = rest.split_at(at + 3);
        out.push_str(head);
        let end = tail.find(ends_url).unwrap_or(tail.len());
        let (url, after) = tail.split_at(end);
        push_redacted(&mut out, url, head.ends_with("ssh://"));
        rest = after;
    }
    out.push_str(rest);
    Cow::Owned(out)
}

/// The same for a text that is one address from its start to its end, whatever is in it. Of one that
/// is no URL, `user:secret@host:path`, the user goes.
///
/// ```
/// assert_eq!(warren_audit::redact_url("https://git.example/a b\"?key=s3cret"), "https://git.example/a b\"?***");
/// ```
pub fn redact_url(url: &str) -> String {
    let mut out = String::with_capacity(url.len());
    match (url.split_once("://"), url.rfind('@')) {
        (Some((scheme, rest)), _) => {
            out.push_str(scheme);
            out.push_str("://");
            push_redacted(&mut out, rest, scheme == "ssh");
        }
        (None, Some(at)) => {
            out.push_str(MARK);
            out.push_str(&url[at..]);
        }
        (None, None) => out.push_str(url),
    }
    out
}

fn ends_url(c: char) -> bool {
    c.is_whitespace() || c.is_control() || matches!(c, '`' | '"' | '\'' | '<' | '>')
}

fn push_redacted(out: &mut String, url: &str, is_ssh: bool) {
    let authority_end = url.find(['/', '?', '#']).unwrap_or(url.len());
    let (authority, rest) = url.split_at(authority_end);
    match authority.rfind('@') {
        // There a name alone is nothing secret, and says which server is meant.
        Some(at) if is_ssh && !authority[..at].contains([':', '@']) => out.push_str(authority),
        Some(at) => {
            out.push_str(MARK);
            out.push_str(&authority[at..]);
        }
        // A password with a slash, say: what looks like its host may be half of it.
        None if !is_host(authority) => return out.push_str(MARK),
        None => out.push_str(authority),
    }
    let path_end = rest.find(['?', '#']).unwrap_or(rest.len());
    // A path may hold another URL.
    out.push_str(&redact(&rest[..path_end]));
    if let Some(sign) = rest[path_end..].chars().next() {
        out.push(sign);
        out.push_str(MARK);
    }
}

/// A host with a number for a port, if any; `*` is one in a pattern.
fn is_host(authority: &str) -> bool {
    let after_bracket = authority.rfind(']').map_or(0, |at| at + 1);
    let port = authority[after_bracket..]
        .split_once(':')
        .map(|(_, port)| port);
    port.is_none_or(|port| {
        port == "*" || !port.is_empty() && port.bytes().all(|b| b.is_ascii_digit())
    })
}

#[cfg(test)]
mod tests {
    use super::redact;

    #[test]
    fn takes_out_what_may_be_secret_and_keeps_the_rest() {
        for (text, want) in [
            ("plain", "plain"),
            ("https://git.example/a/b.git", "https://git.example/a/b.git"),
            ("ssh://git@git.example/a", "ssh://git@git.example/a"),
            ("ssh://git:p@git.example/a", "ssh://***@git.example/a"),
            ("https://token@git.example/a", "https://***@git.example/a"),
            ("https://u:p@h/r", "https://***@h/r"),
            ("https://u:p/w@h/r", "https://***"),
            ("https://u:p?x@h/r", "https://***"),
            ("https://u:p@w@h/r?x=1#y", "https://***@h/r?***"),
            // What is not its host must not pass for it.
            ("https://evil/@good/r?@good", "https://evil/@good/r?***"),
            ("http://[::1]:80/r", "http://[::1]:80/r"),
            ("http://127.0.0.1:*/**", "http://127.0.0.1:*/**"),
            (
                "x https://a:b@h y https://c:d@i z",
                "x https://***@h y https://***@i z",
            ),
            ("`https://a:b@h`: no", "`https://***@h`: no"),
            ("https://h/#tok", "https://h/#***"),
            ("a://b://c:d@e", "a://***"),
            ("https://h/https://u:p@i/x", "https://h/https://***@i/x"),
        ] {
            assert_eq!(redact(text), want);
        }
    }
}
