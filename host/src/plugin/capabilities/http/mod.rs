//! `wasi:http`: requests to the servers that the grant lists, sent by the host.
//!
//! One connection a request, HTTP/1.1, closed with the answer. The host follows no redirect, adds no
//! credential, uses no proxy and undoes no coding; a request ends with its call.

mod exchange;
mod fault;
mod guard;
mod judge;
mod running;
mod wire;

use std::path::PathBuf;
use std::sync::atomic::{AtomicU32, AtomicU64, Ordering};
use std::sync::{Arc, OnceLock};

use tokio::sync::{Semaphore, mpsc};
use tokio::time::Instant;
use warren_egress::{Connector, Tls, TlsError};
use wasmtime::component::Linker;
use wasmtime_wasi_http::p2::bindings::LinkOptions;
use wasmtime_wasi_http::p2::bindings::http::outgoing_handler;
use wasmtime_wasi_http::p2::bindings::http::types::{self, ErrorCode};
use wasmtime_wasi_http::{
    Error, RequestOptions, WasiBody, WasiHttp, WasiHttpCtx, WasiHttpCtxView, WasiHttpHooks,
    WasiHttpView,
};

pub(crate) use running::Denials;

use crate::plugin::grants::{Grants, HttpGrant};
use crate::plugin::inspect::Interface;
use crate::plugin::state::CallState;

/// Package of the interfaces.
pub(crate) const PACKAGE: &str = "wasi:http";

/// The version that wasmtime-wasi-http implements.
const VERSION: &str = "0.2.12";

/// Bytes of a request's body that wait for the network in one piece. A guest may have as many bodies
/// as handles.
const CHUNK_BYTES: usize = 16 * 1024;

pub(crate) fn granted(grants: &Grants) -> bool {
    grants.http.is_some()
}

/// Whether this host has the interface.
pub(crate) fn has(interface: &Interface<'_>) -> bool {
    matches!(interface.name, "types" | "outgoing-handler") && interface.fits(VERSION)
}

pub(crate) fn link(linker: &mut Linker<CallState>, name: &str) -> wasmtime::Result<()> {
    let view = CallState::http;
    if name == "outgoing-handler" {
        return outgoing_handler::add_to_linker::<_, WasiHttp>(linker, view);
    }
    let options = LinkOptions::default();
    types::add_to_linker::<_, WasiHttp>(linker, &(&options).into(), view)?;
    guard::link(linker, VERSION)
}

/// TLS for the requests of handlers. Cheap to clone.
#[derive(Debug, Clone, Default)]
pub struct HttpClient {
    ca_file: Option<PathBuf>,
    tls: Arc<OnceLock<Tls>>,
}

impl HttpClient {
    /// Trusts the system's certificates and those of a PEM file beside them, which are read for the
    /// first request over TLS.
    pub fn new(ca_file: Option<PathBuf>) -> Self {
        Self {
            ca_file,
            tls: Arc::default(),
        }
    }

    fn tls(&self) -> Result<&Tls, TlsError> {
        if let Some(made) = self.tls.get() {
            return Ok(made);
        }
        let made = Tls::new(self.ca_file.as_deref())?;
        Ok(self.tls.get_or_init(|| made))
    }
}

/// What one call may send, and what is left of it.
pub(crate) struct Session {
    client: HttpClient,
    connector: Connector,
    grant: HttpGrant,
    deadline: Instant,
    denials: Arc<Denials>,
    /// Held so that the call waits for its requests.
    _jobs: mpsc::Sender<()>,
    connections: Arc<Semaphore>,
    requests_left: AtomicU32,
    sent_left: AtomicU64,
    received_left: AtomicU64,
}

