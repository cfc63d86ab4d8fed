//! What went wrong, in the words of `wasi:http`.

use std::error::Error as _;
use std::io;

use warren_egress::{ConnectError, TlsError};
use wasmtime_wasi_http::Error;
use wasmtime_wasi_http::p2::bindings::http::types::{DnsErrorPayload, ErrorCode};

/// Why the host cut a connection; travels through hyper as the source of its error.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
pub(super) enum Cut {
    #[error("the call has sent as many bytes as it may")]
    Sent,
    #[error("the call has received as many bytes as it may")]
    Received,
    #[error("nothing moved for too long")]
    Silent,
    #[error("the time of the call is over")]
    Late,
}

impl From<Cut> for io::Error {
    fn from(cut: Cut) -> Self {
        Self::other(cut)
    }
}

pub(super) fn of_cut(cut: Cut) -> Error {
    match cut {
        Cut::Sent => Error::HttpRequestBodySize(None),
        Cut::Received => Error::HttpResponseBodySize(None),
        Cut::Silent => Error::ConnectionReadTimeout,
        Cut::Late => Error::HttpResponseTimeout,
    }
}

pub(super) fn of_connect(error: &ConnectError) -> Error {
    match error {
        ConnectError::Denied { .. } => Error::DestinationIpProhibited,
        ConnectError::Name { .. } => Error::DnsError {
            rcode: Some("address not available".to_owned()),
            info_code: None,
        },
        ConnectError::Unreachable { source, .. }
            if source.kind() == io::ErrorKind::ConnectionRefused =>
        {
            Error::ConnectionRefused
        }
        ConnectError::Unreachable { .. } => Error::DestinationUnavailable,
        ConnectError::Timeout { .. } => Error::ConnectionTimeout,
    }
}

pub(super) fn of_tls(error: &TlsError) -> Error {
    match error {
        TlsError::Setup(_) => Error::ConfigurationError,
        TlsError::Certificate { .. } => Error::TlsCertificateError,
        TlsError::Protocol { .. } => Error::TlsProtocolError,
    }
}

pub(super) fn of_hyper(error: &hyper::Error) -> Error {
    let mut source = error.source();
    while let Some(cause) = source {
        // An `io::Error` hides what it was made of from `source`.
        let inner = cause
            .downcast_ref::<io::Error>()
            .and_then(io::Error::get_ref);
        let cut = inner.and_then(|inner| inner.downcast_ref::<Cut>());
        if let Some(cut) = cut.or_else(|| cause.downcast_ref::<Cut>()) {
            return of_cut(*cut);
        }
        source = cause.source();
    }
    if error.is_parse_too_large() {
        Error::HttpResponseHeaderSectionSize(None)
    } else if error.is_parse() {
        Error::HttpProtocolError
    } else if error.is_incomplete_message() || error.is_body_write_aborted() {
        Error::HttpResponseIncomplete
    } else {
        Error::ConnectionTerminated
    }
}

/// Stable name of a code, for the audit log.
pub(super) fn name(code: &ErrorCode) -> String {
    let text = format!("{code:?}");
    let text = text.strip_prefix("ErrorCode::").unwrap_or(&text);
    let end = text.find(|c: char| !c.is_ascii_alphanumeric());
    let name = &text[..end.unwrap_or(text.len())];
    match name.starts_with("Http") {
        true => name.to_owned(),
        false => format!("Http{name}"),
    }
}

/// The code that a guest gets; all that this module makes have one.
pub(super) fn code(error: &Error) -> ErrorCode {
    match error {
        Error::Hyper(error) => code(&of_hyper(error)),
        Error::HttpRequestDenied => ErrorCode::HttpRequestDenied,
        Error::HttpRequestMethodInvalid => ErrorCode::HttpRequestMethodInvalid,
        Error::HttpRequestUriInvalid => ErrorCode::HttpRequestUriInvalid,
        Error::HttpRequestUriTooLong => ErrorCode::HttpRequestUriTooLong,
        Error::HttpRequestBodySize(size) => ErrorCode::HttpRequestBodySize(*size),
        Error::HttpResponseBodySize(size) => ErrorCode::HttpResponseBodySize(*size),
        Error::HttpResponseHeaderSectionSize(size) => {
            ErrorCode::HttpResponseHeaderSectionSize(*size)
        }
        Error::HttpResponseTimeout => ErrorCode::HttpResponseTimeout,
        Error::HttpResponseIncomplete => ErrorCode::HttpResponseIncomplete,
        Error::HttpProtocolError => ErrorCode::HttpProtocolError,
        Error::ConnectionReadTimeout => ErrorCode::ConnectionReadTimeout,
        Error::ConnectionTimeout => ErrorCode::ConnectionTimeout,
        Error::ConnectionRefused => ErrorCode::ConnectionRefused,
        Error::ConnectionTerminated => ErrorCode::ConnectionTerminated,
        Error::ConnectionLimitReached => ErrorCode::ConnectionLimitReached,
        Error::DestinationIpProhibited => ErrorCode::DestinationIpProhibited,
        Error::DestinationUnavailable => ErrorCode::DestinationUnavailable,
        Error::DnsError { rcode, info_code } => ErrorCode::DnsError(DnsErrorPayload {
            rcode: rcode.clone(),
            info_code: *info_code,
        }),
        Error::TlsCertificateError => ErrorCode::TlsCertificateError,
        Error::TlsProtocolError => ErrorCode::TlsProtocolError,
        Error::ConfigurationError => ErrorCode::ConfigurationError,
        other => ErrorCode::InternalError(Some(other.to_string())),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn codes_have_stable_names() {
        for (error, expected) in [
            (Error::HttpRequestDenied, "HttpRequestDenied"),
            (Error::ConnectionRefused, "HttpConnectionRefused"),
            (Error::HttpResponseBodySize(Some(1)), "HttpResponseBodySize"),
            (
                Error::DnsError {
                    rcode: Some("x".to_owned()),
                    info_code: None,
                },
                "HttpDnsError",
            ),
        ] {
            assert_eq!(name(&code(&error)), expected);
        }
    }
}
