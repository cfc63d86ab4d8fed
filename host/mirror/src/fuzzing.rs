//! Parsers of hostile text as the fuzz targets call them: the verbs that use them each want a
//! server, too slow for millions of tries. Not part of the crate's face.

use crate::{MirrorError, known_hosts, names};

/// The full name of what a handler calls a ref.
///
/// # Errors
/// [`MirrorError::InvalidArgument`].
pub fn expand_ref(text: &str) -> Result<String, MirrorError> {
    names::expand_ref(text)
}

/// A full commit id.
///
/// # Errors
/// [`MirrorError::InvalidArgument`].
pub fn commit(text: &str) -> Result<String, MirrorError> {
    names::commit(text).map(|id| id.to_string())
}

/// Whether a known_hosts file lets a server with this key in.
pub fn is_known_host(file: &str, host: &str, port: u16, key: &[u8]) -> bool {
    known_hosts::is_known(file, host, port, key)
}
