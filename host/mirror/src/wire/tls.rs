//! libgit2's TLS over a socket of ours, with a look at what is written into it.

#![expect(unsafe_code, reason = "libgit2 has no safe interface for streams")]

use std::ffi::{c_char, c_int};
use std::sync::OnceLock;

use super::Wire;
use super::stream::{GIT_ERROR, RawStream, Writer, guarded};

unsafe extern "C" {
    // Not exported: libgit2's own TLS, which is linked in.
    fn git_openssl_stream_new(
        out: *mut *mut RawStream,
        host: *const c_char,
        port: *const c_char,
    ) -> c_int;
}

/// How libgit2's TLS writes.
static WRITE: OnceLock<Writer> = OnceLock::new();

pub(super) extern "C" fn init(
    out: *mut *mut RawStream,
    host: *const c_char,
    port: *const c_char,
) -> c_int {
    guarded(GIT_ERROR, || {
        // SAFETY: as libgit2 calls it when nobody has registered another.
        let code = unsafe { git_openssl_stream_new(out, host, port) };
        if code != 0 {
            return code;
        }
        // SAFETY: it has made a stream, which starts with this.
        let stream = unsafe { &mut **out };
        let Some(own) = stream.write else {
            return GIT_ERROR;
        };
        // All of its streams write alike.
        WRITE.get_or_init(|| own);
        stream.write = Some(write);
        0
    })
}

extern "C" fn write(
    stream: *mut RawStream,
    data: *const c_char,
    length: usize,
    flags: c_int,
) -> isize {
    guarded(GIT_ERROR as isize, || {
        let (Some(own), Some(wire)) = (WRITE.get(), Wire::current()) else {
            return GIT_ERROR as isize;
        };
        // SAFETY: libgit2 gives `length` bytes to send.
        let bytes = unsafe { std::slice::from_raw_parts(data.cast::<u8>(), length) };
        if !wire.may_send(bytes) {
            return GIT_ERROR as isize;
        }
        own(stream, data, length, flags)
    })
}
