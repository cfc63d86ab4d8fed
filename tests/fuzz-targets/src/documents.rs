//! Descriptors, Workspaces and Snapshots as they come from a disk or a store that others write.

use serde_json::Value;
use warren_model::WorkspaceRecord;
use warren_model::{Descriptor, METADATA_BYTES_MAX, Metadata, Snapshot, WorkspaceFile};

/// A document: what is accepted is written and read again as the same, and loses no field.
pub fn descriptor(data: &[u8]) {
    round_trip::<Descriptor>(data);
    round_trip::<WorkspaceFile>(data);
    round_trip::<WorkspaceRecord>(data);
    round_trip::<Snapshot>(data);
    if let Ok(one) = serde_json::from_slice::<Descriptor>(data) {
        let name = one.dir_name.as_str();
        assert!(!name.contains('/') && !name.starts_with('.'), "{name:?}");
        let project = one.project_id.as_str();
        assert!(
            !project.contains('/') && project != ".." && project != ".",
            "{project:?}"
        );
    }
}

fn round_trip<T>(data: &[u8])
where
    T: serde::Serialize + serde::de::DeserializeOwned + PartialEq + std::fmt::Debug,
{
    let Ok(read) = serde_json::from_slice::<T>(data) else {
        return;
    };
    let written = serde_json::to_vec(&read).expect("what was read can be written");
    let again: T = serde_json::from_slice(&written).expect("what was written can be read");
    assert_eq!(again, read);
    let (Ok(before), Ok(after)) = (
        serde_json::from_slice::<Value>(data),
        serde_json::from_slice::<Value>(&written),
    ) else {
        return;
    };
    let (Some(before), Some(after)) = (before.as_object(), after.as_object()) else {
        panic!("a document is an object");
    };
    for (key, value) in before {
        // An absent optional field and `null` mean the same; a date has one form.
        match after.get(key) {
            Some(kept) if is_date(key) => assert!(kept.is_string()),
            // Inside of our own fields nobody else's are kept.
            Some(kept) if OURS.contains(&key.as_str()) => assert!(!kept.is_null()),
            Some(kept) => assert_eq!(kept, value, "field {key:?}"),
            None => assert!(is_empty(value), "field {key:?} is lost: {value}"),
        }
    }
}

/// Fields that hold documents or lists of our own.
const OURS: &[&str] = &["descriptor", "handler", "receipts", "loss", "suspend"];

fn is_date(key: &str) -> bool {
    matches!(key, "createdAt" | "suspendedAt")
}

fn is_empty(value: &Value) -> bool {
    match value {
        Value::Null => true,
        Value::Array(items) => items.is_empty(),
        Value::Object(map) => map.is_empty(),
        _ => false,
    }
}

/// The text that a handler returns as its metadata.
pub fn metadata(data: &[u8]) {
    let Ok(text) = std::str::from_utf8(data) else {
        return;
    };
    let Ok(metadata) = Metadata::from_json(text) else {
        return;
    };
    let written = metadata.to_json();
    assert!(written.len() <= METADATA_BYTES_MAX);
    let again = Metadata::from_json(&written).expect("what was accepted is accepted again");
    assert_eq!(again, metadata);
    for key in metadata.as_map().keys() {
        assert!(
            !key.is_empty() && !key.starts_with('$') && !key.contains(['.', '\0']),
            "{key:?}"
        );
        assert!(
            !["dirName", "tenant", "type", "state"].contains(&key.as_str()),
            "{key}"
        );
    }
    assert!(depth(&Value::Object(metadata.as_map().clone())) <= 17);
}

fn depth(value: &Value) -> usize {
    match value {
        Value::Array(items) => 1 + items.iter().map(depth).max().unwrap_or(0),
        Value::Object(map) => 1 + map.values().map(depth).max().unwrap_or(0),
        _ => 0,
    }
}
