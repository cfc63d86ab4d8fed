//! Every operation on Workspaces and RootDirs. ARCHITECTURE.md lists their commit points.

mod actions;
mod create;
mod dispose;
mod folder;
mod handlers;
mod init;
mod listing;
mod locks;
mod recover;
mod report;
mod roots;
mod sealed;
mod settle;
mod suspend;
mod temp;
mod workdir;

use std::io;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use jiff::Timestamp;
use warren_disk::Dir;
use warren_disk::space::{Limits, Space, Verdict};
use warren_model::{WorkspaceRecord, WorkspaceStatus, tenant_folder};

pub use create::CreateRootDir;
pub use report::{
    Damaged, DisposeOptions, DisposeReport, InitReport, LostRoot, Progress, ProgressSink,
    QuotaReport, RootDirs, RootFailure, SuspendReport, SuspendedRoot, WorkspaceView,
};

use crate::error::Error;
use crate::plugin::Runtime;
use crate::seal::Seal;
use crate::store::{EmbeddedStore, ProjectKey, StoreError};
use folder::Folder;
use locks::Locks;

/// How many handlers of one operation run at once.
const PARALLEL: usize = 4;

/// Where a Project's folder stands.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, serde::Serialize)]
#[serde(rename_all = "lowercase")]
pub enum Layout {
    /// `<root>/<project>`, whatever the tenant.
    #[default]
    Project,
    /// `<root>/<tenant>/<project>`, for Pods that serve many tenants.
    Tenant,
}

/// What a service needs.
#[derive(Debug)]
pub struct ServiceConfig {
    /// Where RootDirs live. Made when missing.
    pub workspace_root: PathBuf,
    /// Where the host keeps its own state. Made when missing.
    pub state_dir: PathBuf,
    /// When the disk is too full.
    pub limits: Limits,
    /// Where folders stand.
    pub layout: Layout,
}

/// Operations on the Workspaces of one workspace root. Cheap to clone.
#[derive(Clone)]
pub struct Service {
    inner: Arc<Inner>,
    progress: ProgressSink,
}

struct Inner {
    root: Arc<Dir>,
    root_path: PathBuf,
    layout: Layout,
    store: EmbeddedStore,
    locks: Locks,
    seal: Seal,
    limits: Limits,
    runtime: Runtime,
}

impl Service {
    /// Opens the workspace root and the state beside it; makes both when missing.
    pub fn open(config: &ServiceConfig, runtime: Runtime) -> Result<Self, Error> {
        let (root_path, state_path) = directories(&config.workspace_root, &config.state_dir)?;
        let open = |path: &Path| {
            warren_disk::open_root(path).map_err(Error::io(format!("open `{}`", path.display())))
        };
        let state = open(&state_path)?;
        make_private(&state_path.join("locks"))?;
        let locks = open(&state_path.join("locks"))?;
        let seal = Seal::open(&state_path).map_err(Error::io("read the host's key"))?;
        Ok(Self {
            inner: Arc::new(Inner {
                root: open(&root_path)?.into(),
                root_path,
                layout: config.layout,
                store: EmbeddedStore::new(state, state_path),
                locks: Locks::new(locks),
                seal,
                limits: config.limits,
                runtime,
            }),
            progress: report::silent(),
        })
    }

    /// The same service, reporting long work to `sink`.
    #[must_use]
    pub fn with_progress(&self, sink: ProgressSink) -> Self {
        Self {
            inner: self.inner.clone(),
            progress: sink,
        }
    }

    /// The plugins of this host.
    pub fn runtime(&self) -> &Runtime {
        &self.inner.runtime
    }

    /// Canonical path of the workspace root.
    pub fn workspace_root(&self) -> &Path {
        &self.inner.root_path
    }

    /// How full the disk is, and what the limits say.
    pub fn quota(&self) -> Result<QuotaReport, Error> {
        let space = Space::of(&self.inner.root).map_err(Error::io("read the disk's size"))?;
        Ok(QuotaReport::new(&space, self.inner.limits))
    }

    /// Refuses at the hard limit; a soft one is a warning in the log.
    fn check_quota(&self) -> Result<(), Error> {
        let space = Space::of(&self.inner.root).map_err(Error::io("read the disk's size"))?;
        match self.inner.limits.judge(&space) {
            Verdict::Hard {
                resource,
                used_percent,
                limit_percent,
            } => Err(Error::WorkspaceQuotaExceeded {
                resource: report::resource_name(resource),
                used_percent,
                limit_percent,
            }),
            Verdict::Soft { used_percent, .. } => {
                tracing::warn!(used_percent, "the workspace disk is past its soft limit");
                Ok(())
            }
            Verdict::Fine => Ok(()),
        }
    }

