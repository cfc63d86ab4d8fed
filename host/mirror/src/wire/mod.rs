//! One operation on the network: where it may connect, as whom, how long and how much.
//!
//! libgit2 opens no socket of its own: [`stream`] gives it ours, which know the operation of their
//! thread and refuse without one.

mod explain;
mod hops;
mod stream;
mod tls;
mod watch;

use std::cell::{Cell, RefCell};
use std::net::TcpStream;
use std::rc::Rc;
use std::time::Duration;

use git2::cert::Cert;
use git2::{CertificateCheckStatus, CredentialType, RemoteCallbacks};
use warren_disk::budget::{Reserve, Short};
use warren_repo::Bounds;

use crate::MirrorError;
use crate::confine::Resolver;
use crate::credentials::Login;
use crate::known_hosts;
use crate::policy::Permit;
use crate::progress::{Progress, ProgressSink};
use crate::secret::Scrubber;

pub(crate) use hops::Judge;
pub(crate) use stream::{register, trust};
use watch::{Fired, Watch};

/// Most bytes of an error's text.
pub(crate) const MESSAGE_BYTES_MAX: usize = 500;

/// Most bytes of a list of refs: libgit2 keeps it in memory.
const LISTING_BYTES_MAX: u64 = 64 << 20;

/// Most bytes of side-band text that are kept.
const SIDEBAND_BYTES_MAX: usize = 8 * 1024;

/// Limits of one operation on the network.
#[derive(Debug, Clone, Copy)]
pub struct Limits {
    /// Longest time to connect, in milliseconds.
    pub connect_timeout_ms: u64,
    /// Longest time without a byte sent or received, in milliseconds.
    pub timeout_ms: u64,
    /// Most bytes that one operation may receive.
    pub received_bytes_max: u64,
    /// Most objects that one operation may receive.
    pub objects_max: u64,
    /// Most refs that a remote may have.
    pub refs_max: usize,
    /// Longest wait for another operation on the same mirror, in milliseconds.
    pub lock_timeout_ms: u64,
}

impl Default for Limits {
    fn default() -> Self {
        Self {
            connect_timeout_ms: 10_000,
            timeout_ms: 30_000,
            received_bytes_max: 4 << 30,
            objects_max: 20_000_000,
            refs_max: 100_000,
            lock_timeout_ms: 600_000,
        }
    }
}

/// What an operation brings along.
pub(crate) struct WireSpec {
    pub(crate) permit: Permit,
    /// Whether another path of the same server may be asked.
    pub(crate) judge: Judge,
    pub(crate) login: Option<Login>,
    /// Text of the known_hosts file.
    pub(crate) known_hosts: String,
    pub(crate) resolver: Resolver,
    pub(crate) limits: Limits,
    pub(crate) bounds: Bounds,
    /// Whether what comes in ends up in the RootDir, too.
    pub(crate) fills: bool,
    pub(crate) progress: ProgressSink,
}

/// One operation on the network. Lives on one thread.
pub(crate) struct Wire {
    spec: WireSpec,
    scrubber: Scrubber,
    watch: Watch,
    /// The first thing that ends the operation, whatever libgit2 makes of it.
    failure: RefCell<Option<MirrorError>>,
    /// The last thing that went wrong with a connection; libgit2 may still have got through.
    trouble: RefCell<Option<MirrorError>>,
    received: Cell<u64>,
    /// Room in the RootDir for what comes in, held until it is put there.
    held: RefCell<Option<Reserve>>,
    /// While a list of refs comes in: what may have been received at its end.
    listing_until: Cell<Option<u64>>,
    /// Kinds of questions that were answered on this connection.
    asked: Cell<u8>,
    sideband: RefCell<Vec<u8>>,
}

thread_local! {
    static CURRENT: RefCell<Option<Rc<Wire>>> = const { RefCell::new(None) };
}

/// Takes the operation off its thread.
struct Entered;

impl Drop for Entered {
    fn drop(&mut self) {
        CURRENT.with(|current| current.borrow_mut().take());
    }
}

impl Wire {
    pub(crate) fn new(spec: WireSpec) -> Rc<Self> {
        let mut scrubber = Scrubber::default();
        if let Some(login) = &spec.login {
            login.teach(&mut scrubber);
        }
        let watch = Watch::start(&spec.bounds);
        Rc::new(Self {
            spec,
            scrubber,
            watch,
            failure: RefCell::new(None),
            trouble: RefCell::new(None),
            received: Cell::new(0),
            held: RefCell::new(None),
            listing_until: Cell::new(None),
            asked: Cell::new(0),
            sideband: RefCell::default(),
        })
    }

