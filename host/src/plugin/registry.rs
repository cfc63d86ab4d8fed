//! Which handler serves which type.

use std::collections::BTreeMap;
use std::sync::Arc;

use serde::{Deserialize, Serialize};
use warren_model::HandlerType;

use super::bindings::FullPre;
use super::bindings::exports::warren::handler::handler as guest;
use super::grants::Grants;
use super::inspect::Inspection;
use super::load_error::{LoadError, Origin};
use super::state::CallState;
use super::text::clean_line;

/// Longest version and summary in bytes.
const LINE_BYTES: usize = 200;

/// Most actions of one handler.
const ACTIONS_MAX: usize = 64;

/// An operation that a handler offers beside the lifecycle.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Action {
    /// Its name.
    pub name: String,
    /// What it does, in a line.
    pub summary: String,
}

/// What a handler says about itself, checked and safe to print.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Description {
    /// Type of its RootDirs.
    pub handler_type: HandlerType,
    /// Version of the handler.
    pub version: String,
    /// What it keeps, in a line.
    pub summary: String,
    /// Label of a RootDir that is made without one.
    pub default_label: Option<String>,
    /// Whether suspend keeps nothing by design.
    pub ephemeral: bool,
    /// Its actions.
    pub actions: Vec<Action>,
}

impl Description {
    pub(crate) fn from_guest(said: guest::Description) -> Result<Self, LoadError> {
        let handler_type = said
            .type_name
            .parse()
            .map_err(
                |error: warren_model::InvalidName| LoadError::BadDescription {
                    field: "type-name",
                    reason: error.to_string(),
                },
            )?;
        if said.actions.len() > ACTIONS_MAX {
            return Err(LoadError::BadDescription {
                field: "actions",
                reason: format!("there are more than {ACTIONS_MAX}"),
            });
        }
        let line = |text: &str| clean_line(text, LINE_BYTES);
        let action = |action: &guest::Action| Action {
            name: line(&action.name),
            summary: line(&action.summary),
        };
        Ok(Self {
            handler_type,
            version: line(&said.version),
            summary: line(&said.summary),
            default_label: said.default_label.as_deref().map(line),
            ephemeral: said.ephemeral,
            actions: said.actions.iter().map(action).collect(),
        })
    }
}

/// A loaded handler.
pub struct Plugin {
    pub(crate) origin: Origin,
    pub(crate) inspection: Inspection,
    pub(crate) description: Description,
    pub(crate) grants: Grants,
    pub(crate) pre: FullPre<CallState>,
}

impl Plugin {
    /// Type of its RootDirs.
    pub fn handler_type(&self) -> &HandlerType {
        &self.description.handler_type
    }

    /// What it says about itself.
    pub fn description(&self) -> &Description {
        &self.description
    }

    /// What the binary says: digest, size, imports, exports.
    pub fn inspection(&self) -> &Inspection {
        &self.inspection
    }

    /// Where it comes from.
    pub fn origin(&self) -> &Origin {
        &self.origin
    }

    /// What it may reach.
    pub fn grants(&self) -> &Grants {
        &self.grants
    }
}

impl std::fmt::Debug for Plugin {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Plugin")
            .field("origin", &self.origin)
            .field("description", &self.description)
            .field("digest", &self.inspection.digest)
            .finish_non_exhaustive()
    }
}

/// Type to handler.
#[derive(Debug, Default)]
pub struct Registry {
    by_type: BTreeMap<HandlerType, Arc<Plugin>>,
    reserved: Vec<HandlerType>,
}

impl Registry {
    /// A registry in which only shipped components may have these types.
    pub(crate) fn reserving(reserved: Vec<HandlerType>) -> Self {
        Self {
            by_type: BTreeMap::new(),
            reserved,
        }
    }

    /// Adds a handler.
    ///
    /// # Errors
    ///
    /// Refuses a type that is taken or reserved; what is there stays.
    pub(crate) fn add(&mut self, plugin: Plugin) -> Result<(), LoadError> {
        let handler = plugin.handler_type();
        if let Some(first) = self.by_type.get(handler) {
            return Err(LoadError::DuplicateHandlerType {
                handler: handler.clone(),
                first: first.origin.clone(),
            });
        }
        // A shipped component that failed to load leaves no room for another one.
        if matches!(plugin.origin, Origin::File(_)) && self.reserved.contains(handler) {
            return Err(LoadError::ReservedHandlerType(handler.clone()));
        }
        self.by_type.insert(handler.clone(), Arc::new(plugin));
        Ok(())
    }

    /// The handler of a type.
    pub fn get(&self, handler: &HandlerType) -> Option<&Arc<Plugin>> {
        self.by_type.get(handler)
    }

    /// All handlers, by type.
    pub fn iter(&self) -> impl Iterator<Item = &Arc<Plugin>> {
        self.by_type.values()
    }
}
