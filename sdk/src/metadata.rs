//! Metadata: typed where the handler knows it, kept where it does not.

use std::ops::{Deref, DerefMut};

use serde::de::DeserializeOwned;
use serde::{Deserialize, Serialize};
use serde_json::{Map, Value};

use crate::Error;

/// The metadata of a RootDir: the keys that the handler knows as a `T`, which this derefs to, and
/// all others as they came.
///
/// `T` is a struct that serde reads and writes under the same names (so no `alias`); it may be made of
/// parts with `#[serde(flatten)]`.
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

impl<T: DeserializeOwned + Serialize> Metadata<T> {
    /// Reads the text of a JSON object.
    ///
    /// Fails with [`Error::InvalidMetadata`], which names the key that is missing or wrong.
    pub fn from_json(text: &str) -> Result<Self, Error> {
        let object: Map<String, Value> = serde_json::from_str(text)
            .map_err(|error| Error::invalid_metadata("", format!("not a JSON object: {error}")))?;
        let known: T = read(object.clone()).map_err(|reason| {
            let key = culprit::<T>(&object, &reason);
            Error::invalid_metadata(&key, reason)
        })?;
        // What `T` writes again, it knows. That also holds for a `T` made of flattened parts.
        let written = write(&known)?;
        let mut unknown = object;
        unknown.retain(|key, _| !written.contains_key(key));
        Ok(Self { known, unknown })
    }
}

impl<T: Serialize> Metadata<T> {
    /// The text of the JSON object, unknown keys included.
    ///
    /// Fails when `T` is not a struct or map, or cannot be written as JSON.
    pub fn to_json(&self) -> Result<String, Error> {
        let mut object = self.unknown.clone();
        object.extend(write(&self.known)?);
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

fn read<T: DeserializeOwned>(object: Map<String, Value>) -> Result<T, String> {
    serde_json::from_value(Value::Object(object)).map_err(|error| error.to_string())
}

fn write<T: Serialize>(known: &T) -> Result<Map<String, Value>, Error> {
    match serde_json::to_value(known) {
        Ok(Value::Object(object)) => Ok(object),
        Ok(_) => Err(Error::Failed("metadata is not a JSON object".to_owned())),
        Err(error) => Err(Error::Failed(format!(
            "metadata cannot be written: {error}"
        ))),
    }
}

/// Which key an error is about: a missing one is named by serde; a wrong one is the key without
/// which the error is another, or none.
fn culprit<T: DeserializeOwned>(object: &Map<String, Value>, reason: &str) -> String {
    if let Some(rest) = reason.strip_prefix("missing field `") {
        return rest.trim_end_matches('`').to_owned();
    }
    let is_wrong = |key: &&String| {
        let mut others = object.clone();
        others.remove(key.as_str());
        read::<T>(others).err().as_deref() != Some(reason)
    };
    object.keys().find(is_wrong).cloned().unwrap_or_default()
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

    #[derive(Debug, PartialEq, Serialize, Deserialize)]
    struct Composed {
        #[serde(default)]
        path: Option<String>,
        #[serde(flatten)]
        settings: Settings,
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
        assert_eq!(key_of(r#"{"repoUrl":[]}"#).0, "repoUrl");
        assert_eq!(key_of("[1]").0, "");
        assert_eq!(key_of("nonsense").0, "");
    }

    #[test]
    fn flattened_parts_behave_like_one_struct() {
        let text = r#"{"path":"p","repoUrl":"u","x":1}"#;
        let metadata = Metadata::<Composed>::from_json(text).unwrap();
        assert_eq!(metadata.unknown.keys().collect::<Vec<_>>(), ["x"]);
        let error = Metadata::<Composed>::from_json(r#"{"repoUrl":"u","branch":7,"x":1}"#);
        let Err(Error::InvalidMetadata(invalid)) = error else {
            panic!("{error:?}");
        };
        assert_eq!(invalid.key, "branch");
    }

    #[test]
    fn settings_without_keys_keep_everything() {
        let text = r#"{"a":1,"b":[{}]}"#;
        let none = Metadata::<crate::NoSettings>::from_json(text).unwrap();
        assert_eq!(none.to_json().unwrap(), text);
    }
}
