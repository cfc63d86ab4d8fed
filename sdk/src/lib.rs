//! What a Warren plugin in Rust depends on.
//!
//! A plugin is a type that implements [`Handler`], exported with [`export_handler!`]. It works on
//! the directory [`root`] with `std::fs`, and asks the host for the rest through [`git`],
//! [`process`], [`log`] and [`progress`]. What a plugin does not call, its component does not
//! import.
//!
//! Everything also builds natively: [`testing`] then stands in for the host, so that a handler can
//! be unit-tested without wasm.
//!
//! ```
//! use warren_sdk::{Description, Error, Handler, Metadata, Root, Suspended};
//!
//! struct Notes;
//!
//! #[derive(serde::Serialize, serde::Deserialize)]
//! struct Settings {
//!     title: Option<String>,
//! }
//!
//! impl Handler for Notes {
//!     type Settings = Settings;
//!
//!     fn describe() -> Description {
//!         Description::new("notes", "0.1.0", "A page of notes")
//!     }
//!
//!     fn init(_: &Root, spec: Metadata<Settings>) -> Result<Metadata<Settings>, Error> {
//!         let title = spec.title.as_deref().unwrap_or("Notes");
//!         let path = warren_sdk::root().join("notes.md");
//!         std::fs::write(&path, format!("# {title}\n")).map_err(|e| warren_sdk::io(&path, e))?;
//!         Ok(spec)
//!     }
//!
//!     fn suspend(_: &Root, _: Metadata<Settings>) -> Result<Suspended<Settings>, Error> {
//!         Err(Error::SuspendNotConfigured("notes have no remote".into()))
//!     }
//!
//!     fn recover(_: &Root, saved: Metadata<Settings>) -> Result<Metadata<Settings>, Error> {
//!         Ok(saved)
//!     }
//! }
//!
//! warren_sdk::export_handler!(Notes, manifest = "manifest.toml");
//! # fn main() {}
//! ```

#[doc(hidden)]
pub mod bindings;
mod error;
#[doc(hidden)]
pub mod export;
pub mod git;
mod handler;
pub mod log;
mod metadata;
pub mod process;
pub mod progress;
#[cfg(not(target_arch = "wasm32"))]
pub mod testing;
pub mod worktree;

use std::path::PathBuf;

pub use bindings::exports::warren::handler::handler::{Action, Description};
pub use bindings::warren::handler::types::{
    Error, GitError, InvalidMetadata, Loss, LossKind, ProcessError, RefConflict, Rejection, Root,
};
pub use error::io;
pub use handler::{Handler, Suspended};
pub use metadata::{Metadata, NoSettings};

/// The directory that the handler fills: `/` in a component, a temporary one under
/// [`testing`].
pub fn root() -> PathBuf {
    #[cfg(target_arch = "wasm32")]
    return PathBuf::from("/");
    #[cfg(not(target_arch = "wasm32"))]
    testing::root()
}
