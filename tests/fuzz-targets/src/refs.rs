//! Names of refs and patterns of them.

use warren_mirror::{RefPatterns, fuzzing};
use warren_repo::is_valid_ref_name;

/// A branch or ref as a handler gives it, a commit, and a name from a hostile `.git`.
pub fn git_ref(data: &[u8]) {
    if is_valid_ref_name(data) {
        assert!(!data.contains(&0) && data.starts_with(b"refs/"));
        if let Ok(name) = std::str::from_utf8(data) {
            assert!(git2::Reference::is_valid_name(name), "git refuses {name:?}");
        }
    }
    let Ok(text) = std::str::from_utf8(data) else {
        return;
    };
    if let Ok(full) = fuzzing::expand_ref(text) {
        assert!(
            git2::Reference::is_valid_name(&full),
            "git refuses {full:?}"
        );
        assert!(
            is_valid_ref_name(full.as_bytes()),
            "we refuse {full:?} elsewhere"
        );
        assert!(
            full.starts_with("refs/") && full.ends_with(text),
            "{text:?}: {full:?}"
        );
        let short = full.splitn(3, '/').nth(2).expect("it has three parts");
        assert!(!short.starts_with('-'), "{full:?}");
        // Nothing that a refspec, a terminal or a log would take for something else.
        let odd = |c: char| c.is_control() || c.is_whitespace() || ":*?[\\^~".contains(c);
        assert!(!full.contains(odd), "{full:?}");
        assert_eq!(
            fuzzing::expand_ref(&full).expect("a full name is a name"),
            full
        );
    }
    if let Ok(id) = fuzzing::commit(text) {
        assert_eq!(id, text);
        assert!(id.len() == 40 && id.bytes().any(|b| b != b'0'), "{id}");
    }
}

/// A pattern of the policy and a ref.
pub fn ref_patterns(data: &[u8]) {
    let Some((pattern, name)) = super::split(data) else {
        return;
    };
    let Ok(patterns) = RefPatterns::new(&[pattern]) else {
        return;
    };
    let allowed = patterns.allows(name);
    if allowed {
        assert!(git2::Reference::is_valid_name(name), "git refuses {name:?}");
    }
    if git2::Reference::is_valid_name(name) && is_valid_ref_name(name.as_bytes()) {
        assert_eq!(allowed, says(pattern, name), "{pattern:?} and {name:?}");
    }
    assert!(!RefPatterns::default().allows(name));
}

/// What the documentation says of a pattern: `**` alone in a part stands for any parts (at the end
/// for at least one), `*` for anything in one, everything else for itself.
fn says(pattern: &str, name: &str) -> bool {
    let pattern: Vec<&str> = pattern.split('/').collect();
    let name: Vec<&str> = name.split('/').collect();
    parts(&pattern, &name)
}

fn parts(pattern: &[&str], name: &[&str]) -> bool {
    match (pattern.split_first(), name.split_first()) {
        (None, None) => true,
        (Some((&"**", [])), _) => !name.is_empty(),
        (Some((&"**", rest)), _) => (0..=name.len()).any(|skip| parts(rest, &name[skip..])),
        (Some((first, pattern)), Some((part, name))) => {
            part_matches(first.as_bytes(), part.as_bytes()) && parts(pattern, name)
        }
        _ => false,
    }
}

fn part_matches(pattern: &[u8], part: &[u8]) -> bool {
    // Which beginnings of the part the pattern so far stands for.
    let mut ends = vec![false; part.len() + 1];
    ends[0] = true;
    for c in pattern {
        let first = ends.iter().position(|end| *end).unwrap_or(ends.len());
        ends = (0..ends.len())
            .map(|at| match c {
                b'*' => at >= first,
                c => at > 0 && ends[at - 1] && part[at - 1] == *c,
            })
            .collect();
    }
    ends[part.len()]
}
