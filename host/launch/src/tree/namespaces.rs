//! Entering namespaces, with a user namespace where the launcher has no privilege of its own.

use std::fs;
use std::io;

use rustix::io::Errno;
use rustix::mount::{FsOpenFlags, MountPropagationFlags, fsconfig_create, fsopen, mount_change};
use rustix::process::{Pid, WaitOptions, getegid, geteuid, getpid, waitpid};
use rustix::thread::UnshareFlags;
use warren_launch::{Identity, Layer, LayerSet};

use crate::tree::{exit_now, fork};

/// What a child gets.
#[derive(Debug, Clone, Copy)]
pub(super) struct Wanted {
    /// All kinds; otherwise only processes.
    pub(super) all: bool,
    /// Whom it will run as.
    pub(super) identity: Option<Identity>,
}

impl Wanted {
    fn flags(self) -> UnshareFlags {
        if self.all {
            UnshareFlags::NEWPID
                | UnshareFlags::NEWNET
                | UnshareFlags::NEWIPC
                | UnshareFlags::NEWUTS
        } else {
            UnshareFlags::NEWPID
        }
    }

    fn layers(self) -> LayerSet {
        let all = [
            Layer::PidNamespace,
            Layer::NetworkNamespace,
            Layer::IpcNamespace,
        ];
        let count = if self.all { all.len() } else { 1 };
        all.into_iter().take(count).collect()
    }
}

/// Puts the next fork into namespaces of its own; none when the kernel does not let us.
pub(super) fn enter(wanted: Wanted) -> Result<LayerSet, Errno> {
    match unshare(wanted.flags()) {
        Ok(()) => return Ok(wanted.layers()),
        Err(Errno::PERM) => {}
        Err(_) => return Ok(LayerSet::default()),
    }
    // Tried out in a process of its own: a user namespace without a map can not be left again.
    let Some(probe) = fork()? else {
        let works = enter_as_user(wanted).and_then(|()| try_mounts(wanted));
        exit_now(i32::from(works.is_err()));
    };
    if !ends_well(probe)? {
        return Ok(LayerSet::default());
    }
    enter_as_user(wanted).map_err(|error| Errno::from_io_error(&error).unwrap_or(Errno::IO))?;
    let mut layers = wanted.layers();
    layers.insert(Layer::UserNamespace);
    Ok(layers)
}

/// The same, with our user and group, and the child's, as the only ones in the new user namespace.
fn enter_as_user(wanted: Wanted) -> io::Result<()> {
    let (user, group) = (geteuid().as_raw(), getegid().as_raw());
    let flags = UnshareFlags::NEWUSER | wanted.flags();
    let Some(Identity { uid, gid }) = wanted.identity else {
        unshare(flags)?;
        fs::write("/proc/self/setgroups", "deny")?;
        fs::write("/proc/self/uid_map", format!("{user} {user} 1"))?;
        return fs::write("/proc/self/gid_map", format!("{group} {group} 1"));
    };
    // More than one can only be mapped from outside.
    let (wait, go) = rustix::pipe::pipe()?;
    let ours = getpid();
    let Some(mapper) = fork()? else {
        drop(go);
        let told = rustix::io::read(&wait, &mut [0; 1]);
        let users = format!("{user} {user} 1\n{uid} {uid} 1");
        let groups = format!("{group} {group} 1\n{gid} {gid} 1");
        exit_now(i32::from(
            told != Ok(1) || map(ours, &users, &groups).is_err(),
        ));
    };
    unshare(flags)?;
    rustix::io::write(&go, &[1])?;
    if ends_well(mapper)? {
        Ok(())
    } else {
        Err(io::ErrorKind::PermissionDenied.into())
    }
}

fn map(process: Pid, users: &str, groups: &str) -> io::Result<()> {
    let folder = format!("/proc/{}", process.as_raw_pid());
    fs::write(format!("{folder}/uid_map"), users)?;
    fs::write(format!("{folder}/gid_map"), groups)
}

/// Some systems give user namespaces, but nothing may be mounted in them.
fn try_mounts(wanted: Wanted) -> io::Result<()> {
    if !wanted.all {
        return Ok(());
    }
    unshare(UnshareFlags::NEWNS)?;
    let private = MountPropagationFlags::PRIVATE | MountPropagationFlags::REC;
    mount_change("/", private)?;
    Ok(fsconfig_create(fsopen(
        "tmpfs",
        FsOpenFlags::FSOPEN_CLOEXEC,
    )?)?)
}

fn ends_well(process: Pid) -> Result<bool, Errno> {
    loop {
        match waitpid(Some(process), WaitOptions::empty()) {
            Ok(ended) => return Ok(ended.and_then(|(_, status)| status.exit_status()) == Some(0)),
            Err(Errno::INTR) => {}
            Err(error) => return Err(error),
        }
    }
}

/// Leaves the namespaces named.
pub(super) fn unshare(flags: UnshareFlags) -> Result<(), Errno> {
    #[expect(unsafe_code, reason = "new namespaces")]
    // SAFETY: descriptors and memory stay shared with nobody: this program has one thread.
    unsafe {
        rustix::thread::unshare_unsafe(flags)
    }
}
