//! The client's end of the protocol.

use std::io::{self, IoSlice, IoSliceMut};
use std::mem::MaybeUninit;
use std::net::TcpListener;
use std::os::fd::{AsFd, BorrowedFd, OwnedFd};
use std::os::unix::net::UnixStream as StdUnixStream;
use std::path::Path;
use std::process::Stdio;
use std::time::Duration;

use rustix::io::Errno;
use rustix::net::{
    RecvAncillaryBuffer, RecvAncillaryMessage, RecvFlags, SendAncillaryBuffer,
    SendAncillaryMessage, SendFlags, recvmsg, sendmsg,
};
use rustix::process::Signal;
use tokio::io::{AsyncReadExt, AsyncWriteExt, Interest};
use tokio::net::UnixStream;
use tokio::process::Child;
use tokio::runtime::Handle;
use tokio::time::timeout;
use warren_launch::{
    Done, FRAME_HEADER_BYTES, Frame, Header, Outcome, SPEC_BYTES_MAX, Spec, Stage, WRITABLE_MAX,
};

use crate::command::tail_of;
use crate::{Captured, Command, Output, OutputSink, OutputStream, ProcessError, ProxyStart};

/// What the launcher may take beyond the deadline to kill and answer. Then it is killed itself.
const GRACE: Duration = Duration::from_secs(15);
/// How long a launcher may take to clean up after its client has hung up.
const FAREWELL: Duration = Duration::from_secs(10);

/// A launcher at work. When dropped, it is told by the hang-up, and reaped in the background.
struct Running {
    child: Option<Child>,
    stream: Option<UnixStream>,
    runtime: Handle,
}

impl Drop for Running {
    fn drop(&mut self) {
        drop(self.stream.take());
        if let Some(child) = self.child.take() {
            self.runtime.spawn(farewell(child));
        }
    }
}

/// Waits for a launcher that was hung up on; kills one that does not go.
async fn farewell(mut child: Child) {
    match timeout(FAREWELL, child.wait()).await {
        Ok(Ok(_)) => {}
        Ok(Err(error)) => tracing::warn!(%error, "can not wait for warren-launch"),
        Err(_) => {
            tracing::warn!("warren-launch does not end and is killed");
            if let Err(error) = child.kill().await {
                tracing::warn!(%error, "can not kill warren-launch");
            }
        }
    }
}

pub(crate) async fn run(
    launcher: &Path,
    namespaces: bool,
    mut command: Command<'_>,
    on_output: Option<&mut OutputSink<'_>>,
) -> Result<Output, ProcessError> {
    let program = command.program.name();
    let json = spec_of(&command, namespaces, on_output.is_some())?;
    if let Some(owned) = command.owned()? {
        owned.give().await?;
    }
    let proxy = command.confinement.take_proxy();
    let stdin = command.stdin.unwrap_or_default();
    let header = Header {
        spec_bytes: json.len() as u32,
        stdin_bytes: stdin.len() as u32,
    };
    let mut descriptors = vec![command.directory.as_fd()];
    descriptors.extend(command.program.file().map(AsFd::as_fd));
    descriptors.extend(command.confinement.writable().map(AsFd::as_fd));
    let mut running = start(launcher, header, &descriptors)
        .map_err(ProcessError::failed("`warren-launch` could not be started"))?;
    let talk = talk(&mut running, &json, &stdin, proxy, on_output);
    let answer = match timeout(command.deadline.saturating_add(GRACE), talk).await {
        Ok(answer) => answer.map_err(ProcessError::failed("`warren-launch` gave no answer"))?,
        Err(_) => {
            let tail = String::new();
            return Err(ProcessError::Timeout { tail });
        }
    };
    drop(running.stream.take());
    if let Some(child) = running.child.take() {
        farewell(child).await;
    }
    answer.into_result(program)
}

