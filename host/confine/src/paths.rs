//! Landlock: which files and TCP ports code may still reach.

use std::fs::read_link;
use std::io;
use std::os::fd::{AsFd, AsRawFd, BorrowedFd, OwnedFd};
use std::path::{Path, PathBuf};
use std::ptr;

use landlock::{
    ABI, Access as _, AccessFs, AccessNet, BitFlags, CompatLevel, Compatible, NetPort, PathBeneath,
    Ruleset, RulesetAttr, RulesetCreatedAttr, RulesetError, RulesetStatus, Scope,
};
use rustix::fs::{CWD, FileType, Mode, OFlags, fstat, openat};
use rustix::io::Errno;

use crate::{ConfineError, Layer};

/// The first version that knows all that is used: files, TCP ports, devices, and scopes for signals
/// and abstract sockets.
const ABI_MIN: ABI = ABI::V6;
pub(crate) const ABI_WANTED: u32 = ABI_MIN as u32;

/// What may be done in a place.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Access {
    /// Files and folders are read.
    Read,
    /// The same, and files are executed.
    ReadExecute,
    /// Everything but executing and making devices.
    Write,
    /// Everything but making devices.
    WriteExecute,
    /// A device: read, written and controlled.
    Device,
}

impl Access {
    fn rights(self) -> BitFlags<AccessFs> {
        let read = AccessFs::ReadFile | AccessFs::ReadDir;
        let special = AccessFs::MakeChar | AccessFs::MakeBlock | AccessFs::IoctlDev;
        let write = AccessFs::from_all(ABI_MIN) & !special & !AccessFs::Execute;
        match self {
            Self::Read => read,
            Self::ReadExecute => read | AccessFs::Execute,
            Self::Write => write,
            Self::WriteExecute => write | AccessFs::Execute,
            Self::Device => {
                AccessFs::ReadFile | AccessFs::WriteFile | AccessFs::Truncate | AccessFs::IoctlDev
            }
        }
    }
}

/// Places and what may be done there, with everything below them. What is not named may not be
/// touched. Each place is what was open when the rule was made, whatever becomes of its path.
#[derive(Debug, Default)]
pub struct PathRules {
    rules: Vec<(OwnedFd, BitFlags<AccessFs>)>,
}

impl PathRules {
    /// No place at all.
    pub fn new() -> Self {
        Self::default()
    }

    /// Allows what is open here: a folder with all in it, or a single file.
    ///
    /// # Errors
    /// `Place`: it can not be examined.
    pub fn allow(&mut self, place: impl AsFd, access: Access) -> Result<(), ConfineError> {
        let place = place.as_fd();
        let owned = place.try_clone_to_owned();
        let owned = owned.map_err(|source| ConfineError::Place {
            path: path_of(place),
            source,
        })?;
        self.add(owned, access)
    }

    fn add(&mut self, place: OwnedFd, access: Access) -> Result<(), ConfineError> {
        let stat = fstat(&place).map_err(|error| ConfineError::Place {
            path: path_of(place.as_fd()),
            source: error.into(),
        })?;
        let mut rights = access.rights();
        if FileType::from_raw_mode(stat.st_mode) != FileType::Directory {
            rights &= AccessFs::from_file(ABI_MIN);
        }
        self.rules.push((place, rights));
        Ok(())
    }

    /// The same by path, which may lead over links. Says whether there is something.
    ///
    /// # Errors
    /// `Place`: it can not be opened, for another reason than that nothing is there.
    pub fn allow_path(&mut self, path: &Path, access: Access) -> Result<bool, ConfineError> {
        match openat(CWD, path, OFlags::PATH | OFlags::CLOEXEC, Mode::empty()) {
            Ok(place) => self.add(place, access).map(|()| true),
            Err(Errno::NOENT | Errno::NOTDIR) => Ok(false),
            Err(error) => Err(ConfineError::Place {
                path: path.to_owned(),
                source: error.into(),
            }),
        }
    }
}

/// Restricts the calling thread, and whatever it starts from now on, to these places and to TCP
/// connections to these ports. It can not listen on TCP ports, send signals to or connect to
/// abstract sockets of processes outside of itself, or trace them, and sets `no_new_privs`. What it
/// has open stays open. Other threads of the process stay as they are. There is no way back: the
/// thread should end with its task.
///
/// # Errors
/// `Unavailable`: the kernel does not enforce all of this; nothing is in force then but
/// `no_new_privs`. `Failed`: it refused.
pub fn restrict_thread(rules: &PathRules, tcp_connect: &[u16]) -> Result<(), ConfineError> {
    let made = || -> Result<RulesetStatus, RulesetError> {
        let mut ruleset = Ruleset::default()
            .set_compatibility(CompatLevel::HardRequirement)
            .handle_access(AccessFs::from_all(ABI_MIN))?
            .handle_access(AccessNet::BindTcp | AccessNet::ConnectTcp)?
            .scope(Scope::AbstractUnixSocket | Scope::Signal)?
            .create()?;
        for (place, rights) in &rules.rules {
            ruleset = ruleset.add_rule(PathBeneath::new(place, *rights))?;
        }
        for &port in tcp_connect {
            ruleset = ruleset.add_rule(NetPort::new(port, AccessNet::ConnectTcp))?;
        }
        Ok(ruleset.restrict_self()?.ruleset)
    };
    // Asked first: the library's own error for an old kernel names flags that say nothing.
    if landlock_abi() < ABI_WANTED {
        return Err(unavailable(format!(
            "its version is {}, and {} is needed",
            landlock_abi(),
            ABI_WANTED
        )));
    }
    match made().map_err(failure)? {
        RulesetStatus::FullyEnforced => Ok(()),
        status => Err(unavailable(format!("{status:?}"))),
    }
}

/// The version of Landlock that the kernel offers; 0 without.
pub fn landlock_abi() -> u32 {
    const VERSION: libc::c_ulong = 1;
    #[expect(unsafe_code, reason = "a system call that libc does not wrap")]
    // SAFETY: with this flag the kernel reads no memory.
    let version = unsafe {
        libc::syscall(
            libc::SYS_landlock_create_ruleset,
            ptr::null::<u8>(),
            0_usize,
            VERSION,
        )
    };
    u32::try_from(version).unwrap_or(0)
}

fn unavailable(what: impl Into<Box<dyn std::error::Error + Send + Sync>>) -> ConfineError {
    ConfineError::Unavailable {
        layer: Layer::Landlock,
        source: what.into(),
    }
}

/// An error of the kernel is one; everything else is a lack of support.
fn failure(error: RulesetError) -> ConfineError {
    let mut cause: &(dyn std::error::Error + 'static) = &error;
    while let Some(next) = cause.source() {
        cause = next;
    }
    match cause.downcast_ref::<io::Error>() {
        Some(found) => ConfineError::Failed {
            layer: Layer::Landlock,
            source: match found.raw_os_error() {
                Some(code) => io::Error::from_raw_os_error(code),
                None => io::Error::other(error.to_string()),
            },
        },
        None => unavailable(error),
    }
}

fn path_of(place: BorrowedFd<'_>) -> PathBuf {
    let link = format!("/proc/self/fd/{}", place.as_raw_fd());
    read_link(&link).unwrap_or_else(|_| link.into())
}
