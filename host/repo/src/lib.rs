//! The git repository in one RootDir: checked before it is opened, put into a snapshot, forked from
//! a mirror, brought back. No network, no credentials.
//!
//! A RootDir's `.git` is hostile. Its layout and config are checked first ([`layout`]); libgit2 runs
//! nothing that is planted there, and no system or global config is read ([`setup`]).

mod ahead;
mod bounds;
mod checkout;
mod clean;
mod commit;
mod content;
mod error;
mod exclude;
mod files;
mod fork;
#[cfg(test)]
mod fork_testing;
#[cfg(test)]
mod fork_tests;
mod ignores;
mod index;
mod init;
pub mod layout;
mod layout_config;
mod locks;
mod manifest;
mod memory;
mod objects;
mod open;
mod packs;
mod refs;
mod restore;
#[cfg(test)]
mod restore_hostile_tests;
#[cfg(test)]
mod restore_testing;
#[cfg(test)]
mod restore_tests;
#[cfg(test)]
mod roundtrip_tests;
mod scan;
pub mod setup;
mod snapshot;
mod status;
#[cfg(test)]
mod testrepo;
mod text_stats;
mod trees;

pub use bounds::Bounds;
pub use checkout::is_safe_name;
pub use error::{RepoError, is_too_much_memory};
pub use exclude::Exclude;
pub use fork::{ForkSpec, HeadSpec, fork};
pub use init::init;
pub use locks::clear_stale_locks;
pub use manifest::{Flags, Head, Manifest, StashEntry, Upstream};
pub use memory::{ended, within};
pub use open::Repo;
pub use refs::is_valid_ref_name;
pub use restore::{RestoreSpec, restore};
pub use snapshot::{Limits, Snapshot, SnapshotOptions};
pub use status::Status;

/// Author and committer of every commit that the host makes.
pub const IDENTITY: (&str, &str) = ("Warren", "warren@localhost");
