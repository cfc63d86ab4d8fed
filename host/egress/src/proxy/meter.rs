//! Streams that count: bytes against the child's budget, and when anything last moved.

use std::io;
use std::pin::Pin;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::task::{Context, Poll, ready};
use std::time::{Duration, Instant};

use tokio::io::{AsyncRead, AsyncWrite, ReadBuf};
use tokio::time::sleep;

/// Bytes that all connections of a child may move together.
#[derive(Debug)]
pub(crate) struct Budget {
    sent_left: AtomicU64,
    received_left: AtomicU64,
}

impl Budget {
    pub(crate) fn new(sent_bytes: u64, received_bytes: u64) -> Self {
        Self {
            sent_left: AtomicU64::new(sent_bytes),
            received_left: AtomicU64::new(received_bytes),
        }
    }
}

/// False, and nothing left, when there was less.
fn take(left: &AtomicU64, bytes: u64) -> bool {
    let taken = left.fetch_update(Ordering::Relaxed, Ordering::Relaxed, |left| {
        Some(left.saturating_sub(bytes))
    });
    taken.is_ok_and(|before| before >= bytes)
}

/// Bytes of one connection.
#[derive(Debug)]
pub(crate) struct Meter {
    budget: Arc<Budget>,
    sent: AtomicU64,
    received: AtomicU64,
    over: AtomicBool,
}

impl Meter {
    pub(crate) fn new(budget: &Arc<Budget>) -> Arc<Self> {
        Arc::new(Self {
            budget: Arc::clone(budget),
            sent: AtomicU64::new(0),
            received: AtomicU64::new(0),
            over: AtomicBool::new(false),
        })
    }

    pub(crate) fn sent_bytes(&self) -> u64 {
        self.sent.load(Ordering::Relaxed)
    }

    pub(crate) fn received_bytes(&self) -> u64 {
        self.received.load(Ordering::Relaxed)
    }

    /// Whether the budget ended the connection.
    pub(crate) fn over(&self) -> bool {
        self.over.load(Ordering::Relaxed)
    }

    fn count(&self, counter: &AtomicU64, left: &AtomicU64, bytes: usize) -> io::Result<()> {
        counter.fetch_add(bytes as u64, Ordering::Relaxed);
        if take(left, bytes as u64) {
            return Ok(());
        }
        self.over.store(true, Ordering::Relaxed);
        Err(io::ErrorKind::QuotaExceeded.into())
    }
}

/// The stream to a server. What passes the budget by less than one buffer has passed.
pub(crate) struct Metered<S> {
    pub(crate) stream: S,
    pub(crate) meter: Arc<Meter>,
}

impl<S: AsyncRead + Unpin> AsyncRead for Metered<S> {
    fn poll_read(
        mut self: Pin<&mut Self>,
        cx: &mut Context<'_>,
        buf: &mut ReadBuf<'_>,
    ) -> Poll<io::Result<()>> {
        let before = buf.filled().len();
        ready!(Pin::new(&mut self.stream).poll_read(cx, buf))?;
        let meter = &self.meter;
        let read = buf.filled().len() - before;
        Poll::Ready(meter.count(&meter.received, &meter.budget.received_left, read))
    }
}

impl<S: AsyncWrite + Unpin> AsyncWrite for Metered<S> {
    fn poll_write(
        mut self: Pin<&mut Self>,
        cx: &mut Context<'_>,
        buf: &[u8],
    ) -> Poll<io::Result<usize>> {
        let written = ready!(Pin::new(&mut self.stream).poll_write(cx, buf))?;
        let meter = &self.meter;
        meter.count(&meter.sent, &meter.budget.sent_left, written)?;
        Poll::Ready(Ok(written))
    }

    fn poll_flush(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<io::Result<()>> {
        Pin::new(&mut self.stream).poll_flush(cx)
    }

    fn poll_shutdown(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<io::Result<()>> {
        Pin::new(&mut self.stream).poll_shutdown(cx)
    }
}

/// When something last moved.
#[derive(Debug)]
pub(crate) struct Pulse {
    born: Instant,
    last_ms: AtomicU64,
}

impl Pulse {
    pub(crate) fn new() -> Arc<Self> {
        Arc::new(Self {
            born: Instant::now(),
            last_ms: AtomicU64::new(0),
        })
    }

    fn beat(&self) {
        self.last_ms.store(self.now_ms(), Ordering::Relaxed);
    }

    fn now_ms(&self) -> u64 {
        u64::try_from(self.born.elapsed().as_millis()).unwrap_or(u64::MAX)
    }

    /// Ends when nothing has moved for so long.
    pub(crate) async fn stops(&self, idle: Duration) {
        let idle_ms = u64::try_from(idle.as_millis()).unwrap_or(u64::MAX);
        loop {
            let still_ms = self.now_ms() - self.last_ms.load(Ordering::Relaxed).min(self.now_ms());
            if still_ms >= idle_ms {
                return;
            }
            sleep(Duration::from_millis(idle_ms - still_ms)).await;
        }
    }
}

/// The stream from the child: all that goes through the proxy passes here.
pub(crate) struct Watched<S> {
    pub(crate) stream: S,
    pub(crate) pulse: Arc<Pulse>,
}

impl<S: AsyncRead + Unpin> AsyncRead for Watched<S> {
    fn poll_read(
        mut self: Pin<&mut Self>,
        cx: &mut Context<'_>,
        buf: &mut ReadBuf<'_>,
    ) -> Poll<io::Result<()>> {
        ready!(Pin::new(&mut self.stream).poll_read(cx, buf))?;
        self.pulse.beat();
        Poll::Ready(Ok(()))
    }
}

impl<S: AsyncWrite + Unpin> AsyncWrite for Watched<S> {
    fn poll_write(
        mut self: Pin<&mut Self>,
        cx: &mut Context<'_>,
        buf: &[u8],
    ) -> Poll<io::Result<usize>> {
        let written = ready!(Pin::new(&mut self.stream).poll_write(cx, buf))?;
        self.pulse.beat();
        Poll::Ready(Ok(written))
    }

    fn poll_flush(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<io::Result<()>> {
        Pin::new(&mut self.stream).poll_flush(cx)
    }

    fn poll_shutdown(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<io::Result<()>> {
        Pin::new(&mut self.stream).poll_shutdown(cx)
    }
}
