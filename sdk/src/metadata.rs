//! Metadata: typed where the handler knows it, kept where it does not.

use std::ops::{Deref, DerefMut};

use serde::de::DeserializeOwned;
use serde::{Deserialize, Serialize};
use serde_json::{Map, Value};

use crate::{Error, InvalidMetadata};

/// The metadata of a RootDir: the keys that the handler knows as a `T`, which this derefs to, and
/// all others as they came.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct Metadata<T> {
    /// What the handler knows.
    pub known: T,
    /// Keys that it does not know. Written back unchanged.
    pub unknown: Map<String, Value>,
}

/// For a handler without metadata keys of its own.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct NoSettings {}

impl<T> Metadata<T> {
    /// Metadata without unknown keys.
    pub fn new(known: T) -> Self {
        Self {
            known,
            unknown: Map::new(),
        }
    }
}

impl<T: DeserializeOwned> Metadata<T> {
    /// Reads the text of a JSON object.
    ///
    /// Fails with [`Error::InvalidMetadata`], which names the key that is missing or wrong.
    pub fn from_json(text: &str) -> Result<Self, Error> {
        let object: Map<String, Value> = serde_json::from_str(text)
            .map_err(|error| invalid("", &format!("not a JSON object: {error}")))?;
        let mut unknown = Map::new();
        let known = {
            let mut track = serde_path_to_error::Track::new();
            let mut note = |path: serde_ignored::Path<'_>| {
                // Only whole keys: what `T` ignores inside a value it knows is `T`'s to keep.
                let key = path.to_string();
                if let Some(value) = object.get(&key) {
                    unknown.insert(key, value.clone());
                }
            };
            let value = Value::Object(object.clone());
            let value = serde_path_to_error::Deserializer::new(value, &mut track);
            let value = serde_ignored::Deserializer::new(value, &mut note);
            T::deserialize(value).map_err(|error| {
                let path = track.path().to_string();
                invalid(path.trim_start_matches('.'), &error.to_string())
            })?
        };
        Ok(Self { known, unknown })
    }
}

impl<T: Serialize> Metadata<T> {
    /// The text of the JSON object, unknown keys included.
    ///
    /// Fails when `T` is not a struct or map, or cannot be written as JSON.
    pub fn to_json(&self) -> Result<String, Error> {
        let known = serde_json::to_value(&self.known)
            .map_err(|error| Error::Failed(format!("metadata cannot be written: {error}")))?;
        let Value::Object(known) = known else {
            return Err(Error::Failed("metadata is not a JSON object".to_owned()));
        };
        let mut object = self.unknown.clone();
        object.extend(known);
        Ok(Value::Object(object).to_string())
    }
}

impl<T> Deref for Metadata<T> {
    type Target = T;

    fn deref(&self) -> &T {
        &self.known
    }
}

impl<T> DerefMut for Metadata<T> {
    fn deref_mut(&mut self) -> &mut T {
        &mut self.known
    }
}

/// Serde knows the path of a wrong value; a missing or unknown field it names in its message only.
fn invalid(path: &str, reason: &str) -> Error {
    let named = reason
        .split('`')
        .nth(1)
        .filter(|_| reason.contains("field"));
    let key = if path.is_empty() { named } else { Some(path) };
    Error::InvalidMetadata(InvalidMetadata {
        key: key.unwrap_or_default().to_owned(),
        reason: reason.to_owned(),
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[derive(Debug, PartialEq, Serialize, Deserialize)]
    #[serde(rename_all = "camelCase")]
    struct Settings {
        repo_url: String,
        #[serde(default, skip_serializing_if = "Option::is_none")]
        branch: Option<String>,
    }

    fn key_of(text: &str) -> (String, String) {
        match Metadata::<Settings>::from_json(text) {
            Err(Error::InvalidMetadata(invalid)) => (invalid.key, invalid.reason),
            other => panic!("{other:?}"),
        }
    }

    #[test]
    fn unknown_keys_come_back_and_a_cleared_known_one_does_not() {
        let text = r#"{"repoUrl":"u","branch":"b","team":{"repoUrl":[1]},"n":null}"#;
        let mut metadata = Metadata::<Settings>::from_json(text).unwrap();
        assert_eq!(metadata.repo_url, "u");
        metadata.branch = None;
        let back: Value = serde_json::from_str(&metadata.to_json().unwrap()).unwrap();
        let expected = serde_json::json!({"repoUrl":"u","team":{"repoUrl":[1]},"n":null});
        assert_eq!(back, expected);
    }

    #[test]
    fn an_error_names_the_key() {
        assert_eq!(key_of(r#"{"branch":"b"}"#).0, "repoUrl");
        let (key, reason) = key_of(r#"{"repoUrl":"u","branch":7}"#);
        assert_eq!(key, "branch");
        assert!(reason.contains("expected a string"), "{reason}");
        assert_eq!(key_of("[1]").0, "");
        assert_eq!(key_of("nonsense").0, "");
    }

    #[test]
    fn settings_without_keys_keep_everything() {
        let text = r#"{"a":1,"b":[{}]}"#;
        let none = Metadata::<crate::NoSettings>::from_json(text).unwrap();
        assert_eq!(none.to_json().unwrap(), text);
    }
}
