//! Connections that the host makes for others: names resolved once, the address judged, TLS; and an
//! HTTP proxy that is the network of a child.
//!
//! What may be reached is decided by `warren_model`'s `Endpoints`; the `Target` that they permitted is
//! what is connected to and what TLS is asked to prove.

mod connect;
pub mod proxy;
mod resolve;
#[cfg(test)]
mod tests;
mod tls;

pub use connect::{ConnectError, Connector};
pub use resolve::Lookup;
pub use tls::{Tls, TlsError};
