use std::io;
use std::path::PathBuf;

use warren_launch::Layer;

/// Why a program was not run to its end. A program that ran and exited with an error is not one.
#[derive(Debug, thiserror::Error)]
pub enum ProcessError {
    /// The policy does not grant it; says what was asked.
    #[error("{0} is not granted")]
    Denied(String),
    /// A program, argument, variable or directory that is not valid; says which and why.
    #[error("{0}")]
    InvalidArgument(String),
    /// The program, or the interpreter that it names, is not on this machine.
    #[error("program `{0}` was not found")]
    NotFound(String),
    /// The program was killed at its time limit.
    #[error("the program was stopped at its time limit")]
    Timeout {
        /// The end of what it wrote, of standard error if there was any.
        tail: String,
    },
    /// A signal killed the program.
    #[error("the program was killed by signal {signal}")]
    Killed {
        /// The signal's number.
        signal: i32,
        /// The end of what it wrote, of standard error if there was any.
        tail: String,
    },
    /// The program was killed because its tree had used up the memory that it was given.
    #[error("the program was killed at its memory limit")]
    OutOfMemory {
        /// The end of what it wrote, of standard error if there was any.
        tail: String,
    },
    /// The program was stopped because it used more disk than its RootDir may; says how much.
    #[error("the program was stopped: {0}")]
    Quota(String),
    /// The machine can not confine the program, which was therefore not started.
    #[error("the program can not be confined: {layer} could not be put in force")]
    Confinement {
        /// What is missing.
        layer: Layer,
        /// What the kernel says, where it says something.
        #[source]
        source: Option<io::Error>,
    },
    /// The program `warren-launch` is not where it must be.
    #[error("`warren-launch` was not found at `{}`", .0.display())]
    NoLauncher(PathBuf),
    /// The program could not be started; says what failed.
    #[error("{what}")]
    Failed {
        /// The step, for a person.
        what: String,
        /// The error of the operating system, where there is one.
        #[source]
        source: Option<io::Error>,
    },
}

impl ProcessError {
    /// For `map_err`: this step failed.
    pub(crate) fn failed<E: Into<io::Error>>(what: &str) -> impl FnOnce(E) -> Self {
        move |error| Self::Failed {
            what: what.to_owned(),
            source: Some(error.into()),
        }
    }

    /// Stable name of the variant for machines.
    pub fn code(&self) -> &'static str {
        match self {
            Self::Denied(_) => "ProcessDenied",
            Self::InvalidArgument(_) => "ProcessInvalidArgument",
            Self::NotFound(_) => "ProcessNotFound",
            Self::Timeout { .. } => "ProcessTimeout",
            Self::Killed { .. } => "ProcessKilled",
            Self::OutOfMemory { .. } => "ProcessOutOfMemory",
            Self::Quota(_) => "WorkspaceQuotaExceeded",
            Self::Confinement { .. } => "ProcessConfinement",
            Self::NoLauncher(_) => "ProcessNoLauncher",
            Self::Failed { .. } => "ProcessFailed",
        }
    }

    /// What a person can do next.
    pub fn hint(&self) -> Option<String> {
        let hint = match self {
            Self::Denied(_) => "the operator lists what may run in the configuration",
            Self::NotFound(_) => "install it on this machine, or name another one",
            Self::Timeout { .. } => "a longer time limit may help",
            Self::OutOfMemory { .. } => "the policy's `memory-bytes` for this plugin is the limit",
            Self::Quota(_) => "the policy's `disk-bytes` and `inodes` are the limit",
            Self::Confinement { layer, .. } => return Some(confinement_hint(*layer)),
            Self::NoLauncher(_) => {
                "build it with `cargo build -p warren-launch` and keep it beside `warren`"
            }
            Self::Killed { signal, .. } => {
                match rustix::process::Signal::from_named_raw(*signal)? {
                    rustix::process::Signal::XFSZ => "it wrote a file beyond the size limit",
                    rustix::process::Signal::XCPU => "it passed the limit of processor time",
                    rustix::process::Signal::KILL => "the machine may be short of memory",
                    _ => return None,
                }
            }
            Self::InvalidArgument(_) | Self::Failed { .. } => return None,
        };
        Some(hint.to_owned())
    }
}

fn confinement_hint(layer: Layer) -> String {
    let needed = match layer {
        Layer::Landlock => "Linux 6.12 or newer with Landlock is needed",
        Layer::NetworkNamespace => "without network namespaces no program gets a network",
        Layer::ProjectUser => "a host that is root must be able to become another user",
        _ => "this machine does not give it",
    };
    format!(
        "{needed}; see `warren doctor`. The policy's `unconfined = true` lets programs run without \
         any protection"
    )
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn hints_name_the_limit() {
        let killed = |signal| ProcessError::Killed {
            signal,
            tail: String::new(),
        };
        assert!(killed(25).hint().unwrap().contains("size limit"));
        assert_eq!(killed(11).hint(), None);
        assert_eq!(killed(11).code(), "ProcessKilled");
    }
}
