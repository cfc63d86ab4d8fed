//! What a plugin asks for, what the operator grants, and what a person approved.
//!
//! A [`Manifest`] travels in the component; a [`Policy`] is the operator's; their meet, held
//! against what the binary imports, is the [`Grant`]. A [`Lock`] says which grant of which digest
//! was approved. Everything here is pure: no file is read, nothing is looked up.

mod diff;
mod document;
mod grant;
mod item;
mod limits;
mod lock;
mod manifest;
mod nearest;
mod policy;
mod section;
#[cfg(test)]
mod tests;

pub use diff::{Change, Direction, diff, diff_imports, diff_wants};
pub use document::DocumentError;
pub use grant::{
    Access, Capability, GitGrant, Grant, GrantId, HttpGrant, Layers, ProcessGrant, capabilities,
    effective,
};
pub use limits::{ChildLimits, HttpLimits, Limits};
pub use lock::{Approval, Candidate, Lock, Revocation, Verdict};
pub use manifest::{
    MANIFEST_BYTES_MAX, Manifest, WantGit, WantHttp, WantLimits, WantPlain, WantProcess, WantRoot,
    Wants,
};
pub use nearest::nearest;
pub use policy::{
    Confinement, GitPolicy, HttpPolicy, LimitsPolicy, POLICY_BYTES_MAX, PluginPolicy, Policy,
    ProcessPolicy, SHIPPED, UidRange, schema,
};
pub use section::{SECTION, SectionError, append_section, find_section};
