//! Host keys of ssh servers, held against a known_hosts file in OpenSSH's format.

use std::io::Read;
use std::path::Path;

use base64::Engine;
use base64::engine::general_purpose::{STANDARD, STANDARD_NO_PAD};
use hmac::{Hmac, KeyInit, Mac};
use sha1::Sha1;
use sha2::{Digest, Sha256};

use crate::MirrorError;

/// Largest file that is read, in bytes.
const FILE_BYTES_MAX: u64 = 16 * 1024 * 1024;

/// What the file says of a host and its key.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Verdict {
    Known,
    /// The file has no key of this kind for the host.
    Unknown,
    /// It has another one, or marks this one as revoked.
    Changed,
}

/// Reads a file; a missing one knows nobody.
pub(crate) fn read(file: &Path) -> Result<String, MirrorError> {
    Ok(match std::fs::File::open(file) {
        Ok(file) => {
            let mut bytes = Vec::new();
            file.take(FILE_BYTES_MAX)
                .read_to_end(&mut bytes)
                .map_err(|error| MirrorError::io("read the known_hosts file", error))?;
            String::from_utf8_lossy(&bytes).into_owned()
        }
        Err(error) if error.kind() == std::io::ErrorKind::NotFound => String::new(),
        Err(error) => return Err(MirrorError::io("read the known_hosts file", error)),
    })
}

/// Holds the key of a server against the text of a file.
pub(crate) fn judge(text: &str, host: &str, port: u16, key: &[u8]) -> Result<(), MirrorError> {
    let name = name(host, port);
    match check(text, &name, key) {
        Verdict::Known => Ok(()),
        Verdict::Unknown => Err(MirrorError::HostKeyUnknown {
            host: name,
            fingerprint: fingerprint(key),
        }),
        Verdict::Changed => Err(MirrorError::HostKeyChanged {
            host: name,
            fingerprint: fingerprint(key),
        }),
    }
}

/// Whether a file's text has the key of a server.
pub(crate) fn is_known(text: &str, host: &str, port: u16, key: &[u8]) -> bool {
    check(text, &name(host, port), key) == Verdict::Known
}

/// How the file calls a host.
fn name(host: &str, port: u16) -> String {
    let host = host.trim_start_matches('[').trim_end_matches(']');
    if port == 22 {
        host.to_lowercase()
    } else {
        format!("[{}]:{port}", host.to_lowercase())
    }
}

/// As `ssh-keygen -l` shows it, with the kind in front.
fn fingerprint(key: &[u8]) -> String {
    let kind = kind(key).unwrap_or("unknown");
    let hash = STANDARD_NO_PAD.encode(Sha256::digest(key));
    format!("{kind} SHA256:{hash}")
}

/// The name of the kind at the front of a key's wire form.
fn kind(key: &[u8]) -> Option<&str> {
    let (length, rest) = key.split_first_chunk::<4>()?;
    let length = usize::try_from(u32::from_be_bytes(*length)).ok()?;
    std::str::from_utf8(rest.get(..length)?).ok()
}

fn check(text: &str, name: &str, key: &[u8]) -> Verdict {
    let (mut known, mut other) = (false, false);
    for line in text.lines().map(str::trim) {
        if line.is_empty() || line.starts_with('#') {
            continue;
        }
        let mut words = line.split_ascii_whitespace().peekable();
        let marker = words.next_if(|word| word.starts_with('@'));
        let (Some(hosts), Some(line_kind), Some(encoded)) =
            (words.next(), words.next(), words.next())
        else {
            continue;
        };
        if !matches_host(hosts, name) {
            continue;
        }
        let same = STANDARD.decode(encoded).is_ok_and(|bytes| bytes == key);
        match marker {
            None if same => known = true,
            // A later line may still have the right one.
            None => other |= kind(key) == Some(line_kind),
            Some("@revoked") if same => return Verdict::Changed,
            // libssh2 knows no host certificates.
            Some(_) => {}
        }
    }
    match (known, other) {
        (true, _) => Verdict::Known,
        (false, true) => Verdict::Changed,
        (false, false) => Verdict::Unknown,
    }
}

/// Whether the first field of a line names a host: a list of patterns, or one hash.
fn matches_host(hosts: &str, name: &str) -> bool {
    if let Some(hashed) = hosts.strip_prefix("|1|") {
        return matches_hash(hashed, name).unwrap_or(false);
    }
    let mut found = false;
    for pattern in hosts.split(',') {
        match pattern.strip_prefix('!') {
            Some(pattern) if matches_glob(pattern, name) => return false,
            Some(_) => {}
            None => found |= matches_glob(pattern, name),
        }
    }
    found
}

fn matches_hash(hashed: &str, name: &str) -> Option<bool> {
    let (salt, hash) = hashed.split_once('|')?;
    let salt = STANDARD.decode(salt).ok()?;
    let hash = STANDARD.decode(hash).ok()?;
    let mut mac = Hmac::<Sha1>::new_from_slice(&salt).ok()?;
    mac.update(name.as_bytes());
    Some(mac.verify_slice(&hash).is_ok())
}

