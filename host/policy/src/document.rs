//! Reading TOML: what is wrong is named with its line and the nearest known key.

use std::ops::Range;

use serde::de::DeserializeOwned;

use crate::nearest::nearest;

/// Why a document cannot be used. Which document it is, the caller says.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum DocumentError {
    /// It is too long.
    #[error("it has {bytes} bytes; the limit is {bytes_max}")]
    TooLarge {
        /// Its length.
        bytes: usize,
        /// The limit.
        bytes_max: usize,
    },
    /// It is no text.
    #[error("it is not UTF-8")]
    NotText,
    /// It is no TOML.
    #[error("line {line}: {message}")]
    Syntax {
        /// Where, from 1.
        line: usize,
        /// What the parser says.
        message: String,
    },
    /// A key that this version does not know.
    #[error("line {line}: unknown key `{key}`")]
    UnknownKey {
        /// Where, from 1.
        line: usize,
        /// The key.
        key: String,
        /// The known key that is nearest.
        nearest: Option<String>,
    },
    /// A value that is missing, of another type, or cannot be used.
    #[error("line {line}: {message}")]
    Value {
        /// Where, from 1; the first line when the place is not known.
        line: usize,
        /// What is wrong with it.
        message: String,
    },
    /// Something that the format cannot say, though it is well formed.
    #[error("`{key}`: {reason}")]
    Invalid {
        /// Which key, with its section.
        key: String,
        /// What is wrong with it.
        reason: String,
    },
}

impl DocumentError {
    /// What to do next.
    pub fn hint(&self) -> Option<String> {
        match self {
            Self::UnknownKey {
                nearest: Some(key), ..
            } => Some(format!("did you mean `{key}`?")),
            _ => None,
        }
    }

    pub(crate) fn invalid(key: impl Into<String>, reason: impl Into<String>) -> Self {
        Self::Invalid {
            key: key.into(),
            reason: reason.into(),
        }
    }
}

/// Reads a document of at most `bytes_max` bytes.
pub(crate) fn parse<T: DeserializeOwned>(
    bytes: &[u8],
    bytes_max: usize,
) -> Result<T, DocumentError> {
    if bytes.len() > bytes_max {
        return Err(DocumentError::TooLarge {
            bytes: bytes.len(),
            bytes_max,
        });
    }
    let text = std::str::from_utf8(bytes).map_err(|_| DocumentError::NotText)?;
    let reader = toml::Deserializer::parse(text).map_err(|error| DocumentError::Syntax {
        line: line(text, error.span()),
        message: one_line(error.message()),
    })?;
    T::deserialize(reader).map_err(|error| wrong(text, &error))
}

fn wrong(text: &str, error: &toml::de::Error) -> DocumentError {
    let line = line(text, error.span());
    // serde's own words for it: "unknown field `x`, expected one of `a`, `b`".
    let mut quoted = error.message().split('`').skip(1).step_by(2);
    if error.message().starts_with("unknown field ")
        && let Some(key) = quoted.next()
    {
        let known: Vec<&str> = quoted.collect();
        return DocumentError::UnknownKey {
            line,
            key: shown(key),
            nearest: nearest(key, &known).map(str::to_owned),
        };
    }
    DocumentError::Value {
        line,
        message: one_line(error.message()),
    }
}

fn line(text: &str, span: Option<Range<usize>>) -> usize {
    let start = span.map_or(0, |span| span.start);
    1 + text
        .bytes()
        .take(start)
        .filter(|&byte| byte == b'\n')
        .count()
}

/// Text of the document must not play tricks where it is printed.
fn shown(text: &str) -> String {
    text.chars()
        .take(100)
        .flat_map(char::escape_debug)
        .collect()
}

fn one_line(text: &str) -> String {
    let joined = text.lines().collect::<Vec<_>>().join("; ");
    let plain = |c: char| -> String {
        if c.is_control() {
            c.escape_debug().collect()
        } else {
            c.into()
        }
    };
    joined.chars().take(400).map(plain).collect()
}
