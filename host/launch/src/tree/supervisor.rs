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

use crate::pump::ChildEnds;
use crate::report::{Failure, Report};
use crate::target::{Target, close_all_but, last_errno};
use crate::tree::{exit_now, fork, namespaces, numbers};

/// Supervises the child until it ends, then ends.
pub(super) fn run(target: &Target, ends: &ChildEnds, reporter: &OwnedFd, pid_one: bool) -> ! {
    let end = prepare(target, ends, reporter, pid_one)
        .map_err(Failure::at(Stage::Setup))
        .and_then(|()| supervise(target, reporter).map_err(Failure::at(Stage::Setup)));
    match end {
        Ok(status) => Report::Ended(status).send(reporter),
        Err(failure) => {
            Report::NotStarted(failure).send(reporter);
            Report::Ended(0).send(reporter);
        }
    }
    exit_now(0)
}

fn prepare(
    target: &Target,
    ends: &ChildEnds,
    reporter: &OwnedFd,
    pid_one: bool,
) -> Result<(), Errno> {
    for (number, standard) in numbers(ends).into_iter().zip(0..) {
        replace(number, standard)?;
    }
    let mut keep = vec![reporter.as_raw_fd()];
    keep.extend(target.program());
    close_all_but(&mut keep).map_err(|_| last_errno())?;
    set_parent_process_death_signal(Some(Signal::KILL))?;
    if launcher_is_gone(reporter)? {
        exit_now(1);
    }
    set_child_subreaper(Some(getpid()))?;
    if pid_one && own_proc().is_ok() {
        Report::InForce(Layer::PrivateProc).send(reporter);
    }
    Ok(())
}

fn supervise(target: &Target, reporter: &OwnedFd) -> Result<i32, Errno> {
    let parent = getpid();
    let Some(child) = fork()? else {
        Report::NotStarted(target.become_child(parent)).send(reporter);
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
