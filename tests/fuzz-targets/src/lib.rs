//! What hostile text may never do to the parsers of the host: one function a target, called by
//! cargo-fuzz and, with the checked-in corpus and a bounded number of mutations, by a normal test.
//!
//! Each takes any bytes, must return, and panics when a property does not hold.

mod audit;
mod config;
mod documents;
mod endpoints;
mod known_hosts;
mod names;
mod refs;
mod text;
mod trust;
mod urls;

pub use audit::audit;
pub use config::layout_config;
pub use documents::{descriptor, metadata};
pub use endpoints::endpoint;
pub use known_hosts::known_hosts;
pub use names::{names, path};
pub use refs::{git_ref, ref_patterns};
pub use text::text;
pub use trust::{lock, manifest, policy};
pub use urls::{url, url_patterns};

/// The body of a target.
pub type Target = fn(&[u8]);

/// Every target by the name of its corpus.
pub const TARGETS: &[(&str, Target)] = &[
    ("audit", audit),
    ("descriptor", descriptor),
    ("endpoint", endpoint),
    ("git_ref", git_ref),
    ("known_hosts", known_hosts),
    ("layout_config", layout_config),
    ("lock", lock),
    ("manifest", manifest),
    ("metadata", metadata),
    ("names", names),
    ("path", path),
    ("policy", policy),
    ("ref_patterns", ref_patterns),
    ("text", text),
    ("url", url),
    ("url_patterns", url_patterns),
];

/// Two texts out of one: before and after the first newline.
fn split(data: &[u8]) -> Option<(&str, &str)> {
    std::str::from_utf8(data).ok()?.split_once('\n')
}
