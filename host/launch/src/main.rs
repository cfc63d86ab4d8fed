//! `warren-launch`: starts one child for a host, within limits, and ends it with all its descendants.
//!
//! A program of its own because it is small: forking a host with much memory is slow, and what runs
//! between fork and exec must not depend on the threads of a host. It has one thread, so that it may
//! do in the forked processes what it likes.

#[cfg(not(target_os = "linux"))]
compile_error!("warren-launch needs Linux: namespaces, subreaper, close_range");

mod confine;
mod places;
mod pump;
mod receive;
mod reply;
mod report;
mod tail;
mod target;
mod tree;

use std::io;
use std::os::fd::OwnedFd;
use std::process::ExitCode;

use rustix::fs::{Mode, OFlags};
use warren_launch::{Done, LayerSet, LimitsHit, Outcome, Stage, Totals};

use crate::receive::Request;
use crate::report::Failure;

fn main() -> ExitCode {
    let Ok(socket) = take_socket() else {
        #[expect(clippy::print_stderr, reason = "a person has started it")]
        {
            eprintln!("error: warren-launch is started by warren, with a socket as its input");
        }
        return ExitCode::from(2);
    };
    let done = match receive::receive(&socket).and_then(|request| run(&socket, request)) {
        Ok(done) => done,
        Err(failure) => not_started(failure),
    };
    match done.map(|done| reply::done(&socket, &done)) {
        Some(Ok(())) => ExitCode::SUCCESS,
        // The client is gone: there is nobody to tell.
        Some(Err(_)) | None => ExitCode::FAILURE,
    }
}

/// Runs the request to its end; none when the client has gone away.
fn run(socket: &OwnedFd, mut request: Request) -> Result<Option<Done>, Failure> {
    let (pipes, ends) = pump::pipes(&request).map_err(Failure::setup)?;
    let spec = request.spec.clone();
    let input = request.stdin.take().unwrap_or_default();
    let mut tree = tree::start(socket, request, ends)?;
    let mut pump = pump::Pump::new(socket, pipes, &spec, input);
    let ending = pump.run(&mut tree);
    let survivors = !tree.kill();
    let Some(outcome) = ending.map_err(Failure::setup)? else {
        return Ok(None);
    };
    pump.drain();
    let totals = pump.totals();
    if pump.send_tails().is_err() {
        return Ok(None);
    }
    Ok(Some(Done {
        outcome,
        totals,
        isolation: tree.isolation,
        limits_hit: tree.limits_hit(),
        survivors,
    }))
}

fn not_started(failure: Failure) -> Option<Done> {
    Some(Done {
        outcome: Outcome::NotStarted {
            stage: failure.stage,
            errno: failure.errno,
        },
        totals: Totals::default(),
        isolation: LayerSet::default(),
        limits_hit: LimitsHit::default(),
        survivors: false,
    })
}

/// Moves the socket off standard input, closes what was inherited beyond standard error, and leaves
/// the terminal's session so that an interrupt meant for the host does not stop the clean-up.
fn take_socket() -> io::Result<OwnedFd> {
    let stdin = io::stdin();
    rustix::net::sockopt::socket_type(&stdin)?;
    target::close_all_but(&mut [])?;
    let socket = rustix::io::fcntl_dupfd_cloexec(&stdin, 3)?;
    let null = rustix::fs::open("/dev/null", OFlags::RDWR | OFlags::CLOEXEC, Mode::empty())?;
    rustix::stdio::dup2_stdin(&null)?;
    rustix::stdio::dup2_stdout(&null)?;
    match rustix::process::setsid() {
        // A leader already.
        Ok(_) | Err(rustix::io::Errno::PERM) => Ok(socket),
        Err(error) => Err(error.into()),
    }
}

impl Failure {
    fn setup(error: io::Error) -> Self {
        Self {
            stage: Stage::Setup,
            errno: error.raw_os_error().unwrap_or(0),
        }
    }
}
