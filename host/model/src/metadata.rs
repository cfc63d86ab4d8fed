//! A handler's part of a Descriptor.

use serde::{Deserialize, Serialize};
use serde_json::{Map, Value};

/// Most bytes of metadata as JSON text: far below a 16 MB document, checked when it is set.
pub const METADATA_BYTES_MAX: usize = 64 * 1024;

/// Deepest nesting of arrays and objects.
const DEPTH_MAX: usize = 16;

/// Keys that a Descriptor owns: a handler or a caller that sets one means to reach further.
const RESERVED: &[&str] = &[
    "tenant",
    "projectId",
    "dirName",
    "type",
    "creatorProcessId",
    "createdAt",
    "deleteOnCreatorClose",
    "label",
    "creatorEngine",
    "sessionId",
    "metadata",
    "state",
    "handler",
];

/// Why metadata is refused.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum MetadataError {
    /// It is not the text of a JSON object.
    #[error("metadata is not a JSON object: {0}")]
    NotAnObject(String),
    /// A key that a Descriptor owns.
    #[error("metadata key `{0}` is reserved for the Descriptor")]
    Reserved(String),
    /// A key that a document store cannot keep, or that hides something.
    #[error("metadata key `{}` is not valid: it is empty, starts with `$`, or holds `.` or a control character", .0.escape_debug())]
    BadKey(String),
    /// Too big or too deep.
    #[error("metadata is too large: at most {METADATA_BYTES_MAX} bytes and {DEPTH_MAX} levels")]
    TooLarge,
}

/// The handler's part of a Descriptor: a JSON object of at most 64 KiB whose keys work in every
/// store.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
#[serde(transparent)]
pub struct Metadata(Map<String, Value>);

impl Metadata {
    /// Checks an object.
    pub fn new(map: Map<String, Value>) -> Result<Self, MetadataError> {
        if let Some(key) = map.keys().find(|key| RESERVED.contains(&key.as_str())) {
            return Err(MetadataError::Reserved(key.clone()));
        }
        check(&map, 1)?;
        let metadata = Self(map);
        if metadata.to_json().len() > METADATA_BYTES_MAX {
            return Err(MetadataError::TooLarge);
        }
        Ok(metadata)
    }

    /// Parses and checks JSON text.
    pub fn from_json(text: &str) -> Result<Self, MetadataError> {
        // The text may hold white space; twice the limit is no attack and no honest object.
        if text.len() > 2 * METADATA_BYTES_MAX {
            return Err(MetadataError::TooLarge);
        }
        let map = serde_json::from_str(text)
            .map_err(|error| MetadataError::NotAnObject(error.to_string()))?;
        Self::new(map)
    }

    /// The object as compact JSON text.
    pub fn to_json(&self) -> String {
        Value::Object(self.0.clone()).to_string()
    }

    /// The value of a key.
    pub fn get(&self, key: &str) -> Option<&Value> {
        self.0.get(key)
    }

    /// The text of a key whose value is a string.
    pub fn text(&self, key: &str) -> Option<&str> {
        self.0.get(key)?.as_str()
    }

    /// Whether there are no keys.
    pub fn is_empty(&self) -> bool {
        self.0.is_empty()
    }

    /// The object.
    pub fn as_map(&self) -> &Map<String, Value> {
        &self.0
    }
}

fn check(map: &Map<String, Value>, depth: usize) -> Result<(), MetadataError> {
    if depth > DEPTH_MAX {
        return Err(MetadataError::TooLarge);
    }
    for (key, value) in map {
        let bad = key.is_empty()
            || key.starts_with('$')
            || key.contains('.')
            || key.chars().any(char::is_control);
        if bad {
            return Err(MetadataError::BadKey(key.chars().take(100).collect()));
        }
        check_value(value, depth + 1)?;
    }
    Ok(())
}

fn check_value(value: &Value, depth: usize) -> Result<(), MetadataError> {
    match value {
        Value::Object(map) => check(map, depth),
        Value::Array(_) if depth > DEPTH_MAX => Err(MetadataError::TooLarge),
        Value::Array(items) => items
            .iter()
            .try_for_each(|item| check_value(item, depth + 1)),
        _ => Ok(()),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn reserved_bad_and_big_are_refused() {
        let fails = |text: &str| Metadata::from_json(text).unwrap_err();
        assert_eq!(
            fails(r#"{"dirName":"../x"}"#),
            MetadataError::Reserved("dirName".into())
        );
        assert_eq!(fails(r#"{"a.b":1}"#), MetadataError::BadKey("a.b".into()));
        assert_eq!(
            fails(r#"{"a":{"$set":1}}"#),
            MetadataError::BadKey("$set".into())
        );
        assert!(matches!(fails("[1]"), MetadataError::NotAnObject(_)));
        assert!(matches!(fails("nonsense"), MetadataError::NotAnObject(_)));
        let big = format!(r#"{{"a":"{}"}}"#, "x".repeat(METADATA_BYTES_MAX));
        assert_eq!(fails(&big), MetadataError::TooLarge);
        let deep = format!(r#"{{"a":{}1{}}}"#, "[".repeat(40), "]".repeat(40));
        assert_eq!(fails(&deep), MetadataError::TooLarge);
    }

    #[test]
    fn good_metadata_round_trips() {
        let text = r#"{"branch":"main","deep":{"x":[1,2]},"number":1.2345678909234567e30,"repoUrl":"https://h/x"}"#;
        let metadata = Metadata::from_json(text).unwrap();
        assert_eq!(metadata.to_json(), text.replace("e30", "e+30"));
        let again = Metadata::from_json(&metadata.to_json()).unwrap();
        assert_eq!(again, metadata);
        assert_eq!(metadata.text("branch"), Some("main"));
    }
}
