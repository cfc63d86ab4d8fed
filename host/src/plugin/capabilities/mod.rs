//! The capabilities: one module an interface, each with its grant (`granted`), its `link` and the
//! checks of its arguments.

pub(crate) mod git;
pub(crate) mod http;
pub(crate) mod log;
pub(crate) mod process;
pub(crate) mod progress;

use wasmtime::component::{HasSelf, Linker};

use super::bindings::warren::handler;
use super::grants::Grants;
use super::inspect::{Inspection, Interface, PACKAGE, VERSION, wrong_version};
use super::load_error::LoadError;
use super::state::CallState;
use super::wasi;

impl handler::types::Host for CallState {}

/// Whether an interface of ours is there and granted.
enum Grant {
    Unknown,
    Denied,
    Granted,
}

fn grant(interface: &str, grants: &Grants) -> Grant {
    let granted = match interface {
        // Types only: they give no reach.
        "types" => true,
        "git" => git::granted(grants),
        "process" => process::granted(grants),
        "log" => log::granted(grants),
        "progress" => progress::granted(grants),
        _ => return Grant::Unknown,
    };
    if granted {
        Grant::Granted
    } else {
        Grant::Denied
    }
}

/// Links what the component imports and is granted: exactly that.
///
/// # Errors
///
/// Lists the imports that are not granted, or that this host does not have.
pub(crate) fn link(
    linker: &mut Linker<CallState>,
    inspection: &Inspection,
    grants: &Grants,
) -> Result<(), LoadError> {
    let (mut unknown, mut ungranted) = (Vec::new(), Vec::new());
    for import in &inspection.imports {
        let Some(interface) = Interface::parse(import) else {
            unknown.push(import.clone());
            continue;
        };
        if interface.package == http::PACKAGE {
            match http::has(&interface) {
                false => unknown.push(import.clone()),
                true if !http::granted(grants) => ungranted.push(import.clone()),
                true => http::link(linker, interface.name).map_err(internal)?,
            }
            continue;
        }
        if interface.package != PACKAGE {
            if !wasi::link(linker, &interface).map_err(internal)? {
                unknown.push(import.clone());
            }
            continue;
        }
        match grant(interface.name, grants) {
            Grant::Unknown => unknown.push(import.clone()),
            _ if !interface.fits(VERSION) => return Err(wrong_version(&interface)),
            Grant::Denied => ungranted.push(import.clone()),
            Grant::Granted => link_ours(linker, interface.name).map_err(internal)?,
        }
    }
    if !unknown.is_empty() {
        return Err(LoadError::UnknownImport(unknown));
    }
    if !ungranted.is_empty() {
        return Err(LoadError::UngrantedImport(ungranted));
    }
    Ok(())
}

fn link_ours(linker: &mut Linker<CallState>, interface: &str) -> wasmtime::Result<()> {
    match interface {
        "git" => git::link(linker),
        "process" => process::link(linker),
        "log" => log::link(linker),
        "progress" => progress::link(linker),
        _ => handler::types::add_to_linker::<_, HasSelf<CallState>>(linker, |state| state),
    }
}

fn internal(error: wasmtime::Error) -> LoadError {
    LoadError::Internal(format!("{error:#}"))
}
