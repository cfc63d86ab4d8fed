//! A guest's stdout and stderr: kept in memory, only the tail, never blocking.

use std::collections::VecDeque;
use std::io;
use std::pin::Pin;
use std::sync::{Arc, Mutex, PoisonError};
use std::task::{Context, Poll};

use tokio::io::AsyncWrite;
use wasmtime_wasi::cli::{IsTerminal, StdoutStream};
use wasmtime_wasi_io::bytes::Bytes;
use wasmtime_wasi_io::poll::Pollable;
use wasmtime_wasi_io::streams::{OutputStream, StreamResult};

/// What one write may hold: the host copies no more at once.
const WRITE_BYTES: usize = 16 * 1024;

/// The last bytes of a stream, and how many came before them.
#[derive(Clone)]
pub(crate) struct Tail(Arc<Mutex<Kept>>);

struct Kept {
    bytes: VecDeque<u8>,
    cap: usize,
    dropped: u64,
    written: u64,
}

impl Tail {
    pub(crate) fn new(cap: usize) -> Self {
        Self(Arc::new(Mutex::new(Kept {
            bytes: VecDeque::new(),
            cap,
            dropped: 0,
            written: 0,
        })))
    }

    fn push(&self, bytes: &[u8]) {
        let mut kept = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        let skip = bytes.len().saturating_sub(kept.cap);
        let fresh = &bytes[skip..];
        let over = (kept.bytes.len() + fresh.len()).saturating_sub(kept.cap);
        kept.bytes.drain(..over);
        kept.bytes.extend(fresh);
        kept.dropped += (skip + over) as u64;
        kept.written += bytes.len() as u64;
    }

    /// Bytes that were written, kept or not.
    pub(crate) fn written(&self) -> u64 {
        let kept = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        kept.written
    }

    /// The kept text, and how many bytes before it were dropped.
    pub(crate) fn text(&self) -> (String, u64) {
        let mut kept = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        let text = String::from_utf8_lossy(kept.bytes.make_contiguous()).into_owned();
        (text, kept.dropped)
    }
}

impl IsTerminal for Tail {
    fn is_terminal(&self) -> bool {
        false
    }
}

impl StdoutStream for Tail {
    fn async_stream(&self) -> Box<dyn AsyncWrite + Send + Sync> {
        Box::new(self.clone())
    }

    fn p2_stream(&self) -> Box<dyn OutputStream> {
        Box::new(self.clone())
    }
}

#[wasmtime_wasi_io::async_trait]
impl Pollable for Tail {
    async fn ready(&mut self) {}
}

impl OutputStream for Tail {
    fn write(&mut self, bytes: Bytes) -> StreamResult<()> {
        self.push(&bytes);
        Ok(())
    }

    fn flush(&mut self) -> StreamResult<()> {
        Ok(())
    }

    fn check_write(&mut self) -> StreamResult<usize> {
        Ok(WRITE_BYTES)
    }
}

impl AsyncWrite for Tail {
    fn poll_write(
        self: Pin<&mut Self>,
        _: &mut Context<'_>,
        buf: &[u8],
    ) -> Poll<io::Result<usize>> {
        self.push(buf);
        Poll::Ready(Ok(buf.len()))
    }

    fn poll_flush(self: Pin<&mut Self>, _: &mut Context<'_>) -> Poll<io::Result<()>> {
        Poll::Ready(Ok(()))
    }

    fn poll_shutdown(self: Pin<&mut Self>, _: &mut Context<'_>) -> Poll<io::Result<()>> {
        Poll::Ready(Ok(()))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_tail_is_kept_and_the_rest_counted() {
        let tail = Tail::new(8);
        for part in ["one ", "two ", "three "] {
            tail.push(part.as_bytes());
        }
        assert_eq!(tail.text(), ("o three ".into(), 6));
        tail.push(b"a long write that passes the cap");
        assert_eq!(tail.text(), (" the cap".into(), 6 + 8 + 24));
    }
}
