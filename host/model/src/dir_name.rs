//! Folder names of RootDirs: made from hints, safe as a file name and as a part of a ref name.

use std::fmt;
use std::str::FromStr;

use serde::{Deserialize, Serialize};
use unicode_normalization::UnicodeNormalization;

use crate::id::{InvalidName, is_hidden};

/// Longest dirName in bytes: room for `-NNNN`, `.json`, `.lock` and a ref prefix in 255.
pub const DIR_NAME_BYTES_MAX: usize = 120;

/// Longest base that [`DirName::from_hint`] makes, so that any suffix fits.
const BASE_BYTES_MAX: usize = 100;

/// Name of a RootDir's folder, unique in its Project.
///
/// NFC; letters, digits, `_`, `-`, `.` and other alphanumeric characters; never in front of it `-`
/// or `.`; never `workspace`, `*.json` or `*.lock` in any case.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[serde(try_from = "String", into = "String")]
pub struct DirName(String);

impl DirName {
    /// Makes a name from a hint of any text; none when nothing usable is left.
    pub fn from_hint(hint: &str) -> Option<Self> {
        let mut base = String::new();
        for c in hint.nfc() {
            let c = if is_plain(c) { c } else { '-' };
            // `--` and `..` come from mapping and from paths; one is enough.
            if matches!(c, '-' | '.') && base.ends_with(['-', '.']) {
                continue;
            }
            base.push(c);
        }
        let base = base.trim_start_matches(['-', '.']);
        let mut end = base.len().min(BASE_BYTES_MAX);
        while !base.is_char_boundary(end) {
            end -= 1;
        }
        let mut base = base[..end].trim_end_matches(['-', '.']).to_owned();
        if let Some(dot) = base
            .rfind('.')
            .filter(|&dot| is_reserved_ending(&base[dot..]))
        {
            base.replace_range(dot..=dot, "-");
        }
        if base.to_lowercase() == "workspace" {
            base.push_str("-dir");
        }
        base.parse().ok()
    }

    /// The same name with `-n` behind it, for the n-th of its kind.
    pub fn with_suffix(&self, n: u64) -> Self {
        Self(format!("{}-{n}", self.0))
    }

    /// A fresh anonymous name: a UUID (version 7, so names sort by age).
    pub fn anonymous() -> Self {
        Self(uuid::Uuid::now_v7().to_string())
    }

    /// The name as text.
    pub fn as_str(&self) -> &str {
        &self.0
    }

    /// File name of the Descriptor beside the folder.
    pub fn descriptor_file(&self) -> String {
        format!("{}.json", self.0)
    }

    /// What must be unique in a Project: names with the same key may share a folder on a disk that
    /// folds case or normalises.
    pub fn folded(&self) -> String {
        self.0.to_lowercase().nfc().collect()
    }
}

fn is_plain(c: char) -> bool {
    (c.is_alphanumeric() || matches!(c, '_' | '-' | '.')) && !is_hidden(c)
}

fn is_reserved_ending(ending: &str) -> bool {
    ending.eq_ignore_ascii_case(".json") || ending.eq_ignore_ascii_case(".lock")
}

impl FromStr for DirName {
    type Err = InvalidName;

    fn from_str(text: &str) -> Result<Self, InvalidName> {
        let fail = |reason| Err(InvalidName::new("dirName", text, reason));
        if text.is_empty() {
            return fail("it is empty");
        }
        if text.len() > DIR_NAME_BYTES_MAX {
            return fail("it is longer than 120 bytes");
        }
        if text.starts_with(['-', '.']) || text.ends_with('.') || text.contains("..") {
            return fail("`-` or `.` in front, `.` at the end and `..` are not allowed");
        }
        if !text.chars().all(is_plain) {
            return fail("only letters, digits, `_`, `-` and `.` are allowed");
        }
        let folded = text.to_lowercase();
        if folded == "workspace" || folded.ends_with(".json") || folded.ends_with(".lock") {
            return fail("`workspace`, `*.json` and `*.lock` are reserved");
        }
        Ok(Self(text.to_owned()))
    }
}

impl TryFrom<String> for DirName {
    type Error = InvalidName;
    fn try_from(text: String) -> Result<Self, InvalidName> {
        text.parse()
    }
}

impl From<DirName> for String {
    fn from(name: DirName) -> Self {
        name.0
    }
}

impl fmt::Display for DirName {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.0)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    fn made(hint: &str) -> Option<String> {
        DirName::from_hint(hint).map(String::from)
    }

    #[test]
    fn hints_become_safe_names() {
        for (hint, name) in [
            ("Docs", Some("Docs")),
            ("a.json", Some("a-json")),
            ("A.JSON", Some("A-JSON")),
            ("x.lock", Some("x-lock")),
            ("workspace", Some("workspace-dir")),
            ("workspace.json", Some("workspace-json")),
            (".", None),
            ("..", None),
            ("", None),
            ("a/b", Some("a-b")),
            ("../../etc", Some("etc")),
            ("-rf", Some("rf")),
            ("a\nb", Some("a-b")),
            ("\u{1b}[2J", Some("2J")),
            ("\u{202e}gnp.exe", Some("gnp.exe")),
            ("a\0b", Some("a-b")),
            ("_python", Some("_python")),
            ("x.", Some("x")),
            ("x ", Some("x")),
            ("e\u{301}", Some("é")),
            ("🦀", None),
        ] {
            assert_eq!(made(hint).as_deref(), name, "{hint:?}");
        }
    }

    #[test]
    fn long_hints_are_cut_at_a_character() {
        assert_eq!(made(&"a".repeat(255)).unwrap().len(), 100);
        let hangul = made(&"한".repeat(100)).unwrap();
        assert_eq!(hangul.len(), 99);
        assert!(hangul.chars().all(|c| c == '한'));
    }

    #[test]
    fn twins_fold_to_one_key() {
        let key = |hint: &str| DirName::from_hint(hint).unwrap().folded();
        assert_eq!(key("X"), key("x"));
        assert_eq!(key("É"), key("e\u{301}"));
    }

    proptest! {
        #[test]
        fn a_made_name_parses_and_fits(hint in "\\PC{0,300}", n in 2u64..100_000) {
            if let Some(name) = DirName::from_hint(&hint) {
                prop_assert_eq!(&name.as_str().parse::<DirName>().unwrap(), &name);
                let suffixed = name.with_suffix(n);
                prop_assert_eq!(&suffixed.as_str().parse::<DirName>().unwrap(), &suffixed);
                prop_assert!(suffixed.descriptor_file().len() < 200);
            }
        }

        #[test]
        fn any_text_is_refused_or_one_component(text in "(?s).{0,60}") {
            if let Ok(name) = text.parse::<DirName>() {
                prop_assert!(!name.as_str().contains(['/', '\\', '\0']));
                prop_assert!(!name.as_str().starts_with(['.', '-']));
            }
        }
    }
}
