//! A Project's folder on disk: `workspace.json`, the Descriptors and the RootDirs.

use std::io::{self, Read};
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::Duration;

use jiff::Timestamp;
use serde::de::DeserializeOwned;
use warren_disk::atomic::{self, Durable};
use warren_disk::{Dir, beneath, remove, text};
use warren_model::{
    Descriptor, DirName, RootState, WorkspaceFile, WorkspaceStatus, project_folder,
};

use super::listing::Listing;
use super::locks::Held;
use super::sealed;
use crate::error::Error;
use crate::seal::Seal;
use crate::store::ProjectKey;

/// The file of the Workspace itself.
pub(super) const WORKSPACE_FILE: &str = "workspace.json";

/// What is in front of the name of a `workspace.json` that was set aside.
const DAMAGED_PREFIX: &str = ".workspace.json.damaged-";

/// Largest Descriptor that is read: metadata and labels are far below.
const FILE_BYTES_MAX: u64 = 1024 * 1024;

/// What the host's seal says that these files are.
const PURPOSE: &str = "warren document 1";

/// What is said of a file that somebody else wrote.
const NOT_OURS: &str = "it was not written by this host: its seal is missing or wrong";

/// A Project's folder, open.
#[derive(Debug, Clone)]
pub(super) struct Folder {
    key: ProjectKey,
    name: String,
    parent: Arc<Dir>,
    dir: Arc<Dir>,
    path: PathBuf,
    seal: Seal,
    _held: Option<Held>,
}

impl Folder {
    /// Opens the folder of a Project in `parent`; none: there is none.
    pub(super) fn open(
        parent: &Arc<Dir>,
        parent_path: &Path,
        key: &ProjectKey,
        seal: &Seal,
    ) -> Result<Option<Self>, Error> {
        let name = project_folder(&key.project);
        match beneath::open_dir(parent, Path::new(&name)) {
            Ok(dir) => Ok(Some(Self {
                key: key.clone(),
                path: parent_path.join(&name),
                name,
                parent: parent.clone(),
                dir: dir.into(),
                seal: seal.clone(),
                _held: None,
            })),
            Err(error) if error.kind() == io::ErrorKind::NotFound => Ok(None),
            Err(error) => Err(Error::io(format!("open the folder of project `{key}`"))(
                error,
            )),
        }
    }

    /// Opens the folder, making it when it is missing.
    pub(super) fn open_or_create(
        parent: &Arc<Dir>,
        parent_path: &Path,
        key: &ProjectKey,
        seal: &Seal,
    ) -> Result<Self, Error> {
        match parent.create_dir(project_folder(&key.project)) {
            Err(error) if error.kind() != io::ErrorKind::AlreadyExists => {
                return Err(Error::io(format!("make the folder of project `{key}`"))(
                    error,
                ));
            }
            _ => {}
        }
        Self::open(parent, parent_path, key, seal)?
            .ok_or_else(|| Error::WorkspaceNotFound(key.to_string()))
    }

    /// Whose folder it is.
    pub(super) fn key(&self) -> &ProjectKey {
        &self.key
    }

    /// The same folder, keeping the Project's lock for as long as work on it goes on.
    pub(super) fn under(self, lock: &Held) -> Self {
        Self {
            _held: Some(lock.clone()),
            ..self
        }
    }

    /// Path of the folder on the host.
    pub(super) fn path(&self) -> &Path {
        &self.path
    }

    /// The directory handle.
    pub(super) fn dir(&self) -> &Dir {
        &self.dir
    }

    fn damaged(&self, file: &str, reason: impl Into<String>) -> Error {
        Error::Damaged {
            file: format!("{}/{file}", self.name),
            reason: reason.into(),
        }
    }

    /// `workspace.json`, checked against the Project; none: it is missing.
    pub(super) fn workspace_file(&self) -> Result<Option<WorkspaceFile>, Error> {
        let Some(bytes) = self.read(WORKSPACE_FILE)? else {
            return Ok(None);
        };
        let found = sealed::read(&self.seal, PURPOSE, WORKSPACE_FILE, &bytes);
        let file: WorkspaceFile =
            parse(&found.json).map_err(|reason| self.damaged(WORKSPACE_FILE, reason))?;
        // Whoever wrote it: a folder that names another owner is not for this one.
        if !self.owns(&file) {
            return Err(Error::WorkspaceConflict {
                project: self.key.to_string(),
                owner: format!("{}/{}", file.tenant, file.project_id),
            });
        }
        if !found.ours {
            return Err(self.damaged(WORKSPACE_FILE, NOT_OURS));
        }
        Ok(Some(file))
    }

