//! The store in one file on the Pod's disk (redb).
//!
//! Every call opens the database, works in one transaction and closes it, under a lock across
//! processes: several programs may share one state directory, and none of them keeps it.

use std::io;
use std::path::PathBuf;
use std::sync::Arc;
use std::time::Duration;

use redb::{Database, ReadableDatabase, ReadableTable, TableDefinition};
use serde::Serialize;
use serde::de::DeserializeOwned;
use warren_disk::lock::Lock;
use warren_disk::{Dir, atomic};
use warren_model::{CreatorId, Descriptor, DirName, Snapshot, WorkspaceRecord};

use super::{Page, ProjectKey, StoreError};

type Pair = (&'static str, &'static str);
type Triple = (&'static str, &'static str, &'static str);
type SnapshotKey = (&'static str, &'static str, &'static str, u64);

const WORKSPACES: TableDefinition<'_, Pair, &[u8]> = TableDefinition::new("workspaces");
const SNAPSHOTS: TableDefinition<'_, SnapshotKey, &[u8]> =
    TableDefinition::new("workspace_snapshots");
const WORKING_DIRS: TableDefinition<'_, Triple, &str> = TableDefinition::new("working_dirs");

/// The database.
const FILE: &str = "store.redb";

/// Where it is made: a crash meanwhile leaves what redb cannot read, and the next call begins anew.
const NEW_FILE: &str = "store.redb.new";

/// How long a call waits for another process.
const BUSY_WAIT: Duration = Duration::from_secs(30);

/// The embedded store. Cheap to clone.
#[derive(Debug, Clone)]
pub struct EmbeddedStore {
    inner: Arc<Inner>,
}

#[derive(Debug)]
struct Inner {
    dir: Dir,
    path: PathBuf,
}

impl EmbeddedStore {
    /// The store in `dir`, whose path is `path`. Nothing is opened yet.
    pub fn new(dir: Dir, path: PathBuf) -> Self {
        Self {
            inner: Arc::new(Inner { dir, path }),
        }
    }

    async fn with<T: Send + 'static>(
        &self,
        work: impl FnOnce(&Database) -> Result<T, StoreError> + Send + 'static,
    ) -> Result<T, StoreError> {
        let inner = self.inner.clone();
        tokio::task::spawn_blocking(move || {
            let _lock =
                Lock::exclusive(&inner.dir, "store.lock", BUSY_WAIT).map_err(StoreError::Busy)?;
            work(&open(&inner)?)
        })
        .await
        .map_err(StoreError::Stopped)?
    }

    /// The record of a Workspace.
    pub async fn workspace(&self, key: &ProjectKey) -> Result<Option<WorkspaceRecord>, StoreError> {
        let key = key.clone();
        self.with(move |database| {
            let transaction = database.begin_read().map_err(failed)?;
            let table = match transaction.open_table(WORKSPACES) {
                Ok(table) => table,
                Err(redb::TableError::TableDoesNotExist(_)) => return Ok(None),
                Err(error) => return Err(failed(error)),
            };
            let row = table.get(pair(&key)).map_err(failed)?;
            row.map(|row| decode(&key.to_string(), row.value()))
                .transpose()
        })
        .await
    }

    /// The Workspaces of a tenant by Project id, from `after` on.
    pub async fn workspaces(
        &self,
        tenant: &str,
        after: Option<String>,
        limit: usize,
    ) -> Result<Page<WorkspaceRecord>, StoreError> {
        let tenant = tenant.to_owned();
        self.with(move |database| {
            let transaction = database.begin_read().map_err(failed)?;
            let mut page = Page {
                items: Vec::new(),
                next: None,
            };
            let table = match transaction.open_table(WORKSPACES) {
                Ok(table) => table,
                Err(redb::TableError::TableDoesNotExist(_)) => return Ok(page),
                Err(error) => return Err(failed(error)),
            };
            let start = after.as_deref().unwrap_or("");
            for row in table.range((tenant.as_str(), start)..).map_err(failed)? {
                let (key, value) = row.map_err(failed)?;
                let (row_tenant, project) = key.value();
                if row_tenant != tenant {
                    break;
                }
                if after.as_deref() == Some(project) {
                    continue;
                }
                if page.items.len() == limit {
                    page.next = page
                        .items
                        .last()
                        .map(|record: &WorkspaceRecord| record.project_id.to_string());
                    break;
                }
                page.items.push(decode(project, value.value())?);
            }
            Ok(page)
        })
        .await
    }

    /// Writes a record if there is none, or if the one there has status and generation of
    /// `expected`.
    pub async fn put_workspace(
        &self,
        expected: Option<&WorkspaceRecord>,
        record: &WorkspaceRecord,
    ) -> Result<(), StoreError> {
        self.change(expected, record, Change::default()).await
    }

    /// Flips a record and changes Snapshots, all in one durable transaction.
    pub async fn change(
        &self,
        expected: Option<&WorkspaceRecord>,
        record: &WorkspaceRecord,
        change: Change,
    ) -> Result<(), StoreError> {
        let expected = expected.map(|record| (record.status, record.generation));
        let record = record.clone();
        self.with(move |database| {
            let key = ProjectKey {
                tenant: record.tenant.clone(),
                project: record.project_id.clone(),
            };
            let transaction = database.begin_write().map_err(failed)?;
            {
                let mut table = transaction.open_table(WORKSPACES).map_err(failed)?;
                let found: Option<WorkspaceRecord> = table
                    .get(pair(&key))
                    .map_err(failed)?
                    .map(|row| decode(&key.to_string(), row.value()))
                    .transpose()?;
                if found.map(|record| (record.status, record.generation)) != expected {
                    return Err(StoreError::Conflict(key.to_string()));
                }
                table
                    .insert(pair(&key), encode(&record).as_slice())
                    .map_err(failed)?;
                let mut table = transaction.open_table(SNAPSHOTS).map_err(failed)?;
                for (dir_name, generation) in &change.remove {
                    table
                        .remove((
                            key.tenant.as_str(),
                            key.project.as_str(),
                            dir_name.as_str(),
                            *generation,
                        ))
                        .map_err(failed)?;
                }
                for snapshot in &change.insert {
                    let key = (
                        snapshot.tenant.as_str(),
                        snapshot.project_id.as_str(),
                        snapshot.dir_name.as_str(),
                        snapshot.generation,
                    );
                    table
                        .insert(key, encode(snapshot).as_slice())
                        .map_err(failed)?;
                }
                if change.forget_working_dirs {
                    let mut table = transaction.open_table(WORKING_DIRS).map_err(failed)?;
                    table
                        .retain(|row, _| {
                            (row.0, row.1) != (key.tenant.as_str(), key.project.as_str())
                        })
                        .map_err(failed)?;
                }
            }
            transaction.commit().map_err(failed)
        })
        .await
    }

    /// Every Snapshot of a Project, by dirName.
    pub async fn snapshots(&self, key: &ProjectKey) -> Result<Vec<Snapshot>, StoreError> {
        let key = key.clone();
        self.with(move |database| {
            let transaction = database.begin_read().map_err(failed)?;
            let table = match transaction.open_table(SNAPSHOTS) {
                Ok(table) => table,
                Err(redb::TableError::TableDoesNotExist(_)) => return Ok(Vec::new()),
                Err(error) => return Err(failed(error)),
            };
            let (tenant, project) = pair(&key);
            let mut snapshots = Vec::new();
            for row in table.range((tenant, project, "", 0)..).map_err(failed)? {
                let (row, value) = row.map_err(failed)?;
                let (row_tenant, row_project, dir_name, _) = row.value();
                if (row_tenant, row_project) != (tenant, project) {
                    break;
                }
                snapshots.push(decode(&format!("{key}/{dir_name}"), value.value())?);
            }
            Ok(snapshots)
        })
        .await
    }

    /// The working directory of a creator: dirName and time of making, as they were when it was set.
    pub async fn working_dir(
        &self,
        key: &ProjectKey,
        creator: &CreatorId,
    ) -> Result<Option<(String, String)>, StoreError> {
        let (key, creator) = (key.clone(), creator.clone());
        self.with(move |database| {
            let transaction = database.begin_read().map_err(failed)?;
            let table = match transaction.open_table(WORKING_DIRS) {
                Ok(table) => table,
                Err(redb::TableError::TableDoesNotExist(_)) => return Ok(None),
                Err(error) => return Err(failed(error)),
            };
            let (tenant, project) = pair(&key);
            let row = table
                .get((tenant, project, creator.as_str()))
                .map_err(failed)?;
            let row = row.as_ref().and_then(|row| row.value().split_once('/'));
            Ok(row.map(|(name, made)| (name.to_owned(), made.to_owned())))
        })
        .await
    }

    /// Sets or clears the working directory of a creator.
    pub async fn set_working_dir(
        &self,
        key: &ProjectKey,
        creator: &CreatorId,
        root_dir: Option<&Descriptor>,
    ) -> Result<(), StoreError> {
        let (key, creator) = (key.clone(), creator.clone());
        // The name alone could be another RootDir's by the time it is read.
        let value = root_dir.map(|root| format!("{}/{}", root.dir_name, root.created_at));
        self.with(move |database| {
            let transaction = database.begin_write().map_err(failed)?;
            {
                let mut table = transaction.open_table(WORKING_DIRS).map_err(failed)?;
                let (tenant, project) = pair(&key);
                let row = (tenant, project, creator.as_str());
                match &value {
                    Some(value) => table.insert(row, value.as_str()).map(drop),
                    None => table.remove(row).map(drop),
                }
                .map_err(failed)?;
            }
            transaction.commit().map_err(failed)
        })
        .await
    }
}

/// Snapshots that go and come in one transaction.
#[derive(Debug, Default)]
pub struct Change {
    /// Rows to write.
    pub insert: Vec<Snapshot>,
    /// Rows to remove, by dirName and generation.
    pub remove: Vec<(DirName, u64)>,
    /// Whether the Project's working directories go.
    pub forget_working_dirs: bool,
}

/// Opens the database, or makes it; it appears whole or not at all. Under the store's lock.
fn open(inner: &Inner) -> Result<Database, StoreError> {
    let (path, new) = (inner.path.join(FILE), inner.path.join(NEW_FILE));
    if !path.try_exists().map_err(failed)? {
        match std::fs::remove_file(&new) {
            Err(error) if error.kind() != io::ErrorKind::NotFound => return Err(failed(error)),
            _ => {}
        }
        drop(Database::create(&new).map_err(failed)?);
        std::fs::rename(&new, &path).map_err(failed)?;
        atomic::sync_dir(&inner.dir).map_err(failed)?;
    }
    Database::create(&path).map_err(failed)
}

fn pair(key: &ProjectKey) -> (&str, &str) {
    (key.tenant.as_str(), key.project.as_str())
}

fn failed(error: impl Into<redb::Error>) -> StoreError {
    StoreError::Database(Box::new(error.into()))
}

fn encode(row: &impl Serialize) -> Vec<u8> {
    // Rows are plain data with string keys: there is no value that fails.
    serde_json::to_vec(row).expect("a row is JSON")
}

fn decode<T: DeserializeOwned>(key: &str, row: &[u8]) -> Result<T, StoreError> {
    serde_json::from_slice(row).map_err(|source| StoreError::Damaged {
        key: key.to_owned(),
        source,
    })
}
