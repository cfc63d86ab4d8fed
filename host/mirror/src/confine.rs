//! The thread that a verb works on: it reaches the places of its operation and nothing else.
//!
//! What a verb needs from elsewhere — a credential, known hosts, addresses of hosts — is read by
//! the thread that waits for it.

mod resolve;

use std::os::fd::AsFd;
use std::panic::resume_unwind;
use std::path::Path;

use warren_confine::{Access, ConfineError, PathRules, restrict_thread};
use warren_repo::Bounds;

use crate::MirrorError;
use crate::remote_url::RemoteUrl;

pub(crate) use resolve::Resolver;

/// Where trusted certificates may lie beside what OpenSSL was told: its own directories, what their
/// links lead to, and what it reads of its settings.
const CERTIFICATES: [&str; 6] = [
    "/etc/ssl",
    "/usr/share/ca-certificates",
    "/usr/local/share/ca-certificates",
    "/etc/pki",
    "/etc/ca-certificates",
    "/usr/lib/ssl",
];

/// Variables that tell OpenSSL where certificates lie.
const CERTIFICATE_VARIABLES: [&str; 2] = ["SSL_CERT_FILE", "SSL_CERT_DIR"];

/// What a verb's thread may reach.
#[derive(Debug)]
pub(crate) enum Reach {
    /// The places of its operation, and TCP connections to these ports.
    Places { places: PathRules, ports: Vec<u16> },
    /// Everything: the policy says so.
    Everything,
}

impl Reach {
    /// Nothing yet; everything when the policy says that git goes unconfined.
    pub(crate) fn new(unconfined: bool) -> Self {
        if unconfined {
            return Self::Everything;
        }
        Self::Places {
            places: PathRules::new(),
            ports: Vec::new(),
        }
    }

    /// Lets the thread into what is open.
    pub(crate) fn open(&mut self, place: impl AsFd, access: Access) -> Result<(), MirrorError> {
        match self {
            Self::Places { places, .. } => places.allow(place, access).map_err(refused),
            Self::Everything => Ok(()),
        }
    }

    /// Lets the thread into what a path leads to, if there is something.
    pub(crate) fn path(&mut self, path: &Path, access: Access) -> Result<(), MirrorError> {
        match self {
            Self::Places { places, .. } => {
                places.allow_path(path, access).map(drop).map_err(refused)
            }
            Self::Everything => Ok(()),
        }
    }

    /// Lets the thread connect to a port.
    pub(crate) fn port(&mut self, port: u16) {
        if let Self::Places { ports, .. } = self {
            ports.push(port);
        }
    }

    /// Lets the thread read the certificates that the system trusts.
    pub(crate) fn certificates(&mut self) -> Result<(), MirrorError> {
        for path in CERTIFICATES {
            self.path(Path::new(path), Access::Read)?;
        }
        for name in CERTIFICATE_VARIABLES {
            if let Some(path) = std::env::var_os(name) {
                self.path(Path::new(&path), Access::Read)?;
            }
        }
        Ok(())
    }

    fn enforce(&self) -> Result<(), MirrorError> {
        match self {
            Self::Places { places, ports } => restrict_thread(places, ports).map_err(refused),
            Self::Everything => Ok(()),
        }
    }
}

fn refused(error: ConfineError) -> MirrorError {
    MirrorError::Unconfined(error)
}

/// Works on a thread of its own that reaches no more than `reach`, and waits for it. `url` is what
/// the thread may ask the addresses of.
pub(crate) fn run<T: Send>(
    reach: &Reach,
    url: Option<&RemoteUrl>,
    bounds: &Bounds,
    work: impl FnOnce(Resolver) -> Result<T, MirrorError> + Send,
) -> Result<T, MirrorError> {
    let (resolver, answers) = resolve::pair();
    let logs = tracing::dispatcher::get_default(Clone::clone);
    let span = tracing::Span::current();
    std::thread::scope(|scope| {
        let thread = std::thread::Builder::new()
            .name("git".to_owned())
            .spawn_scoped(scope, || {
                tracing::dispatcher::with_default(&logs, || {
                    span.in_scope(|| {
                        reach.enforce()?;
                        warren_repo::within(bounds, || work(resolver))
                    })
                })
            })
            .map_err(|error| MirrorError::io("start a thread", error))?;
        // Ends when the thread has dropped its end.
        answers.serve(url);
        thread.join().unwrap_or_else(|panic| resume_unwind(panic))
    })
}

#[cfg(test)]
mod tests;
