//! The `temp` handler: a directory for files that need not outlive a suspend.

mod loss;

use warren_sdk::{Description, Error, Handler, Metadata, NoSettings, Root, Suspended};

/// Keeps nothing: suspend lists what goes, recover gives an empty directory.
pub struct Temp;

impl Handler for Temp {
    type Settings = NoSettings;

    fn describe() -> Description {
        Description::new(
            "temp",
            env!("CARGO_PKG_VERSION"),
            "Files that need not outlive a suspend",
        )
        .ephemeral()
    }

    fn init(_: &Root, spec: Metadata<NoSettings>) -> Result<Metadata<NoSettings>, Error> {
        Ok(spec)
    }

    fn suspend(_: &Root, current: Metadata<NoSettings>) -> Result<Suspended<NoSettings>, Error> {
        Ok(Suspended {
            metadata: current,
            loss: loss::list(&warren_sdk::root())?,
        })
    }

    fn recover(_: &Root, saved: Metadata<NoSettings>) -> Result<Metadata<NoSettings>, Error> {
        Ok(saved)
    }
}

warren_sdk::export_handler!(Temp, manifest = "manifest.toml");

#[cfg(test)]
mod tests {
    use super::*;
    use warren_sdk::testing::Host;

    fn unknown() -> Metadata<NoSettings> {
        Metadata::from_json(r#"{"purpose":"scratch"}"#).unwrap()
    }

    #[test]
    fn init_and_recover_may_be_repeated_and_keep_metadata() {
        let host = Host::new();
        let root = host.root_named("t");
        for _ in 0..2 {
            assert_eq!(Temp::init(&root, unknown()).unwrap(), unknown());
            assert_eq!(Temp::recover(&root, unknown()).unwrap(), unknown());
        }
        assert_eq!(std::fs::read_dir(host.root()).unwrap().count(), 0);
        Temp::close(&root, unknown()).unwrap();
    }

    #[test]
    fn suspend_names_what_is_lost_and_deletes_nothing() {
        let host = Host::new();
        std::fs::write(host.root().join("a"), "12345").unwrap();
        let suspended = Temp::suspend(&host.root_named("t"), unknown()).unwrap();
        assert_eq!(suspended.metadata, unknown());
        assert_eq!(suspended.loss.len(), 1);
        assert_eq!(
            (suspended.loss[0].path.as_str(), suspended.loss[0].bytes),
            ("a", 5)
        );
        assert!(host.root().join("a").exists());
    }

    #[test]
    fn it_says_that_it_is_ephemeral_and_has_no_actions() {
        let description = Temp::describe();
        assert!(description.ephemeral);
        assert!(description.actions.is_empty());
        let host = Host::new();
        let error = Temp::perform(&host.root_named("t"), "x", Default::default(), unknown());
        assert_eq!(error.unwrap_err(), Error::UnsupportedAction("x".to_owned()));
    }
}