    fn owns(&self, file: &WorkspaceFile) -> bool {
        file.tenant == self.key.tenant && file.project_id == self.key.project
    }

    /// Writes `workspace.json` with a status, keeping what else it says.
    pub(super) fn put_workspace_file(
        &self,
        status: WorkspaceStatus,
        generation: Option<u64>,
        created_at: Timestamp,
    ) -> Result<(), Error> {
        let Some(mut file) = self.workspace_file()? else {
            return self.first_workspace_file(WorkspaceFile {
                tenant: self.key.tenant.clone(),
                project_id: self.key.project.clone(),
                created_at,
                status,
                generation,
                extra: serde_json::Map::new(),
            });
        };
        file.status = status;
        file.generation = generation;
        let bytes = self.sealed(WORKSPACE_FILE, &file);
        atomic::write(&self.dir, WORKSPACE_FILE, &bytes, Durable::Yes)
            .or_else(|error| match error.kind() {
                // Suspend and dispose make room: a full disk must not stop them.
                io::ErrorKind::StorageFull => {
                    atomic::overwrite(&self.dir, WORKSPACE_FILE, &bytes).map_err(|_| error)
                }
                _ => Err(error),
            })
            .map_err(Error::io(format!("write `{}/{WORKSPACE_FILE}`", self.name)))
    }

    /// Two tenants may claim one folder at once: the first to write the file has it.
    fn first_workspace_file(&self, file: WorkspaceFile) -> Result<(), Error> {
        let bytes = self.sealed(WORKSPACE_FILE, &file);
        match atomic::create_new(&self.dir, WORKSPACE_FILE, &bytes, Durable::Yes) {
            Err(error) if error.kind() == io::ErrorKind::AlreadyExists => {
                self.workspace_file().map(drop)
            }
            other => other.map_err(Error::io(format!("write `{}/{WORKSPACE_FILE}`", self.name))),
        }
    }

    /// Sets a damaged `workspace.json` aside under another name, so that it can be written anew.
    pub(super) fn quarantine_workspace_file(&self) -> Result<String, Error> {
        let now = Timestamp::now().as_millisecond();
        let found = self.dir.symlink_metadata(WORKSPACE_FILE);
        let aside = if found.is_ok_and(|found| found.is_dir()) {
            // It may hold anything: under this name it is listed as content of a stranger.
            format!("workspace.json.damaged-{now}")
        } else {
            format!("{DAMAGED_PREFIX}{now}")
        };
        self.dir
            .rename(WORKSPACE_FILE, &self.dir, &aside)
            .map_err(Error::io(format!(
                "set `{}/{WORKSPACE_FILE}` aside",
                self.name
            )))?;
        Ok(aside)
    }

    /// One Descriptor.
    pub(super) fn descriptor(&self, dir_name: &DirName) -> Result<Descriptor, Error> {
        let file = dir_name.descriptor_file();
        let bytes = self
            .read(&file)?
            .ok_or_else(|| Error::RootDirNotFound(dir_name.clone()))?;
        self.parse_descriptor(dir_name, &bytes)
            .map_err(|reason| self.damaged(&file, reason))
    }

    pub(super) fn parse_descriptor(
        &self,
        dir_name: &DirName,
        bytes: &[u8],
    ) -> Result<Descriptor, String> {
        let found = sealed::read(&self.seal, PURPOSE, &dir_name.descriptor_file(), bytes);
        if !found.ours {
            return Err(NOT_OURS.to_owned());
        }
        let descriptor: Descriptor = parse(&found.json)?;
        self.check_owner(dir_name, &descriptor)?;
        Ok(descriptor)
    }

    /// A Descriptor is of the RootDir and the Project that its place says.
    fn check_owner(&self, dir_name: &DirName, descriptor: &Descriptor) -> Result<(), String> {
        if descriptor.dir_name != *dir_name {
            return Err(format!("it is about `{}`", descriptor.dir_name));
        }
        if descriptor.tenant != self.key.tenant || descriptor.project_id != self.key.project {
            return Err(format!(
                "it belongs to `{}/{}`",
                descriptor.tenant, descriptor.project_id
            ));
        }
        Ok(())
    }

    /// Writes a Descriptor if there is none of its name: the claim on the name.
    pub(super) fn claim(&self, descriptor: &Descriptor) -> io::Result<()> {
        let file = descriptor.dir_name.descriptor_file();
        atomic::create_new(
            &self.dir,
            &file,
            &self.sealed(&file, descriptor),
            Durable::No,
        )
    }

