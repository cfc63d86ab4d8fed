//! Ids that come from callers: any readable text, but never a path.

use std::fmt;
use std::str::FromStr;

use serde::{Deserialize, Serialize};

/// Longest id in bytes: an escaped one (three bytes for each) still fits a file name less a suffix.
pub const ID_BYTES_MAX: usize = 80;

/// A name that cannot be used: what it was meant for, the name, and why.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("invalid {kind} `{}`: {reason}", name.escape_debug())]
pub struct InvalidName {
    /// What the name was meant for, `project id` say.
    pub kind: &'static str,
    /// The name as given, cut to a printable length.
    pub name: String,
    /// What is wrong with it.
    pub reason: &'static str,
}

impl InvalidName {
    pub(crate) fn new(kind: &'static str, name: &str, reason: &'static str) -> Self {
        let name = name.chars().take(100).collect();
        Self { kind, name, reason }
    }
}

/// The one grammar of ids: 1 to 80 bytes, no control or invisible formatting characters, no `/`
/// or `\`, not `.` or `..`, no white space at either end.
fn check_id(kind: &'static str, text: &str) -> Result<(), InvalidName> {
    let fail = |reason| Err(InvalidName::new(kind, text, reason));
    if text.is_empty() {
        return fail("it is empty");
    }
    if text.len() > ID_BYTES_MAX {
        return fail("it is longer than 80 bytes");
    }
    if text == "." || text == ".." {
        return fail("`.` and `..` are paths");
    }
    if text.contains(['/', '\\']) {
        return fail("`/` and `\\` are not allowed");
    }
    if text.chars().any(is_hidden) {
        return fail("control and invisible characters are not allowed");
    }
    if text.trim() != text {
        return fail("white space at its ends is not allowed");
    }
    Ok(())
}

/// Control characters, and those that make a name look like another one.
pub(crate) fn is_hidden(c: char) -> bool {
    c.is_control()
        || matches!(c,
            '\u{00ad}' | '\u{061c}' | '\u{180e}' | '\u{200b}'..='\u{200f}'
            | '\u{2028}'..='\u{202e}' | '\u{2060}'..='\u{206f}' | '\u{feff}'
            | '\u{fff9}'..='\u{fffb}' | '\u{e0000}'..='\u{e007f}')
}

macro_rules! id {
    ($(#[$doc:meta])* $name:ident, $kind:literal, $check:expr) => {
        $(#[$doc])*
        #[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
        #[serde(try_from = "String", into = "String")]
        pub struct $name(String);

        impl $name {
            /// The id as text.
            pub fn as_str(&self) -> &str {
                &self.0
            }
        }

        impl FromStr for $name {
            type Err = InvalidName;
            fn from_str(text: &str) -> Result<Self, InvalidName> {
                let check: fn(&'static str, &str) -> Result<(), InvalidName> = $check;
                check($kind, text)?;
                Ok(Self(text.to_owned()))
            }
        }

        impl TryFrom<String> for $name {
            type Error = InvalidName;
            fn try_from(text: String) -> Result<Self, InvalidName> {
                text.parse()
            }
        }

        impl From<$name> for String {
            fn from(id: $name) -> Self {
                id.0
            }
        }

        impl fmt::Display for $name {
            fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                f.write_str(&self.0)
            }
        }
    };
}

id!(
    /// Id of a Project, unique in its tenant.
    ProjectId,
    "project id",
    check_id
);
id!(
    /// Id of a tenant.
    TenantId,
    "tenant id",
    check_id
);
id!(
    /// Id of the process that made a RootDir (`creatorProcessId`). Compared exactly, never as a pattern.
    CreatorId,
    "creator id",
    check_id
);
id!(
    /// Type of a RootDir, as its handler claims it: `[a-z][a-z0-9-]*`, at most 40 bytes.
    HandlerType,
    "handler type",
    check_handler_type
);

impl Default for TenantId {
    fn default() -> Self {
        Self(crate::DEFAULT_TENANT.to_owned())
    }
}

fn check_handler_type(kind: &'static str, text: &str) -> Result<(), InvalidName> {
    let ok = text.starts_with(|c: char| c.is_ascii_lowercase())
        && text.len() <= 40
        && text
            .bytes()
            .all(|b| b.is_ascii_lowercase() || b.is_ascii_digit() || b == b'-');
    if ok {
        Ok(())
    } else {
        Err(InvalidName::new(
            kind,
            text,
            "it must match `[a-z][a-z0-9-]*` with at most 40 bytes",
        ))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn paths_and_hidden_text_are_no_ids() {
        for bad in [
            "",
            ".",
            "..",
            "a/b",
            "../P2",
            "a\\b",
            "a\nb",
            "a\0b",
            "\u{1b}[2J",
            "\u{202e}gpj",
            " a",
            "a ",
            "zero\u{200b}width",
        ] {
            assert!(bad.parse::<ProjectId>().is_err(), "{bad:?}");
            assert!(bad.parse::<CreatorId>().is_err(), "{bad:?}");
        }
        assert!("a".repeat(81).parse::<ProjectId>().is_err());
    }

    #[test]
    fn readable_text_is_an_id() {
        for good in [
            "p",
            "P-1",
            "..%2fP2",
            "Ünïcode 7",
            "a:b@c",
            ".hidden",
            "-rf",
            "workspaces",
        ] {
            assert_eq!(good.parse::<ProjectId>().unwrap().as_str(), good);
        }
    }

    #[test]
    fn a_bad_name_is_shown_escaped() {
        let error = "a\u{1b}[2J".parse::<TenantId>().unwrap_err();
        assert_eq!(
            error.to_string(),
            r"invalid tenant id `a\u{1b}[2J`: control and invisible characters are not allowed"
        );
    }

    #[test]
    fn handler_types_are_plain() {
        assert!("my-type2".parse::<HandlerType>().is_ok());
        for bad in ["", "Git", "2x", "a_b", "../x"] {
            assert!(bad.parse::<HandlerType>().is_err(), "{bad:?}");
        }
    }
}
