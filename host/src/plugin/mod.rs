//! The plugin runtime: components are loaded, checked, and called one fresh instance at a time.
//!
//! [`Runtime::start`] makes the engine and loads every component. A component is linked only with
//! what it imports and its [`Grants`] give. Each call gets its own store with one preopened
//! directory and limits on everything, and ends in a typed [`PluginError`] or a checked result.
//! Nothing here knows the service.

pub mod audit;
mod bindings;
mod cache;
mod call;
mod capabilities;
mod compile;
mod component;
mod convert;
mod engine;
mod error;
mod files;
mod grants;
mod inspect;
mod load;
mod load_error;
mod lock;
mod registry;
mod runtime;
mod services;
mod setup;
mod slots;
mod state;
mod stdio;
#[cfg(test)]
mod tests;
mod text;
mod trust;
mod verdict;
mod wasi;

pub use call::{CallContext, CallMode, Cancel, ProgressSink, Suspended};
pub use capabilities::http::HttpClient;
pub use compile::{COMPILE_WORKER, CompileConfig, CompileLimits, compile_worker};
pub use engine::{EPOCH, PoolSize};
pub use error::{GitFailure, LimitKind, PluginError, ProcessFailure};
pub use grants::{
    GitGrant, GrantTable, Grants, HttpGrant, HttpLimits, Limits, ProcessGrant, RootAccess,
    UidRange, epochs,
};
pub use inspect::{COMPONENT_BYTES_MAX, Inspection, PACKAGE, VERSION, check_exports, inspect};
pub(crate) use inspect::{from_hex, hex};
pub use load::{Examination, Found, LoadFailure, Sources, read};
pub use load_error::{LoadError, ManifestError, NotApproved, Origin};
pub use lock::{LockError, LockFile};
pub use registry::{Action, Description, Plugin, Registry};
pub use runtime::{Runtime, RuntimeConfig};
pub use services::Services;
pub use trust::{Authority, Resolver, Review, Trust};
