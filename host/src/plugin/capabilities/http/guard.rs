//! Calls of `wasi:http/types` that the crate leaves too open.

use wasmtime::StoreContextMut;
use wasmtime::component::{Linker, Resource};
use wasmtime_wasi_http::WasiHttpView;
use wasmtime_wasi_http::p2::bindings::http::types::{
    ErrorCode, Host, HostOutgoingRequest, IoError, Method, OutgoingRequest,
};

use super::fault;
use crate::plugin::state::CallState;

/// Longest method of a request in bytes.
const METHOD_BYTES_MAX: usize = 32;

/// Longest authority of a request in bytes: longer than any name of a host.
const AUTHORITY_BYTES_MAX: usize = 512;

type Set = Result<(), ()>;

/// Puts checks before them. A request keeps its texts in the host's memory, and a guest may have as
/// many requests as handles.
pub(super) fn link(linker: &mut Linker<CallState>, version: &str) -> wasmtime::Result<()> {
    linker.allow_shadowing(true);
    let mut types = linker.instance(&format!("wasi:http/types@{version}"))?;
    types.func_wrap("[method]outgoing-request.set-method", set_method)?;
    types.func_wrap("[method]outgoing-request.set-authority", set_authority)?;
    types.func_wrap("http-error-code", error_code)?;
    linker.allow_shadowing(false);
    Ok(())
}

fn set_method(
    mut store: StoreContextMut<'_, CallState>,
    (request, method): (Resource<OutgoingRequest>, Method),
) -> wasmtime::Result<(Set,)> {
    if matches!(&method, Method::Other(name) if name.len() > METHOD_BYTES_MAX) {
        return Ok((Err(()),));
    }
    let mut http = store.data_mut().http();
    Ok((HostOutgoingRequest::set_method(&mut http, request, method)?,))
}

fn set_authority(
    mut store: StoreContextMut<'_, CallState>,
    (request, authority): (Resource<OutgoingRequest>, Option<String>),
) -> wasmtime::Result<(Set,)> {
    if authority
        .as_ref()
        .is_some_and(|text| text.len() > AUTHORITY_BYTES_MAX)
    {
        return Ok((Err(()),));
    }
    let mut http = store.data_mut().http();
    Ok((HostOutgoingRequest::set_authority(
        &mut http, request, authority,
    )?,))
}

/// The crate knows codes only; what fails a body is its own error.
fn error_code(
    mut store: StoreContextMut<'_, CallState>,
    (error,): (Resource<IoError>,),
) -> wasmtime::Result<(Option<ErrorCode>,)> {
    let mut http = store.data_mut().http();
    let found = http.table.get(&error)?.downcast_ref().map(fault::code);
    Ok((match found {
        Some(code) => Some(code),
        None => Host::http_error_code(&mut http, error)?,
    },))
}
