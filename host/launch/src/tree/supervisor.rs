//! The process between the launcher and the child: it reaps, and its end is the end of its
//! namespace. The child itself must not be pid 1, whose signals work differently.

use std::os::fd::{AsRawFd, OwnedFd};

use rustix::event::{PollFd, PollFlags, Timespec, poll};
use rustix::io::Errno;
use rustix::mount::{MountFlags, MountPropagationFlags, mount, mount_change};
use rustix::process::{
    Signal, WaitOptions, getpid, set_child_subreaper, set_parent_process_death_signal, wait,
};
use rustix::thread::UnshareFlags;
use warren_launch::{Layer, Stage};

use crate::confine::{missing, refused, seccomp};
use crate::report::{Failure, Report};
use crate::target::guard::Guard;
use crate::target::{close_all_but, last_errno};
use crate::tree::root::NewRoot;
use crate::tree::{Started, exit_now, fork, namespaces, numbers};

/// What a confined child sees as the machine's name.
const HOST_NAME: &[u8] = b"warren";

/// Supervises the child until it ends, then ends.
pub(super) fn run(started: &Started<'_>) -> ! {
    let reporter = started.reporter;
    let end = prepare(started)
        .map_err(Failure::at(Stage::Setup))
        .and_then(|()| guard(started))
        .and_then(|guard| supervise(started, guard.as_ref()).map_err(Failure::at(Stage::Setup)));
    match end {
        Ok(status) => Report::Ended(status).send(reporter),
        Err(failure) => {
            Report::NotStarted(failure).send(reporter);
            Report::Ended(0).send(reporter);
        }
    }
    exit_now(0)
}

fn prepare(started: &Started<'_>) -> Result<(), Errno> {
    for (number, standard) in numbers(started.ends).into_iter().zip(0..) {
        replace(number, standard)?;
    }
    let mut keep = vec![started.reporter.as_raw_fd(), started.joined.as_raw_fd()];
    keep.extend(started.target.program());
    close_all_but(&mut keep).map_err(|_| last_errno())?;
    set_parent_process_death_signal(Some(Signal::KILL))?;
    if launcher_is_gone(started.reporter)? {
        exit_now(1);
    }
    set_child_subreaper(Some(getpid()))
}

/// Moves into the child's root, and makes ready what the child itself puts in force.
fn guard<'a>(started: &Started<'a>) -> Result<Option<Guard<'a>>, Failure> {
    let in_force = |layer: Layer| Report::InForce(layer).send(started.reporter);
    let Some(plan) = started.plan else {
        if started.namespaces.has(Layer::PidNamespace) && own_proc().is_ok() {
            in_force(Layer::PrivateProc);
        }
        return Ok(None);
    };
    // With one kind of namespace there are all.
    let private_root = started.namespaces.has(Layer::PidNamespace);
    if private_root {
        let failed = missing(Layer::PrivateRoot);
        namespaces::unshare(UnshareFlags::NEWNS).map_err(&failed)?;
        rustix::system::sethostname(HOST_NAME).map_err(missing(Layer::IpcNamespace))?;
        let root = NewRoot {
            places: &plan.places,
            identity: plan.identity,
            temporary_bytes: plan.temporary_bytes,
        };
        if root.enter().map_err(&failed)? {
            in_force(Layer::PrivateProc);
        }
        in_force(Layer::PrivateRoot);
    }
    let network = started.namespaces.has(Layer::NetworkNamespace);
    Ok(Some(Guard {
        plan,
        private_root,
        rules: plan.rules(private_root).map_err(|error| refused(&error))?,
        seccomp: seccomp(private_root, network).map_err(|error| refused(&error))?,
    }))
}

fn supervise(started: &Started<'_>, guard: Option<&Guard<'_>>) -> Result<i32, Errno> {
    let parent = getpid();
    if read_byte(started.joined)?.is_none() {
        // The launcher knows why.
        exit_now(1);
    }
    let Some(child) = fork()? else {
        let failure = started.target.become_child(parent, guard, started.reporter);
        Report::NotStarted(failure).send(started.reporter);
        exit_now(127);
    };
    // The child's ends are the child's alone: it must see and cause the end of each.
    for number in 0..3 {
        #[expect(
            unsafe_code,
            reason = "closing standard streams, which no value owns here"
        )]
        // SAFETY: nothing in this process uses them any more.
        unsafe {
            libc::close(number);
        }
    }
    loop {
        match wait(WaitOptions::empty()) {
            Ok(Some((pid, status))) if pid == child => return Ok(status.as_raw()),
            Ok(_) | Err(Errno::INTR) => {}
            Err(error) => return Err(error),
        }
    }
}

fn read_byte(pipe: &OwnedFd) -> Result<Option<u8>, Errno> {
    let mut byte = [0; 1];
    loop {
        match rustix::io::read(pipe, &mut byte) {
            Ok(0) => return Ok(None),
            Ok(_) => return Ok(Some(byte[0])),
            Err(Errno::INTR) => {}
            Err(error) => return Err(error),
        }
    }
}

/// Only the launcher reads reports, so without a reader it died before it could be watched.
fn launcher_is_gone(reporter: &OwnedFd) -> Result<bool, Errno> {
    let mut fds = [PollFd::new(reporter, PollFlags::OUT)];
    poll(&mut fds, Some(&Timespec::default()))?;
    Ok(fds[0].revents().contains(PollFlags::ERR))
}

/// Mounts a `/proc` that shows this namespace alone. Mounts of the host still arrive and go.
fn own_proc() -> Result<(), Errno> {
    namespaces::unshare(UnshareFlags::NEWNS)?;
    mount_change(
        "/",
        MountPropagationFlags::DOWNSTREAM | MountPropagationFlags::REC,
    )?;
    let flags = MountFlags::NOSUID | MountFlags::NODEV | MountFlags::NOEXEC;
    mount("proc", "/proc", "proc", flags, None)
}

fn replace(number: i32, with: i32) -> Result<(), Errno> {
    #[expect(unsafe_code, reason = "standard streams are replaced by number")]
    // SAFETY: the target is a standard stream; the launcher's own were `/dev/null`.
    match unsafe { libc::dup2(number, with) } {
        -1 => Err(last_errno()),
        _ => Ok(()),
    }
}
