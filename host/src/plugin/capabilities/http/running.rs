//! One request from its start to its end, however that comes.

use std::sync::Arc;
use std::sync::atomic::{AtomicU16, AtomicU64, Ordering};
use std::sync::{Mutex, PoisonError};

use http::Method;
use tokio::sync::OwnedSemaphorePermit;
use tokio::time::Instant;
use warren_model::Target;
use wasmtime_wasi_http::Error;
use wasmtime_wasi_http::p2::bindings::http::types::ErrorCode;

use super::{Session, fault};

/// A request under way: its place among the connections, and what is said of it at its end. Held by
/// the connection and by the body of the answer.
pub(super) struct Running {
    pub(super) session: Arc<Session>,
    _place: OwnedSemaphorePermit,
    method: Method,
    target: Target,
    started: Instant,
    sent: AtomicU64,
    received: AtomicU64,
    /// 0: there was no answer.
    status: AtomicU16,
    failure: Mutex<Option<ErrorCode>>,
}

impl Running {
    /// Takes a place among the call's connections.
    pub(super) fn start(
        session: Arc<Session>,
        method: Method,
        target: Target,
    ) -> Result<Arc<Self>, Error> {
        let place = Arc::clone(&session.connections)
            .try_acquire_owned()
            .map_err(|_| Error::ConnectionLimitReached)?;
        Ok(Arc::new(Self {
            session,
            _place: place,
            method,
            target,
            started: Instant::now(),
            sent: AtomicU64::new(0),
            received: AtomicU64::new(0),
            status: AtomicU16::new(0),
            failure: Mutex::new(None),
        }))
    }

    /// Counts bytes that are about to be sent; false: the call has sent its share.
    pub(super) fn count_sent(&self, bytes: usize) -> bool {
        self.sent.fetch_add(bytes as u64, Ordering::Relaxed);
        Session::take(&self.session.sent_left, bytes as u64)
    }

    /// Counts bytes that were received; false: the call has received its share.
    pub(super) fn count_received(&self, bytes: usize) -> bool {
        self.received.fetch_add(bytes as u64, Ordering::Relaxed);
        Session::take(&self.session.received_left, bytes as u64)
    }

    pub(super) fn answered(&self, status: u16) {
        self.status.store(status, Ordering::Relaxed);
    }

    /// Notes the first failure, and hands it on.
    pub(super) fn failed(&self, error: Error) -> Error {
        let mut failure = self.failure.lock().unwrap_or_else(PoisonError::into_inner);
        failure.get_or_insert_with(|| fault::code(&error));
        error
    }
}

impl Drop for Running {
    fn drop(&mut self) {
        let label = &self.session.label;
        let failure = self
            .failure
            .get_mut()
            .unwrap_or_else(PoisonError::into_inner);
        tracing::debug!(
            plugin = &*label.plugin,
            handler = label.handler(),
            project = label.project(),
            dir_name = label.dir_name(),
            method = %self.method,
            target = %self.target,
            status = self.status.get_mut(),
            sent = self.sent.get_mut(),
            received = self.received.get_mut(),
            duration_ms = self.started.elapsed().as_millis(),
            failure = failure.as_ref().map(tracing::field::debug),
            "a request of a handler ended"
        );
    }
}

/// Logs a request that was not sent; a guest that tries many is told about once a while.
pub(super) fn report_denied(session: &Session, target: Option<&Target>, error: &Error) {
    let times = session.denied.fetch_add(1, Ordering::Relaxed) + 1;
    if !times.is_power_of_two() {
        return;
    }
    let label = &session.label;
    tracing::warn!(
        plugin = &*label.plugin,
        handler = label.handler(),
        project = label.project(),
        dir_name = label.dir_name(),
        target = target.map(tracing::field::display),
        %error,
        times,
        "a request of a handler was refused"
    );
}
