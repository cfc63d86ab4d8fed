//! `git`: interim.

use warren_model::Receipt;
use wasmtime::component::Linker;

use crate::plugin::grants::Grants;
use crate::plugin::state::CallState;

pub(crate) fn granted(grants: &Grants) -> bool {
    grants.git
}

pub(crate) fn link(_: &mut Linker<CallState>) -> wasmtime::Result<()> {
    Ok(())
}

#[derive(Clone)]
pub(crate) struct GitCall;

impl GitCall {
    pub(crate) fn receipts(&self) -> Vec<Receipt> {
        Vec::new()
    }
}
