//! Warren keeps the Workspaces of agent engines: creates, saves, suspends, recovers and reclaims
//! them. Every kind of content is a wasm component that reaches only what it was granted.
//!
//! [`service::Service`] has every operation. The library prints nothing and reads no configuration
//! of its own accord: `config` does that when asked.

pub mod config;
pub mod doctor;
pub mod error;
pub mod plugin;
pub mod review;
mod seal;
pub mod service;
pub mod store;

pub use error::Error;
pub use store::ProjectKey;
