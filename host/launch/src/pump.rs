//! Moving bytes: the child's output into bounded tails, its input out, and watching the clock, the
//! client and the child meanwhile.

use std::collections::VecDeque;
use std::io;
use std::os::fd::{AsFd, BorrowedFd, OwnedFd};
use std::time::{Duration, Instant};

use rustix::event::{PollFd, PollFlags};
use rustix::fs::{Mode, OFlags};
use rustix::io::Errno;
use rustix::net::{SendFlags, send};
use rustix::pipe::PipeFlags;
use warren_launch::{Frame, LIVE_BYTES_MAX, Outcome, Spec, Totals};

use crate::receive::Request;
use crate::reply;
use crate::tail::Tail;
use crate::tree::Tree;

/// Live output that waits for a slow client; more is left out.
const OUTGOING_BYTES_MAX: usize = 4 * LIVE_BYTES_MAX;
/// Live output of one stream in each window, so that a flood costs the client little.
const WINDOW_BYTES_MAX: usize = LIVE_BYTES_MAX;
const WINDOW: Duration = Duration::from_millis(100);
/// What is still read of a stream once everything is killed: more than any pipe holds. Only a
/// process elsewhere that was handed the pipe can write more.
const DRAIN_BYTES_MAX: usize = 2 * 1024 * 1024;
/// A year: longer is a mistake, and the clock can not hold everything.
const DEADLINE_MAX: Duration = Duration::from_secs(365 * 24 * 3600);

/// The child's ends of its standard streams.
pub(crate) struct ChildEnds {
    pub(crate) stdin: OwnedFd,
    pub(crate) stdout: OwnedFd,
    pub(crate) stderr: OwnedFd,
}

/// The launcher's ends.
pub(crate) struct Pipes {
    stdin: Option<OwnedFd>,
    stdout: OwnedFd,
    stderr: OwnedFd,
}

/// Makes the child's standard streams.
pub(crate) fn pipes(request: &Request) -> io::Result<(Pipes, ChildEnds)> {
    let pipe = || rustix::pipe::pipe_with(PipeFlags::CLOEXEC);
    let (stdin, child_stdin) = if request.stdin.is_some() {
        let (child, ours) = pipe()?;
        rustix::io::ioctl_fionbio(&ours, true)?;
        (Some(ours), child)
    } else {
        let flags = OFlags::RDONLY | OFlags::CLOEXEC;
        (None, rustix::fs::open("/dev/null", flags, Mode::empty())?)
    };
    let (stdout, child_stdout) = pipe()?;
    let (stderr, child_stderr) = pipe()?;
    for ours in [&stdout, &stderr] {
        rustix::io::ioctl_fionbio(ours, true)?;
    }
    let ours = Pipes {
        stdin,
        stdout,
        stderr,
    };
    let child = ChildEnds {
        stdin: child_stdin,
        stdout: child_stdout,
        stderr: child_stderr,
    };
    Ok((ours, child))
}

/// One output stream.
struct Output {
    pipe: Option<OwnedFd>,
    tail: Tail,
    live: Frame,
    window_start: Instant,
    window_bytes: usize,
}

impl Output {
    fn new(pipe: OwnedFd, bytes_max: u32, live: Frame) -> Self {
        let bytes_max = (bytes_max as usize).min(warren_launch::TAIL_BYTES_MAX);
        Self {
            pipe: Some(pipe),
            tail: Tail::new(bytes_max),
            live,
            window_start: Instant::now(),
            window_bytes: 0,
        }
    }

    /// Reads once; none when there is nothing now or any more.
    fn read<'b>(&mut self, buffer: &'b mut [u8]) -> io::Result<Option<&'b [u8]>> {
        let Some(pipe) = &self.pipe else {
            return Ok(None);
        };
        match rustix::io::read(pipe, &mut *buffer) {
            Ok(0) => self.pipe = None,
            Ok(length) => {
                self.tail.push(&buffer[..length]);
                return Ok(Some(&buffer[..length]));
            }
            Err(Errno::AGAIN | Errno::INTR) => {}
            Err(error) => return Err(error.into()),
        }
        Ok(None)
    }

    /// Whether that many bytes may go out live now.
    fn admit(&mut self, bytes: usize) -> bool {
        if self.window_start.elapsed() >= WINDOW {
            self.window_start = Instant::now();
            self.window_bytes = 0;
        }
        self.window_bytes += bytes;
        self.window_bytes <= WINDOW_BYTES_MAX
    }
}

/// The state of one run.
pub(crate) struct Pump<'a> {
    socket: &'a OwnedFd,
    outputs: [Output; 2],
    stdin: Option<OwnedFd>,
    input: Vec<u8>,
    input_sent: usize,
    live: bool,
    outgoing: VecDeque<u8>,
    deadline: Instant,
    buffer: Box<[u8]>,
}