fn spec_of(command: &Command<'_>, namespaces: bool, live: bool) -> Result<Vec<u8>, ProcessError> {
    let path = command.program.path();
    let mut arguments = vec![path.to_owned()];
    arguments.extend(command.arguments.iter().cloned());
    let variables = command.environment.iter();
    let spec = Spec {
        program: path.to_owned(),
        pinned: command.program.file().is_some(),
        arguments,
        environment: variables
            .map(|(name, value)| (name.to_owned(), value.to_owned()))
            .collect(),
        stdin: command.stdin.is_some(),
        deadline_ms: u64::try_from(command.deadline.as_millis()).unwrap_or(u64::MAX),
        stdout_bytes_max: command.output_caps.stdout_bytes,
        stderr_bytes_max: command.output_caps.stderr_bytes,
        live,
        namespaces,
        limits: command.limits,
        confinement: command.confinement.spec(command.program.needs()),
    };
    let json = serde_json::to_vec(&spec)
        .map_err(ProcessError::failed("the request could not be written"))?;
    if json.len() > SPEC_BYTES_MAX {
        // Only arguments full of control characters grow that much.
        return Err(ProcessError::InvalidArgument(
            "the arguments are longer than 1 MiB when escaped".to_owned(),
        ));
    }
    Ok(json)
}

