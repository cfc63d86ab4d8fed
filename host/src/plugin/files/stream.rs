//! A stream into a file: each byte is held in the budget before it is written.

use std::fs::File;
use std::io::{self, IoSlice};
use std::os::unix::fs::FileExt;
use std::sync::Arc;

use rustix::io::ReadWriteFlags;
use wasmtime_wasi::p2::bindings::filesystem::types::ErrorCode;
use wasmtime_wasi_io::bytes::Bytes;
use wasmtime_wasi_io::poll::Pollable;
use wasmtime_wasi_io::streams::{OutputStream, StreamError, StreamResult};

use super::ledger::{Account, Ledger};
use super::refused;

/// What one write may hold.
const WRITE_BYTES: usize = 64 * 1024;

/// An error that a guest asks the code of.
#[derive(Debug, thiserror::Error)]
#[error("{0:?}")]
pub(crate) struct WriteFailed(pub(crate) ErrorCode);

/// A file that is written at a place or at its end.
pub(crate) struct Writer {
    file: Arc<File>,
    account: Option<Arc<Account>>,
    ledger: Arc<Ledger>,
    /// Where the next byte goes; none: at the end.
    at: Option<u64>,
}

impl Writer {
    pub(crate) fn new(
        file: Arc<File>,
        account: Option<Arc<Account>>,
        ledger: Arc<Ledger>,
        at: Option<u64>,
    ) -> Self {
        Self {
            file,
            account,
            ledger,
            at,
        }
    }

    /// Writes all of it.
    pub(crate) fn write_all(&mut self, bytes: &[u8]) -> Result<(), ErrorCode> {
        if let Some(account) = &self.account {
            self.ledger
                .hold(account, &self.file, self.at, bytes.len() as u64)
                .map_err(|short| refused(&short))?;
        }
        let mut rest = bytes;
        while !rest.is_empty() {
            match self.write_some(rest) {
                Ok(0) => return Err(ErrorCode::Io),
                Ok(written) => {
                    rest = &rest[written..];
                    self.ledger.count_written(written as u64);
                    if let Some(at) = &mut self.at {
                        *at = at.saturating_add(written as u64);
                    }
                }
                Err(error) if error.kind() == io::ErrorKind::Interrupted => {}
                Err(error) => {
                    let code = code(&error);
                    if matches!(code, ErrorCode::InsufficientSpace | ErrorCode::Quota) {
                        self.ledger.budget().note_full();
                    }
                    return Err(code);
                }
            }
        }
        Ok(())
    }

    fn write_some(&self, bytes: &[u8]) -> io::Result<usize> {
        match self.at {
            Some(at) => self.file.write_at(bytes, at),
            None => {
                let slices = [IoSlice::new(bytes)];
                Ok(rustix::io::pwritev2(
                    &self.file,
                    &slices,
                    0,
                    ReadWriteFlags::APPEND,
                )?)
            }
        }
    }
}

/// As WASI names it; a quota of the file system itself too, which wasmtime does not know.
pub(crate) fn code(error: &io::Error) -> ErrorCode {
    match error.kind() {
        io::ErrorKind::QuotaExceeded => ErrorCode::Quota,
        _ => ErrorCode::from(error),
    }
}

/// The stream that a guest holds.
pub(crate) struct FileStream {
    /// None: it is closed, after an error.
    writer: Option<Writer>,
}

impl FileStream {
    pub(crate) fn new(writer: Writer) -> Self {
        Self {
            writer: Some(writer),
        }
    }

    fn close(&mut self) {
        if let Some(Writer {
            file,
            account,
            ledger,
            ..
        }) = self.writer.take()
            && let Some(account) = account
        {
            ledger.close(&account, file);
        }
    }
}

impl Drop for FileStream {
    fn drop(&mut self) {
        self.close();
    }
}

#[wasmtime_wasi_io::async_trait]
impl Pollable for FileStream {
    async fn ready(&mut self) {}
}

#[wasmtime_wasi_io::async_trait]
impl OutputStream for FileStream {
    fn write(&mut self, bytes: Bytes) -> StreamResult<()> {
        let writer = self.writer.as_mut().ok_or(StreamError::Closed)?;
        // In place, as all file work of a call: a hop to another thread costs more.
        writer.write_all(&bytes).map_err(|code| {
            self.close();
            StreamError::LastOperationFailed(WriteFailed(code).into())
        })
    }

    async fn blocking_write_and_flush(&mut self, bytes: Bytes) -> StreamResult<()> {
        self.write(bytes)
    }

    fn flush(&mut self) -> StreamResult<()> {
        self.check_write().map(drop)
    }

    fn check_write(&mut self) -> StreamResult<usize> {
        match self.writer {
            Some(_) => Ok(WRITE_BYTES),
            None => Err(StreamError::Closed),
        }
    }
}
