//! Which handler serves which type.

use std::collections::BTreeMap;
use std::sync::Arc;

use serde::{Deserialize, Serialize};
use warren_model::HandlerType;
use warren_policy::Manifest;

use super::bindings::FullPre;
use super::bindings::exports::warren::handler::handler as guest;
use super::grants::Grants;
use super::inspect::Inspection;
use super::load::LoadFailure;
use super::load_error::{LoadError, Origin};
use super::state::CallState;
use super::text::clean_line;
use super::trust::Review;

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
    pub(crate) manifest: Manifest,
    pub(crate) description: Description,
    pub(crate) grants: Grants,
    pub(crate) review: Option<Review>,
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

    /// What it says that it wants, and why.
    pub fn manifest(&self) -> &Manifest {
        &self.manifest
    }

    /// What policy and approvals made of it; none: the embedder gave its grants.
    pub fn review(&self) -> Option<&Review> {
        self.review.as_ref()
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
    refused: BTreeMap<HandlerType, Arc<LoadError>>,
}

impl Registry {
    /// Adds a handler.
    ///
    /// # Errors
    ///
    /// Refuses a type that is taken; what is there stays.
    pub(crate) fn add(&mut self, plugin: Plugin) -> Result<(), LoadError> {
        let handler = plugin.handler_type();
        if let Some(first) = self.by_type.get(handler) {
            return Err(LoadError::DuplicateHandlerType {
                handler: handler.clone(),
                first: first.origin.clone(),
            });
        }
        self.by_type.insert(handler.clone(), Arc::new(plugin));
        Ok(())
    }

    /// Remembers why types have no handler.
    pub(crate) fn note(&mut self, failures: &[LoadFailure]) {
        for failure in failures {
            if let Some(handler) = &failure.handler {
                let error = Arc::clone(&failure.error);
                self.refused.entry(handler.clone()).or_insert(error);
            }
        }
    }

    /// Why a type has no handler, when a component for it was refused.
    pub fn refusal(&self, handler: &HandlerType) -> Option<&Arc<LoadError>> {
        match self.by_type.contains_key(handler) {
            true => None,
            false => self.refused.get(handler),
        }
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
