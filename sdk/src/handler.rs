//! The trait that a plugin implements.

use serde::Serialize;
use serde::de::DeserializeOwned;
use serde_json::Value;

use crate::{Action, Description, Error, Loss, Metadata, Root};

/// How the content of one RootDir is made, put away and brought back.
///
/// Each call runs in a fresh instance, so a static keeps nothing from one to the next. Each may be
/// repeated after a crash, so each must be idempotent.
pub trait Handler {
    /// The metadata keys that this handler knows. Others are kept beside them.
    type Settings: DeserializeOwned + Serialize;

    /// Says what this handler is. Touches nothing.
    fn describe() -> Description;

    /// Fills an empty root; returns the metadata to keep in the Descriptor.
    fn init(root: &Root, spec: Metadata<Self::Settings>)
    -> Result<Metadata<Self::Settings>, Error>;

    /// Saves the content and returns what [`Handler::recover`] will need. Must not delete content:
    /// the host does, once the Snapshot is durable.
    fn suspend(
        root: &Root,
        current: Metadata<Self::Settings>,
    ) -> Result<Suspended<Self::Settings>, Error>;

    /// Fills an empty root with what [`Handler::suspend`] saved; returns the metadata to keep.
    fn recover(
        root: &Root,
        saved: Metadata<Self::Settings>,
    ) -> Result<Metadata<Self::Settings>, Error>;

    /// Called before the host deletes the content for good. By default there is nothing to do.
    fn close(root: &Root, current: Metadata<Self::Settings>) -> Result<(), Error> {
        let _ = (root, current);
        Ok(())
    }

    /// Runs one of the actions that [`Handler::describe`] lists; returns the metadata to keep. By
    /// default there are none.
    ///
    /// `arguments` is a JSON object.
    fn perform(
        root: &Root,
        action: &str,
        arguments: Value,
        current: Metadata<Self::Settings>,
    ) -> Result<Metadata<Self::Settings>, Error> {
        let _ = (root, arguments, current);
        Err(Error::UnsupportedAction(action.to_owned()))
    }
}

/// What [`Handler::suspend`] has done.
#[derive(Debug, Clone, PartialEq)]
pub struct Suspended<T> {
    /// What [`Handler::recover`] will need.
    pub metadata: Metadata<T>,
    /// What will not come back.
    pub loss: Vec<Loss>,
}

impl Description {
    /// A handler that saves what it keeps, without a default label and without actions.
    pub fn new(type_name: &str, version: &str, summary: &str) -> Self {
        Self {
            type_name: type_name.to_owned(),
            version: version.to_owned(),
            summary: summary.to_owned(),
            default_label: None,
            ephemeral: false,
            actions: Vec::new(),
        }
    }

    /// Keeps nothing by design.
    pub fn ephemeral(mut self) -> Self {
        self.ephemeral = true;
        self
    }

    /// Label of a RootDir that is made without one.
    pub fn default_label(mut self, label: &str) -> Self {
        self.default_label = Some(label.to_owned());
        self
    }

    /// Adds an operation beside the lifecycle.
    pub fn action(mut self, name: &str, summary: &str) -> Self {
        self.actions.push(Action {
            name: name.to_owned(),
            summary: summary.to_owned(),
        });
        self
    }
}