    /// Writes a Descriptor.
    pub(super) fn put(&self, descriptor: &Descriptor, durable: Durable) -> Result<(), Error> {
        let file = descriptor.dir_name.descriptor_file();
        atomic::write(&self.dir, &file, &self.sealed(&file, descriptor), durable)
            .map_err(Error::io(format!("write `{}/{file}`", self.name)))
    }

    /// Opens a RootDir.
    pub(super) fn root(&self, dir_name: &DirName) -> Result<Dir, Error> {
        beneath::open_dir(&self.dir, Path::new(dir_name.as_str())).map_err(|source| {
            Error::RootDirUnreadable {
                dir_name: dir_name.clone(),
                source,
            }
        })
    }

    /// Whether anything stands under the name of a RootDir.
    pub(super) fn has(&self, dir_name: &DirName) -> Result<bool, Error> {
        match beneath::stat(&self.dir, Path::new(dir_name.as_str())) {
            Ok(_) => Ok(true),
            Err(error) if error.kind() == io::ErrorKind::NotFound => Ok(false),
            Err(error) => Err(Error::io(format!("look at RootDir `{dir_name}`"))(error)),
        }
    }

    /// Removes a Descriptor alone.
    pub(super) fn forget(&self, dir_name: &DirName) -> Result<(), Error> {
        self.remove_file(&dir_name.descriptor_file())
    }

    /// Deletes a RootDir's folder, then its Descriptor. May take long: not for async threads.
    pub(super) fn delete(&self, dir_name: &DirName) -> Result<(), Error> {
        remove::remove_tree(&self.dir, dir_name.as_str()).map_err(|source| Error::Delete {
            dir_name: dir_name.clone(),
            source,
        })?;
        self.remove_file(&dir_name.descriptor_file())
    }

    /// Notes that a RootDir is being deleted when it could not be deleted whole: half of one must
    /// never pass for all of it.
    pub(super) fn mark_deleting(&self, descriptor: &Descriptor) {
        let deleting = Descriptor {
            state: RootState::Deleting,
            ..descriptor.clone()
        };
        if let Err(error) = self.put(&deleting, Durable::Yes) {
            tracing::warn!(dir_name = %descriptor.dir_name, error = crate::error::chain(&error), "cannot note that a RootDir is being deleted");
        }
    }

    /// Deletes a RootDir's folder but not its Descriptor.
    pub(super) fn delete_content(&self, dir_name: &DirName) -> Result<(), Error> {
        remove::remove_tree(&self.dir, dir_name.as_str())
            .map(drop)
            .map_err(|source| Error::Delete {
                dir_name: dir_name.clone(),
                source,
            })
    }

    /// Deletes damaged Descriptors with their folders, and what no Descriptor knows.
    pub(super) fn delete_strangers(&self, listing: &Listing) -> Result<(), Error> {
        let gone = |name: &str| {
            remove::remove_tree(&self.dir, name)
                .map(drop)
                .map_err(|source| Error::DeleteStranger {
                    name: text::escape(name.as_bytes()),
                    source,
                })
        };
        for damage in &listing.damaged {
            if let Some(folder) = damage.file.strip_suffix(".json") {
                gone(folder)?;
            }
            gone(&damage.file)?;
        }
        for name in &listing.orphans {
            // A name that is not UTF-8 stays: it is reported as left behind.
            if let Some(name) = text::unescape(name)
                .ok()
                .and_then(|n| String::from_utf8(n).ok())
            {
                gone(&name)?;
            }
        }
        Ok(())
    }

    /// Removes what writers of ours that died left. For callers that hold the Project alone.
    pub(super) fn sweep(&self) -> Result<(), Error> {
        let swept = atomic::sweep(&self.dir, Duration::ZERO).map_err(Error::io(format!(
            "sweep the folder of project `{}`",
            self.key
        )))?;
        if swept > 0 {
            tracing::info!(project = %self.key, swept, "took away files that were half written");
        }
        Ok(())
    }

    fn remove_file(&self, file: &str) -> Result<(), Error> {
        match self.dir.remove_file(file) {
            Err(error) if error.kind() != io::ErrorKind::NotFound => {
                Err(Error::io(format!("remove `{}/{file}`", self.name))(error))
            }
            _ => Ok(()),
        }
    }