    /// Runs libgit2's network code under this operation; `doing` names it in errors.
    pub(crate) fn run<T>(
        self: &Rc<Self>,
        doing: &str,
        work: impl FnOnce() -> Result<T, git2::Error>,
    ) -> Result<T, MirrorError> {
        CURRENT.with(|current| current.replace(Some(Rc::clone(self))));
        let entered = Entered;
        let result = work();
        drop(entered);
        match result {
            // A callback that stops the work may still have left libgit2 content.
            Ok(value) => match self.take_failure() {
                Some(error) => Err(error),
                None => Ok(value),
            },
            Err(error) => Err(self.explain(doing, &error)),
        }
    }

    fn current() -> Option<Rc<Self>> {
        CURRENT.with(|current| current.borrow().clone())
    }

    /// The place that is talked to, for messages.
    pub(crate) fn place(&self) -> String {
        self.spec.permit.url.place()
    }

    pub(crate) fn url(&self) -> String {
        self.spec.permit.url.to_string()
    }

    pub(crate) fn refs_max(&self) -> usize {
        self.spec.limits.refs_max
    }

    /// A new connection begins: credentials are asked for again, and the server has said nothing.
    pub(crate) fn begin(&self) {
        self.listing_until
            .set(Some(self.received.get().saturating_add(LISTING_BYTES_MAX)));
        self.asked.set(0);
        self.sideband.borrow_mut().clear();
        self.trouble.borrow_mut().take();
    }

    /// Nothing more comes in on this connection.
    pub(crate) fn end(&self) {
        self.held.borrow_mut().take();
    }

    /// The list of refs is there.
    pub(crate) fn listed(&self) {
        self.listing_until.set(None);
    }

    /// Keeps the first failure.
    pub(crate) fn fail(&self, error: MirrorError) {
        self.failure.borrow_mut().get_or_insert(error);
    }

    /// Keeps what went wrong with a connection.
    fn suffer(&self, error: MirrorError) {
        *self.trouble.borrow_mut() = Some(error);
    }

    fn take_failure(&self) -> Option<MirrorError> {
        self.failure.borrow_mut().take().or_else(|| self.ended())
    }

    /// The error of an operation whose time is up or that was cancelled.
    fn ended(&self) -> Option<MirrorError> {
        let place = self.place();
        Some(match self.watch.fired()? {
            Fired::Deadline => MirrorError::Timeout(format!("`{place}` took longer than allowed")),
            Fired::Cancelled => MirrorError::Cancelled(format!("the work with `{place}`")),
        })
    }

    /// Counts what came in; false: too much.
    fn receive(&self, bytes: u64) -> bool {
        let sum = self.received.get().saturating_add(bytes);
        self.received.set(sum);
        self.bounded(sum) && self.has_room(bytes)
    }

    /// Whether the disks have room for what came in.
    fn has_room(&self, bytes: u64) -> bool {
        let bounds = &self.spec.bounds;
        let taken = bounds.store.take(bytes, 0).and_then(|()| {
            if !self.spec.fills {
                return Ok(());
            }
            match &mut *self.held.borrow_mut() {
                Some(held) => held.more(bytes),
                held => bounds.root.reserve(bytes).map(|made| *held = Some(made)),
            }
        });
        if let Err(short) = taken {
            self.fail(match short {
                Short::Quota { .. } | Short::Disk { .. } => MirrorError::NoSpace(short.to_string()),
                short => MirrorError::io("find room for what comes in", short.into()),
            });
            return false;
        }
        true
    }

    fn bounded(&self, received: u64) -> bool {
        let most = self.spec.limits.received_bytes_max;
        let max = self
            .listing_until
            .get()
            .map_or(most, |until| until.min(most));
        if received > max {
            let place = self.place();
            self.fail(MirrorError::TooLarge(format!(
                "`{place}` sent more than {max} bytes"
            )));
        }
        received <= max
    }

    /// Whether a pack of so many objects may come in: each costs memory while it is indexed.
    fn counted(&self, objects: u64) -> bool {
        let max = self.spec.limits.objects_max;
        if objects > max {
            let place = self.place();
            self.fail(MirrorError::TooLarge(format!(
                "`{place}` sends {objects} objects, more than {max}"
            )));
        }
        objects <= max
    }

