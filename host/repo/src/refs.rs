//! Names and values of refs that we write: checked, and packed into one file.

use std::collections::BTreeMap;

use git2::Oid;
use warren_disk::text::escape;

use crate::RepoError;

/// Longest component: `<name>.lock` must still be a file name.
const COMPONENT_BYTES_MAX: usize = 250;
/// Longest name: paths below `.git/logs` stay far from the kernel's limit.
const NAME_BYTES_MAX: usize = 1024;

/// Whether git takes this as the full name of a ref (`git check-ref-format`), with a length that a
/// file system takes too.
pub fn is_valid_ref_name(name: &[u8]) -> bool {
    let parts = name.split(|b| *b == b'/');
    name.len() <= NAME_BYTES_MAX
        && name.starts_with(b"refs/")
        && parts.clone().count() > 2
        && parts.into_iter().all(is_valid_component)
        && !name.ends_with(b".")
        && !contains(name, b"..")
        && !contains(name, b"@{")
}

fn is_valid_component(part: &[u8]) -> bool {
    let bad = |b: &u8| *b <= b' ' || *b == 0x7f || b"~^:?*[\\".contains(b);
    !part.is_empty()
        && part.len() <= COMPONENT_BYTES_MAX
        && !part.starts_with(b".")
        && !part.ends_with(b".lock")
        && !part.iter().any(bad)
}

fn contains(text: &[u8], part: &[u8]) -> bool {
    text.windows(part.len()).any(|window| window == part)
}

/// Refuses anything but a full ref name below `prefix`.
pub(crate) fn check(name: &[u8], prefix: &str) -> Result<(), RepoError> {
    if name.len() > prefix.len() && name.starts_with(prefix.as_bytes()) && is_valid_ref_name(name) {
        Ok(())
    } else {
        Err(invalid("ref name", name))
    }
}

/// The full name of a local branch; what git would refuse as one is refused.
pub(crate) fn branch(short: &str) -> Result<String, RepoError> {
    let full = format!("refs/heads/{short}");
    if short == "HEAD" || short.starts_with('-') || !is_valid_ref_name(full.as_bytes()) {
        return Err(invalid("branch", short.as_bytes()));
    }
    Ok(full)
}

/// Refuses anything that is not the plain name of a remote.
pub(crate) fn check_remote(name: &str) -> Result<(), RepoError> {
    let full = format!("refs/remotes/{name}");
    if name.starts_with('-') || !is_valid_ref_name(full.as_bytes()) {
        return Err(invalid("remote", name.as_bytes()));
    }
    Ok(())
}

pub(crate) fn invalid(what: &'static str, value: &[u8]) -> RepoError {
    RepoError::InvalidArgument {
        what,
        value: escape(value),
    }
}

/// Refs of one repository, written in one go.
#[derive(Debug, Default)]
pub(crate) struct RefSet(BTreeMap<Vec<u8>, Oid>);

impl RefSet {
    /// Sets a ref whose name the caller has checked.
    pub(crate) fn set(&mut self, name: impl Into<Vec<u8>>, id: Oid) {
        self.0.insert(name.into(), id);
    }

    pub(crate) fn get(&self, name: &[u8]) -> Option<Oid> {
        self.0.get(name).copied()
    }

    pub(crate) fn iter(&self) -> impl Iterator<Item = (&[u8], Oid)> {
        self.0.iter().map(|(name, id)| (name.as_slice(), *id))
    }

    /// Whether `name` can not stand beside what is there: `a` and `a/b` exclude each other.
    pub(crate) fn clashes(&self, name: &[u8]) -> bool {
        let mut below = name.to_vec();
        below.push(b'/');
        let has_child = self.0.range(below.clone()..).next();
        has_child.is_some_and(|(other, _)| other.starts_with(&below))
            || parents(name).any(|parent| self.0.contains_key(parent))
    }

    /// The text of `packed-refs`.
    pub(crate) fn packed(&self) -> Result<Vec<u8>, RepoError> {
        let mut text = b"# pack-refs with: sorted \n".to_vec();
        for (name, id) in self.iter() {
            if parents(name).any(|parent| self.0.contains_key(parent)) {
                return Err(invalid("ref name (it lies below another ref)", name));
            }
            text.extend_from_slice(id.to_string().as_bytes());
            text.push(b' ');
            text.extend_from_slice(name);
            text.push(b'\n');
        }
        Ok(text)
    }
}

fn parents(name: &[u8]) -> impl Iterator<Item = &[u8]> {
    let slashes = name.iter().enumerate().filter(|(_, b)| **b == b'/');
    slashes.map(|(at, _)| &name[..at])
}

/// The config that a new `.git` gets; nothing else is in it.
#[derive(Debug, Default)]
pub(crate) struct Config {
    pub(crate) origin_url: Option<String>,
    /// Short name of the branch, remote, full name of the ref there.
    pub(crate) upstreams: Vec<(Vec<u8>, String, Vec<u8>)>,
}

