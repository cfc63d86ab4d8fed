//! Lines for the host's log. The host cuts long ones and drops what is too much.

pub use crate::bindings::warren::handler::log::Level;

/// Writes one line.
pub fn write(level: Level, message: &str) {
    #[cfg(target_arch = "wasm32")]
    crate::bindings::warren::handler::log::write(level, message);
    #[cfg(not(target_arch = "wasm32"))]
    crate::testing::log(level, message);
}

/// Detail for the plugin's author.
pub fn debug(message: &str) {
    write(Level::Debug, message);
}

/// What happened.
pub fn info(message: &str) {
    write(Level::Info, message);
}

/// Something a person may want to look at.
pub fn warn(message: &str) {
    write(Level::Warn, message);
}

/// Something that failed.
pub fn error(message: &str) {
    write(Level::Error, message);
}
