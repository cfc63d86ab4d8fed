//! What this machine really gives: each layer is tried, in a process or thread of its own.

use std::io;
use std::thread;

use rustix::io::Errno;
use rustix::mount::{
    FsMountFlags, FsOpenFlags, MountAttrFlags, MountPropagationFlags, fsconfig_create, fsmount,
    fsopen, mount_change,
};
use rustix::process::{Pid, WaitOptions, geteuid, waitpid};
use rustix::thread::{CapabilitySet, CapabilitySets, UnshareFlags};

use crate::paths::{ABI_WANTED, landlock_abi, restrict_thread};
use crate::{Cgroup, CgroupLimits, ConfineError, Layer, PathRules, SeccompProgram, Sockets};

/// Somebody whom every system has.
const NOBODY: u32 = 65_534;

/// What this machine gives.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Layers {
    /// Version of Landlock; 0 without.
    pub landlock_abi: u32,
    /// The version that confinement needs.
    pub landlock_abi_needed: u32,
    /// Every layer once.
    pub layers: Vec<Probed>,
}

/// One layer.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Probed {
    /// Which.
    pub layer: Layer,
    /// Why it can not be had; none: it can.
    pub missing: Option<String>,
}

impl Layers {
    /// Why it can not be had; none: it can.
    pub fn missing(&self, layer: Layer) -> Option<&str> {
        let found = self.layers.iter().find(|probed| probed.layer == layer);
        found.and_then(|probed| probed.missing.as_deref())
    }

    /// Layers without which no child is confined, and that can not be had.
    pub fn refused(&self) -> impl Iterator<Item = &Probed> {
        let required = |probed: &&Probed| {
            probed.layer.is_required()
                || (probed.layer == Layer::ProjectUser && geteuid().is_root())
        };
        let layers = self.layers.iter().filter(required);
        layers.filter(|probed| probed.missing.is_some())
    }
}

/// Tries every layer. Takes some milliseconds, and starts and ends a few processes.
pub fn probe() -> Layers {
    let layers = Layer::ALL.map(|layer| Probed {
        layer,
        missing: attempt(layer).err(),
    });
    Layers {
        landlock_abi: landlock_abi(),
        landlock_abi_needed: ABI_WANTED,
        layers: layers.into(),
    }
}

fn attempt(layer: Layer) -> Result<(), String> {
    match layer {
        Layer::NoNewPrivs => {
            in_thread(|| rustix::thread::set_no_new_privs(true).map_err(|error| error.to_string()))
        }
        Layer::Landlock => in_thread(landlock),
        Layer::Seccomp => in_thread(seccomp),
        Layer::ProjectUser if !geteuid().is_root() => {
            Err("the host is not root, so that children run as the host's own user".to_owned())
        }
        Layer::ProjectUser => in_process(|| {
            let user = rustix::process::Uid::from_raw(NOBODY);
            let group = rustix::process::Gid::from_raw(NOBODY);
            rustix::thread::set_thread_groups(&[])?;
            rustix::thread::set_thread_res_gid(group, group, group)?;
            rustix::thread::set_thread_res_uid(user, user, user)
        }),
        Layer::Capabilities => in_process(|| {
            let none = CapabilitySet::empty();
            let sets = CapabilitySets {
                effective: none,
                permitted: none,
                inheritable: none,
            };
            rustix::thread::set_capabilities(None, sets)
        }),
        Layer::UserNamespace => in_process(|| unshare(UnshareFlags::NEWUSER)),
        Layer::PidNamespace => in_process(|| enter(UnshareFlags::NEWPID)),
        Layer::NetworkNamespace => in_process(|| enter(UnshareFlags::NEWNET)),
        Layer::IpcNamespace => in_process(|| enter(UnshareFlags::NEWIPC | UnshareFlags::NEWUTS)),
        Layer::PrivateRoot => in_process(|| mount("tmpfs", UnshareFlags::NEWNS)),
        Layer::PrivateProc => in_process(|| {
            enter(UnshareFlags::NEWPID)?;
            // Only a process in the new namespace may show it.
            let Some(child) = fork()? else {
                exit(mount("proc", UnshareFlags::NEWNS));
            };
            status_of(child)
        }),
        Layer::Cgroup => match Cgroup::new(CgroupLimits::default()) {
            Ok(Some(_)) => Ok(()),
            Ok(None) => Err(
                "there is no control group for memory and processes below which the host may make \
                 its own"
                    .to_owned(),
            ),
            Err(error) => Err(error.to_string()),
        },
    }
}

/// The thread ends with the attempt, and with it what was put in force.
fn in_thread(attempt: impl FnOnce() -> Result<(), String> + Send) -> Result<(), String> {
    thread::scope(|scope| match scope.spawn(attempt).join() {
        Ok(result) => result,
        Err(_) => Err("the attempt failed".to_owned()),
    })
}

