//! From the typed [`Handler`] to the export of the component.

use std::marker::PhantomData;

use serde_json::Value;

use crate::bindings::exports::warren::handler::handler as wit;
use crate::{Error, Handler, Metadata, Root};

/// Puts a manifest into the component: what it is, what it wants and why. The path counts from the
/// directory of the crate's `Cargo.toml`. Natively it does nothing.
///
/// [`export_handler!`] does this too; it is for those who export in another way.
#[macro_export]
macro_rules! embed_manifest {
    ($path:literal) => {
        #[cfg(target_arch = "wasm32")]
        #[allow(unsafe_code)]
        const _: () = {
            const TEXT: &[u8] = include_bytes!(concat!(env!("CARGO_MANIFEST_DIR"), "/", $path));
            #[unsafe(link_section = "warren:manifest")]
            #[used]
            static MANIFEST: [u8; TEXT.len()] =
                *include_bytes!(concat!(env!("CARGO_MANIFEST_DIR"), "/", $path));
        };
    };
}

/// Exports a [`Handler`] as the component's `warren:handler/handler`, and puts its manifest into the
/// component: `export_handler!(Notes, manifest = "manifest.toml")`, the path from the directory of
/// the crate's `Cargo.toml` on. Natively it does nothing.
#[macro_export]
macro_rules! export_handler {
    ($handler:ty, manifest = $path:literal) => {
        $crate::embed_manifest!($path);
        #[cfg(target_arch = "wasm32")]
        #[allow(unsafe_code, missing_docs, unreachable_pub, clippy::use_self)]
        const _: () = {
            type Component = $crate::export::Export<$handler>;
    $crate::bindings::export_component!(Component with_types_in $crate::bindings);
        };
    };
}

/// Adapts a [`Handler`] to the generated trait.
pub struct Export<H>(PhantomData<H>);

impl<H: Handler> wit::Guest for Export<H> {
    fn describe() -> wit::Description {
        H::describe()
    }

    fn init(root: Root, spec: String) -> Result<String, Error> {
        H::init(&root, Metadata::from_json(&spec)?)?.to_json()
    }

    fn suspend(root: Root, current: String) -> Result<wit::Suspended, Error> {
        let suspended = H::suspend(&root, Metadata::from_json(&current)?)?;
        Ok(wit::Suspended {
            metadata: suspended.metadata.to_json()?,
            loss: suspended.loss,
        })
    }

    fn recover(root: Root, saved: String) -> Result<String, Error> {
        H::recover(&root, Metadata::from_json(&saved)?)?.to_json()
    }

    fn close(root: Root, current: String) -> Result<(), Error> {
        H::close(&root, Metadata::from_json(&current)?)
    }

    fn perform(
        root: Root,
        action: String,
        arguments: String,
        current: String,
    ) -> Result<String, Error> {
        let arguments = Metadata::<crate::NoSettings>::from_json(&arguments)?.unknown;
        let current = Metadata::from_json(&current)?;
        H::perform(&root, &action, Value::Object(arguments), current)?.to_json()
    }
}
