//! Answering the client.

use std::io;
use std::os::fd::OwnedFd;
use std::time::{Duration, Instant};

use rustix::event::{PollFd, PollFlags, Timespec, poll};
use rustix::io::Errno;
use rustix::net::{SendFlags, send};
use warren_launch::{Done, Frame};

/// How long a client may take to read an answer.
const PATIENCE: Duration = Duration::from_secs(30);

/// Sends the last frame.
pub(crate) fn done(socket: &OwnedFd, done: &Done) -> io::Result<()> {
    let json = serde_json::to_vec(done)?;
    frame(socket, Frame::Done, &json)
}

/// Sends a frame, whole.
pub(crate) fn frame(socket: &OwnedFd, kind: Frame, payload: &[u8]) -> io::Result<()> {
    let bytes = u32::try_from(payload.len()).map_err(io::Error::other)?;
    all(socket, &kind.header(bytes))?;
    all(socket, payload)
}

/// Sends all the bytes, whether or not the socket blocks.
pub(crate) fn all(socket: &OwnedFd, mut bytes: &[u8]) -> io::Result<()> {
    let end = Instant::now() + PATIENCE;
    while !bytes.is_empty() {
        match send(socket, bytes, SendFlags::NOSIGNAL | SendFlags::DONTWAIT) {
            Ok(sent) => bytes = &bytes[sent..],
            Err(Errno::INTR) => {}
            Err(Errno::AGAIN) => {
                let left = end.saturating_duration_since(Instant::now());
                if left.is_zero() {
                    return Err(io::ErrorKind::TimedOut.into());
                }
                wait(&mut [PollFd::new(socket, PollFlags::OUT)], left)?;
            }
            Err(error) => return Err(error.into()),
        }
    }
    Ok(())
}

/// Waits until something is ready, or the time is over.
pub(crate) fn wait(fds: &mut [PollFd<'_>], left: Duration) -> io::Result<()> {
    let left = Timespec::try_from(left).map_err(io::Error::other)?;
    match poll(fds, Some(&left)) {
        // The caller looks at the clock and at the flags, which are clear then.
        Ok(_) | Err(Errno::INTR) => Ok(()),
        Err(error) => Err(error.into()),
    }
}
