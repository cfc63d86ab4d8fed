//! A connection that counts, and that is cut when its call has had its share or nothing moves.

use std::io;
use std::pin::Pin;
use std::sync::Arc;
use std::task::{Context, Poll, ready};
use std::time::Duration;

use tokio::io::{AsyncRead, AsyncWrite, ReadBuf};
use tokio::time::{Instant, Sleep, sleep_until};

use super::fault::Cut;
use super::running::Running;

/// TCP, or TLS over it.
pub(super) trait Stream: AsyncRead + AsyncWrite + Send + Unpin {}

impl<S: AsyncRead + AsyncWrite + Send + Unpin> Stream for S {}

/// Bytes are counted as HTTP has them: heads, bodies, chunks, trailers.
pub(super) struct Wire {
    stream: Box<dyn Stream>,
    running: Arc<Running>,
    silence_max: Duration,
    silence: Pin<Box<Sleep>>,
    /// Whether `silence` runs.
    waiting: bool,
}

impl Wire {
    pub(super) fn new(
        stream: Box<dyn Stream>,
        running: Arc<Running>,
        silence_max: Duration,
    ) -> Self {
        Self {
            stream,
            running,
            silence_max,
            silence: Box::pin(sleep_until(Instant::now())),
            waiting: false,
        }
    }

    /// Waits on, unless it was silent for too long.
    fn wait<T>(&mut self, cx: &mut Context<'_>) -> Poll<io::Result<T>> {
        let deadline = self.running.session.deadline;
        if !self.waiting {
            let until = (Instant::now() + self.silence_max).min(deadline);
            self.silence.as_mut().reset(until);
            self.waiting = true;
        }
        ready!(self.silence.as_mut().poll(cx));
        let cut = match Instant::now() >= deadline {
            true => Cut::Late,
            false => Cut::Silent,
        };
        Poll::Ready(Err(cut.into()))
    }

    /// Time may pass without a wait: a server that never stops gives none.
    fn on_time(&mut self) -> io::Result<()> {
        self.waiting = false;
        if Instant::now() >= self.running.session.deadline {
            return Err(Cut::Late.into());
        }
        Ok(())
    }
}

impl AsyncRead for Wire {
    fn poll_read(
        mut self: Pin<&mut Self>,
        cx: &mut Context<'_>,
        buffer: &mut ReadBuf<'_>,
    ) -> Poll<io::Result<()>> {
        let before = buffer.filled().len();
        let Poll::Ready(read) = Pin::new(&mut self.stream).poll_read(cx, buffer) else {
            return self.wait(cx);
        };
        read?;
        self.on_time()?;
        if self.running.count_received(buffer.filled().len() - before) {
            return Poll::Ready(Ok(()));
        }
        Poll::Ready(Err(Cut::Received.into()))
    }
}

impl AsyncWrite for Wire {
    fn poll_write(
        mut self: Pin<&mut Self>,
        cx: &mut Context<'_>,
        bytes: &[u8],
    ) -> Poll<io::Result<usize>> {
        let Poll::Ready(written) = Pin::new(&mut self.stream).poll_write(cx, bytes) else {
            return self.wait(cx);
        };
        let written = written?;
        self.on_time()?;
        if self.running.count_sent(written) {
            return Poll::Ready(Ok(written));
        }
        Poll::Ready(Err(Cut::Sent.into()))
    }

    fn poll_flush(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<io::Result<()>> {
        match Pin::new(&mut self.stream).poll_flush(cx) {
            Poll::Ready(flushed) => Poll::Ready(flushed),
            Poll::Pending => self.wait(cx),
        }
    }

    fn poll_shutdown(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<io::Result<()>> {
        match Pin::new(&mut self.stream).poll_shutdown(cx) {
            Poll::Ready(closed) => Poll::Ready(closed),
            Poll::Pending => self.wait(cx),
        }
    }
}