    fn folder(&self, key: &ProjectKey) -> Result<Option<Folder>, Error> {
        match self.place(key) {
            Ok((parent, path)) => Folder::open(&parent, &path, key, &self.inner.seal),
            Err(error) if error.kind() == io::ErrorKind::NotFound => Ok(None),
            Err(error) => Err(Error::io(format!(
                "open the folder of tenant `{}`",
                key.tenant
            ))(error)),
        }
    }

    fn folder_or_create(&self, key: &ProjectKey) -> Result<Folder, Error> {
        let doing = || format!("make the folder of tenant `{}`", key.tenant);
        if self.inner.layout == Layout::Tenant {
            match self.inner.root.create_dir(tenant_folder(&key.tenant)) {
                Err(error) if error.kind() != io::ErrorKind::AlreadyExists => {
                    return Err(Error::io(doing())(error));
                }
                _ => {}
            }
        }
        let (parent, path) = self.place(key).map_err(Error::io(doing()))?;
        Folder::open_or_create(&parent, &path, key, &self.inner.seal)
    }

    /// The directory in which a Project's folder stands.
    fn place(&self, key: &ProjectKey) -> io::Result<(Arc<Dir>, PathBuf)> {
        let Inner {
            root,
            root_path,
            layout,
            ..
        } = &*self.inner;
        if *layout == Layout::Project {
            return Ok((root.clone(), root_path.clone()));
        }
        let name = tenant_folder(&key.tenant);
        let dir = warren_disk::beneath::open_dir(root, Path::new(&name))?;
        Ok((dir.into(), root_path.join(name)))
    }

    /// The folder of a Workspace that is in use. For callers that hold the Project's lock.
    async fn running(&self, key: &ProjectKey) -> Result<Folder, Error> {
        let folder = self.folder(key)?;
        let file = folder
            .as_ref()
            .map(Folder::workspace_file)
            .transpose()?
            .flatten();
        match (folder, file) {
            (Some(folder), Some(file)) if file.status == WorkspaceStatus::Running => Ok(folder),
            (Some(_), Some(file)) => Err(Error::WorkspaceNotRunning {
                project: key.to_string(),
                status: file.status,
            }),
            _ => Err(self.absent(key).await),
        }
    }

    /// Why a Workspace is not on disk.
    async fn absent(&self, key: &ProjectKey) -> Error {
        match self.inner.store.workspace(key).await {
            Ok(Some(record)) if record.status == WorkspaceStatus::Disposed => {
                Error::WorkspaceDisposed(key.to_string())
            }
            Ok(Some(record)) => match self.elsewhere(&record) {
                Some(error) => error,
                None => Error::WorkspaceNotRunning {
                    project: key.to_string(),
                    status: record.status,
                },
            },
            Ok(None) => Error::WorkspaceNotFound(key.to_string()),
            Err(error) => error.into(),
        }
    }

    /// Notes in a record that the folder is in this workspace root, or that there is none.
    fn stamp(&self, record: &mut WorkspaceRecord) {
        record.root = match record.status {
            WorkspaceStatus::Init | WorkspaceStatus::Disposed => None,
            WorkspaceStatus::Running
            | WorkspaceStatus::Suspending
            | WorkspaceStatus::Recovering => Some(self.root_name()),
        };
    }

    fn root_name(&self) -> String {
        use std::os::unix::ffi::OsStrExt;
        warren_disk::text::escape(self.inner.root_path.as_os_str().as_bytes())
    }

    /// Why nothing may be done here: the folder is in another workspace root.
    fn elsewhere(&self, record: &WorkspaceRecord) -> Option<Error> {
        let root = record.root.as_ref()?;
        (*root != self.root_name()).then(|| Error::WorkspaceElsewhere {
            project: format!("{}/{}", record.tenant, record.project_id),
            root: root.clone(),
        })
    }

