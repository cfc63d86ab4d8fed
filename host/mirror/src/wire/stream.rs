//! The sockets of libgit2: connected by us, to addresses that the policy allows.
//!
//! Registered for the whole process, so that libgit2 cannot reach the network in any other way.
//! TLS and ssh run on top.

#![expect(unsafe_code, reason = "libgit2 has no safe interface for streams")]

use std::ffi::{CStr, c_char, c_int, c_uint, c_void};
use std::io::{ErrorKind, Read, Write};
use std::net::TcpStream;
use std::os::fd::AsRawFd;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::path::Path;
use std::ptr;
use std::rc::Rc;
use std::time::{Duration, Instant};

use super::{Wire, tls};
use crate::MirrorError;

const STREAM_VERSION: c_int = 1;
const STREAM_STANDARD: c_int = 1;
const STREAM_TLS: c_int = 2;
pub(super) const GIT_ERROR: c_int = -1;
const GIT_TIMEOUT: c_int = -37;

/// `git_stream` of libgit2 1.9.
#[repr(C)]
pub(super) struct RawStream {
    version: c_int,
    /// Bit fields `encrypted` and `proxy_support`.
    flags: c_uint,
    timeout: c_int,
    connect_timeout: c_int,
    connect: Option<extern "C" fn(*mut Self) -> c_int>,
    certificate: Option<extern "C" fn(*mut *mut c_void, *mut Self) -> c_int>,
    set_proxy: Option<extern "C" fn(*mut Self, *const c_void) -> c_int>,
    read: Option<extern "C" fn(*mut Self, *mut c_void, usize) -> isize>,
    pub(super) write: Option<Writer>,
    close: Option<extern "C" fn(*mut Self) -> c_int>,
    free: Option<extern "C" fn(*mut Self)>,
}

/// Laid out as libgit2's own socket stream up to `socket`: its ssh transport takes the descriptor
/// from there. The round over ssh in this crate's tests fails when that changes.
#[repr(C)]
struct OurStream {
    parent: RawStream,
    host_unused: *mut c_char,
    port_unused: *mut c_char,
    socket: c_int,
    inner: Inner,
}

struct Inner {
    wire: Rc<Wire>,
    host: String,
    port: String,
    stream: Option<TcpStream>,
}

type Init = extern "C" fn(*mut *mut RawStream, *const c_char, *const c_char) -> c_int;

#[repr(C)]
struct Registration {
    version: c_int,
    init: Option<Init>,
    wrap: Option<extern "C" fn(*mut *mut RawStream, *mut RawStream, *const c_char) -> c_int>,
}

unsafe extern "C" {
    // Exported by libgit2, but not declared by libgit2-sys.
    fn git_stream_register(kind: c_int, registration: *mut Registration) -> c_int;
}

pub(super) type Writer = extern "C" fn(*mut RawStream, *const c_char, usize, c_int) -> isize;

/// Makes libgit2 use our sockets, and libssh2 wait no longer than this. May be called again.
pub(crate) fn register(timeout_ms: u64) -> Result<(), MirrorError> {
    // Makes git2 initialise libgit2, which must come first.
    let version = git2::Version::get().libgit2_version();
    let mut code = 0;
    for (kind, init) in [
        (STREAM_STANDARD, init as Init),
        (STREAM_TLS, tls::init as Init),
    ] {
        let mut registration = Registration {
            version: STREAM_VERSION,
            init: Some(init),
            wrap: None,
        };
        // SAFETY: libgit2 is initialised and copies the registration.
        code = unsafe { git_stream_register(kind, &raw mut registration) };
        if code != 0 {
            break;
        }
    }
    if code == 0 {
        let timeout_ms = c_int::try_from(timeout_ms).unwrap_or(c_int::MAX);
        // SAFETY: sets one integer, which libgit2 reads when it connects.
        return unsafe { git2::opts::set_server_timeout_in_milliseconds(timeout_ms) }
            .map_err(|error| MirrorError::git("set the time limit of libgit2", error));
    }
    Err(MirrorError::Io {
        doing: format!("register sockets with libgit2 {version:?}"),
        source: git2::Error::last_error(code).into(),
    })
}

/// Makes libgit2 trust the certificates in a file, beside those it trusts already.
pub(crate) fn trust(file: &Path) -> Result<(), MirrorError> {
    // SAFETY: adds to the store of libgit2's TLS context, which locks it.
    unsafe { git2::opts::set_ssl_cert_file(file) }
        .map_err(|error| MirrorError::git("read the file of trusted certificates", error))
}

/// Runs code of ours under libgit2: a panic must not cross it.
pub(super) fn guarded<T>(failed: T, work: impl FnOnce() -> T) -> T {
    catch_unwind(AssertUnwindSafe(work)).unwrap_or(failed)
}

