//! The grant of `wasi:http`.

use std::time::Duration;

use warren_model::Endpoints;

/// Which servers a plugin may send requests to.
#[derive(Debug, Clone, Default)]
pub struct HttpGrant {
    /// The servers.
    pub hosts: Endpoints,
    /// How much of it.
    pub limits: HttpLimits,
}

/// Limits of the requests of one call.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct HttpLimits {
    /// Requests.
    pub requests: u32,
    /// Connections at a time; one request has one, until its answer is read or dropped.
    pub connections: usize,
    /// Bytes of the headers of a request, and of an answer (8 KiB at least).
    pub header_bytes: usize,
    /// Bytes sent by all requests together.
    pub sent_bytes: u64,
    /// Bytes received by all requests together.
    pub received_bytes: u64,
    /// Longest time in which nothing moves on a connection.
    pub silence: Duration,
}

impl Default for HttpLimits {
    fn default() -> Self {
        Self {
            requests: 1000,
            connections: 8,
            header_bytes: 32 * 1024,
            sent_bytes: 256 * 1024 * 1024,
            received_bytes: 256 * 1024 * 1024,
            silence: Duration::from_secs(60),
        }
    }
}
