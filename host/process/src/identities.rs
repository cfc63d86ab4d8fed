use std::collections::BTreeMap;
use std::io::{self, Read};
use std::path::Path;
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use cap_std::fs::{Dir, MetadataExt};
use sha2::{Digest, Sha256};
use warren_disk::atomic::{self, Durable};
use warren_disk::beneath;
use warren_disk::lock::Lock;
use warren_launch::Identity;

use crate::ProcessError;

/// File in the state directory: who has which user.
const FILE: &str = "uids.json";
const LOCK: &str = "uids.lock";
const LOCK_TIMEOUT: Duration = Duration::from_secs(30);
/// A range can not be larger than this file.
const FILE_BYTES_MAX: u64 = 64 * 1024 * 1024;

/// The users that a host which is root gives to Projects: none is that of two at a time, on all
/// hosts that share the state directory.
#[derive(Debug, Clone)]
pub struct Identities {
    shared: Arc<Shared>,
}

#[derive(Debug)]
struct Shared {
    state: Dir,
    known: Mutex<Known>,
}

/// The file as it was read last.
#[derive(Debug, Default)]
struct Known {
    version: Option<Version>,
    table: Table,
}

/// Every change makes a new file.
type Version = (u64, i64, i64);

/// Project to user.
type Table = BTreeMap<String, u32>;

impl Identities {
    /// Keeps them in this state directory.
    pub fn new(state: Dir) -> Self {
        Self {
            shared: Arc::new(Shared {
                state,
                known: Mutex::default(),
            }),
        }
    }

    /// The user of a Project, and its group of the same number: one of `count` from `first` on.
    /// It stays the same until it is released, or the range becomes another.
    ///
    /// # Errors
    /// `Failed`: all are taken, or the file can not be read or written.
    pub fn of(
        &self,
        tenant: &str,
        project: &str,
        first: u32,
        count: u32,
    ) -> Result<Identity, ProcessError> {
        let key = key(tenant, project);
        let fits = |uid: &u32| (first..first.saturating_add(count)).contains(uid) && *uid != 0;
        let mut known = self.known();
        let failed = ProcessError::failed("the Project's user could not be looked up");
        if known.refresh(&self.shared.state).map_err(failed)?
            && let Some(&uid) = known.table.get(&key).filter(|uid| fits(uid))
        {
            return Ok(Identity { uid, gid: uid });
        }
        let uid = self.change(&mut known, |table| {
            if let Some(&uid) = table.get(&key).filter(|uid| fits(uid)) {
                return Ok(uid);
            }
            let uid = free(table, &key, first, count)?;
            table.insert(key.clone(), uid);
            Ok(uid)
        })?;
        Ok(Identity { uid, gid: uid })
    }

    /// Gives up a Project's user. Nothing of the Project may be left on the disk.
    ///
    /// # Errors
    /// `Failed`: the file can not be read or written.
    pub fn release(&self, tenant: &str, project: &str) -> Result<(), ProcessError> {
        let key = key(tenant, project);
        let mut known = self.known();
        let failed = ProcessError::failed("the Project's user could not be looked up");
        if known.refresh(&self.shared.state).map_err(failed)? && !known.table.contains_key(&key) {
            return Ok(());
        }
        self.change(&mut known, |table| {
            table.remove(&key);
            Ok(())
        })
    }

    fn known(&self) -> std::sync::MutexGuard<'_, Known> {
        // What a panic left is read anew.
        self.shared
            .known
            .lock()
            .unwrap_or_else(PoisonError::into_inner)
    }

    /// Changes the table under the lock between processes.
    fn change<T>(
        &self,
        known: &mut Known,
        change: impl FnOnce(&mut Table) -> io::Result<T>,
    ) -> Result<T, ProcessError> {
        let state = &self.shared.state;
        let locked = Lock::exclusive(state, LOCK, LOCK_TIMEOUT).map_err(io::Error::other);
        let changed = locked.and_then(|_lock| {
            known.refresh(state)?;
            let before = known.table.clone();
            let result = change(&mut known.table)?;
            if known.table != before {
                let json = serde_json::to_vec(&known.table)?;
                if let Err(error) = atomic::write(state, FILE, &json, Durable::Yes) {
                    *known = Known::default();
                    return Err(error);
                }
                known.version = version(state)?;
            }
            Ok(result)
        });
        changed.map_err(ProcessError::failed(
            "the Project could not be given a user of its own",
        ))
    }
}

