//! Requests that are never sent: what can be kept in the host's memory with them.

use serde_json::{Value, json};
use wasip2::http::types::{Fields, Method, OutgoingRequest};

/// Requests with the longest texts that are taken.
pub(crate) fn texts() -> Value {
    let long = "m".repeat(100_000);
    let request = OutgoingRequest::new(Fields::new());
    let taken = |result: Result<(), ()>| result.is_ok();
    json!({
        "method": taken(request.set_method(&Method::Other(long.clone()))),
        "authority": taken(request.set_authority(Some(&long))),
        "path": taken(request.set_path_with_query(Some(&format!("/{long}")))),
        "short-method": taken(request.set_method(&Method::Other("PURGE".into()))),
        "short-authority": taken(request.set_authority(Some("host.example"))),
    })
}

/// Bodies that nobody sends; returns how many bytes each takes.
pub(crate) fn bodies() -> Value {
    let mut taken = Vec::new();
    let mut kept = Vec::new();
    for _ in 0..20 {
        let request = OutgoingRequest::new(Fields::new());
        let Ok(body) = request.body() else { break };
        let Ok(stream) = body.write() else { break };
        let mut bytes = 0_u64;
        while let Ok(room) = stream.check_write() {
            let room = usize::try_from(room).unwrap_or(usize::MAX);
            if room == 0 || stream.write(&vec![0; room]).is_err() {
                break;
            }
            bytes += room as u64;
        }
        taken.push(bytes);
        kept.push((stream, body, request));
    }
    json!({ "taken": taken })
}

/// Headers until no more are taken; returns how many bytes there are then.
pub(crate) fn fields() -> Value {
    let fields = Fields::new();
    let mut bytes = 0;
    for n in 0..100_000 {
        let name = format!("x-{n}");
        if fields.append(&name, &[b'v'; 100]).is_err() {
            break;
        }
        bytes += name.len() + 100;
    }
    json!({ "bytes": bytes })
}
