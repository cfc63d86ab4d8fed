//! One request from its start to its end, however that comes.

use std::sync::Arc;
use std::sync::atomic::{AtomicU16, AtomicU32, AtomicU64, Ordering};
use std::sync::{Mutex, PoisonError};

use http::{Method, Request};
use tokio::sync::OwnedSemaphorePermit;
use warren_model::Target;
use wasmtime_wasi_http::Error;
use wasmtime_wasi_http::p2::bindings::http::types::ErrorCode;

use super::{Session, fault};
use crate::plugin::audit::{self, End, Open, Start, Trail, Unrecorded, Use};
use crate::plugin::state::Label;

/// Name of the capability in the audit log.
const HTTP: &str = "http";

const REQUEST: &str = "request";

/// Refusals of one call of which each has a record; of more, one once a while has.
const DENIALS_RECORDED: u32 = 1000;

/// A request under way: its place among the connections, and its record. Held by the connection and
/// by the body of the answer.
pub(super) struct Running {
    pub(super) session: Arc<Session>,
    _place: OwnedSemaphorePermit,
    record: Option<Open>,
    sent: AtomicU64,
    received: AtomicU64,
    /// 0: there was no answer.
    status: AtomicU16,
    failure: Mutex<Option<ErrorCode>>,
}

impl Running {
    /// Takes a place among the call's connections, and records that the request is sent.
    pub(super) async fn start(
        session: Arc<Session>,
        method: &Method,
        target: &Target,
    ) -> Result<Arc<Self>, Error> {
        let place = Arc::clone(&session.connections)
            .try_acquire_owned()
            .map_err(|_| Error::ConnectionLimitReached)?;
        let record = match session.denials.trail.clone() {
            Some(trail) => Some(begin(trail, method, target).await?),
            None => None,
        };
        Ok(Arc::new(Self {
            session,
            _place: place,
            record,
            sent: AtomicU64::new(0),
            received: AtomicU64::new(0),
            status: AtomicU16::new(0),
            failure: Mutex::new(None),
        }))
    }

    /// Counts bytes that were sent; false: the call has sent its share.
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
        let Some(record) = self.record.take() else {
            return;
        };
        let failure = self.failure.get_mut();
        let failure = failure.unwrap_or_else(PoisonError::into_inner).take();
        let status = *self.status.get_mut();
        let code = failure.as_ref().map(fault::name);
        let end = match (&failure, &code) {
            (Some(failure), Some(code)) => {
                End::failed(code, matches!(failure, ErrorCode::DestinationIpProhibited))
            }
            // Nobody waited for an answer: the record says so by itself.
            _ if status == 0 => return,
            _ => End::OK,
        };
        let counts = [
            ("status", u64::from(status)),
            ("sentBytes", *self.sent.get_mut()),
            ("receivedBytes", *self.received.get_mut()),
        ];
        // The trail keeps the error, and fails the call.
        let _ = record.end(end, &counts);
    }
}

async fn begin(trail: Trail, method: &Method, target: &Target) -> Result<Open, Error> {
    let start = match method.is_safe() {
        true => Start::Recorded,
        false => Start::Durable,
    };
    let mut what = Use::new(HTTP, REQUEST, start);
    what = what.on(audit::Target::Server(target.to_string().into()));
    what.detail = Some(method.to_string());
    let begun = match start {
        // It waits for the disk.
        Start::Durable => tokio::task::spawn_blocking(move || trail.begin(what))
            .await
            .map_err(|error| Error::InternalError(Some(error.to_string())))?,
        _ => trail.begin(what),
    };
    begun.map_err(|Unrecorded| {
        Error::InternalError(Some("the audit log cannot be written".to_owned()))
    })
}

/// Says what was refused.
pub(crate) struct Denials {
    trail: Option<Trail>,
    label: Label,
    times: AtomicU32,
}

impl Denials {
    pub(crate) fn new(trail: Option<Trail>, label: Label) -> Self {
        Self {
            trail,
            label,
            times: AtomicU32::new(0),
        }
    }

    /// Records a request that is not sent.
    pub(super) fn report<B>(&self, request: &Request<B>, target: Option<&Target>, error: &Error) {
        let uri = request.uri();
        let server = target.map_or_else(
            || {
                let authority = uri.authority().map_or("", |authority| authority.as_str());
                format!("{}://{authority}", uri.scheme_str().unwrap_or_default())
            },
            Target::to_string,
        );
        let server = audit::Target::Server(server.into());
        let times = self.times.fetch_add(1, Ordering::Relaxed).saturating_add(1);
        let once_a_while = times.is_power_of_two();
        if let Some(trail) = &self.trail
            && (once_a_while || times <= DENIALS_RECORDED)
        {
            let code = fault::name(&fault::code(error));
            // It is refused with or without a record; without one the call fails too.
            let _ = trail.denied(HTTP, REQUEST, server.clone(), &code);
        }
        if once_a_while {
            let label = &self.label;
            tracing::warn!(
                plugin = &*label.plugin,
                handler = label.handler(),
                project = label.project(),
                dir_name = label.dir_name(),
                target = %server,
                %error,
                times,
                "a request of a handler was refused"
            );
        }
    }
}
