//! The shipped handlers, as the bytes of their components.

/// The `temp` handler.
pub const TEMP: &[u8] = include_bytes!(concat!(env!("OUT_DIR"), "/warren_temp.wasm"));

/// The `git` handler.
pub const GIT: &[u8] = include_bytes!(concat!(env!("OUT_DIR"), "/warren_git.wasm"));

/// The `python` handler.
pub const PYTHON: &[u8] = include_bytes!(concat!(env!("OUT_DIR"), "/warren_python.wasm"));

/// All of them, each under its type.
pub fn all() -> [(&'static str, &'static [u8]); 3] {
    [("temp", TEMP), ("git", GIT), ("python", PYTHON)]
}