impl Config {
    pub(crate) fn text(&self) -> Result<Vec<u8>, RepoError> {
        let mut text = b"[core]\n\trepositoryformatversion = 0\n\tfilemode = true\n\tbare = false\n\tlogallrefupdates = true\n".to_vec();
        if let Some(url) = &self.origin_url {
            if url.is_empty() || url.starts_with('-') || url.chars().any(char::is_control) {
                return Err(invalid("URL", url.as_bytes()));
            }
            text.extend_from_slice(b"[remote \"origin\"]\n\turl = \"");
            text.extend(quoted(url.as_bytes()));
            text.extend_from_slice(b"\"\n\tfetch = +refs/heads/*:refs/remotes/origin/*\n");
        }
        for (branch, remote, merge) in &self.upstreams {
            if remote != "." {
                check_remote(remote)?;
            }
            check(merge, "refs/")?;
            let parts: [&[u8]; 7] = [
                b"[branch \"",
                &quoted(branch),
                b"\"]\n\tremote = \"",
                &quoted(remote.as_bytes()),
                b"\"\n\tmerge = \"",
                &quoted(merge),
                b"\"\n",
            ];
            text.extend(parts.concat());
        }
        Ok(text)
    }
}

/// The inside of a quoted string or subsection of a git config file.
fn quoted(text: &[u8]) -> Vec<u8> {
    let mut out = Vec::with_capacity(text.len());
    for byte in text {
        if matches!(byte, b'"' | b'\\') {
            out.push(b'\\');
        }
        out.push(*byte);
    }
    out
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_are_those_git_takes() {
        for good in [
            "refs/heads/main",
            "refs/heads/feature/x/y",
            "refs/heads/ünï",
            "refs/tags/v1.0-rc.1",
            "refs/heads/@",
        ] {
            assert!(is_valid_ref_name(good.as_bytes()), "{good}");
        }
        for bad in [
            "HEAD",
            "refs/heads",
            "refs/heads/",
            "refs//x/y",
            "refs/heads/.x",
            "refs/heads/../x",
            "refs/heads/a..b",
            "refs/heads/x.lock",
            "refs/heads/x.lock/y",
            "refs/heads/x.",
            "refs/heads/a b",
            "refs/heads/a\nb",
            "refs/heads/a\x7f",
            "refs/heads/a~1",
            "refs/heads/a^",
            "refs/heads/a:b",
            "refs/heads/a@{1}",
            "refs/heads/a\\b",
            "refs/heads/*",
            "/refs/heads/x",
        ] {
            assert!(!is_valid_ref_name(bad.as_bytes()), "{bad}");
        }
        let long = |n| format!("refs/heads/{}", "a".repeat(n));
        assert!(is_valid_ref_name(long(250).as_bytes()));
        assert!(!is_valid_ref_name(long(251).as_bytes()));
    }

    #[test]
    fn branches_and_remotes_are_plain() {
        assert_eq!(branch("x/y").unwrap(), "refs/heads/x/y");
        for bad in ["HEAD", "-x", "", "a b", "x.lock"] {
            assert!(branch(bad).is_err(), "{bad}");
        }
        for bad in ["", "-x", "ext::sh -c id", "file:///x", "../up"] {
            assert!(check_remote(bad).is_err(), "{bad}");
        }
        assert!(check("refs/tags/x".as_bytes(), "refs/heads/").is_err());
    }

    #[test]
    fn packed_refs_are_sorted_and_have_no_clash() {
        let id = Oid::from_bytes(&[7; 20]).unwrap();
        let mut refs = RefSet::default();
        refs.set("refs/heads/b", id);
        refs.set("refs/heads/a/x", id);
        let text = String::from_utf8(refs.packed().unwrap()).unwrap();
        let line = "07".repeat(20);
        assert_eq!(
            text,
            format!("# pack-refs with: sorted \n{line} refs/heads/a/x\n{line} refs/heads/b\n")
        );
        assert!(refs.clashes(b"refs/heads/a"));
        assert!(refs.clashes(b"refs/heads/b/c"));
        assert!(!refs.clashes(b"refs/heads/c"));
        refs.set("refs/heads/a", id);
        assert!(refs.packed().is_err());
    }

    #[test]
    fn config_values_can_not_break_out() {
        let mut config = Config {
            origin_url: Some("https://h/a\"b\\c#d;e".into()),
            upstreams: vec![(b"x\"y".to_vec(), "origin".into(), b"refs/heads/m".to_vec())],
        };
        let text = String::from_utf8(config.text().unwrap()).unwrap();
        assert!(
            text.contains("url = \"https://h/a\\\"b\\\\c#d;e\"\n"),
            "{text}"
        );
        assert!(text.contains("[branch \"x\\\"y\"]\n"), "{text}");
        for bad in ["https://h/a\n[core]", "-upload-pack", ""] {
            config.origin_url = Some(bad.into());
            assert!(config.text().is_err(), "{bad:?}");
        }
        config.origin_url = None;
        config.upstreams[0].1 = "ext::sh".into();
        assert!(config.text().is_err());
    }
}
