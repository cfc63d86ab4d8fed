//! The `python` handler.

use warren_sdk::{Description, Error, Handler, Metadata, NoSettings, Root, Suspended};

/// In the making.
pub struct Plugin;

impl Handler for Plugin {
    type Settings = NoSettings;

    fn describe() -> Description {
        Description::new("python", env!("CARGO_PKG_VERSION"), "python")
    }

    fn init(_: &Root, spec: Metadata<NoSettings>) -> Result<Metadata<NoSettings>, Error> {
        warren_sdk::git::head()?;
        Ok(spec)
    }

    fn suspend(_: &Root, current: Metadata<NoSettings>) -> Result<Suspended<NoSettings>, Error> {
        Ok(Suspended {
            metadata: current,
            loss: Vec::new(),
        })
    }

    fn recover(_: &Root, saved: Metadata<NoSettings>) -> Result<Metadata<NoSettings>, Error> {
        Ok(saved)
    }
}

warren_sdk::export_handler!(Plugin);