/// Starts a launcher and sends the header with the descriptors: the empty socket takes them at once.
fn start(launcher: &Path, header: Header, fds: &[BorrowedFd<'_>]) -> io::Result<Running> {
    let (ours, theirs) = StdUnixStream::pair()?;
    ours.set_nonblocking(true)?;
    let child = tokio::process::Command::new(launcher)
        .env_clear()
        .current_dir("/")
        .stdin(Stdio::from(OwnedFd::from(theirs)))
        .stdout(Stdio::null())
        .stderr(Stdio::inherit())
        .spawn()?;
    let mut running = Running {
        child: Some(child),
        stream: None,
        runtime: Handle::current(),
    };
    let mut space = [MaybeUninit::uninit(); rustix::cmsg_space!(ScmRights(2 + WRITABLE_MAX))];
    let mut control = SendAncillaryBuffer::new(&mut space);
    control.push(SendAncillaryMessage::ScmRights(fds));
    let bytes = header.to_bytes();
    let sent = sendmsg(
        &ours,
        &[IoSlice::new(&bytes)],
        &mut control,
        SendFlags::NOSIGNAL,
    )?;
    if sent != bytes.len() {
        return Err(Errno::IO.into());
    }
    running.stream = Some(UnixStream::from_std(ours)?);
    Ok(running)
}

struct Answer {
    done: Done,
    stdout: Captured,
    stderr: Captured,
}

async fn talk(
    running: &mut Running,
    json: &[u8],
    stdin: &[u8],
    proxy: Option<ProxyStart>,
    mut on_output: Option<&mut OutputSink<'_>>,
) -> io::Result<Answer> {
    let stream = running.stream.as_mut().ok_or(io::ErrorKind::NotConnected)?;
    stream.write_all(json).await?;
    stream.write_all(stdin).await?;
    let (mut stdout, mut stderr) = (Captured::default(), Captured::default());
    // Serves until the answer is there, or until this future is dropped.
    let mut _served = None;
    let mut proxy = proxy;
    loop {
        let (frame, payload) = match proxy.take() {
            None => read_frame(stream).await?,
            Some(proxy) => match read_proxy(stream).await? {
                First::Proxy(socket) => {
                    _served = Some(proxy.serve(socket)?);
                    continue;
                }
                First::Other(frame, bytes) => (frame, read_payload(stream, bytes).await?),
            },
        };
        let mut live = |from| {
            if let Some(sink) = &mut on_output {
                sink(from, &payload);
            }
        };
        match frame {
            Frame::LiveStdout => live(OutputStream::Stdout),
            Frame::LiveStderr => live(OutputStream::Stderr),
            Frame::Stdout => stdout.bytes = payload,
            Frame::Stderr => stderr.bytes = payload,
            // Nobody asked for it.
            Frame::Proxy => return Err(io::ErrorKind::InvalidData.into()),
            Frame::Done => {
                let done: Done = serde_json::from_slice(&payload)?;
                stdout.total_bytes = done.totals.stdout_bytes;
                stderr.total_bytes = done.totals.stderr_bytes;
                return Ok(Answer {
                    done,
                    stdout,
                    stderr,
                });
            }
        }
    }
}

async fn read_frame(stream: &mut UnixStream) -> io::Result<(Frame, Vec<u8>)> {
    let mut header = [0; FRAME_HEADER_BYTES];
    stream.read_exact(&mut header).await?;
    let (frame, bytes) = Frame::from_header(header).ok_or(io::ErrorKind::InvalidData)?;
    Ok((frame, read_payload(stream, bytes).await?))
}

async fn read_payload(stream: &mut UnixStream, bytes: usize) -> io::Result<Vec<u8>> {
    let mut payload = vec![0; bytes];
    stream.read_exact(&mut payload).await?;
    Ok(payload)
}

/// The first frame where a proxy was asked for.
enum First {
    Proxy(TcpListener),
    /// Its header only. The child did not start.
    Other(Frame, usize),
}

async fn read_proxy(stream: &mut UnixStream) -> io::Result<First> {
    let mut header = [0; FRAME_HEADER_BYTES];
    let mut filled = 0;
    let mut sockets = Vec::new();
    while filled < FRAME_HEADER_BYTES {
        let bytes = &mut header[filled..];
        let read = || receive(stream.as_fd(), &mut *bytes, &mut sockets);
        match stream.async_io(Interest::READABLE, read).await? {
            0 => return Err(io::ErrorKind::UnexpectedEof.into()),
            read => filled += read,
        }
    }
    let (frame, bytes) = Frame::from_header(header).ok_or(io::ErrorKind::InvalidData)?;
    match (frame, sockets.pop()) {
        (Frame::Proxy, Some(socket)) => Ok(First::Proxy(socket.into())),
        (Frame::Proxy, None) | (_, Some(_)) => Err(io::ErrorKind::InvalidData.into()),
        (frame, None) => Ok(First::Other(frame, bytes)),
    }
}

/// Reads once, with the descriptors that come along.
fn receive(
    stream: BorrowedFd<'_>,
    bytes: &mut [u8],
    descriptors: &mut Vec<OwnedFd>,
) -> io::Result<usize> {
    let mut space = [MaybeUninit::uninit(); rustix::cmsg_space!(ScmRights(1))];
    let mut control = RecvAncillaryBuffer::new(&mut space);
    let flags = RecvFlags::CMSG_CLOEXEC | RecvFlags::DONTWAIT;
    let received = recvmsg(stream, &mut [IoSliceMut::new(bytes)], &mut control, flags)?;
    for message in control.drain() {
        if let RecvAncillaryMessage::ScmRights(rights) = message {
            descriptors.extend(rights);
        }
    }
    Ok(received.bytes)
}

impl Answer {
    fn into_result(self, program: &str) -> Result<Output, ProcessError> {
        if self.done.survivors {
            tracing::warn!(program, "some descendants could not be killed in time");
        }
        let tail = || tail_of(&self.stdout, &self.stderr);
        match self.done.outcome {
            Outcome::Exited(exit_code) => Ok(Output {
                exit_code,
                stdout: self.stdout,
                stderr: self.stderr,
                isolation: self.done.isolation,
                limits_hit: self.done.limits_hit,
            }),
            Outcome::Signalled(signal)
                if self.done.limits_hit.memory && signal == Signal::KILL.as_raw() =>
            {
                Err(ProcessError::OutOfMemory { tail: tail() })
            }
            Outcome::Signalled(signal) => Err(ProcessError::Killed {
                signal,
                tail: tail(),
            }),
            Outcome::TimedOut => Err(ProcessError::Timeout { tail: tail() }),
            Outcome::NotStarted { stage, errno } => Err(not_started(program, stage, errno)),
        }
    }
}

fn not_started(program: &str, stage: Stage, errno: i32) -> ProcessError {
    let source = (errno != 0).then(|| io::Error::from_raw_os_error(errno));
    let step = match stage {
        Stage::Execute if errno == Errno::NOENT.raw_os_error() => {
            return ProcessError::NotFound(program.to_owned());
        }
        Stage::Confinement(layer) => return ProcessError::Confinement { layer, source },
        Stage::Execute => "be executed",
        Stage::Spec => "be started: the request is not valid",
        Stage::Setup => "be started: processes or pipes could not be made",
        Stage::Directory => "enter its working directory",
        Stage::Limits => "be limited",
    };
    ProcessError::Failed {
        what: format!("program `{program}` could not {step}"),
        source,
    }
}