/// OpenSSH's patterns: `*` and `?`, brackets are plain.
fn matches_glob(pattern: &str, name: &str) -> bool {
    let (pattern, name) = (pattern.to_lowercase().into_bytes(), name.as_bytes());
    let (mut p, mut n) = (0, 0);
    // Where to go on after the last `*`, and the text it has not yet swallowed.
    let mut retry = None;
    while n < name.len() {
        match pattern.get(p) {
            Some(b'*') => {
                retry = Some((p + 1, n));
                p += 1;
            }
            Some(&c) if c == b'?' || c == name[n] => {
                p += 1;
                n += 1;
            }
            _ => match retry {
                Some((after, from)) => {
                    retry = Some((after, from + 1));
                    p = after;
                    n = from + 1;
                }
                None => return false,
            },
        }
    }
    pattern[p..].iter().all(|&c| c == b'*')
}

#[cfg(test)]
mod tests {
    use super::*;

    fn key(kind: &str, body: &str) -> Vec<u8> {
        let mut bytes = (kind.len() as u32).to_be_bytes().to_vec();
        bytes.extend(kind.bytes());
        bytes.extend(body.bytes());
        bytes
    }

    fn line(hosts: &str, key: &[u8]) -> String {
        format!(
            "{hosts} {} {} comment\n",
            kind(key).unwrap(),
            STANDARD.encode(key)
        )
    }

    #[test]
    fn keys_are_known_unknown_or_changed() {
        let (ours, other) = (key("ssh-ed25519", "a"), key("ssh-ed25519", "b"));
        let rsa = key("ssh-rsa", "c");
        let name = name("Git.Example", 22);
        for (text, verdict) in [
            (String::new(), Verdict::Unknown),
            ("nonsense\n# git.example\n".into(), Verdict::Unknown),
            (line("git.example", &ours), Verdict::Known),
            (line("git.example,1.2.3.4", &ours), Verdict::Known),
            (line("git.example", &other), Verdict::Changed),
            (line("git.example", &rsa), Verdict::Unknown),
            (
                line("git.example", &rsa) + &line("git.example", &ours),
                Verdict::Known,
            ),
            (
                line("git.example", &other) + &line("git.example", &ours),
                Verdict::Known,
            ),
            (
                line("git.example", &ours) + &line("git.example", &other),
                Verdict::Known,
            ),
            (line("other.example", &ours), Verdict::Unknown),
            (line("*.example", &ours), Verdict::Known),
            (line("*.example,!git.example", &ours), Verdict::Unknown),
            (line("g?t.example", &ours), Verdict::Known),
            (line("[git.example]:2222", &ours), Verdict::Unknown),
            (line("@cert-authority git.example", &ours), Verdict::Unknown),
            (
                line("git.example", &ours) + &line("@revoked *", &ours),
                Verdict::Changed,
            ),
            (
                line("@revoked *", &ours) + &line("git.example", &ours),
                Verdict::Changed,
            ),
        ] {
            assert_eq!(check(&text, &name, &ours), verdict, "{text}");
        }
    }

    #[test]
    fn other_ports_and_hashed_names_match() {
        let ours = key("ssh-ed25519", "a");
        assert_eq!(name("::1", 2222), "[::1]:2222");
        assert_eq!(
            check(&line("[h]:2222", &ours), &name("h", 2222), &ours),
            Verdict::Known
        );
        assert_eq!(
            check(&line("h", &ours), &name("h", 2222), &ours),
            Verdict::Unknown
        );
        let mut mac = Hmac::<Sha1>::new_from_slice(b"salt-of-twenty-bytes").unwrap();
        mac.update(b"git.example");
        let hash = STANDARD.encode(mac.finalize().into_bytes());
        let hosts = format!("|1|{}|{hash}", STANDARD.encode(b"salt-of-twenty-bytes"));
        assert_eq!(
            check(&line(&hosts, &ours), "git.example", &ours),
            Verdict::Known
        );
        assert_eq!(
            check(&line(&hosts, &ours), "git.other", &ours),
            Verdict::Unknown
        );
    }

    #[test]
    fn fingerprints_read_like_those_of_ssh_keygen() {
        let shown = fingerprint(&key("ssh-ed25519", "a"));
        assert!(shown.starts_with("ssh-ed25519 SHA256:"), "{shown}");
        assert_eq!(shown.len(), "ssh-ed25519 SHA256:".len() + 43);
    }

    proptest::proptest! {
        #[test]
        fn a_broken_file_makes_nobody_known(text in "([|1!*@a-z= \\n]|\\PC){0,80}") {
            let ours = key("ssh-ed25519", "a");
            proptest::prop_assert_eq!(check(&text, "git.example", &ours), Verdict::Unknown);
            let longer = text + "x";
            proptest::prop_assert!(!matches_glob("git.example", &longer));
        }
    }
}
