//! What one record says.

use std::collections::BTreeMap;

use jiff::Timestamp;
use serde::{Deserialize, Serialize};

/// How a use of a capability went.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Outcome {
    /// It is about to happen; another record says how it ended.
    Started,
    /// It was allowed and worked.
    Ok,
    /// It was refused; `code` says by what.
    Denied,
    /// It was allowed and failed; `code` says how.
    Failed,
}

impl Outcome {
    /// All of them.
    pub const ALL: [Self; 4] = [Self::Started, Self::Ok, Self::Denied, Self::Failed];

    /// As it is written.
    pub fn as_str(self) -> &'static str {
        match self {
            Self::Started => "started",
            Self::Ok => "ok",
            Self::Denied => "denied",
            Self::Failed => "failed",
        }
    }
}

/// Names of the capabilities that are no interface of a plugin.
pub mod capability {
    /// A call into a plugin as a whole: files, log, progress and output as counts.
    pub const CALL: &str = "call";
    /// Loading, approving and revoking a plugin.
    pub const PLUGIN: &str = "plugin";
    /// A path that left the RootDir, was no file, or might not be written.
    pub const FILES: &str = "files";
    /// The log's own notes.
    pub const AUDIT: &str = "audit";
}

/// What is to be recorded. Texts are cut to a bounded length, and credentials in URLs are taken out.
#[derive(Debug, Clone, Copy)]
pub struct Entry<'a> {
    /// Tenant that owns the Project.
    pub tenant: Option<&'a str>,
    /// Project that owns the RootDir.
    pub project: Option<&'a str>,
    /// Folder name of the RootDir.
    pub dir_name: Option<&'a str>,
    /// Type of the handler.
    pub handler: Option<&'a str>,
    /// Digest of the component, as hex.
    pub plugin: Option<&'a str>,
    /// Id of the grant that was in force.
    pub grant: Option<&'a str>,
    /// Which call into the plugin.
    pub call: Option<&'a str>,
    /// Which capability: the name of its interface, or one of [`capability`].
    pub capability: &'a str,
    /// Which of its functions.
    pub verb: &'a str,
    /// What it was used on: a URL, a ref, a program, a path.
    pub target: Option<&'a str>,
    /// How it went.
    pub outcome: Outcome,
    /// Code of the error.
    pub code: Option<&'a str>,
    /// How long it took, in microseconds.
    pub duration_us: Option<u64>,
    /// Numbers by name.
    pub counts: &'a [(&'a str, u64)],
    /// More for a person: who approved, why something was refused.
    pub detail: Option<&'a str>,
}

impl<'a> Entry<'a> {
    /// An entry that says nothing but this.
    pub fn new(capability: &'a str, verb: &'a str, outcome: Outcome) -> Self {
        Self {
            tenant: None,
            project: None,
            dir_name: None,
            handler: None,
            plugin: None,
            grant: None,
            call: None,
            capability,
            verb,
            target: None,
            outcome,
            code: None,
            duration_us: None,
            counts: &[],
            detail: None,
        }
    }
}

/// A record as it is read back.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
#[expect(missing_docs, reason = "each field is documented at `Entry`")]
pub struct Record {
    /// Its number, from 1 without gaps.
    pub seq: u64,
    /// When it was written.
    pub at: Timestamp,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub tenant: Option<String>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub project: Option<String>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub dir_name: Option<String>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub handler: Option<String>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub plugin: Option<String>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub grant: Option<String>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub call: Option<String>,
    pub capability: String,
    pub verb: String,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub target: Option<String>,
    pub outcome: Outcome,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub code: Option<String>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub duration_us: Option<u64>,
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    pub counts: BTreeMap<String, u64>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub detail: Option<String>,
    /// Hash of the record before it, as hex.
    pub prev: String,
    /// Hash of this one, as hex.
    pub hash: String,
}
