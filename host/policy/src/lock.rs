//! What a person approved, and whether it still holds.

use std::collections::BTreeMap;

use jiff::Timestamp;
use serde::{Deserialize, Serialize};
use warren_model::HandlerType;

use crate::diff::{Change, Direction, diff, diff_imports, diff_wants};
use crate::document::{self, DocumentError};
use crate::grant::{Grant, GrantId};
use crate::manifest::{Manifest, Wants};

const LOCK_BYTES_MAX: usize = 4 * 1024 * 1024;

/// The version that this host reads.
const VERSION: u32 = 1;

/// The approvals of a host, by type.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case", deny_unknown_fields)]
pub struct Lock {
    /// Version of the format: 1.
    pub version: u32,
    /// What was approved.
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    pub plugin: BTreeMap<HandlerType, Approval>,
    /// What must not load, shipped or not.
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    pub revoked: BTreeMap<HandlerType, Revocation>,
}

/// One component, and what it may reach.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case", deny_unknown_fields)]
pub struct Approval {
    /// SHA-256 of the component in hex.
    pub digest: String,
    /// What the component calls its version.
    pub version: String,
    /// Who approved it.
    pub approved_by: String,
    /// When.
    pub approved_at: Timestamp,
    /// Id of the grant.
    pub grant_id: GrantId,
    /// What it imports.
    pub imports: Vec<String>,
    /// What it wants.
    #[serde(default)]
    pub wants: Wants,
    /// The most that it may reach.
    pub grant: Grant,
}

/// A type that must not load.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case", deny_unknown_fields)]
pub struct Revocation {
    /// Who revoked it.
    pub revoked_by: String,
    /// When.
    pub revoked_at: Timestamp,
}

/// A component that asks to be loaded, and what it would get now.
#[derive(Debug, Clone, Copy)]
pub struct Candidate<'a> {
    /// SHA-256 of the component in hex.
    pub digest: &'a str,
    /// What it imports.
    pub imports: &'a [String],
    /// What it says and wants.
    pub manifest: &'a Manifest,
    /// What it would get under the policy of now.
    pub grant: &'a Grant,
    /// What it would get under the shipped policy, for a component that is shipped.
    pub shipped: Option<&'a Grant>,
}

/// Whether a component may load.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Verdict {
    /// It may.
    Approved,
    /// Its type was revoked.
    Revoked,
    /// Nobody approved a component of its type.
    Unknown,
    /// It is not what was approved, or would get more.
    Differs(Vec<Change>),
}

impl Default for Lock {
    fn default() -> Self {
        Self {
            version: VERSION,
            plugin: BTreeMap::new(),
            revoked: BTreeMap::new(),
        }
    }
}

impl Lock {
    /// Reads and checks a lock.
    ///
    /// # Errors
    ///
    /// Names what is wrong, with its line where it has one.
    pub fn parse(bytes: &[u8]) -> Result<Self, DocumentError> {
        let lock: Self = document::parse(bytes, LOCK_BYTES_MAX)?;
        if lock.version != VERSION {
            let reason = format!("this host reads version {VERSION}, not {}", lock.version);
            return Err(DocumentError::invalid("version", reason));
        }
        for (handler, approval) in &lock.plugin {
            if GrantId::of(handler, &approval.digest, &approval.grant) != approval.grant_id {
                let at = format!("plugin.{handler}.grant-id");
                return Err(DocumentError::invalid(at, "it is not the id of the grant"));
            }
        }
        Ok(lock)
    }

    /// The lock as TOML; [`Self::parse`] gives the same lock back.
    ///
    /// # Errors
    ///
    /// When it holds a number that TOML has no room for.
    pub fn to_toml(&self) -> Result<String, DocumentError> {
        toml::to_string(self).map_err(|error| DocumentError::invalid("lock", error.to_string()))
    }

    /// Notes an approval; it ends a revocation.
    pub fn approve(&mut self, candidate: Candidate<'_>, by: &str, at: Timestamp) -> GrantId {
        let handler = &candidate.manifest.handler_type;
        let grant_id = GrantId::of(handler, candidate.digest, candidate.grant);
        self.revoked.remove(handler);
        let approval = Approval {
            digest: candidate.digest.to_owned(),
            version: candidate.manifest.version.clone(),
            approved_by: by.to_owned(),
            approved_at: at,
            grant_id: grant_id.clone(),
            imports: candidate.imports.to_vec(),
            wants: candidate.manifest.wants.clone(),
            grant: candidate.grant.clone(),
        };
        self.plugin.insert(handler.clone(), approval);
        grant_id
    }

    /// Notes that a type must not load, whatever was approved before.
    pub fn revoke(&mut self, handler: &HandlerType, by: &str, at: Timestamp) {
        self.plugin.remove(handler);
        let revocation = Revocation {
            revoked_by: by.to_owned(),
            revoked_at: at,
        };
        self.revoked.insert(handler.clone(), revocation);
    }

    /// Whether a component may load. A policy that became narrower since the approval is no matter:
    /// it holds at once.
    pub fn judge(&self, candidate: Candidate<'_>) -> Verdict {
        let handler = &candidate.manifest.handler_type;
        if self.revoked.contains_key(handler) {
            return Verdict::Revoked;
        }
        if candidate
            .shipped
            .is_some_and(|shipped| shipped.covers(candidate.grant))
        {
            return Verdict::Approved;
        }
        let changes = match (self.plugin.get(handler), candidate.shipped) {
            (Some(approval), shipped) => {
                let changes = approval.changes(candidate);
                if approval.digest == candidate.digest && approval.grant.covers(candidate.grant) {
                    return Verdict::Approved;
                }
                match shipped {
                    // It is what is shipped; what matters is how the policy differs.
                    Some(shipped) if approval.digest != candidate.digest => {
                        diff(shipped, candidate.grant)
                    }
                    _ => changes,
                }
            }
            (None, Some(shipped)) => diff(shipped, candidate.grant),
            (None, None) => return Verdict::Unknown,
        };
        Verdict::Differs(changes)
    }
}

impl Approval {
    /// How a component and what it would get differ from what was approved.
    pub fn changes(&self, candidate: Candidate<'_>) -> Vec<Change> {
        let mut changes = Vec::new();
        for (path, before, after) in [
            ("digest", self.digest.as_str(), candidate.digest),
            ("version", &self.version, &candidate.manifest.version),
        ] {
            if before != after {
                changes.push(Change {
                    path: path.to_owned(),
                    direction: Direction::Changed,
                    before: Some(before.to_owned()),
                    after: Some(after.to_owned()),
                });
            }
        }
        changes.extend(diff_imports(&self.imports, candidate.imports));
        changes.extend(diff_wants(&self.wants, &candidate.manifest.wants));
        changes.extend(diff(&self.grant, candidate.grant));
        changes
    }
}
