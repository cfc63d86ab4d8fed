//! Which names of a tree may be written to disk.

/// Whether a name is one plain component that no git on any system takes for `.git`.
///
/// Refused are the empty name, `.`, `..`, `/`, `\`, NUL, and `.git` in every form that NTFS or HFS+
/// fold to it (`.GIT`, `.git.`, `.git `, `.git::$INDEX_ALLOCATION`, `GIT~1`, `.g<ZWNJ>it`).
pub fn is_safe_name(name: &[u8]) -> bool {
    !matches!(name, b"" | b"." | b"..")
        && !name.iter().any(|b| matches!(b, b'/' | b'\\' | 0))
        && !is_ntfs_form(name, &[b".git", b"git~1"])
        && !is_hfs_form(name, ".git")
}

/// Whether a name stands for `.gitmodules` somewhere: as a symlink it would let git read, and a
/// later checkout write, outside of the tree.
pub(crate) fn is_gitmodules(name: &[u8]) -> bool {
    is_ntfs_form(name, &[b".gitmodules", b"gitmod~1"]) || is_hfs_form(name, ".gitmodules")
}

/// Whether a path (relative, `/` between parts) has only safe names.
pub(crate) fn is_safe_path(path: &[u8]) -> bool {
    path.split(|b| *b == b'/').all(is_safe_name)
}

/// NTFS folds case, drops dots and spaces at the end, and names a stream after `:`.
fn is_ntfs_form(name: &[u8], forms: &[&[u8]]) -> bool {
    let name = name.split(|b| *b == b':').next().unwrap_or_default();
    let end = name.iter().rposition(|b| !matches!(b, b'.' | b' '));
    let name = &name[..end.map_or(0, |at| at + 1)];
    forms.iter().any(|form| name.eq_ignore_ascii_case(form))
}

/// HFS+ folds case and ignores some characters.
fn is_hfs_form(name: &[u8], form: &str) -> bool {
    let Ok(name) = std::str::from_utf8(name) else {
        return false;
    };
    let ignored = |c: &char| matches!(c, '\u{200c}'..='\u{200f}' | '\u{202a}'..='\u{202e}' | '\u{206a}'..='\u{206f}' | '\u{feff}');
    let seen = name.chars().filter(|c| !ignored(c));
    seen.map(|c| c.to_ascii_lowercase()).eq(form.chars())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_form_of_dot_git_is_refused() {
        for bad in [
            "",
            ".",
            "..",
            "a/b",
            "a\\b",
            "a\0b",
            ".git",
            ".GIT",
            ".Git",
            "GIT~1",
            "git~1",
            ".git.",
            ".git ",
            ".git. .",
            "git~1.",
            ".git::$INDEX_ALLOCATION",
            ".g\u{200c}it",
            "\u{feff}.GIT",
            ".git\u{206f}",
        ] {
            assert!(!is_safe_name(bad.as_bytes()), "{bad:?}");
        }
    }

    #[test]
    fn odd_but_harmless_names_stay() {
        for good in [
            ".gitignore",
            ".gitattributes",
            ".github",
            "git",
            "x.git",
            "git~2",
            ".gitx",
            "new\nline\"q",
            "-rf",
            "CON",
            "...",
            "sub\r",
            "e\u{301}",
        ] {
            assert!(is_safe_name(good.as_bytes()), "{good:?}");
        }
        assert!(is_safe_name(b"\xff\xfe.txt"));
        assert!(is_safe_path(b"a/b/c"));
        for bad in ["a//b", "/a", "a/", "a/../b", "a/.git/config"] {
            assert!(!is_safe_path(bad.as_bytes()), "{bad}");
        }
    }

    #[test]
    fn gitmodules_is_known_in_every_form() {
        for name in [
            ".gitmodules",
            ".GITMODULES",
            "gitmod~1",
            ".gitmodules. ",
            ".gitm\u{200d}odules",
        ] {
            assert!(is_gitmodules(name.as_bytes()), "{name:?}");
        }
        assert!(!is_gitmodules(b"gitmodules"));
    }
}