    /// Removes `workspace.json`, leftover temporary files and the folder itself, which must hold
    /// nothing else; what it holds is returned when it does.
    pub(super) fn remove(&self) -> Result<Vec<String>, Error> {
        let left = self.list()?;
        let mut names = left.orphans;
        names.extend(left.damaged.into_iter().map(|damage| damage.file));
        names.extend(left.descriptors.iter().map(|d| d.dir_name.to_string()));
        if !names.is_empty() {
            return Ok(names);
        }
        self.sweep()?;
        for entry in self.dir.entries().map_err(Error::io("list the folder"))? {
            let name = entry.map_err(Error::io("list the folder"))?.file_name();
            // A quarantined `workspace.json` goes with the Workspace that it described.
            if let Some(name) = name.to_str().filter(|name| is_ours(name)) {
                self.remove_file(name)?;
            }
        }
        self.remove_file(WORKSPACE_FILE)?;
        self.parent
            .remove_dir(&self.name)
            .map_err(Error::io(format!(
                "remove the folder of project `{}`",
                self.key
            )))?;
        Ok(Vec::new())
    }

    /// A document with its seal, bound to the name of the file; it says itself whose it is.
    fn sealed(&self, file: &str, value: &impl serde::Serialize) -> Vec<u8> {
        sealed::write(&self.seal, PURPOSE, file, value)
    }

    /// Seals what stands there as it is; the names of the files that were not this host's. Those
    /// that are no documents of this Project stay as they are.
    pub(super) fn reseal(&self) -> Result<Vec<String>, Error> {
        let doing = || format!("list the folder of project `{}`", self.key);
        let mut resealed = Vec::new();
        for entry in self.dir.entries().map_err(Error::io(doing()))? {
            let name = entry.map_err(Error::io(doing()))?.file_name();
            let Some(name) = name.to_str() else { continue };
            let Some(bytes) = self.unsealed(name)? else {
                continue;
            };
            atomic::write(&self.dir, name, &bytes, Durable::Yes)
                .map_err(Error::io(format!("write `{}/{name}`", self.name)))?;
            resealed.push(name.to_owned());
        }
        resealed.sort();
        Ok(resealed)
    }

    /// A document of this Project without our seal, sealed; none: it is something else.
    fn unsealed(&self, name: &str) -> Result<Option<Vec<u8>>, Error> {
        let dir_name = match name.strip_suffix(".json").map(str::parse::<DirName>) {
            _ if name == WORKSPACE_FILE => None,
            Some(Ok(dir_name)) => Some(dir_name),
            _ => return Ok(None),
        };
        let bytes = match self.read(name) {
            Ok(Some(bytes)) => bytes,
            Ok(None) | Err(Error::Damaged { .. }) => return Ok(None),
            Err(error) => return Err(error),
        };
        let found = sealed::read(&self.seal, PURPOSE, name, &bytes);
        if found.ours {
            return Ok(None);
        }
        let Some(dir_name) = dir_name else {
            let file = parse::<WorkspaceFile>(&found.json).ok();
            let own = file.filter(|file| self.owns(file));
            return Ok(own.map(|file| self.sealed(name, &without_seal(file, |f| &mut f.extra))));
        };
        let Ok(descriptor) = parse::<Descriptor>(&found.json) else {
            return Ok(None);
        };
        let own = self.check_owner(&dir_name, &descriptor).is_ok();
        Ok(own.then(|| self.sealed(name, &without_seal(descriptor, |d| &mut d.extra))))
    }

    pub(super) fn read(&self, file: &str) -> Result<Option<Vec<u8>>, Error> {
        let open = match beneath::open_file(&self.dir, Path::new(file)) {
            Ok(open) => open,
            Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(None),
            Err(error) => return Err(self.damaged(file, error.to_string())),
        };
        let mut bytes = Vec::new();
        open.take(FILE_BYTES_MAX + 1)
            .read_to_end(&mut bytes)
            .map_err(Error::io(format!("read `{}/{file}`", self.name)))?;
        if bytes.len() as u64 > FILE_BYTES_MAX {
            return Err(self.damaged(file, "it is larger than 1 MiB"));
        }
        Ok(Some(bytes))
    }
}

/// Files of the host beside those that it uses. Whatever else starts with a dot is somebody's.
pub(super) fn is_ours(name: &str) -> bool {
    name.starts_with(DAMAGED_PREFIX) || atomic::is_temp_name(name)
}

fn parse<T: DeserializeOwned>(bytes: &[u8]) -> Result<T, String> {
    serde_json::from_slice(bytes).map_err(|error| error.to_string())
}

/// A document without a seal that it had among its unknown fields: one of another form, say.
fn without_seal<T>(
    mut document: T,
    extra: impl FnOnce(&mut T) -> &mut serde_json::Map<String, serde_json::Value>,
) -> T {
    extra(&mut document).remove("seal");
    document
}
