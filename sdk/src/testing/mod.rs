//! A stand-in for the host, so that a handler can be tested without wasm.
//!
//! [`Host::new`] installs one for the current thread, with a fresh directory as the root. A
//! capability answers with the closure that the test gives; without one it is denied, as by a host
//! that does not grant it.

pub(crate) mod git;
mod host;
pub(crate) mod process;
mod repo;

pub use git::{GitCall, GitReply};
pub use host::{Host, LogLine, ProgressLine};
pub(crate) use host::{log, progress, root};
pub use repo::FakeRepo;
