//! The processes: a supervisor, which is pid 1 of a namespace where the kernel allows, the child
//! below it, and whatever that starts; and how all of them end.

mod descendants;
mod namespaces;
mod network;
mod root;
mod supervisor;

use std::os::fd::{AsFd, AsRawFd, BorrowedFd, OwnedFd, RawFd};
use std::time::{Duration, Instant};

use rustix::event::{PollFd, PollFlags};
use rustix::io::Errno;
use rustix::pipe::PipeFlags;
use rustix::process::{
    Pid, PidfdFlags, Signal, WaitOptions, getpid, pidfd_open, set_child_subreaper, waitpid,
};
use warren_confine::Cgroup;
use warren_launch::{Layer, LayerSet, LimitsHit, Outcome, Stage};

use crate::confine::{self, Plan, missing};
use crate::pump::ChildEnds;
use crate::receive::Request;
use crate::reply;
use crate::report::{Failure, REPORT_BYTES, Report};
use crate::target::{Target, last_errno};
use crate::tree::namespaces::Wanted;

/// How long killed processes may take to go away.
const GRACE: Duration = Duration::from_secs(5);

/// What was started.
pub(crate) struct Tree {
    supervisor: Pid,
    reports: OwnedFd,
    pub(crate) isolation: LayerSet,
    not_started: Option<Failure>,
    cgroup: Option<Cgroup>,
}

/// What the supervisor is forked with.
struct Started<'a> {
    target: &'a Target,
    plan: Option<&'a Plan>,
    ends: &'a ChildEnds,
    reporter: &'a OwnedFd,
    /// A byte comes when this process is in its groups; the end when it can not be.
    joined: &'a OwnedFd,
    namespaces: LayerSet,
}

/// Starts the child of the request. Pipes that are the child's close here.
pub(crate) fn start(client: &OwnedFd, request: Request, ends: ChildEnds) -> Result<Tree, Failure> {
    let setup = Failure::at(Stage::Setup);
    let plan = Plan::new(&request)?;
    let target = Target::new(&request.spec, request.program)?;
    // Before any mount namespace: only a working directory is carried over into one.
    rustix::process::fchdir(&request.directory).map_err(Failure::at(Stage::Directory))?;
    set_child_subreaper(Some(getpid())).map_err(&setup)?;
    let wanted = Wanted {
        all: plan.is_some(),
        identity: plan.as_ref().and_then(|plan| plan.identity),
    };
    let namespaces = if request.spec.namespaces {
        namespaces::enter(wanted).map_err(&setup)?
    } else {
        LayerSet::default()
    };
    if plan.as_ref().is_some_and(|plan| plan.proxy) {
        proxy(client, namespaces)?;
    }
    let (reports, reporter) = rustix::pipe::pipe_with(PipeFlags::CLOEXEC).map_err(&setup)?;
    rustix::io::ioctl_fionbio(&reports, true).map_err(&setup)?;
    let (joined, join) = rustix::pipe::pipe_with(PipeFlags::CLOEXEC).map_err(&setup)?;
    let Some(supervisor) = fork().map_err(&setup)? else {
        supervisor::run(&Started {
            target: &target,
            plan: plan.as_ref(),
            ends: &ends,
            reporter: &reporter,
            joined: &joined,
            namespaces,
        })
    };
    // The kernel takes its time for this; the supervisor makes the child's root meanwhile.
    let entrances = plan.as_ref().map_or(&[][..], |plan| &plan.entrances);
    let in_groups = confine::join(entrances, supervisor);
    if in_groups.is_ok() {
        // Gone only if the supervisor is, which is seen as the end of its reports.
        let _ = rustix::io::write(&join, &[1]);
    }
    let mut isolation = namespaces;
    if !entrances.is_empty() {
        isolation.insert(Layer::Cgroup);
    }
    let tree = Tree {
        supervisor,
        reports,
        isolation,
        not_started: None,
        cgroup: plan.and_then(|plan| plan.cgroup),
    };
    match in_groups {
        Ok(()) => Ok(tree),
        Err(error) => {
            tree.kill();
            Err(missing(Layer::Cgroup)(error))
        }
    }
}

