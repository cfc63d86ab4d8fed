//! The longest buffer that libgit2 may have, and how long it gets any.
//!
//! A pack of a few KB can hold deltas that stand for gigabytes; libgit2 asks for what their header
//! says. It tells callers of a buffer that it does not get, like of any other failure. A chain of
//! such deltas is worked on for hours without a word to anybody: no big buffer is given when the
//! time of the thread's work is up.

#![expect(unsafe_code, reason = "libgit2 takes an allocator as C functions")]

use std::cell::RefCell;
use std::ffi::{c_char, c_int, c_void};
use std::ptr;

use crate::snapshot::BLOB_BYTES_MAX;
use crate::{Bounds, RepoError};

/// Longest buffer in bytes: a blob of the longest kind, and what libgit2 puts behind it.
const BUFFER_BYTES_MAX: usize = BLOB_BYTES_MAX as usize + 4096;

/// From how many bytes on the time is looked at.
const BUFFER_BYTES_BIG: usize = 1 << 20;

/// `GIT_OPT_SET_ALLOCATOR` of libgit2 1.9.
const SET_ALLOCATOR: c_int = 23;

/// `git_allocator`.
#[repr(C)]
struct Allocator {
    malloc: extern "C" fn(usize, *const c_char, c_int) -> *mut c_void,
    realloc: extern "C" fn(*mut c_void, usize, *const c_char, c_int) -> *mut c_void,
    free: extern "C" fn(*mut c_void),
}

mod system {
    use std::ffi::c_void;

    unsafe extern "C" {
        pub(super) fn malloc(size: usize) -> *mut c_void;
        pub(super) fn realloc(old: *mut c_void, size: usize) -> *mut c_void;
        pub(super) fn free(old: *mut c_void);
    }
}

unsafe extern "C" {
    fn git_libgit2_opts(option: c_int, ...) -> c_int;
}

thread_local! {
    static CURRENT: RefCell<Option<Bounds>> = const { RefCell::new(None) };
}

/// Works within the time of `bounds`, also where libgit2 looks at no clock.
pub fn within<T>(bounds: &Bounds, work: impl FnOnce() -> T) -> T {
    /// Puts back what was there.
    struct Restore(Option<Bounds>);
    impl Drop for Restore {
        fn drop(&mut self) {
            CURRENT.set(self.0.take());
        }
    }
    let _restore = Restore(CURRENT.replace(Some(bounds.clone())));
    work()
}

/// Why this thread's work had to end, if it had to.
pub fn ended() -> Option<RepoError> {
    let check = |current: &RefCell<Option<Bounds>>| {
        let current = current.try_borrow().ok()?;
        current.as_ref()?.check().err()
    };
    // At the end of a thread there is nothing left to ask.
    CURRENT.try_with(check).ok().flatten()
}

fn is_refused(size: usize) -> bool {
    size > BUFFER_BYTES_MAX || (size >= BUFFER_BYTES_BIG && ended().is_some())
}

/// Gives libgit2 the system's allocator, with a longest buffer. What it has already stays valid.
pub(crate) fn bound() -> Result<(), git2::Error> {
    // Makes git2 initialise libgit2, which sets its own allocator.
    let version = git2::Version::get().libgit2_version();
    if (version.0, version.1) != (1, 9) {
        let what = format!("libgit2 {version:?} is not the one that is known");
        return Err(git2::Error::from_str(&what));
    }
    let mut allocator = Allocator {
        malloc,
        realloc,
        free,
    };
    // SAFETY: libgit2 is initialised, copies the functions, and nothing else uses it yet.
    let code = unsafe { git_libgit2_opts(SET_ALLOCATOR, &raw mut allocator) };
    if code == 0 {
        Ok(())
    } else {
        Err(git2::Error::last_error(code))
    }
}

extern "C" fn malloc(size: usize, _file: *const c_char, _line: c_int) -> *mut c_void {
    if is_refused(size) {
        return ptr::null_mut();
    }
    // SAFETY: any size is fine; as libgit2's own, none of zero bytes.
    unsafe { system::malloc(size.max(1)) }
}

extern "C" fn realloc(
    old: *mut c_void,
    size: usize,
    _file: *const c_char,
    _line: c_int,
) -> *mut c_void {
    if is_refused(size) {
        return ptr::null_mut();
    }
    // SAFETY: libgit2 hands back what it got from here or, before `bound`, from the same functions.
    unsafe { system::realloc(old, size.max(1)) }
}

extern "C" fn free(old: *mut c_void) {
    // SAFETY: as in `realloc`.
    unsafe { system::free(old) }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::is_too_much_memory;

    #[test]
    fn a_buffer_of_gigabytes_is_an_error() {
        crate::setup::init().unwrap();
        let (file, line) = (c"".as_ptr(), 0);
        assert!(malloc(BUFFER_BYTES_MAX + 1, file, line).is_null());
        let kept = malloc(8, file, line);
        assert!(!kept.is_null());
        assert!(realloc(kept, usize::MAX, file, line).is_null());
        free(realloc(kept, 16, file, line));
        free(ptr::null_mut());

        // libgit2 has it from here: a loose object whose header promises too much.
        let tmp = tempfile::tempdir().unwrap();
        let repo = git2::Repository::init_bare(tmp.path()).unwrap();
        let odb = repo.odb().unwrap();
        let id = odb.write(git2::ObjectType::Blob, b"small").unwrap();
        assert_eq!(odb.read(id).unwrap().data(), b"small");
        let hash = id.to_string();
        let path = tmp.path().join("objects").join(&hash[..2]).join(&hash[2..]);
        std::fs::remove_file(&path).unwrap();
        let mut deflate = std::process::Command::new("python3")
            .args(["-c", "import sys,zlib; sys.stdout.buffer.write(zlib.compress(b'blob 3000000000\\0' + bytes(100000)))"])
            .env_clear()
            .output()
            .unwrap();
        assert!(deflate.status.success());
        std::fs::write(&path, std::mem::take(&mut deflate.stdout)).unwrap();
        let error = git2::Repository::open_bare(tmp.path())
            .unwrap()
            .odb()
            .unwrap()
            .read(id)
            .err()
            .unwrap();
        assert!(is_too_much_memory(&error), "{error:?}");
    }

    #[test]
    fn when_the_time_is_up_there_are_no_big_buffers() {
        let (file, line) = (c"".as_ptr(), 0);
        let late = Bounds {
            deadline: Some(std::time::Instant::now()),
            ..Bounds::default()
        };
        let got = |size| {
            let buffer = malloc(size, file, line);
            free(buffer);
            !buffer.is_null()
        };
        within(&late, || {
            assert!(!got(2 << 20));
            assert!(got(1000), "errors must still have room");
            assert_eq!(ended().unwrap().code(), "Timeout");
            within(&Bounds::default(), || assert!(got(2 << 20)));
            assert!(!got(2 << 20));
        });
        assert!(got(2 << 20));
        assert!(ended().is_none());
    }
}