extern "C" fn init(out: *mut *mut RawStream, host: *const c_char, port: *const c_char) -> c_int {
    guarded(GIT_ERROR, || {
        let Some(wire) = Wire::current() else {
            return GIT_ERROR;
        };
        // SAFETY: libgit2 hands over two texts that end with a zero byte.
        let (host, port) = unsafe { (CStr::from_ptr(host), CStr::from_ptr(port)) };
        let (Ok(host), Ok(port)) = (host.to_str(), port.to_str()) else {
            return GIT_ERROR;
        };
        let stream = Box::new(OurStream {
            parent: RawStream {
                version: STREAM_VERSION,
                flags: 0,
                timeout: 0,
                connect_timeout: 0,
                connect: Some(connect),
                certificate: None,
                set_proxy: None,
                read: Some(read),
                write: Some(write),
                close: Some(close),
                free: Some(free),
            },
            host_unused: ptr::null_mut(),
            port_unused: ptr::null_mut(),
            socket: -1,
            inner: Inner {
                wire,
                host: host.to_owned(),
                port: port.to_owned(),
                stream: None,
            },
        });
        // SAFETY: `out` is where libgit2 wants the stream; it gives it back to `free`.
        unsafe { *out = Box::into_raw(stream).cast() };
        0
    })
}

/// The stream behind a pointer that libgit2 got from [`init`].
fn ours<'a>(stream: *mut RawStream) -> &'a mut OurStream {
    // SAFETY: libgit2 passes what `init` made, from one thread at a time, and not after `free`;
    // `RawStream` is its first field.
    unsafe { &mut *stream.cast::<OurStream>() }
}

extern "C" fn connect(stream: *mut RawStream) -> c_int {
    guarded(GIT_ERROR, || {
        let stream = ours(stream);
        match stream.inner.connect() {
            Ok(socket) => {
                stream.socket = socket.as_raw_fd();
                stream.inner.stream = Some(socket);
                0
            }
            Err(error) => {
                let timed_out = matches!(error, MirrorError::Timeout(_));
                stream.inner.wire.suffer(error);
                if timed_out { GIT_TIMEOUT } else { GIT_ERROR }
            }
        }
    })
}

extern "C" fn read(stream: *mut RawStream, data: *mut c_void, length: usize) -> isize {
    guarded(GIT_ERROR as isize, || {
        let inner = &mut ours(stream).inner;
        let length = length.min(isize::MAX as usize);
        // SAFETY: libgit2 gives a buffer of `length` bytes, which it does not use meanwhile.
        let buffer = unsafe {
            ptr::write_bytes(data.cast::<u8>(), 0, length);
            std::slice::from_raw_parts_mut(data.cast::<u8>(), length)
        };
        let result = inner.attempt(|socket| socket.read(buffer));
        if let Ok(count) = result
            && !inner.wire.receive(count as u64)
        {
            return GIT_ERROR as isize;
        }
        inner.answer(result)
    })
}

extern "C" fn write(
    stream: *mut RawStream,
    data: *const c_char,
    length: usize,
    _flags: c_int,
) -> isize {
    guarded(GIT_ERROR as isize, || {
        let inner = &mut ours(stream).inner;
        let length = length.min(isize::MAX as usize);
        // SAFETY: libgit2 gives `length` bytes to send.
        let bytes = unsafe { std::slice::from_raw_parts(data.cast::<u8>(), length) };
        if !inner.wire.may_send(bytes) {
            return GIT_ERROR as isize;
        }
        let result = inner.attempt(|socket| socket.write(bytes));
        inner.answer(result)
    })
}

extern "C" fn close(stream: *mut RawStream) -> c_int {
    guarded(GIT_ERROR, || {
        let stream = ours(stream);
        stream.socket = -1;
        stream.inner.stream = None;
        0
    })
}

extern "C" fn free(stream: *mut RawStream) {
    guarded((), || {
        // SAFETY: made by `init`, and libgit2 forgets it now.
        drop(unsafe { Box::from_raw(stream.cast::<OurStream>()) });
    });
}

impl Inner {
    /// Connects to the host that the policy judged, and to no other; tells neither a closed port
    /// from an open one nor why it failed.
    fn connect(&self) -> Result<TcpStream, MirrorError> {
        let permit = &self.wire.spec.permit;
        let place = permit.url.place();
        let host = permit.url.host_text();
        let host = host.trim_start_matches('[').trim_end_matches(']');
        let wanted = self.host.trim_start_matches('[').trim_end_matches(']');
        if !wanted.eq_ignore_ascii_case(host) || self.port != permit.url.port.to_string() {
            return Err(MirrorError::Denied(format!("`{place}` leads elsewhere")));
        }
        let unreachable = || MirrorError::Unreachable(format!("cannot connect to `{place}`"));
        let limit = Duration::from_millis(self.wire.spec.limits.connect_timeout_ms.max(1));
        let limit = Instant::now() + limit;
        let until = self
            .wire
            .spec
            .bounds
            .deadline
            .map_or(limit, |deadline| deadline.min(limit));
        let addresses = self
            .wire
            .spec
            .resolver
            .resolve(until)
            .ok_or_else(unreachable)?;
        if addresses
            .iter()
            .any(|address| !permit.may_connect(address.ip()))
        {
            return Err(MirrorError::Denied(format!(
                "`{place}` is not on the public internet, and its host is not listed by name"
            )));
        }
        for address in addresses {
            let left = until.saturating_duration_since(Instant::now());
            if left.is_zero() {
                break;
            }
            if let Ok(socket) = TcpStream::connect_timeout(&address, left) {
                return self.prepare(socket).map_err(|_| unreachable());
            }
        }
        Err(self.wire.ended().unwrap_or_else(unreachable))
    }

