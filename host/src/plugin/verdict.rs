//! What the host makes of the end of a call: which limit a trap was, whether the result can be
//! kept, whether a suspend is proved.

use std::any::Any;

use warren_model::Metadata;
use wasmtime::Trap;
use wasmtime::component::ResourceTableError;
use wasmtime_wasi::I32Exit;

use super::call::{CallContext, Returned, Suspended};
use super::error::{LimitKind, PluginError};
use super::registry::Plugin;
use super::runtime::{Ended, is_dry};
use super::state::CallState;
use super::text::{clean_line, panic_text};

/// The metadata that a call returned, if a Descriptor can hold it.
pub(crate) fn metadata(plugin: &Plugin, returned: Returned) -> Result<Metadata, PluginError> {
    let text = returned.metadata.unwrap_or_default();
    Metadata::from_json(&text).map_err(|source| PluginError::BadMetadata {
        handler: plugin.handler_type().to_string(),
        source,
    })
}

/// A suspend counts only with a proof: the host will delete the content next.
pub(crate) fn suspended(
    plugin: &Plugin,
    cx: &CallContext,
    had_content: bool,
    ended: Ended,
) -> Result<Suspended, PluginError> {
    let Ended {
        mut returned,
        receipts,
    } = ended;
    let loss = std::mem::take(&mut returned.loss);
    let metadata = metadata(plugin, returned)?;
    let needs_proof = had_content && !plugin.description.ephemeral && !is_dry(cx);
    if needs_proof && receipts.is_empty() {
        return Err(PluginError::SuspendUnproven {
            handler: plugin.handler_type().to_string(),
        });
    }
    Ok(Suspended {
        metadata,
        loss,
        receipts,
    })
}

/// What a trap, an exit or a failed instantiation means, in one line; the rest is for the log.
pub(crate) fn failure(error: &wasmtime::Error, state: &CallState, handler: &str) -> PluginError {
    tracing::debug!(
        target: "warren::plugin",
        plugin = &*state.label.plugin,
        handler,
        backtrace = format!("{error:?}"),
        "a handler trapped"
    );
    let handler = handler.to_owned();
    if let Some(limit) = limit(error, state) {
        return PluginError::LimitExceeded { handler, limit };
    }
    let message = panic_text(&state.stderr.text().0).unwrap_or_else(|| cause(error));
    PluginError::Trap { handler, message }
}

/// What a handler says of a write that was refused rarely names the limit: the host does.
pub(crate) fn out_of_room(error: PluginError, state: &CallState, handler: &str) -> PluginError {
    let refused = state.files.counts().refusals;
    let Some(reason) = refused.last else {
        return error;
    };
    match error {
        PluginError::InvalidMetadata { .. }
        | PluginError::Timeout { .. }
        | PluginError::Cancelled
        | PluginError::LimitExceeded { .. }
        | PluginError::Internal(_) => error,
        error => PluginError::NoRoom {
            handler: handler.to_owned(),
            reason: reason.to_string(),
            source: Box::new(error),
        },
    }
}

fn limit(error: &wasmtime::Error, state: &CallState) -> Option<LimitKind> {
    if let Some(hit) = state.meter.hit {
        return Some(hit);
    }
    if let Some(Trap::StackOverflow) = error.downcast_ref::<Trap>() {
        return Some(LimitKind::Stack);
    }
    if let Some(ResourceTableError::Full) = error.downcast_ref::<ResourceTableError>() {
        return Some(LimitKind::Handles);
    }
    // It has no public type; a test pins its words to the version of wasmtime.
    let fuel = "fuel allocated for hostcalls";
    error
        .root_cause()
        .to_string()
        .contains(fuel)
        .then_some(LimitKind::HostCall)
}

fn cause(error: &wasmtime::Error) -> String {
    if let Some(I32Exit(code)) = error.downcast_ref::<I32Exit>() {
        return format!("it exited with code {code}");
    }
    clean_line(&error.root_cause().to_string(), 500)
}

/// A panic in a host function ends one call, not the host.
pub(crate) fn host_panic(panic: &(dyn Any + Send)) -> PluginError {
    let text = panic
        .downcast_ref::<&str>()
        .copied()
        .or_else(|| panic.downcast_ref::<String>().map(String::as_str))
        .unwrap_or("a panic without text");
    tracing::error!(panic = text, "a host function panicked");
    PluginError::Internal(clean_line(text, 200))
}
