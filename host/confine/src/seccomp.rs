//! The system calls that no build and no script needs fail; what they open is the kernel's own attack
//! surface.

mod denied;

use std::io;

use seccompiler::{
    BpfProgram, SeccompAction, SeccompCmpArgLen, SeccompCmpOp, SeccompCondition, SeccompFilter,
    SeccompRule, apply_filter, sock_filter,
};

use crate::{ConfineError, Layer};

/// Which families of sockets may be made. All others than these two never.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Sockets {
    /// Unix sockets. Pairs of them, which lead nowhere, always may.
    pub unix: bool,
    /// TCP and UDP.
    pub inet: bool,
}

/// A filter, made ready: installing it does not allocate.
#[derive(Debug, Clone)]
pub struct SeccompProgram {
    parts: Vec<BpfProgram>,
}

impl SeccompProgram {
    /// The deny list. Denied calls fail with `EPERM`; `clone3` and `openat2`, whose arguments a
    /// filter can not see, with `ENOSYS`, after which callers use the older ones; calls of another architecture kill.
    ///
    /// # Errors
    /// `Unavailable`: not made for this architecture. `Failed`: the filter could not be built.
    pub fn new(sockets: Sockets) -> Result<Self, ConfineError> {
        let denied = denied::rules(sockets).map_err(unbuilt)?;
        let missing = denied::MISSING.map(|call| (call, Vec::new()));
        let filter = |rules, errno: i32| -> Result<BpfProgram, seccompiler::BackendError> {
            let action = SeccompAction::Errno(errno as u32);
            let arch = std::env::consts::ARCH.try_into()?;
            SeccompFilter::new(rules, SeccompAction::Allow, action, arch)?.try_into()
        };
        let parts = [
            filter(denied, libc::EPERM),
            filter(missing.into_iter().collect(), libc::ENOSYS),
        ];
        let mut parts = parts
            .into_iter()
            .collect::<Result<Vec<_>, _>>()
            .map_err(unbuilt)?;
        parts.extend(foreign_numbers());
        Ok(Self { parts })
    }

    /// Puts the filter in force for the calling thread and what it starts from now on. Sets
    /// `no_new_privs`.
    ///
    /// # Errors
    /// `Unavailable`: the kernel knows no filters. `Failed`: it refused.
    pub fn apply(&self) -> Result<(), ConfineError> {
        self.parts.iter().try_for_each(|part| {
            apply_filter(part).map_err(|error| match error {
                seccompiler::Error::Seccomp(source) | seccompiler::Error::Prctl(source)
                    if !matches!(source.raw_os_error(), Some(libc::ENOSYS | libc::EINVAL)) =>
                {
                    ConfineError::Failed {
                        layer: Layer::Seccomp,
                        source,
                    }
                }
                error => ConfineError::Unavailable {
                    layer: Layer::Seccomp,
                    source: Box::new(error),
                },
            })
        })
    }
}

fn unbuilt(error: seccompiler::BackendError) -> ConfineError {
    ConfineError::Failed {
        layer: Layer::Seccomp,
        source: io::Error::other(error),
    }
}

/// Calls by the numbers of x32, which look like those of this architecture, kill the process.
#[cfg(target_arch = "x86_64")]
fn foreign_numbers() -> Option<BpfProgram> {
    const LOAD_WORD: u16 = 0x20;
    const JUMP_IF_GREATER_OR_EQUAL: u16 = 0x35;
    const RETURN: u16 = 0x06;
    const X32_BIT: u32 = 0x4000_0000;
    let step = |code, jt, jf, k| sock_filter { code, jt, jf, k };
    Some(vec![
        // The number of the call is at offset 0.
        step(LOAD_WORD, 0, 0, 0),
        step(JUMP_IF_GREATER_OR_EQUAL, 0, 1, X32_BIT),
        step(RETURN, 0, 0, libc::SECCOMP_RET_KILL_PROCESS),
        step(RETURN, 0, 0, libc::SECCOMP_RET_ALLOW),
    ])
}

#[cfg(not(target_arch = "x86_64"))]
fn foreign_numbers() -> Option<BpfProgram> {
    None
}

type Built<T> = Result<T, seccompiler::BackendError>;

/// A rule: the argument, of which the lower half counts, compares so.
fn when(argument: u8, compare: SeccompCmpOp, value: u64) -> Built<SeccompRule> {
    SeccompRule::new(vec![condition(argument, compare, value)?])
}

fn condition(argument: u8, compare: SeccompCmpOp, value: u64) -> Built<SeccompCondition> {
    SeccompCondition::new(argument, SeccompCmpArgLen::Dword, compare, value)
}
