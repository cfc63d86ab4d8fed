//! What stands behind the capabilities, shared by all calls.

use std::path::PathBuf;
use std::sync::Arc;

use tokio::sync::mpsc;
use tokio::time::Instant;
use warren_audit::AuditLog;
use warren_disk::budget::{Budget, Quota};
use warren_disk::space;
use warren_egress::Connector;
use warren_mirror::{Mirrors, SessionSpec};
use warren_process::{Identities, Launcher, ProcessError};

use super::call::{CallContext, StopOnDrop};
use super::capabilities::git::GitCall;
use super::capabilities::http::{Denials, HttpClient, Session};
use super::capabilities::process::{ProcessCall, ProcessSpec, ProjectUser};
use super::error::PluginError;
use super::grants::RootAccess;
use super::registry::Plugin;
use super::runtime::is_dry;

/// What a host puts behind the capabilities. A capability without its service answers `denied`.
#[derive(Debug, Clone, Default)]
pub struct Services {
    /// The host's mirrors.
    pub mirrors: Option<Mirrors>,
    /// Starts children.
    pub launcher: Option<Launcher>,
    /// Sends requests over HTTP.
    pub http: Option<HttpClient>,
    /// A directory of the host in which children get their `HOME` and `TMPDIR`.
    pub scratch: PathBuf,
    /// Users of Projects' children, when the host is root.
    pub identities: Option<Identities>,
    /// Connects for children and for `http`, and bounds the lookups of all of them.
    pub connector: Connector,
    /// From when on the disk is too full for handlers; none: until it is full.
    pub disk: Option<space::Limits>,
    /// Takes a record of every use and refusal; none: nothing is recorded.
    pub audit: Option<AuditLog>,
}

impl Services {
    /// Gives up what is kept for a Project of which nothing is left.
    ///
    /// # Errors
    /// The table of users can not be read or written.
    pub fn forget_project(&self, tenant: &str, project: &str) -> Result<(), ProcessError> {
        match &self.identities {
            Some(identities) => identities.release(tenant, project),
            None => Ok(()),
        }
    }

    /// What a call may still write into its RootDir, whoever writes it.
    pub(crate) fn budget(&self, plugin: &Plugin, cx: &CallContext) -> Result<Budget, PluginError> {
        let limits = &plugin.grants.limits;
        let quota = Quota {
            bytes: limits.disk_bytes,
            inodes: limits.inodes,
        };
        let root = cx.root.try_clone().map_err(PluginError::Root)?;
        Ok(Budget::new(root, quota, self.disk))
    }

    pub(crate) fn git_call(
        &self,
        plugin: &Plugin,
        cx: &CallContext,
        deadline: Instant,
        stop: &StopOnDrop,
        budget: &Budget,
    ) -> Result<Option<GitCall>, PluginError> {
        let (Some(mirrors), Some(grant)) = (&self.mirrors, &plugin.grants.git) else {
            return Ok(None);
        };
        let progress = cx.progress.clone();
        let session = mirrors.session(SessionSpec {
            tenant: cx.tenant.to_string(),
            root: cx.root.try_clone().map_err(PluginError::Root)?,
            root_path: cx.root_path.clone(),
            // Named in full, so that the same content in two Projects gives two commits: each
            // keeps a ref of its own on a remote that they share.
            dir_name: format!("{}/{}/{}", cx.tenant, cx.project, cx.dir_name),
            dry_run: is_dry(cx),
            remotes: grant.remotes.clone(),
            push_refs: grant.push_refs.clone(),
            aliases: grant.aliases.clone(),
            received_bytes_max: grant.received_bytes_max,
            budget: budget.clone(),
            unconfined: grant.unconfined,
            progress: Arc::new(move |now| progress(now.stage, now.done, now.total)),
            deadline: deadline.into_std(),
            cancel: Arc::clone(&stop.0),
        });
        Ok(Some(GitCall::new(session, plugin.grants.root)))
    }

    pub(crate) fn process_call(
        &self,
        plugin: &Plugin,
        cx: &CallContext,
        deadline: Instant,
        budget: &Budget,
    ) -> Result<Option<ProcessCall>, PluginError> {
        let (Some(launcher), Some(grant)) = (&self.launcher, &plugin.grants.process) else {
            return Ok(None);
        };
        // A child could not be kept from writing.
        if is_dry(cx) || plugin.grants.root != RootAccess::ReadWrite {
            return Ok(None);
        }
        let root = cx.root.try_clone().map_err(PluginError::Root)?;
        let owner = self.identities.clone().map(|identities| ProjectUser {
            identities,
            tenant: cx.tenant.to_string(),
            project: cx.project.to_string(),
        });
        Ok(Some(ProcessCall::new(ProcessSpec {
            launcher: launcher.clone(),
            grant: grant.clone(),
            root,
            scratch: self.scratch.clone(),
            user: owner.filter(|_| rustix::process::geteuid().is_root()),
            budget: budget.clone(),
            connector: self.connector.clone(),
            deadline,
        })))
    }

    /// None: nothing is sent. So in a dry run: no method of HTTP is sure to change nothing.
    pub(crate) fn http_session(
        &self,
        plugin: &Plugin,
        cx: &CallContext,
        deadline: Instant,
        denials: &Arc<Denials>,
        jobs: mpsc::Sender<()>,
    ) -> Option<Session> {
        let (Some(client), Some(grant)) = (&self.http, &plugin.grants.http) else {
            return None;
        };
        if is_dry(cx) {
            return None;
        }
        Some(Session::new(
            client.clone(),
            self.connector.clone(),
            grant.clone(),
            deadline,
            Arc::clone(denials),
            jobs,
        ))
    }
}
