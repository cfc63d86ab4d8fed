//! What the kernel offers to keep code away from the rest of the machine: Landlock rules, a seccomp
//! filter, cgroups, and a probe of which of these this machine really gives.
//!
//! Nothing here weakens silently. A rule set is in force as a whole or the caller gets an error that
//! names the layer.

#[cfg(not(target_os = "linux"))]
compile_error!("warren-confine needs Linux: Landlock, seccomp, namespaces");

mod cgroup;
mod error;
mod layer;
mod paths;
mod probe;
mod seccomp;

pub use cgroup::{Cgroup, CgroupLimits, LimitsHit};
pub use error::ConfineError;
pub use layer::{Layer, LayerSet};
pub use paths::{Access, PathRules, landlock_abi, restrict_thread};
pub use probe::{Layers, Probed, probe};
pub use seccomp::{SeccompProgram, Sockets};
