//! Names that callers give: branches, refs, commits. Each is checked before it goes anywhere.

use globset::{GlobBuilder, GlobMatcher};

use crate::MirrorError;

/// Longest name in bytes that any server and file system takes.
const NAME_BYTES_MAX: usize = 200;

/// What a glob would also take for special. A class reaches over `/`, and none of them is needed.
pub(crate) const NO_GLOB: [char; 5] = ['?', '[', ']', '{', '}'];

fn refuse<T>(what: &'static str, text: &str, why: &str) -> Result<T, MirrorError> {
    let shown = warren_disk::text::excerpt(text.as_bytes(), 100);
    Err(MirrorError::invalid(what, format!("`{shown}` {why}")))
}

fn check(what: &'static str, text: &str, full: &str) -> Result<(), MirrorError> {
    if text.is_empty() {
        return refuse(what, text, "is empty");
    }
    if full.strip_prefix("refs/heads/").unwrap_or(full).len() > NAME_BYTES_MAX {
        return refuse(what, text, "is longer than 200 bytes");
    }
    if text.starts_with('-') {
        return refuse(what, text, "starts with `-`");
    }
    // Git takes any white space but the ASCII one: it would make two names look like one.
    let plain = !text.chars().any(|c| c.is_control() || c.is_whitespace())
        && warren_disk::text::escape(text.as_bytes()) == text.replace('%', "%25");
    if !plain || !git2::Reference::is_valid_name(full) {
        return refuse(what, text, "is not a valid name");
    }
    Ok(())
}

/// Checks the short name of a branch, `feature/x` say.
pub(crate) fn branch(text: &str) -> Result<(), MirrorError> {
    check("branch", text, &format!("refs/heads/{text}"))?;
    if text == "HEAD" {
        return refuse("branch", text, "would be taken for HEAD");
    }
    if text.starts_with("refs/") {
        return refuse("branch", text, "is a full ref name; give the short one");
    }
    Ok(())
}

/// Checks the full name of a ref, `refs/heads/x` say.
pub(crate) fn full_ref(text: &str) -> Result<(), MirrorError> {
    check("ref", text, text)?;
    let Some(rest) = text.strip_prefix("refs/") else {
        return refuse("ref", text, "does not start with `refs/`");
    };
    // As for a branch, only the front of the short name could be taken for an option.
    match rest.split_once('/') {
        Some((kind, short)) if !kind.starts_with('-') && !short.starts_with('-') => Ok(()),
        _ => refuse("ref", text, "is not the full name of a ref"),
    }
}

/// The full name of what a handler calls a ref: a full name, or the short name of a branch.
pub(crate) fn expand_ref(text: &str) -> Result<String, MirrorError> {
    if text.starts_with("refs/") {
        full_ref(text)?;
        Ok(text.to_owned())
    } else {
        branch(text)?;
        Ok(format!("refs/heads/{text}"))
    }
}

/// Parses a full commit id: 40 lowercase hex digits.
pub(crate) fn commit(text: &str) -> Result<git2::Oid, MirrorError> {
    if !is_commit(text) {
        return refuse("commit", text, "is not a full commit id in lowercase hex");
    }
    match git2::Oid::from_str(text) {
        Ok(id) if !id.is_zero() => Ok(id),
        _ => refuse("commit", text, "is no commit"),
    }
}

/// Whether a text looks like a full commit id.
pub(crate) fn is_commit(text: &str) -> bool {
    text.len() == 40
        && text
            .bytes()
            .all(|byte| byte.is_ascii_digit() || (b'a'..=b'f').contains(&byte))
}

/// Refs that may be pushed or deleted: patterns of full names, in which `*` stays in one part and
/// `**` does not.
#[derive(Debug, Clone, Default)]
pub struct RefPatterns(Vec<GlobMatcher>);

impl RefPatterns {
    /// Parses patterns, `refs/heads/vance/suspend/**` say.
    ///
    /// # Errors
    /// When one is not a pattern of refs.
    pub fn new<S: AsRef<str>>(patterns: &[S]) -> Result<Self, MirrorError> {
        patterns
            .iter()
            .map(|pattern| parse_pattern(pattern.as_ref()))
            .collect::<Result<_, _>>()
            .map(Self)
    }

    /// Whether a ref, by its full name, may be written. A name that git refuses never may.
    pub fn allows(&self, ref_name: &str) -> bool {
        warren_repo::is_valid_ref_name(ref_name.as_bytes())
            && self.0.iter().any(|pattern| pattern.is_match(ref_name))
    }
}

