//! Addresses behind a name.

use std::io;
use std::net::{IpAddr, ToSocketAddrs};
use std::sync::Arc;

use tokio::sync::{OwnedSemaphorePermit, Semaphore, oneshot};

/// Looks a name up; may block.
pub type Lookup = Arc<dyn Fn(&str) -> io::Result<Vec<IpAddr>> + Send + Sync>;

/// Lookups at a time: each takes a thread until the system's resolver gives up.
const LOOKUPS_MAX: usize = 16;

/// Resolves names on threads of its own: the system's resolver knows no deadline, and a runtime's
/// end would wait for a thread of its pool.
#[derive(Clone)]
pub(crate) struct Resolver {
    lookup: Lookup,
    threads: Arc<Semaphore>,
}

impl Resolver {
    pub(crate) fn new(lookup: Lookup) -> Self {
        Self {
            lookup,
            threads: Arc::new(Semaphore::new(LOOKUPS_MAX)),
        }
    }

    pub(crate) fn system() -> Self {
        Self::new(Arc::new(|name| {
            // The port plays no part in the answer.
            let found = (name, 0).to_socket_addrs()?;
            Ok(found.map(|address| address.ip()).collect())
        }))
    }

    pub(crate) async fn resolve(&self, name: &str) -> io::Result<Vec<IpAddr>> {
        let permit = Arc::clone(&self.threads)
            .acquire_owned()
            .await
            .map_err(io::Error::other)?;
        let answer = self.ask(name.to_owned(), permit)?;
        answer.await.map_err(io::Error::other)?
    }

    /// The thread keeps its permit when nobody waits any more.
    fn ask(
        &self,
        name: String,
        permit: OwnedSemaphorePermit,
    ) -> io::Result<oneshot::Receiver<io::Result<Vec<IpAddr>>>> {
        let (send, receive) = oneshot::channel();
        let lookup = Arc::clone(&self.lookup);
        std::thread::Builder::new()
            .name("warren-resolve".into())
            .spawn(move || {
                let found = lookup(&name);
                drop(permit);
                // Whoever asked may have given up.
                drop(send.send(found));
            })?;
        Ok(receive)
    }
}
