//! From a permitted server to a connection.

use std::fmt;
use std::io;
use std::net::{IpAddr, SocketAddr};
use std::time::Duration;

use tokio::net::TcpStream;
use tokio::time::{Instant, timeout_at};
use url::Host;
use warren_model::{EndpointPermit, Target};

use crate::resolve::{Lookup, Resolver};

/// Most addresses of one name that are tried.
const ADDRESSES_MAX: usize = 8;

/// Why there is no connection.
#[derive(Debug, thiserror::Error)]
pub enum ConnectError {
    /// The name leads only where the grant does not.
    #[error("`{server}` leads to {address}, which the grant does not allow")]
    Denied {
        /// What was asked for.
        server: String,
        /// One of its addresses.
        address: IpAddr,
    },
    /// The name could not be resolved.
    #[error("the address of `{server}` cannot be found")]
    Name {
        /// What was asked for.
        server: String,
        /// What the resolver said; none: it knows no address.
        source: Option<io::Error>,
    },
    /// Nobody answers there.
    #[error("`{server}` cannot be connected to")]
    Unreachable {
        /// What was asked for.
        server: String,
        /// Of the last address.
        source: io::Error,
    },
    /// No connection in time.
    #[error("`{server}` was not connected in time")]
    Timeout {
        /// What was asked for.
        server: String,
    },
}

/// Connects to permitted servers. Clones share the bound on lookups.
#[derive(Clone)]
pub struct Connector {
    resolver: Resolver,
}

impl fmt::Debug for Connector {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Connector").finish_non_exhaustive()
    }
}

impl Default for Connector {
    fn default() -> Self {
        Self::system()
    }
}

impl Connector {
    /// With the system's resolver.
    pub fn system() -> Self {
        Self {
            resolver: Resolver::system(),
        }
    }

    /// With another one.
    pub fn with_lookup(lookup: Lookup) -> Self {
        Self {
            resolver: Resolver::new(lookup),
        }
    }

    /// Resolves the server's name once and connects to the first of its addresses that the permit
    /// allows and that answers.
    ///
    /// # Errors
    /// See [`ConnectError`]. Nothing is sent to an address that is not allowed.
    pub async fn connect(
        &self,
        target: &Target,
        permit: EndpointPermit,
        deadline: Instant,
    ) -> Result<TcpStream, ConnectError> {
        let server = || target.to_string();
        let timeout = || ConnectError::Timeout { server: server() };
        let found = timeout_at(deadline, self.addresses(&target.host))
            .await
            .map_err(|_| timeout())?
            .map_err(|source| ConnectError::Name {
                server: server(),
                source: Some(source),
            })?;
        let Some(&first) = found.first() else {
            return Err(ConnectError::Name {
                server: server(),
                source: None,
            });
        };
        let mut allowed: Vec<IpAddr> = found
            .into_iter()
            .filter(|address| permit.may_connect(*address))
            .collect();
        allowed.truncate(ADDRESSES_MAX);
        let mut failed = ConnectError::Denied {
            server: server(),
            address: first,
        };
        let count = allowed.len();
        for (at, address) in allowed.into_iter().enumerate() {
            let until = share(deadline, count - at);
            let socket = SocketAddr::new(address, target.port);
            failed = match timeout_at(until, TcpStream::connect(socket)).await {
                Ok(Ok(stream)) => return Ok(stream),
                Ok(Err(source)) => ConnectError::Unreachable {
                    server: server(),
                    source,
                },
                Err(_) => timeout(),
            };
        }
        Err(failed)
    }

    async fn addresses(&self, host: &Host) -> io::Result<Vec<IpAddr>> {
        match host {
            Host::Ipv4(address) => Ok(vec![IpAddr::V4(*address)]),
            Host::Ipv6(address) => Ok(vec![IpAddr::V6(*address)]),
            Host::Domain(name) => self.resolver.resolve(name).await,
        }
    }
}

/// When the next of so many addresses must have answered, so that the others have their turn.
fn share(deadline: Instant, addresses: usize) -> Instant {
    let now = Instant::now();
    let left = deadline.saturating_duration_since(now);
    let parts = u32::try_from(addresses.max(1)).unwrap_or(u32::MAX);
    now + (left / parts).max(Duration::from_millis(1))
}
