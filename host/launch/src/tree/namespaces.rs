//! Entering namespaces, with a user namespace where the launcher has no privilege of its own.

use std::fs;
use std::io;

use rustix::io::Errno;
use rustix::process::{WaitOptions, getegid, geteuid, waitpid};
use rustix::thread::UnshareFlags;

use crate::tree::{exit_now, fork};

/// Puts the next fork into a new process namespace; false when the kernel does not let us.
pub(super) fn enter() -> Result<bool, Errno> {
    match unshare(UnshareFlags::NEWPID) {
        Ok(()) => return Ok(true),
        Err(Errno::PERM) => {}
        Err(_) => return Ok(false),
    }
    // Tried out in a process of its own: a user namespace without a map can not be left again.
    let Some(probe) = fork()? else {
        exit_now(i32::from(enter_as_user().is_err()));
    };
    let works = loop {
        match waitpid(Some(probe), WaitOptions::empty()) {
            Ok(ended) => break ended.and_then(|(_, status)| status.exit_status()) == Some(0),
            Err(Errno::INTR) => {}
            Err(error) => return Err(error),
        }
    };
    if works {
        enter_as_user().map_err(|error| Errno::from_io_error(&error).unwrap_or(Errno::IO))?;
    }
    Ok(works)
}

/// The same, with our user and group as the only ones in the new user namespace.
fn enter_as_user() -> io::Result<()> {
    let (user, group) = (geteuid().as_raw(), getegid().as_raw());
    unshare(UnshareFlags::NEWUSER | UnshareFlags::NEWPID)?;
    fs::write("/proc/self/setgroups", "deny")?;
    fs::write("/proc/self/uid_map", format!("{user} {user} 1"))?;
    fs::write("/proc/self/gid_map", format!("{group} {group} 1"))
}

/// Leaves the namespaces named.
pub(super) fn unshare(flags: UnshareFlags) -> Result<(), Errno> {
    #[expect(unsafe_code, reason = "new namespaces")]
    // SAFETY: descriptors and memory stay shared with nobody: this program has one thread.
    unsafe {
        rustix::thread::unshare_unsafe(flags)
    }
}
