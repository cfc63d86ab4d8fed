//! Real servers for tests: git over smart HTTP and over ssh, and repositories made by the git program.
//!
//! Everything listens on loopback, runs with a clean environment, and is gone when dropped.

mod cgi;
mod guest;
mod http;
mod repo;
mod sshd;
mod tls;
mod wheel;
mod wire;
mod work;

pub use guest::hostile;
pub use http::{Fault, GitHttp, Seen};
pub use repo::{GitRepo, git_command};
pub use sshd::{Sshd, SshdError};
pub use tls::Tls;
pub use wheel::wheel;
pub use work::Work;