    fn prepare(&self, socket: TcpStream) -> std::io::Result<TcpStream> {
        socket.set_nodelay(true)?;
        socket.set_read_timeout(Some(self.wire.idle_timeout()))?;
        socket.set_write_timeout(Some(self.wire.idle_timeout()))?;
        self.wire.guard(&socket)?;
        Ok(socket)
    }

    fn attempt(
        &mut self,
        mut work: impl FnMut(&mut TcpStream) -> std::io::Result<usize>,
    ) -> std::io::Result<usize> {
        let socket = self.stream.as_mut().ok_or(ErrorKind::NotConnected)?;
        loop {
            match work(socket) {
                Err(error) if error.kind() == ErrorKind::Interrupted => {}
                result => return result,
            }
        }
    }

    /// What libgit2 is told of a read or write.
    fn answer(&self, result: std::io::Result<usize>) -> isize {
        match result {
            Ok(count) => isize::try_from(count).unwrap_or(GIT_ERROR as isize),
            Err(error) if matches!(error.kind(), ErrorKind::WouldBlock | ErrorKind::TimedOut) => {
                let place = self.wire.place();
                let timeout_ms = self.wire.spec.limits.timeout_ms;
                self.wire.suffer(MirrorError::Timeout(format!(
                    "`{place}` was silent for {timeout_ms} ms"
                )));
                GIT_TIMEOUT as isize
            }
            Err(_) => {
                let place = self.wire.place();
                let error = MirrorError::Unreachable(format!("`{place}` broke the connection"));
                self.wire.suffer(error);
                GIT_ERROR as isize
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use std::net::TcpListener;
    use std::sync::Arc;

    use super::*;
    use crate::confine::{self, Reach, Resolver};
    use crate::policy::Permit;
    use crate::remote_url::RemoteUrl;
    use crate::wire::{Limits, WireSpec};
    use warren_repo::Bounds;

    /// Connects to `url` as libgit2 does, after another one was judged; the code of the error, and
    /// whether anybody knocked.
    fn knock(judged: Option<(&str, bool)>, listener: &TcpListener, url: &str) -> (String, bool) {
        register(1000).unwrap();
        let connect = || {
            let mut remote = git2::Remote::create_detached(url).unwrap();
            remote.connect(git2::Direction::Fetch)
        };
        let code = match judged {
            Some((judged, named)) => {
                let permit = Permit {
                    url: RemoteUrl::parse(judged).unwrap(),
                    named,
                };
                let asked = permit.url.clone();
                let talk = |resolver| wire(permit, resolver).run("talk", connect);
                let talked =
                    confine::run(&Reach::new(true), Some(&asked), &Bounds::default(), talk);
                talked.unwrap_err().code().to_owned()
            }
            None => format!("{:?}", connect().unwrap_err().code()),
        };
        listener.set_nonblocking(true).unwrap();
        (code, listener.accept().is_ok())
    }

    fn wire(permit: Permit, resolver: Resolver) -> Rc<Wire> {
        Wire::new(WireSpec {
            permit,
            judge: Box::new(|_| false),
            login: None,
            known_hosts: String::new(),
            resolver,
            limits: Limits::default(),
            bounds: Bounds::default(),
            fills: false,
            progress: Arc::new(|_| {}),
        })
    }

    #[test]
    fn libgit2_reaches_what_was_judged_and_nothing_else() {
        let listener = TcpListener::bind("127.0.0.1:0").unwrap();
        let port = listener.local_addr().unwrap().port();
        let local = format!("http://localhost:{port}/x");
        // A name that leads inside, though it was not listed.
        let rebound = knock(Some((&local, false)), &listener, &local);
        assert_eq!(rebound, ("GitDenied".into(), false));
        // Another place than the one that was judged.
        let address = format!("http://127.0.0.1:{port}/x");
        for judged in ["http://localhost:1/x", &address] {
            let found = knock(Some((judged, true)), &listener, &local);
            assert_eq!(found, ("GitDenied".into(), false));
        }
        // No operation at all.
        assert!(!knock(None, &listener, &local).1);
    }
}
