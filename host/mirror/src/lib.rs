//! Remotes: which may be used, as whom, and what the verbs of the `git` capability do with them.
//!
//! The only crate that sees a credential, and the only one that git reaches the network through.
//! Everything goes by a mirror of ours; a RootDir is forked from it and pushed through it.

mod confine;
mod credentials;
mod error;
#[doc(hidden)]
pub mod fuzzing;
mod known_hosts;
mod mirror;
mod mirrors;
mod names;
mod policy;
mod progress;
mod remote;
mod remote_url;
mod scratch;
mod secret;
mod session;
mod wire;

pub use credentials::{Credential, CredentialStore};
pub use error::MirrorError;
pub use mirrors::{Mirrors, MirrorsSpec};
pub use names::RefPatterns;
pub use policy::{DEFAULT_ALLOW, UrlPolicy};
pub use progress::{Progress, ProgressSink};
pub use remote_url::RemoteUrl;
pub use secret::SecretSource;
pub use session::{Lay, Origin, Session, SessionSpec, Snapshot};
pub use warren_repo::{Exclude, Head, Status};
pub use wire::Limits;