impl Session {
    pub(crate) fn new(
        client: HttpClient,
        connector: Connector,
        grant: HttpGrant,
        deadline: Instant,
        denials: Arc<Denials>,
        jobs: mpsc::Sender<()>,
    ) -> Self {
        let limits = &grant.limits;
        Self {
            connections: Arc::new(Semaphore::new(limits.connections)),
            requests_left: AtomicU32::new(limits.requests),
            sent_left: AtomicU64::new(limits.sent_bytes),
            received_left: AtomicU64::new(limits.received_bytes),
            client,
            connector,
            grant,
            deadline,
            denials,
            _jobs: jobs,
        }
    }

    /// Takes from what is left; false: there is not so much, and nothing is left from now on.
    fn take(left: &AtomicU64, bytes: u64) -> bool {
        let taken = |left: u64| left.checked_sub(bytes);
        let order = Ordering::Relaxed;
        let enough = left.fetch_update(order, order, taken).is_ok();
        if !enough {
            left.store(0, order);
        }
        enough
    }

    fn take_request(&self) -> bool {
        self.requests_left
            .fetch_update(Ordering::Relaxed, Ordering::Relaxed, |left| {
                left.checked_sub(1)
            })
            .is_ok()
    }
}

/// The state of `wasi:http` in one call.
pub(crate) struct HttpCall {
    ctx: WasiHttpCtx,
    hooks: Hooks,
}

/// What the crate asks us; without a session every request is denied.
struct Hooks {
    session: Option<Arc<Session>>,
    denials: Option<Arc<Denials>>,
}

impl HttpCall {
    /// Of a call that may send nothing, and has no record: `describe`.
    pub(crate) fn none() -> Self {
        Self {
            ctx: WasiHttpCtx::new(),
            hooks: Hooks {
                session: None,
                denials: None,
            },
        }
    }

    /// Without a session the call may send nothing.
    pub(crate) fn new(session: Option<Session>, denials: Arc<Denials>) -> Self {
        let mut ctx = WasiHttpCtx::new();
        if let Some(session) = &session {
            ctx.set_field_size_limit(session.grant.limits.header_bytes);
        }
        Self {
            ctx,
            hooks: Hooks {
                session: session.map(Arc::new),
                denials: Some(denials),
            },
        }
    }
}

impl WasiHttpView for CallState {
    fn http(&mut self) -> WasiHttpCtxView<'_> {
        WasiHttpCtxView {
            hooks: &mut self.http.hooks,
            ctx: &mut self.http.ctx,
            table: &mut self.table,
        }
    }
}

type Answered = (
    http::Response<WasiBody>,
    Box<dyn Future<Output = Result<(), Error>> + Send>,
);

impl WasiHttpHooks for Hooks {
    /// Ours to say: it is the judged server's name.
    fn set_host_header(&mut self) -> bool {
        false
    }

    fn send_request(
        &mut self,
        request: http::Request<WasiBody>,
        options: Option<RequestOptions>,
        _: Box<dyn Future<Output = Result<(), Error>> + Send>,
    ) -> Box<dyn Future<Output = Result<Answered, Error>> + Send> {
        let Some(session) = self.session.clone() else {
            let denied = Error::HttpRequestDenied;
            if let Some(denials) = &self.denials {
                let target = judge::target(&request).ok();
                denials.report(&request, target.as_ref(), &denied);
            }
            return Box::new(std::future::ready(Err(denied)));
        };
        Box::new(exchange::send(
            session,
            request,
            options.unwrap_or_default(),
        ))
    }

    fn p2_outgoing_body_chunk_size(&mut self) -> usize {
        CHUNK_BYTES
    }

    fn p2_error_from_hyper(&mut self, error: &hyper::Error) -> ErrorCode {
        fault::code(&fault::of_hyper(error))
    }

    fn p2_error_from_connect(&mut self, _: &std::io::Error) -> ErrorCode {
        ErrorCode::DestinationUnavailable
    }

    fn p2_error_from_tls(&mut self, _: &std::io::Error) -> ErrorCode {
        ErrorCode::TlsProtocolError
    }
}