impl<'a> Pump<'a> {
    pub(crate) fn new(socket: &'a OwnedFd, pipes: Pipes, spec: &Spec, input: Vec<u8>) -> Self {
        let time = Duration::from_millis(spec.deadline_ms).min(DEADLINE_MAX);
        Self {
            socket,
            outputs: [
                Output::new(pipes.stdout, spec.stdout_bytes_max, Frame::LiveStdout),
                Output::new(pipes.stderr, spec.stderr_bytes_max, Frame::LiveStderr),
            ],
            stdin: pipes.stdin,
            input,
            input_sent: 0,
            live: spec.live,
            outgoing: VecDeque::new(),
            deadline: Instant::now() + time,
            buffer: vec![0; LIVE_BYTES_MAX].into(),
        }
    }

    /// Pumps until the child has ended, the time is over, or the client is gone (none).
    pub(crate) fn run(&mut self, tree: &mut Tree) -> io::Result<Option<Outcome>> {
        loop {
            let left = self.deadline.saturating_duration_since(Instant::now());
            if left.is_zero() {
                return Ok(Some(Outcome::TimedOut));
            }
            if self.wait(tree.reports(), left)? {
                return Ok(None);
            }
            if let Some(outcome) = tree.outcome()? {
                return Ok(Some(outcome));
            }
            self.read_outputs()?;
            self.feed();
            self.send_live()?;
        }
    }

    /// Waits for anything to do; says whether the client is gone.
    fn wait(&self, reports: BorrowedFd<'_>, left: Duration) -> io::Result<bool> {
        let mut client = PollFlags::IN | PollFlags::RDHUP;
        client.set(PollFlags::OUT, !self.outgoing.is_empty());
        let mut fds = vec![
            PollFd::new(self.socket, client),
            PollFd::from_borrowed_fd(reports, PollFlags::IN),
        ];
        let pipes = self
            .outputs
            .iter()
            .filter_map(|output| output.pipe.as_ref());
        fds.extend(pipes.map(|pipe| PollFd::new(pipe, PollFlags::IN)));
        fds.extend(
            self.stdin
                .iter()
                .map(|pipe| PollFd::new(pipe, PollFlags::OUT)),
        );
        reply::wait(&mut fds, left)?;
        // The client has nothing more to say, so anything from it means that it has left.
        Ok(fds[0]
            .revents()
            .intersects(PollFlags::all() - PollFlags::OUT))
    }

    fn read_outputs(&mut self) -> io::Result<()> {
        for output in &mut self.outputs {
            let Some(chunk) = output.read(&mut self.buffer)? else {
                continue;
            };
            let room = self.outgoing.len() < OUTGOING_BYTES_MAX;
            if self.live && room && output.admit(chunk.len()) {
                // Bounded by the buffer, so it fits.
                self.outgoing.extend(output.live.header(chunk.len() as u32));
                self.outgoing.extend(chunk);
            }
        }
        Ok(())
    }

    /// Gives the child some of its input. One that does not want it loses the rest.
    fn feed(&mut self) {
        let Some(pipe) = &self.stdin else { return };
        match rustix::io::write(pipe, &self.input[self.input_sent..]) {
            Ok(written) => self.input_sent += written,
            Err(Errno::AGAIN | Errno::INTR) => return,
            Err(_) => self.input_sent = self.input.len(),
        }
        if self.input_sent == self.input.len() {
            self.stdin = None;
        }
    }

    fn send_live(&mut self) -> io::Result<()> {
        let (bytes, _) = self.outgoing.as_slices();
        if bytes.is_empty() {
            return Ok(());
        }
        match send(
            self.socket.as_fd(),
            bytes,
            SendFlags::NOSIGNAL | SendFlags::DONTWAIT,
        ) {
            Ok(sent) => drop(self.outgoing.drain(..sent)),
            Err(Errno::AGAIN | Errno::INTR) => {}
            // Seen as a hang-up in the next round.
            Err(Errno::PIPE | Errno::CONNRESET) => self.outgoing.clear(),
            Err(error) => return Err(error.into()),
        }
        Ok(())
    }

    /// Reads what the pipes still hold, now that nobody writes any more.
    pub(crate) fn drain(&mut self) {
        for output in &mut self.outputs {
            let mut drained = 0;
            while drained < DRAIN_BYTES_MAX {
                match output.read(&mut self.buffer) {
                    Ok(Some(chunk)) => drained += chunk.len(),
                    // An error here would only lose bytes that the pipe can not give.
                    Ok(None) | Err(_) => break,
                }
            }
        }
    }

    pub(crate) fn totals(&self) -> Totals {
        let [stdout_bytes, stderr_bytes] =
            [0, 1].map(|n: usize| self.outputs[n].tail.total_bytes());
        Totals {
            stdout_bytes,
            stderr_bytes,
        }
    }

    /// Sends what is left of the live output, then both tails.
    pub(crate) fn send_tails(&mut self) -> io::Result<()> {
        reply::all(self.socket, self.outgoing.make_contiguous())?;
        let kinds = [Frame::Stdout, Frame::Stderr];
        for (output, kind) in self.outputs.iter_mut().zip(kinds) {
            reply::frame(self.socket, kind, output.tail.contiguous())?;
        }
        Ok(())
    }
}
