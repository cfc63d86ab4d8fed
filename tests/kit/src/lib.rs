//! Real servers for tests: git over smart HTTP and over ssh, and repositories made by the git program.
//!
//! Everything listens on loopback, runs with a clean environment, and is gone when dropped.

mod cgi;
mod guest;
mod http;
mod repo;
mod sshd;
mod tls;
mod web;
mod wheel;
mod wire;
mod work;

pub use guest::{hostile, web};
pub use http::{Fault, GitHttp, Seen};
pub use repo::{GitRepo, git_command};
pub use sshd::{Sshd, SshdError};
pub use tls::Tls;
pub use web::{Asked, WebServer};
pub use wheel::wheel;
pub use work::Work;