/// Only a network of the child's own may have a proxy: otherwise it would be the host's port.
fn proxy(client: &OwnedFd, namespaces: LayerSet) -> Result<(), Failure> {
    let failed = missing(Layer::NetworkNamespace);
    if !namespaces.has(Layer::NetworkNamespace) {
        return Err(failed(Errno::PERM));
    }
    network::serve_proxy(client)
        .map_err(|error| failed(Errno::from_io_error(&error).unwrap_or(Errno::IO)))
}

impl Tree {
    /// Where the next report comes from.
    pub(crate) fn reports(&self) -> BorrowedFd<'_> {
        self.reports.as_fd()
    }

    /// Takes in what was reported; says how the child ended, once it has.
    pub(crate) fn outcome(&mut self) -> Result<Option<Outcome>, Errno> {
        loop {
            let mut bytes = [0; REPORT_BYTES];
            match rustix::io::read(&self.reports, &mut bytes) {
                Ok(REPORT_BYTES) => {}
                // The supervisor died without a word: somebody killed it, and with it the child.
                Ok(_) => return Ok(Some(Outcome::Signalled(Signal::KILL.as_raw()))),
                Err(Errno::AGAIN) => return Ok(None),
                Err(Errno::INTR) => continue,
                Err(error) => return Err(error),
            }
            match Report::from_bytes(bytes).ok_or(Errno::IO)? {
                Report::InForce(layer) => self.isolation.insert(layer),
                Report::NotStarted(failure) => self.not_started = Some(failure),
                Report::Ended(status) => return Ok(Some(self.ended(status))),
            }
        }
    }

    fn ended(&self, status: i32) -> Outcome {
        match self.not_started {
            Some(Failure { stage, errno }) => Outcome::NotStarted { stage, errno },
            None if libc::WIFSIGNALED(status) => Outcome::Signalled(libc::WTERMSIG(status)),
            None => Outcome::Exited(libc::WEXITSTATUS(status)),
        }
    }

    /// Limits of the whole tree that were reached.
    pub(crate) fn limits_hit(&self) -> LimitsHit {
        self.cgroup
            .as_ref()
            .map(Cgroup::limits_hit)
            .unwrap_or_default()
    }

    /// Kills everything that is left. Says whether nothing is.
    pub(crate) fn kill(&self) -> bool {
        let end = Instant::now() + GRACE;
        if self.isolation.has(Layer::PidNamespace) {
            self.kill_namespace(end).is_ok_and(|gone| gone)
        } else {
            descendants::kill(end)
        }
    }

    /// The kernel kills a namespace with its pid 1, which is gone only once all others are.
    fn kill_namespace(&self, end: Instant) -> Result<bool, Errno> {
        let handle = pidfd_open(self.supervisor, PidfdFlags::empty())?;
        // It may have ended by itself; it is not reaped yet, so the number is still its own.
        rustix::process::pidfd_send_signal(&handle, Signal::KILL).or_else(ignore_gone)?;
        loop {
            let reaped = waitpid(Some(self.supervisor), WaitOptions::NOHANG)?;
            let left = end.saturating_duration_since(Instant::now());
            if reaped.is_some() || left.is_zero() {
                return Ok(reaped.is_some());
            }
            reply::wait(&mut [PollFd::new(&handle, PollFlags::IN)], left).map_err(|_| Errno::IO)?;
        }
    }
}

fn ignore_gone(error: Errno) -> Result<(), Errno> {
    if error == Errno::SRCH {
        Ok(())
    } else {
        Err(error)
    }
}

/// Forks; none in the forked process.
fn fork() -> Result<Option<Pid>, Errno> {
    #[expect(unsafe_code, reason = "a fork without exec")]
    // SAFETY: this program has one thread, so no lock is held across the fork.
    match unsafe { libc::fork() } {
        -1 => Err(last_errno()),
        pid => Ok(Pid::from_raw(pid)),
    }
}

/// Ends a forked process without running anything of its parent's.
fn exit_now(code: i32) -> ! {
    #[expect(unsafe_code, reason = "no exit handlers in a forked process")]
    // SAFETY: `_exit` has no preconditions.
    unsafe {
        libc::_exit(code)
    }
}

/// The numbers of these descriptors.
fn numbers(ends: &ChildEnds) -> [RawFd; 3] {
    [&ends.stdin, &ends.stdout, &ends.stderr].map(AsRawFd::as_raw_fd)
}
