//! The longest buffer that libgit2 may have.
//!
//! A pack of a few KB can hold deltas that stand for gigabytes; libgit2 asks for what their header
//! says. It tells callers of a buffer that it does not get, like of any other failure.

#![expect(unsafe_code, reason = "libgit2 takes an allocator as C functions")]

use std::ffi::{c_char, c_int, c_void};
use std::ptr;

use crate::snapshot::BLOB_BYTES_MAX;

/// Longest buffer in bytes: a blob of the longest kind, and what libgit2 puts behind it.
const BUFFER_BYTES_MAX: usize = BLOB_BYTES_MAX as usize + 4096;

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
    if size > BUFFER_BYTES_MAX {
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
    if size > BUFFER_BYTES_MAX {
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
}
