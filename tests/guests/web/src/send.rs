//! One request as the metadata describes it.

use std::collections::BTreeMap;

use serde::Deserialize;
use serde_json::{Value, json};
use wasip2::http::outgoing_handler::handle;
use wasip2::http::types::{
    ErrorCode, Fields, FutureIncomingResponse, IncomingBody, IncomingResponse, Method,
    OutgoingBody, OutgoingRequest, RequestOptions, Scheme, http_error_code,
};
use wasip2::io::streams::StreamError;

/// A request.
#[derive(Deserialize, Default)]
#[serde(default, rename_all = "kebab-case")]
pub(crate) struct Spec {
    method: String,
    scheme: Option<String>,
    authority: Option<String>,
    path: Option<String>,
    headers: Vec<(String, String)>,
    /// Bytes of the body.
    send: Option<u64>,
    /// Most bytes to read of the answer's body.
    read: Option<u64>,
    connect_ms: Option<u64>,
    first_byte_ms: Option<u64>,
    between_bytes_ms: Option<u64>,
}

/// Why there is no answer.
pub(crate) enum Failure {
    /// The request could not even be made.
    Unmade(String),
    Code(ErrorCode),
}

impl Failure {
    fn report(&self) -> Value {
        match self {
            Self::Unmade(what) => json!({ "unmade": what }),
            Self::Code(code) => json!({ "error": name(code) }),
        }
    }
}

fn name(code: &ErrorCode) -> String {
    let text = format!("{code:?}");
    text.trim_start_matches("ErrorCode::").to_owned()
}

fn unmade<E>(what: &str) -> impl FnOnce(E) -> Failure {
    let what = what.to_owned();
    move |_| Failure::Unmade(what)
}

/// Sends it, with its whole body.
pub(crate) fn start(spec: &Spec) -> Result<FutureIncomingResponse, Failure> {
    let fields = Fields::new();
    for (key, value) in &spec.headers {
        fields
            .append(key, value.as_bytes())
            .map_err(|error| Failure::Unmade(format!("{error:?}")))?;
    }
    let request = OutgoingRequest::new(fields);
    let method = match spec.method.as_str() {
        "" | "GET" => Method::Get,
        "POST" => Method::Post,
        "CONNECT" => Method::Connect,
        other => Method::Other(other.to_owned()),
    };
    request.set_method(&method).map_err(unmade("method"))?;
    let scheme = spec.scheme.as_deref().map(|scheme| match scheme {
        "http" => Scheme::Http,
        "https" => Scheme::Https,
        other => Scheme::Other(other.to_owned()),
    });
    request
        .set_scheme(scheme.as_ref())
        .map_err(unmade("scheme"))?;
    request
        .set_authority(spec.authority.as_deref())
        .map_err(unmade("authority"))?;
    request
        .set_path_with_query(spec.path.as_deref())
        .map_err(unmade("path"))?;
    let body = spec.send.map(|_| request.body()).transpose();
    let body = body.map_err(unmade("body"))?;
    let answer = handle(request, Some(options(spec))).map_err(Failure::Code)?;
    if let (Some(body), Some(bytes)) = (body, spec.send) {
        write(body, bytes);
    }
    Ok(answer)
}

fn options(spec: &Spec) -> RequestOptions {
    let options = RequestOptions::new();
    let nanos = |ms: Option<u64>| ms.map(|ms| ms.saturating_mul(1_000_000));
    // All are supported by this host.
    let _ = options.set_connect_timeout(nanos(spec.connect_ms));
    let _ = options.set_first_byte_timeout(nanos(spec.first_byte_ms));
    let _ = options.set_between_bytes_timeout(nanos(spec.between_bytes_ms));
    options
}

/// A body that cannot be written to its end is told by the answer.
fn write(body: OutgoingBody, bytes: u64) {
    let Ok(stream) = body.write() else { return };
    let chunk = [b'x'; 4096];
    let mut left = bytes;
    while left > 0 {
        let part = usize::try_from(left.min(4096)).unwrap_or(4096);
        if stream.blocking_write_and_flush(&chunk[..part]).is_err() {
            break;
        }
        left -= part as u64;
    }
    drop(stream);
    let _ = OutgoingBody::finish(body, None);
}

/// Waits for the head of the answer.
pub(crate) fn wait(answer: FutureIncomingResponse) -> Result<IncomingResponse, Failure> {
    answer.subscribe().block();
    match answer.get() {
        Some(Ok(Ok(response))) => Ok(response),
        Some(Ok(Err(code))) => Err(Failure::Code(code)),
        Some(Err(())) | None => Err(Failure::Unmade("answer".to_owned())),
    }
}

/// What came of it, the body read.
pub(crate) fn report(answer: Result<IncomingResponse, Failure>, spec: &Spec) -> Value {
    let response = match answer {
        Ok(response) => response,
        Err(failure) => return failure.report(),
    };
    let headers: BTreeMap<String, String> = response
        .headers()
        .entries()
        .into_iter()
        .map(|(key, value)| (key, String::from_utf8_lossy(&value).into_owned()))
        .collect();
    let mut said = json!({ "status": response.status(), "headers": headers });
    if let Ok(body) = response.consume() {
        read(&body, spec.read.unwrap_or(u64::MAX), &mut said);
    }
    said
}

fn read(body: &IncomingBody, bytes_max: u64, said: &mut Value) {
    let Ok(stream) = body.stream() else { return };
    let (mut start, mut count) = (Vec::new(), 0_u64);
    while count < bytes_max {
        match stream.blocking_read(64 * 1024) {
            Ok(bytes) => {
                count += bytes.len() as u64;
                let room = 200_usize.saturating_sub(start.len());
                start.extend_from_slice(&bytes[..bytes.len().min(room)]);
            }
            Err(StreamError::Closed) => break,
            Err(StreamError::LastOperationFailed(error)) => {
                let code = http_error_code(&error);
                said["body-error"] = Value::from(
                    code.as_ref()
                        .map_or_else(|| format!("untyped: {}", error.to_debug_string()), name),
                );
                break;
            }
        }
    }
    said["body"] = Value::from(String::from_utf8_lossy(&start).into_owned());
    said["bytes"] = Value::from(count);
}