    /// Makes this workspace root the one that holds the Workspace, because the other one is gone
    /// for good: what was there and is not saved is lost. [`Service::init`] then brings it up here.
    pub async fn take_over(&self, key: &ProjectKey) -> Result<(), Error> {
        let _lock = self.inner.locks.exclusive(key).await?;
        let Some(record) = self.inner.store.workspace(key).await? else {
            return Ok(());
        };
        if let Some(error) = self.elsewhere(&record) {
            tracing::warn!(error = %error, "taken over from a workspace root that is given up");
            // Any flip stamps the record with this root.
            self.flip(&record, |_| {}).await?;
        }
        Ok(())
    }

    /// Flips a record's status, as compare-and-set, and returns the new record.
    async fn flip(
        &self,
        record: &WorkspaceRecord,
        change: impl FnOnce(&mut WorkspaceRecord),
    ) -> Result<WorkspaceRecord, StoreError> {
        let mut next = record.clone();
        change(&mut next);
        self.stamp(&mut next);
        next.generation = record.generation + 1;
        self.inner.store.put_workspace(Some(record), &next).await?;
        tracing::info!(
            tenant = %next.tenant, project = %next.project_id,
            status = ?next.status, generation = next.generation, "workspace status"
        );
        Ok(next)
    }
}

/// Runs work that may take long off the async threads.
async fn blocking<T: Send + 'static>(
    work: impl FnOnce() -> T + Send + 'static,
) -> Result<T, Error> {
    tokio::task::spawn_blocking(work)
        .await
        .map_err(|error| Error::io("finish work in the background")(error.into()))
}

fn fresh_record(key: &ProjectKey, status: WorkspaceStatus) -> WorkspaceRecord {
    WorkspaceRecord {
        tenant: key.tenant.clone(),
        project_id: key.project.clone(),
        status,
        generation: 1,
        suspend: None,
        committed: 0,
        root: None,
        rolled_back: Vec::new(),
        sealed: true,
        created_at: Timestamp::now(),
        extra: serde_json::Map::new(),
    }
}

/// Makes both directories; refuses, before anything is made, when the state would lie in the managed
/// region.
pub(crate) fn directories(root: &Path, state: &Path) -> Result<(PathBuf, PathBuf), Error> {
    // Judged before anything is made, then again on what the links turned out to be. A state
    // directory above the workspace root, or beside it, harms nobody.
    let overlap = |root: &Path, state: &Path| state.starts_with(root);
    let refused = |root: &Path, state: &Path| Error::PersistenceOverlap {
        state: state.display().to_string(),
        root: root.display().to_string(),
    };
    let absolute = |path: &Path| {
        std::path::absolute(path).map_err(Error::io(format!("resolve `{}`", path.display())))
    };
    let (root, state) = (absolute(root)?, absolute(state)?);
    if overlap(&root, &state) {
        return Err(refused(&root, &state));
    }
    std::fs::create_dir_all(&root).map_err(Error::io(format!(
        "make the workspace root `{}`",
        root.display()
    )))?;
    make_private(&state)?;
    let canonical = |path: &Path| {
        path.canonicalize()
            .map_err(Error::io(format!("resolve `{}`", path.display())))
    };
    let (root, state) = (canonical(&root)?, canonical(&state)?);
    if overlap(&root, &state) {
        return Err(refused(&root, &state));
    }
    Ok((root, state))
}

/// Makes a directory that only we can read.
fn make_private(path: &Path) -> Result<(), Error> {
    use std::os::unix::fs::DirBuilderExt;
    std::fs::DirBuilder::new()
        .recursive(true)
        .mode(0o700)
        .create(path)
        .map_err(Error::io(format!("make `{}`", path.display())))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn state_in_the_managed_region_is_refused_and_made_nowhere() {
        let dir = tempfile::tempdir().unwrap();
        let root = dir.path().join("ws");
        for state in [root.clone(), root.join("state")] {
            let error = directories(&root, &state).unwrap_err();
            assert_eq!(error.code(), "PersistenceOverlap");
            assert!(!root.exists());
        }
        directories(&root, &dir.path().join("ws-state")).unwrap();
        directories(&root, dir.path()).unwrap();
    }

    #[test]
    fn an_alias_of_the_managed_region_is_refused() {
        let dir = tempfile::tempdir().unwrap();
        let root = dir.path().join("ws");
        std::fs::create_dir(&root).unwrap();
        std::os::unix::fs::symlink(&root, dir.path().join("alias")).unwrap();
        let error = directories(&root, &dir.path().join("alias/state")).unwrap_err();
        assert_eq!(error.code(), "PersistenceOverlap");
    }
}
