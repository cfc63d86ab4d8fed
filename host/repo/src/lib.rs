//! The git repository in one RootDir: checked before it is opened, put into a snapshot, forked from
//! a mirror, brought back. No network, no credentials.
//!
//! A RootDir's `.git` is hostile. Its layout and config are checked first ([`open`]); libgit2 runs
//! nothing that is planted there, and no system or global config is read ([`setup`]).

mod error;
mod manifest;

pub use error::RepoError;
pub use manifest::{Flags, Head, Manifest, StashEntry, Upstream};

/// Author and committer of every commit that the host makes.
pub const IDENTITY: (&str, &str) = ("Warren", "warren@localhost");
