//! The Descriptor of a RootDir, as it stands beside the folder and in a Snapshot.

use jiff::Timestamp;
use serde::{Deserialize, Serialize};
use serde_json::{Map, Value};

use crate::{CreatorId, DirName, HandlerType, Metadata, ProjectId, TenantId};

/// How far a RootDir has come. A Descriptor without it is `ready`: older hosts wrote none.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum RootState {
    /// `init` has not finished; rolled back at the next start.
    Initializing,
    /// In use. The only state in which a RootDir counts.
    #[default]
    Ready,
    /// `suspend` is under way; the folder is still the truth.
    Suspending,
    /// `recover` has not finished; the Snapshot is still the truth.
    Recovering,
    /// Disposed of; the folder is being deleted.
    Deleting,
}

/// The component that made or last recovered a RootDir.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct HandlerRef {
    /// SHA-256 of the component, lowercase hex.
    pub digest: String,
    /// Version that the handler gives itself.
    pub version: String,
}

/// What the host knows of one RootDir. Only the host writes it. Unknown fields are kept.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct Descriptor {
    /// Tenant that owns the Project.
    pub tenant: TenantId,
    /// Project that owns the RootDir.
    pub project_id: ProjectId,
    /// Name of the folder.
    pub dir_name: DirName,
    /// Type of the handler.
    #[serde(rename = "type")]
    pub handler_type: HandlerType,
    /// Process that made it.
    pub creator_process_id: CreatorId,
    /// When it was made.
    pub created_at: Timestamp,
    /// Whether it goes when its creator closes.
    pub delete_on_creator_close: bool,
    /// The hint in full, any text.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub label: Option<String>,
    /// Engine of the creator.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub creator_engine: Option<String>,
    /// Session of the creator.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub session_id: Option<String>,
    /// The handler's own part.
    #[serde(default, skip_serializing_if = "Metadata::is_empty")]
    pub metadata: Metadata,
    /// How far it has come.
    #[serde(default)]
    pub state: RootState,
    /// Component that made it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub handler: Option<HandlerRef>,
    /// Suspend generation that this RootDir was recovered from: with `ready`, the mark that the
    /// recover is complete.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub recovered_generation: Option<u64>,
    /// Fields that this version does not know.
    #[serde(flatten)]
    pub extra: Map<String, Value>,
}

#[cfg(test)]
mod tests {
    use super::*;

    const OLD: &str = r#"{
        "tenant": "t", "projectId": "p", "dirName": "d", "type": "git",
        "creatorProcessId": "c1", "createdAt": "2026-01-02T03:04:05Z",
        "deleteOnCreatorClose": false, "metadata": {"repoUrl": "https://h/x"},
        "someoneElses": {"kept": [1]}
    }"#;

    #[test]
    fn a_document_without_our_fields_reads_as_ready_and_keeps_what_we_do_not_know() {
        let descriptor: Descriptor = serde_json::from_str(OLD).unwrap();
        assert_eq!(descriptor.state, RootState::Ready);
        let back = serde_json::to_value(&descriptor).unwrap();
        assert_eq!(back["someoneElses"]["kept"][0], 1);
        assert_eq!(back["createdAt"], "2026-01-02T03:04:05Z");
        assert_eq!(back["state"], "ready");
        assert!(back.get("label").is_none());
    }

    #[test]
    fn a_document_with_a_bad_name_is_refused() {
        for (from, to) in [
            (r#""d""#, r#""../x""#),
            (r#""p""#, r#""..""#),
            (r#""git""#, r#""Git/""#),
        ] {
            assert!(serde_json::from_str::<Descriptor>(&OLD.replace(from, to)).is_err());
        }
    }
}