impl Known {
    /// Reads the file again if it is another one now; says whether there is one.
    fn refresh(&mut self, state: &Dir) -> io::Result<bool> {
        let version = version(state)?;
        if version.is_none() || version != self.version {
            self.table = match version {
                None => Table::new(),
                Some(_) => read(state)?,
            };
            self.version = version;
        }
        Ok(version.is_some())
    }
}

fn version(state: &Dir) -> io::Result<Option<Version>> {
    match state.symlink_metadata(FILE) {
        Ok(found) => Ok(Some((found.ino(), found.mtime(), found.mtime_nsec()))),
        Err(error) if error.kind() == io::ErrorKind::NotFound => Ok(None),
        Err(error) => Err(error),
    }
}

fn read(state: &Dir) -> io::Result<Table> {
    let mut json = Vec::new();
    let file = beneath::open_file(state, Path::new(FILE))?;
    file.take(FILE_BYTES_MAX).read_to_end(&mut json)?;
    Ok(serde_json::from_slice(&json)?)
}

/// Names may hold anything, so that only their digest tells them apart in a file.
fn key(tenant: &str, project: &str) -> String {
    let mut digest = Sha256::new();
    for name in [tenant, project] {
        digest.update((name.len() as u64).to_le_bytes());
        digest.update(name);
    }
    let digest = digest.finalize();
    digest[..16]
        .iter()
        .map(|byte| format!("{byte:02x}"))
        .collect()
}

/// The first that nobody has, from a place of the Project's own on: so that a lost file gives most
/// of them the same again.
fn free(table: &Table, key: &str, first: u32, count: u32) -> io::Result<u32> {
    let start = u32::from_str_radix(&key[..8], 16).map_err(io::Error::other)?;
    let taken: std::collections::BTreeSet<u32> = table.values().copied().collect();
    let start = start.checked_rem(count).unwrap_or(0);
    let offsets = (start..count).chain(0..start);
    let mut candidates = offsets.filter_map(|offset| first.checked_add(offset));
    candidates
        .find(|uid| *uid != 0 && !taken.contains(uid))
        .ok_or_else(|| io::Error::other("all users of the policy's range are taken"))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn open(path: &Path) -> Identities {
        Identities::new(warren_disk::open_root(path).unwrap())
    }

    #[test]
    fn a_user_is_that_of_one_project_until_it_is_released() {
        let state = tempfile::tempdir().unwrap();
        let here = open(state.path());
        let other_host = open(state.path());
        let mut seen = BTreeMap::new();
        for number in 0..20 {
            let name = format!("p{number}");
            let host = if number % 2 == 0 { &here } else { &other_host };
            let found = host.of("t", &name, 1000, 20).unwrap();
            assert_eq!(found.uid, found.gid);
            assert!((1000..1020).contains(&found.uid));
            assert_eq!(seen.insert(found.uid, name), None, "taken twice");
        }
        for (uid, name) in &seen {
            assert_eq!(here.of("t", name, 1000, 20).unwrap().uid, *uid);
        }
        let error = here.of("t", "more", 1000, 20).unwrap_err();
        assert_eq!(error.code(), "ProcessFailed");
        other_host.release("t", "p3").unwrap();
        let freed = here.of("u", "p3", 1000, 20).unwrap().uid;
        assert_eq!(seen[&freed], "p3", "the same names under another tenant");
    }

    #[test]
    fn the_same_without_the_file_and_another_in_another_range() {
        let states = [(); 2].map(|()| tempfile::tempdir().unwrap());
        let of = |state: &tempfile::TempDir| open(state.path()).of("t", "p", 200_000, 65_536);
        let [first, second] = [of(&states[0]).unwrap(), of(&states[1]).unwrap()];
        assert_eq!(first, second);
        let moved = open(states[0].path()).of("t", "p", 5, 10).unwrap();
        assert!((5..15).contains(&moved.uid));
        assert!(open(states[0].path()).of("t", "p", 5, 0).is_err());
    }

    #[test]
    fn a_file_that_is_not_ours_is_an_error_and_stays() {
        let state = tempfile::tempdir().unwrap();
        std::fs::write(state.path().join(FILE), "nonsense").unwrap();
        assert!(open(state.path()).of("t", "p", 5, 10).is_err());
        let left = std::fs::read_to_string(state.path().join(FILE)).unwrap();
        assert_eq!(left, "nonsense");
    }
}
