//! What a confined child puts in force itself, before it executes anything.

use std::os::fd::OwnedFd;

use rustix::fs::access;
use rustix::io::Errno;
use rustix::thread::{
    CapabilitySet, CapabilitySets, clear_ambient_capability_set, set_capabilities,
    set_thread_groups, set_thread_res_gid, set_thread_res_uid,
};
use warren_confine::{PathRules, SeccompProgram, restrict_thread};
use warren_launch::{Identity, Layer, Stage};

use crate::confine::{Plan, missing, refused};
use crate::report::{Failure, Report};
use crate::target::last_errno;

/// Capabilities are numbered from 0; the kernel says when there are no more.
const CAPABILITIES_MAX: libc::c_ulong = 64;

/// All of it, made ready before the fork.
pub(crate) struct Guard<'a> {
    pub(crate) plan: &'a Plan,
    pub(crate) private_root: bool,
    pub(crate) rules: PathRules,
    pub(crate) seccomp: SeccompProgram,
}

impl Guard<'_> {
    /// Whether a cgroup counts memory and processes.
    pub(crate) fn has_cgroup(&self) -> bool {
        self.plan.cgroup.is_some()
    }

    /// Becomes the project's user and gives up all capabilities.
    pub(crate) fn change_user(&self, reporter: &OwnedFd) -> Result<(), Failure> {
        drop_bounding_set().map_err(missing(Layer::Capabilities))?;
        if let Some(identity) = self.plan.identity {
            become_user(identity).map_err(missing(Layer::ProjectUser))?;
            self.check_reach().map_err(missing(Layer::ProjectUser))?;
            Report::InForce(Layer::ProjectUser).send(reporter);
        }
        drop_capabilities().map_err(missing(Layer::Capabilities))?;
        Report::InForce(Layer::Capabilities).send(reporter);
        Ok(())
    }

    /// Without a root of its own, the host's folders must let the new user through.
    fn check_reach(&self) -> Result<(), Errno> {
        let wanted = rustix::fs::Access::READ_OK | rustix::fs::Access::EXEC_OK;
        access(&self.plan.places.root, wanted)
    }

    /// The pinned program as it is found in the child's root.
    pub(crate) fn program(&self) -> Result<Option<OwnedFd>, Failure> {
        match &self.plan.program {
            Some((path, file)) if self.private_root => file
                .open(path)
                .map(Some)
                .map_err(Failure::at(Stage::Execute)),
            _ => Ok(None),
        }
    }

    /// Rules for files and ports, and the filter for system calls.
    pub(crate) fn restrict(&self, reporter: &OwnedFd) -> Result<(), Failure> {
        let failed = |error| refused(&error);
        restrict_thread(&self.rules, &self.plan.ports()).map_err(failed)?;
        Report::InForce(Layer::Landlock).send(reporter);
        self.seccomp.apply().map_err(failed)?;
        Report::InForce(Layer::Seccomp).send(reporter);
        Ok(())
    }
}

fn become_user(identity: Identity) -> Result<(), Errno> {
    let uid = rustix::fs::Uid::from_raw(identity.uid);
    let gid = rustix::fs::Gid::from_raw(identity.gid);
    set_thread_groups(&[])?;
    set_thread_res_gid(gid, gid, gid)?;
    set_thread_res_uid(uid, uid, uid)
}

/// What no program can get any more. Who may not do this has no capability to lose either.
fn drop_bounding_set() -> Result<(), Errno> {
    for number in 0..CAPABILITIES_MAX {
        #[expect(unsafe_code, reason = "capabilities by number, unknown ones included")]
        // SAFETY: no memory is passed.
        if unsafe { libc::prctl(libc::PR_CAPBSET_DROP, number, 0, 0, 0) } != 0 {
            return match last_errno() {
                Errno::INVAL | Errno::PERM => Ok(()),
                error => Err(error),
            };
        }
    }
    Ok(())
}

fn drop_capabilities() -> Result<(), Errno> {
    clear_ambient_capability_set()?;
    let none = CapabilitySet::empty();
    set_capabilities(
        None,
        CapabilitySets {
            effective: none,
            permitted: none,
            inheritable: none,
        },
    )
}
