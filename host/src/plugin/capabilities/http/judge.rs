//! Whether a request may be sent, and where to.

use http::{Method, Request};
use warren_model::{EndpointPermit, Target, WebScheme};
use wasmtime_wasi_http::Error;

use crate::plugin::grants::HttpGrant;

/// Longest path and query in bytes.
const PATH_BYTES_MAX: usize = 16 * 1024;

/// The server that a request names, parsed once: what is judged here is what is connected to.
pub(super) fn target<B>(request: &Request<B>) -> Result<Target, Error> {
    if request.method() == Method::CONNECT {
        // A tunnel through a granted server would lead anywhere.
        return Err(Error::HttpRequestMethodInvalid);
    }
    let uri = request.uri();
    let scheme = match uri.scheme_str() {
        Some("https") => WebScheme::Https,
        Some("http") => WebScheme::Http,
        _ => return Err(Error::HttpProtocolError),
    };
    let path = path(request);
    if path.len() > PATH_BYTES_MAX {
        return Err(Error::HttpRequestUriTooLong);
    }
    if !path.starts_with('/') {
        return Err(Error::HttpRequestUriInvalid);
    }
    let authority = uri.authority().ok_or(Error::HttpRequestUriInvalid)?;
    Target::from_authority(scheme, authority.as_str()).map_err(|_| Error::HttpRequestUriInvalid)
}

/// How far the grant lets the host go for it.
pub(super) fn permit(grant: &HttpGrant, target: &Target) -> Result<EndpointPermit, Error> {
    grant.hosts.permit(target).ok_or(Error::HttpRequestDenied)
}

/// What goes into the request line.
pub(super) fn path<B>(request: &Request<B>) -> &str {
    request
        .uri()
        .path_and_query()
        .map_or("/", |path| path.as_str())
}

/// `host`, with `:port` where it is not the scheme's own: the value of `Host`.
pub(super) fn host(target: &Target) -> String {
    if target.port == target.scheme.default_port() {
        return target.host.to_string();
    }
    target.authority()
}
