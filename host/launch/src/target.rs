//! The child between fork and exec.

pub(crate) mod guard;

use std::ffi::CString;
use std::io;
use std::os::fd::{AsRawFd, OwnedFd, RawFd};
use std::ptr;

use rustix::fs::Mode;
use rustix::io::Errno;
use rustix::process::{Pid, Resource, Rlimit, Signal};
use warren_launch::{ChildLimits, Layer, Spec, Stage};

use crate::report::{Failure, Report};
use crate::target::guard::Guard;

/// Number of the last signal, real-time ones included.
const SIGNAL_MAX: i32 = 64;

/// All that a child needs, made ready before the fork.
pub(crate) struct Target {
    path: CString,
    program: Option<OwnedFd>,
    arguments: Vec<CString>,
    environment: Vec<CString>,
    limits: ChildLimits,
}

impl Target {
    pub(crate) fn new(spec: &Spec, program: Option<OwnedFd>) -> Result<Self, Failure> {
        let c_string = |text: String| CString::new(text).map_err(|_| Failure::spec());
        let environment = spec.environment.iter();
        Ok(Self {
            path: c_string(spec.program.clone())?,
            program,
            arguments: spec
                .arguments
                .iter()
                .map(|argument| c_string(argument.clone()))
                .collect::<Result<_, _>>()?,
            environment: environment
                .map(|(name, value)| c_string(format!("{name}={value}")))
                .collect::<Result<_, _>>()?,
            limits: spec.limits,
        })
    }

    pub(crate) fn program(&self) -> Option<RawFd> {
        self.program.as_ref().map(AsRawFd::as_raw_fd)
    }

    /// Becomes the child; returns only when that fails. Its parent is the process given here.
    pub(crate) fn become_child(
        &self,
        parent: Pid,
        guard: Option<&Guard<'_>>,
        reporter: &OwnedFd,
    ) -> Failure {
        match self.prepare(parent, guard, reporter) {
            Ok(program) => Failure::at(Stage::Execute)(self.execute(program.as_ref())),
            Err(failure) => failure,
        }
    }

    /// Everything in its order; gives the program as the child finds it.
    fn prepare(
        &self,
        parent: Pid,
        guard: Option<&Guard<'_>>,
        reporter: &OwnedFd,
    ) -> Result<Option<OwnedFd>, Failure> {
        let failed = Failure::at(Stage::Limits);
        rustix::process::setsid().map_err(&failed)?;
        rustix::process::umask(Mode::WGRP | Mode::WOTH);
        let counted = guard.is_some_and(Guard::has_cgroup);
        limit(&self.limits, counted).map_err(&failed)?;
        if let Some(guard) = guard {
            guard.change_user(reporter)?;
        }
        // A change of user forgets it.
        rustix::process::set_parent_process_death_signal(Some(Signal::KILL)).map_err(&failed)?;
        if rustix::process::getppid() != Some(parent) {
            // It died before the line above: nothing would kill this process later.
            return Err(failed(Errno::SRCH));
        }
        reset_signals();
        // Close on exec, not now: the report of a failed exec still has to go out.
        close_on_exec().map_err(&failed)?;
        rustix::thread::set_no_new_privs(true).map_err(&failed)?;
        Report::InForce(Layer::NoNewPrivs).send(reporter);
        let Some(guard) = guard else {
            return Ok(None);
        };
        let program = guard.program()?;
        guard.restrict(reporter)?;
        Ok(program)
    }

    fn execute(&self, found: Option<&OwnedFd>) -> Errno {
        let arguments = pointers(&self.arguments);
        let environment = pointers(&self.environment);
        #[expect(
            unsafe_code,
            reason = "exec with a complete environment and a pinned program"
        )]
        // SAFETY: both arrays end with a null and hold C strings that outlive the calls.
        unsafe {
            match found.or(self.program.as_ref()) {
                Some(program) => libc::execveat(
                    program.as_raw_fd(),
                    c"".as_ptr(),
                    arguments.as_ptr().cast(),
                    environment.as_ptr().cast(),
                    libc::AT_EMPTY_PATH,
                ),
                None => libc::execve(self.path.as_ptr(), arguments.as_ptr(), environment.as_ptr()),
            };
        }
        last_errno()
    }
}

fn pointers(strings: &[CString]) -> Vec<*const libc::c_char> {
    let pointers = strings.iter().map(|string| string.as_ptr());
    pointers.chain([ptr::null()]).collect()
}

/// `counted`: a cgroup counts what the whole tree has.
fn limit(limits: &ChildLimits, counted: bool) -> Result<(), Errno> {
    let alone = |limit: Option<u64>| limit.filter(|_| !counted);
    let wanted = [
        (Resource::Core, Some(0)),
        (Resource::Nofile, limits.open_files),
        (Resource::Fsize, limits.file_bytes),
        (Resource::Nproc, alone(limits.processes)),
        (Resource::Data, alone(limits.memory_bytes)),
    ];
    for (resource, most) in wanted {
        let Some(most) = most else { continue };
        // Never above what the host itself may: raising needs a privilege, lowering does not.
        let most = match rustix::process::getrlimit(resource).maximum {
            Some(maximum) => most.min(maximum),
            None => most,
        };
        let limit = Rlimit {
            current: Some(most),
            maximum: Some(most),
        };
        rustix::process::setrlimit(resource, limit)?;
    }
    Ok(())
}

/// Undoes what the launcher's runtime and the host may have set: ignored signals would stay so.
fn reset_signals() {
    // A kernel `sigaction` in which all is zero: the default action.
    let default = [0_u64; 4];
    #[expect(unsafe_code, reason = "libc refuses the signals that it uses itself")]
    // SAFETY: the structure is no larger than the array; numbers without a signal, and those that
    // can not be changed, fail without effect. The set is initialised before use.
    unsafe {
        for signal in 1..=SIGNAL_MAX {
            libc::syscall(
                libc::SYS_rt_sigaction,
                signal,
                default.as_ptr(),
                ptr::null::<u64>(),
                size_of::<u64>(),
            );
        }
        let mut none = std::mem::zeroed();
        libc::sigemptyset(&raw mut none);
        libc::sigprocmask(libc::SIG_SETMASK, &raw const none, ptr::null_mut());
    }
}

fn close_on_exec() -> Result<(), Errno> {
    close_range(3, u32::MAX, libc::CLOSE_RANGE_CLOEXEC)
}

/// Closes every descriptor beyond standard error but these.
pub(crate) fn close_all_but(keep: &mut [RawFd]) -> io::Result<()> {
    keep.sort_unstable();
    let mut first = 3;
    for fd in keep.iter().filter_map(|&fd| u32::try_from(fd).ok()) {
        if first < fd {
            close_range(first, fd - 1, 0)?;
        }
        first = first.max(fd + 1);
    }
    Ok(close_range(first, u32::MAX, 0)?)
}

fn close_range(first: u32, last: u32, flags: u32) -> Result<(), Errno> {
    #[expect(unsafe_code, reason = "rustix has no close_range")]
    // SAFETY: callers give up every descriptor in the range, or only mark it.
    match unsafe { libc::syscall(libc::SYS_close_range, first, last, flags) } {
        0 => Ok(()),
        _ => Err(last_errno()),
    }
}

/// The error of the last call into libc.
pub(crate) fn last_errno() -> Errno {
    Errno::from_io_error(&io::Error::last_os_error()).unwrap_or(Errno::IO)
}
