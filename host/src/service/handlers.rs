//! Calls into handlers: one RootDir, one step.

use std::sync::Arc;

use warren_model::{Descriptor, HandlerRef, HandlerType, Metadata};

use super::folder::Folder;
use super::{Progress, Service};
use crate::error::{Error, Step};
use crate::plugin::{CallContext, CallMode, Cancel, Plugin, PluginError, Suspended};

/// Whether a call may change anything.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Mode {
    /// It may.
    Real,
    /// The RootDir is read-only and nothing is pushed.
    DryRun,
}

impl Service {
    /// The plugin that handles a type.
    pub(super) fn plugin(&self, handler_type: &HandlerType) -> Result<Arc<Plugin>, Error> {
        self.inner
            .runtime
            .plugin(handler_type)
            .ok_or_else(|| self.no_handler(handler_type))
    }

    /// Why nothing handles a type.
    pub(super) fn no_handler(&self, handler_type: &HandlerType) -> Error {
        match self.inner.runtime.registry().refusal(handler_type) {
            Some(source) => Error::HandlerRefused {
                handler: handler_type.clone(),
                source: Arc::clone(source),
            },
            None => Error::UnknownHandler(handler_type.clone()),
        }
    }

    /// Fills an empty RootDir: `Step::Init` from its spec, `Step::Recover` from what suspend saved.
    pub(super) async fn fill(
        &self,
        folder: &Folder,
        descriptor: &Descriptor,
        step: Step,
    ) -> Result<Metadata, Error> {
        let plugin = self.plugin(&descriptor.handler_type)?;
        let context = self.context(folder, descriptor, Mode::Real)?;
        let runtime = &self.inner.runtime;
        let filled = match step {
            Step::Recover => {
                runtime
                    .recover(&plugin, context, &descriptor.metadata)
                    .await
            }
            _ => runtime.init(&plugin, context, &descriptor.metadata).await,
        };
        filled.map_err(|error| handler_error(descriptor, step, error))
    }

    /// Saves a RootDir.
    pub(super) async fn put_away(
        &self,
        folder: &Folder,
        descriptor: &Descriptor,
        mode: Mode,
    ) -> Result<Suspended, Error> {
        let plugin = self.plugin(&descriptor.handler_type)?;
        let context = self.context(folder, descriptor, mode)?;
        self.inner
            .runtime
            .suspend(&plugin, context, &descriptor.metadata)
            .await
            .map_err(|error| handler_error(descriptor, Step::Suspend, error))
    }

    /// Lets the handler of a RootDir close it.
    pub(super) async fn close(
        &self,
        folder: &Folder,
        descriptor: &Descriptor,
    ) -> Result<(), Error> {
        let plugin = self.plugin(&descriptor.handler_type)?;
        let context = self.context(folder, descriptor, Mode::Real)?;
        self.inner
            .runtime
            .close(&plugin, context, &descriptor.metadata)
            .await
            .map_err(|error| handler_error(descriptor, Step::Close, error))
    }

    /// Runs an action of the handler.
    pub(super) async fn act(
        &self,
        folder: &Folder,
        descriptor: &Descriptor,
        action: &str,
        arguments: &Metadata,
    ) -> Result<Metadata, Error> {
        let plugin = self.plugin(&descriptor.handler_type)?;
        let context = self.context(folder, descriptor, Mode::Real)?;
        self.inner
            .runtime
            .perform(&plugin, context, action, arguments, &descriptor.metadata)
            .await
            .map_err(|error| handler_error(descriptor, Step::Perform, error))
    }

    fn context(
        &self,
        folder: &Folder,
        descriptor: &Descriptor,
        mode: Mode,
    ) -> Result<CallContext, Error> {
        let dir_name = descriptor.dir_name.clone();
        let (sink, held) = (self.progress.clone(), folder.clone());
        Ok(CallContext {
            tenant: descriptor.tenant.clone(),
            project: descriptor.project_id.clone(),
            label: descriptor.label.clone(),
            root: folder.root(&dir_name)?,
            root_path: folder.path().join(dir_name.as_str()),
            mode: match mode {
                Mode::Real => CallMode::ReadWrite,
                Mode::DryRun => CallMode::DryRun,
            },
            deadline: None,
            cancel: Cancel::default(),
            dir_name: dir_name.clone(),
            // Host work of the call holds this, and with the folder the Project's lock.
            progress: Arc::new(move |stage: &str, done, total| {
                let _ = &held;
                sink(Progress {
                    dir_name: dir_name.clone(),
                    stage: stage.to_owned(),
                    done,
                    total,
                });
            }),
        })
    }
}

fn handler_error(descriptor: &Descriptor, step: Step, source: PluginError) -> Error {
    Error::Handler {
        handler: descriptor.handler_type.clone(),
        step,
        dir_name: descriptor.dir_name.clone(),
        source: Box::new(source),
    }
}

/// What a Descriptor says of the component that filled its RootDir.
pub(super) fn handler_ref(plugin: &Plugin) -> HandlerRef {
    HandlerRef {
        digest: plugin.inspection().digest.clone(),
        version: plugin.description().version.clone(),
    }
}
