//! What stands behind the capabilities, shared by all calls.

use std::path::PathBuf;

use tokio::time::Instant;
use warren_process::Launcher;

use super::call::{CallContext, StopOnDrop};
use super::capabilities::git::GitCall;
use super::capabilities::process::ProcessCall;
use super::error::PluginError;
use super::registry::Plugin;
use super::runtime::is_dry;

/// What a host puts behind the capabilities. A capability without its service answers `denied`.
#[derive(Debug, Clone, Default)]
pub struct Services {
    /// Starts children.
    pub launcher: Option<Launcher>,
    /// A directory of the host in which children get their `HOME` and `TMPDIR`.
    pub scratch: PathBuf,
}

impl Services {
    pub(crate) fn git_call(
        &self,
        plugin: &Plugin,
        cx: &CallContext,
        deadline: Instant,
        stop: &StopOnDrop,
    ) -> Result<Option<GitCall>, PluginError> {
        let _ = (plugin, cx, deadline, stop);
        Ok(None)
    }

    pub(crate) fn process_call(
        &self,
        plugin: &Plugin,
        cx: &CallContext,
        deadline: Instant,
    ) -> Result<Option<ProcessCall>, PluginError> {
        let (Some(launcher), Some(grant)) = (&self.launcher, &plugin.grants.process) else {
            return Ok(None);
        };
        // A child could not be kept from writing.
        if is_dry(cx) {
            return Ok(None);
        }
        let root = cx.root.try_clone().map_err(PluginError::Root)?;
        Ok(Some(ProcessCall::new(
            launcher.clone(),
            grant.clone(),
            root,
            self.scratch.clone(),
            deadline,
        )))
    }
}