    fn idle_timeout(&self) -> Duration {
        Duration::from_millis(self.spec.limits.timeout_ms.max(1))
    }

    /// Lets the watch end a connection.
    fn guard(&self, stream: &TcpStream) -> std::io::Result<()> {
        self.watch.guard(stream.try_clone()?);
        Ok(())
    }

    /// One clean line of what a server said, without secrets.
    pub(crate) fn excerpt(&self, bytes: &[u8]) -> String {
        self.scrubber.excerpt(bytes, MESSAGE_BYTES_MAX)
    }

    /// What the server said on the side, cleaned.
    pub(crate) fn sideband(&self) -> String {
        self.excerpt(&self.sideband.borrow())
    }

    /// The callbacks that every operation needs.
    pub(crate) fn callbacks<'a>(self: &Rc<Self>) -> RemoteCallbacks<'a> {
        let mut callbacks = RemoteCallbacks::new();
        let wire = Rc::clone(self);
        callbacks.credentials(move |_, user, asked| wire.credential(user, asked));
        let wire = Rc::clone(self);
        callbacks.certificate_check(move |cert, host| wire.certificate(cert, host));
        let wire = Rc::clone(self);
        callbacks.transfer_progress(move |stats| {
            let (done, total) = (
                stats.received_objects() as u64,
                stats.total_objects() as u64,
            );
            wire.report("fetch", done, total);
            wire.counted(total)
                && wire.bounded(stats.received_bytes() as u64)
                && wire.watch.fired().is_none()
        });
        let wire = Rc::clone(self);
        callbacks.sideband_progress(move |bytes| {
            let mut kept = wire.sideband.borrow_mut();
            let room = SIDEBAND_BYTES_MAX.saturating_sub(kept.len());
            kept.extend_from_slice(&bytes[..bytes.len().min(room)]);
            wire.watch.fired().is_none()
        });
        let wire = Rc::clone(self);
        callbacks.push_transfer_progress(move |done, total, _| {
            wire.report("push", done as u64, total as u64);
        });
        callbacks
    }

    fn report(&self, stage: &'static str, done: u64, total: u64) {
        (self.spec.progress)(Progress {
            stage,
            done,
            total: (total > 0).then_some(total),
        });
    }

    /// Answers each kind of question once: libgit2 asks for ever.
    fn credential(
        &self,
        user: Option<&str>,
        asked: CredentialType,
    ) -> Result<git2::Cred, git2::Error> {
        let place = self.place();
        // ssh asks for the user name first, where the URL has none.
        let kind = if asked.is_username() { 1 } else { 2 };
        let is_again = self.asked.get() & kind != 0;
        self.asked.set(self.asked.get() | kind);
        let refused = |why: String| {
            self.fail(MirrorError::AuthenticationFailed(why));
            git2::Error::new(
                git2::ErrorCode::Auth,
                git2::ErrorClass::Callback,
                "no credential",
            )
        };
        let Some(login) = &self.spec.login else {
            return Err(refused(format!("`{place}` wants credentials")));
        };
        if is_again {
            return Err(refused(format!("`{place}` refused the credentials")));
        }
        match login.answer(user, asked)? {
            Some(cred) => Ok(cred),
            None => Err(refused(format!(
                "`{place}` wants another kind of credential"
            ))),
        }
    }

    /// TLS is judged by openssl; ssh keys by our file alone.
    fn certificate(
        &self,
        cert: &Cert<'_>,
        host: &str,
    ) -> Result<CertificateCheckStatus, git2::Error> {
        let Some(hostkey) = cert.as_hostkey() else {
            return Ok(CertificateCheckStatus::CertificatePassthrough);
        };
        let url = &self.spec.permit.url;
        let verdict = match hostkey.hostkey() {
            Some(key) => {
                known_hosts::judge(&self.spec.known_hosts, &url.host_text(), url.port, key)
            }
            None => Err(MirrorError::HostKeyUnknown {
                host: host.to_owned(),
                fingerprint: "no key shown".to_owned(),
            }),
        };
        match verdict {
            Ok(()) => Ok(CertificateCheckStatus::CertificateOk),
            Err(error) => {
                self.fail(error);
                Err(git2::Error::new(
                    git2::ErrorCode::Certificate,
                    git2::ErrorClass::Ssh,
                    "host key refused",
                ))
            }
        }
    }
}