fn parse_pattern(pattern: &str) -> Result<GlobMatcher, MirrorError> {
    if !pattern.starts_with("refs/") {
        return refuse("ref pattern", pattern, "does not start with `refs/`");
    }
    if pattern.contains(NO_GLOB) {
        return refuse(
            "ref pattern",
            pattern,
            "holds a special character other than `*`",
        );
    }
    let glob = GlobBuilder::new(pattern)
        .literal_separator(true)
        .backslash_escape(false)
        .build()
        .map_err(|error| MirrorError::invalid("ref pattern", error.to_string()))?;
    Ok(glob.compile_matcher())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn branches_that_reach_further_are_refused() {
        for bad in [
            "",
            "-x",
            "--upload-pack=touch x",
            "HEAD",
            "refs/heads/main",
            "refs/x",
            "a b",
            "a..b",
            "a~1",
            "a^",
            "a:b",
            "+a",
            "a*",
            "a\nb",
            "a\u{1b}[2J",
            "a\u{202e}b",
            "\u{2000}@",
            "main\u{a0}",
            "/a",
            "a/",
            "a//b",
            ".a",
            "a/.b",
            "a.lock",
            "a@{1}",
            "a\\b",
        ] {
            if bad == "+a" {
                // Valid in git; a leading `+` only matters in a refspec, where it comes behind `refs/heads/`.
                assert!(branch(bad).is_ok());
                continue;
            }
            assert!(branch(bad).is_err(), "{bad:?}");
        }
        assert!(branch(&"a".repeat(201)).is_err());
        let long = expand_ref(&"a".repeat(200)).unwrap();
        assert_eq!(expand_ref(&long).unwrap(), long);
        for good in ["main", "feature/x-1", "größe", "v1.0", "50%"] {
            assert!(branch(good).is_ok(), "{good:?}");
        }
    }

    #[test]
    fn refs_are_full_and_plain() {
        for bad in [
            "HEAD",
            "main",
            "refs/heads",
            "refs/",
            "refs/heads/-x",
            "-refs/heads/x",
            "refs/heads/a:refs/heads/b",
            "refs/heads/*",
            "refs/heads/../x",
        ] {
            assert!(full_ref(bad).is_err(), "{bad:?}");
        }
        assert!(full_ref("refs/heads/vance/suspend/x").is_ok());
        assert_eq!(expand_ref("vance/x").unwrap(), "refs/heads/vance/x");
        assert_eq!(expand_ref("refs/tags/x").unwrap(), "refs/tags/x");
        assert!(expand_ref("refs/heads/-x").is_err());
        // What a short name is expanded to can be given again.
        assert_eq!(expand_ref("a/-b").unwrap(), "refs/heads/a/-b");
        assert_eq!(expand_ref("refs/heads/a/-b").unwrap(), "refs/heads/a/-b");
    }

    #[test]
    fn commits_are_full_ids() {
        assert!(commit(&"a1".repeat(20)).is_ok());
        for bad in [
            "HEAD",
            "a1",
            &"A1".repeat(20),
            &"0".repeat(40),
            &"a".repeat(64),
            "",
        ] {
            assert!(commit(bad).is_err(), "{bad:?}");
        }
    }

    #[test]
    fn patterns_say_which_refs_may_be_written() {
        let refs =
            RefPatterns::new(&["refs/heads/vance/suspend/**", "refs/heads/agent-*"]).unwrap();
        assert!(refs.allows("refs/heads/vance/suspend/a/b"));
        assert!(refs.allows("refs/heads/agent-7"));
        assert!(!refs.allows("refs/heads/agent-7/x"));
        assert!(!refs.allows("refs/heads/main"));
        for bad in [
            "refs/heads/vance/suspend/a b",
            "refs/heads/vance/suspend/a..b",
            "refs/heads/agent-",
        ] {
            assert_eq!(refs.allows(bad), bad.ends_with('-'), "{bad}");
        }
        assert!(!RefPatterns::default().allows("refs/heads/main"));
        for bad in [
            "**",
            "refs/heads/a[!x]b",
            "refs/heads/{a,b/c}",
            "refs/heads/?",
        ] {
            assert!(RefPatterns::new(&[bad]).is_err(), "{bad}");
        }
    }
}
