//! From bytes to a component that can be instantiated.

use wasmtime::Engine;
use wasmtime::component::{Component, Linker};

use super::bindings::FullPre;
use super::capabilities;
use super::grants::Grants;
use super::inspect::Inspection;
use super::load_error::LoadError;
use super::state::CallState;

/// Checks the imports alone.
///
/// # Errors
///
/// Lists imports that are not granted or unknown.
pub(crate) fn check_imports(
    engine: &Engine,
    inspection: &Inspection,
    grants: &Grants,
) -> Result<(), LoadError> {
    capabilities::link(&mut Linker::new(engine), inspection, grants)
}

/// Links a component with what it imports and is granted, and checks every type.
///
/// # Errors
///
/// Lists imports that are not granted or unknown; names the function or type that does not fit.
pub(crate) fn link(
    engine: &Engine,
    component: &Component,
    inspection: &Inspection,
    grants: &Grants,
) -> Result<FullPre<CallState>, LoadError> {
    let mut linker = Linker::new(engine);
    capabilities::link(&mut linker, inspection, grants)?;
    linker
        .instantiate_pre(component)
        .and_then(FullPre::new)
        .map_err(|error| LoadError::Incompatible(chain(&error)))
}

/// An error and its causes in one line.
pub(crate) fn chain(error: &wasmtime::Error) -> String {
    let line = error
        .chain()
        .map(ToString::to_string)
        .collect::<Vec<_>>()
        .join(": ");
    super::text::clean_line(&line, 1000)
}
