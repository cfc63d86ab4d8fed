//! Native children: which programs may run, with which environment, and running them through
//! `warren-launch`, capped, with a deadline, and never outliving the call.

mod client;
mod command;
mod confinement;
mod environment;
mod error;
mod identities;
mod launcher;
mod program;

pub use command::{Captured, Command, Output, OutputCaps, OutputSink, OutputStream};
pub use confinement::{Confined, Confinement, ProxyStart};
pub use environment::{Environment, PATH};
pub use error::ProcessError;
pub use identities::Identities;
pub use launcher::Launcher;
pub use program::{Program, Programs};
pub use warren_launch::{ChildLimits, Identity, Layer, LayerSet, LimitsHit, PROXY_ADDRESS};