fn landlock() -> Result<(), String> {
    restrict_thread(&PathRules::new(), &[]).map_err(|error| told(&error))?;
    match std::fs::read_dir("/") {
        Err(error) if error.kind() == io::ErrorKind::PermissionDenied => Ok(()),
        Ok(_) | Err(_) => Err("rules are taken but not enforced".to_owned()),
    }
}

fn seccomp() -> Result<(), String> {
    let sockets = Sockets {
        unix: false,
        inet: false,
    };
    let program = SeccompProgram::new(sockets).map_err(|error| told(&error))?;
    program.apply().map_err(|error| told(&error))?;
    let flags = rustix::net::SocketFlags::CLOEXEC;
    let family = rustix::net::AddressFamily::UNIX;
    match rustix::net::socket_with(family, rustix::net::SocketType::STREAM, flags, None) {
        Err(Errno::PERM) => Ok(()),
        Ok(_) | Err(_) => Err("filters are taken but not enforced".to_owned()),
    }
}

fn told(error: &ConfineError) -> String {
    match std::error::Error::source(error) {
        Some(source) => format!("{error}: {source}"),
        None => error.to_string(),
    }
}

/// In a forked process, which makes system calls only: other threads of ours may hold locks.
fn in_process(attempt: impl FnOnce() -> Result<(), Errno>) -> Result<(), String> {
    let tried = || {
        let Some(child) = fork()? else {
            exit(attempt());
        };
        status_of(child)
    };
    tried().map_err(|error: Errno| error.to_string())
}

fn fork() -> Result<Option<Pid>, Errno> {
    #[expect(unsafe_code, reason = "a fork without exec")]
    // SAFETY: the forked process makes system calls and ends.
    match unsafe { libc::fork() } {
        -1 => Err(Errno::from_io_error(&io::Error::last_os_error()).unwrap_or(Errno::IO)),
        pid => Ok(Pid::from_raw(pid)),
    }
}

/// Ends the forked process; its exit code is the error's number.
fn exit(result: Result<(), Errno>) -> ! {
    let code = result.map_or_else(Errno::raw_os_error, |()| 0);
    #[expect(unsafe_code, reason = "no exit handlers in a forked process")]
    // SAFETY: `_exit` has no preconditions.
    unsafe {
        libc::_exit(code)
    }
}

fn status_of(child: Pid) -> Result<(), Errno> {
    loop {
        let ended = match waitpid(Some(child), WaitOptions::empty()) {
            Ok(ended) => ended,
            Err(Errno::INTR) => continue,
            Err(error) => return Err(error),
        };
        return match ended.and_then(|(_, status)| status.exit_status()) {
            Some(0) => Ok(()),
            Some(code) => Err(Errno::from_raw_os_error(code)),
            None => Err(Errno::IO),
        };
    }
}

fn unshare(flags: UnshareFlags) -> Result<(), Errno> {
    #[expect(unsafe_code, reason = "new namespaces")]
    // SAFETY: in a forked process of one thread.
    unsafe {
        rustix::thread::unshare_unsafe(flags)
    }
}

/// With a user namespace where we have no privilege of our own.
fn enter(flags: UnshareFlags) -> Result<(), Errno> {
    match unshare(flags) {
        Err(Errno::PERM) => unshare(flags | UnshareFlags::NEWUSER),
        other => other,
    }
}

fn mount(kind: &str, flags: UnshareFlags) -> Result<(), Errno> {
    enter(flags)?;
    let private = MountPropagationFlags::PRIVATE | MountPropagationFlags::REC;
    mount_change("/", private)?;
    let made = fsopen(kind, FsOpenFlags::FSOPEN_CLOEXEC)?;
    fsconfig_create(&made)?;
    let attributes = MountAttrFlags::MOUNT_ATTR_NOSUID;
    fsmount(&made, FsMountFlags::FSMOUNT_CLOEXEC, attributes).map(drop)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_layer_is_tried_and_we_stay_as_we_were() {
        let before = std::fs::read_to_string("/proc/thread-self/status").unwrap();
        let found = probe();
        let layers: Vec<_> = found.layers.iter().map(|probed| probed.layer).collect();
        assert_eq!(layers, Layer::ALL);
        let after = std::fs::read_to_string("/proc/thread-self/status").unwrap();
        for line in ["Uid:", "NoNewPrivs:", "Seccomp:", "CapEff:"] {
            let of = |text: &str| {
                text.lines()
                    .find(|l| l.starts_with(line))
                    .map(str::to_owned)
            };
            assert_eq!(of(&before), of(&after));
        }
        assert!(std::fs::read_dir("/").is_ok());
        let landlock = found.missing(Layer::Landlock);
        assert_eq!(
            found.landlock_abi >= found.landlock_abi_needed,
            landlock.is_none()
        );
        let refused = found
            .refused()
            .any(|probed| probed.layer == Layer::Landlock);
        assert_eq!(refused, landlock.is_some());
    }
}
