//! The network of a child: an HTTP proxy that only goes where the grant says.
//!
//! A child has a network of its own, with nothing in it but a socket that the host serves for the
//! child's life. `CONNECT` reaches `https` endpoints, a request with an absolute `http` URL reaches
//! `http` ones. What is asked for, what is decided on and what is connected to are the same.
//!
//! What goes through a `CONNECT` is the business of its two ends: a server that is granted may pass
//! it on.

mod forward;
mod meter;
mod report;
#[cfg(test)]
mod tests;
mod tunnel;

use std::io;
use std::net::TcpListener as StdTcpListener;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Duration;

use tokio::net::TcpListener;
use tokio::sync::{Semaphore, oneshot};
use tokio::task::{JoinHandle, JoinSet};
use tokio::time::{sleep, sleep_until};
use warren_model::Endpoints;

use crate::Connector;
use crate::proxy::meter::Budget;

pub use report::{Outcome, Refused, Report, Sink};

/// How long to wait when a connection cannot be accepted, for want of descriptors say.
const ACCEPT_PAUSE: Duration = Duration::from_millis(100);

/// How much one child may do with its network.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Limits {
    /// Connections at a time; more wait.
    pub connections: usize,
    /// Requests in all, denied ones included; more are refused, and not reported.
    pub requests: u64,
    /// Bytes sent to servers in all.
    pub sent_bytes: u64,
    /// Bytes received from servers in all.
    pub received_bytes: u64,
    /// Bytes of the head of a request or an answer, at least 8192.
    pub head_bytes: usize,
    /// Headers of a request or an answer.
    pub headers: usize,
    /// Time for a head to be complete.
    pub head_time: Duration,
    /// Time to resolve a name and to connect to one of its addresses.
    pub connect_time: Duration,
    /// Time in which nothing moves on a connection.
    pub idle_time: Duration,
    /// Time of everything.
    pub total_time: Duration,
}

impl Default for Limits {
    /// What an installer of packages needs.
    fn default() -> Self {
        Self {
            connections: 64,
            requests: 20_000,
            sent_bytes: 64 * 1024 * 1024,
            received_bytes: 4 * 1024 * 1024 * 1024,
            head_bytes: 64 * 1024,
            headers: 128,
            head_time: Duration::from_secs(10),
            connect_time: Duration::from_secs(10),
            idle_time: Duration::from_secs(60),
            total_time: Duration::from_secs(3600),
        }
    }
}

/// What a proxy may do, and who is told.
pub struct Settings {
    /// Where it may go.
    pub endpoints: Endpoints,
    /// How much.
    pub limits: Limits,
    /// Resolves and connects.
    pub connector: Connector,
    /// Told of every connection.
    pub sink: Arc<dyn Sink>,
}

/// A proxy at work. When dropped, all its connections are closed, soon; [`Proxy::stop`] waits.
#[derive(Debug)]
pub struct Proxy {
    stop: Option<oneshot::Sender<()>>,
    task: JoinHandle<()>,
}

/// What all connections of a child share.
pub(crate) struct Shared {
    pub(crate) endpoints: Endpoints,
    pub(crate) limits: Limits,
    pub(crate) sink: Arc<dyn Sink>,
    pub(crate) connector: Connector,
    pub(crate) budget: Arc<Budget>,
    requests: AtomicU64,
}

impl Shared {
    /// Counts a request; false when there were too many.
    pub(crate) fn count_request(&self) -> bool {
        self.requests.fetch_add(1, Ordering::Relaxed) < self.limits.requests
    }
}

impl Proxy {
    /// Serves a listening socket, whichever network it is in. Must run on a tokio runtime with I/O
    /// and time.
    ///
    /// # Errors
    /// When the socket cannot be used.
    pub fn serve(listener: StdTcpListener, settings: Settings) -> io::Result<Self> {
        listener.set_nonblocking(true)?;
        let listener = TcpListener::from_std(listener)?;
        let limits = settings.limits;
        let shared = Arc::new(Shared {
            endpoints: settings.endpoints,
            sink: settings.sink,
            connector: settings.connector,
            budget: Arc::new(Budget::new(limits.sent_bytes, limits.received_bytes)),
            limits,
            requests: AtomicU64::new(0),
        });
        let (stop, stopped) = oneshot::channel();
        Ok(Self {
            stop: Some(stop),
            task: tokio::spawn(run(listener, shared, stopped)),
        })
    }

    /// Closes everything and waits until it is closed and reported.
    pub async fn stop(mut self) {
        drop(self.stop.take());
        if let Err(error) = (&mut self.task).await {
            tracing::error!(%error, "the proxy of a child broke");
        }
    }
}

async fn run(listener: TcpListener, shared: Arc<Shared>, stopped: oneshot::Receiver<()>) {
    let mut connections = JoinSet::new();
    let end = tokio::time::Instant::now() + shared.limits.total_time;
    tokio::select! {
        () = accept(&listener, &shared, &mut connections) => {}
        _ = stopped => {}
        () = sleep_until(end) => tracing::warn!("the time of a child's network is over"),
    }
    drop(listener);
    connections.shutdown().await;
}

async fn accept(listener: &TcpListener, shared: &Arc<Shared>, connections: &mut JoinSet<()>) {
    let places = Arc::new(Semaphore::new(shared.limits.connections));
    loop {
        // Never closed, so that there is always a place some time.
        let Ok(place) = Arc::clone(&places).acquire_owned().await else {
            return;
        };
        while connections.try_join_next().is_some() {}
        match listener.accept().await {
            Ok((stream, _)) => {
                let shared = Arc::clone(shared);
                connections.spawn(async move {
                    forward::serve(stream, shared).await;
                    drop(place);
                });
            }
            Err(error) => {
                tracing::warn!(%error, "a connection of a child could not be accepted");
                sleep(ACCEPT_PAUSE).await;
            }
        }
    }
}
