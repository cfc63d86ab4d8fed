//! The verbs of the `git` capability over real servers.

mod clone;
mod hostile;
mod limits;
mod network;
mod push;
mod restore;
mod secrets;
mod setup;
mod ssh;
mod tls;
