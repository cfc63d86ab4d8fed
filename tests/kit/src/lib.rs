//! Real servers for tests: git over smart HTTP and over ssh, a package index, and
//! repositories made by the git program.
//!
//! Everything listens on loopback, runs with a clean environment, and is gone when dropped.

mod cgi;
mod guest;
mod http;
mod index;
mod repo;
mod sshd;
mod tls;
mod web;
mod wheel;
mod wire;
mod work;

pub use guest::{hostile, web};
pub use http::{Fault, GitHttp, Seen};
pub use index::Index;
pub use repo::{GitRepo, git_command};
pub use sshd::{Sshd, SshdError};
pub use tls::Tls;
pub use web::{Asked, WebServer};
pub use wheel::{sdist, wheel, wheel_of};
pub use work::Work;
