//! Mirrors: one bare repository per (tenant, URL, credential), with our config and the upstream's
//! refs and objects, shared by processes.

use std::path::{Path, PathBuf};
use std::rc::Rc;
use std::time::{Duration, Instant};

use git2::{Oid, Repository, RepositoryInitOptions};
use serde::{Deserialize, Serialize};
use sha2::{Digest, Sha256};
use warren_disk::atomic::{self, Durable};
use warren_disk::lock::Lock;
use warren_disk::{Dir, beneath};

use crate::MirrorError;
use crate::remote::{self, Advertised};
use crate::wire::Wire;

/// Refs of other RootDirs' snapshots: never a part of a mirror, so no fork sees them.
pub(crate) const SNAPSHOT_HEADS: &str = "refs/heads/vance/suspend/";

const REPOSITORY: &str = "upstream.git";
const LOCK: &str = "lock";
const MARKER: &str = "mirror.json";
const FORMAT: u32 = 1;

/// Largest marker in bytes: every ref may have a long name.
const MARKER_BYTES_MAX: u64 = 64 << 20;

/// How often a mirror that others keep replacing is looked at.
const ATTEMPTS: u32 = 3;

/// Written last: a mirror without it is not complete.
#[derive(Debug, Serialize, Deserialize)]
struct Marker {
    format: u32,
    url: String,
    upstream: Advertised,
}

/// One mirror's place.
#[derive(Debug)]
pub(crate) struct Mirror {
    dir: Dir,
    path: PathBuf,
}

/// A complete mirror that nobody changes while this lives.
#[derive(Debug)]
pub(crate) struct Held {
    _lock: Lock,
    /// Path of the bare repository.
    pub(crate) path: PathBuf,
    /// The upstream's branches and tags.
    pub(crate) upstream: Advertised,
}

/// Folder name of a mirror.
pub(crate) fn key(tenant: &str, url: &str, alias: Option<&str>) -> String {
    let mut hash = Sha256::new();
    for part in [Some(tenant), Some(url), alias] {
        // The length in front keeps parts apart; none is not the empty text.
        let length = part.map_or(u64::MAX, |part| part.len() as u64);
        hash.update(length.to_be_bytes());
        hash.update(part.unwrap_or_default());
    }
    hash.finalize()
        .iter()
        .map(|byte| format!("{byte:02x}"))
        .collect()
}

/// What of a remote's refs belongs into its mirror.
pub(crate) fn mirrored(advertised: &Advertised) -> Advertised {
    let wanted = |name: &str| {
        (name.starts_with("refs/heads/") && !name.starts_with(SNAPSHOT_HEADS))
            || name.starts_with("refs/tags/")
    };
    Advertised {
        refs: advertised
            .refs
            .iter()
            .filter(|(name, _)| wanted(name))
            .map(|(name, id)| (name.clone(), id.clone()))
            .collect(),
        head: advertised.head.clone().filter(|head| wanted(head)),
    }
}

/// Refspecs that download what [`mirrored`] keeps.
pub(crate) fn refspecs(wanted: &Advertised) -> Vec<String> {
    let mut specs = Vec::new();
    for space in ["heads", "tags"] {
        let prefix = format!("refs/{space}/");
        if wanted.refs.keys().any(|name| name.starts_with(&prefix)) {
            specs.push(format!("+{prefix}*:{prefix}*"));
        }
    }
    if !specs.is_empty() {
        specs.push(format!("^{SNAPSHOT_HEADS}*"));
    }
    specs
}

/// Makes a bare repository of ours at a path that does not exist.
pub(crate) fn make_bare(path: &Path) -> Result<Repository, MirrorError> {
    let failed = |error| MirrorError::git("make a repository of our own", error);
    let mut options = RepositoryInitOptions::new();
    options
        .bare(true)
        .no_reinit(true)
        .external_template(false)
        .initial_head("main");
    let repo = Repository::init_opts(path, &options).map_err(failed)?;
    let mut config = repo.config().map_err(failed)?;
    // `Remote::connect_auth` takes the choice from here.
    config
        .set_str("http.followRedirects", "false")
        .map_err(failed)?;
    config
        .set_bool("core.logAllRefUpdates", false)
        .map_err(failed)?;
    Ok(repo)
}

impl Mirror {
    /// Opens a mirror's place below `mirrors`, which lies at `path`; makes it when missing.
    pub(crate) fn open(mirrors: &Dir, path: &Path, key: &str) -> Result<Self, MirrorError> {
        let failed = |error| MirrorError::io("open the mirror's folder", error);
        match mirrors.create_dir(key) {
            Err(error) if error.kind() != std::io::ErrorKind::AlreadyExists => {
                return Err(failed(error));
            }
            _ => {}
        }
        Ok(Self {
            dir: beneath::open_dir(mirrors, Path::new(key)).map_err(failed)?,
            path: path.join(key),
        })
    }

    /// Its folder, for a rule that lets work in.
    pub(crate) fn dir(&self) -> &Dir {
        &self.dir
    }

    fn repository(&self) -> PathBuf {
        self.path.join(REPOSITORY)
    }

    /// Brings the mirror up to what the remote has now and holds it.
    ///
    /// When nothing has changed, only the refs are listed.
    pub(crate) fn refresh(&self, wire: &Rc<Wire>, wait: Wait) -> Result<Held, MirrorError> {
        if let Some(held) = self.hold_if_current(wire, wait)? {
            return Ok(held);
        }
        self.renew(wire, wait)
    }

    /// As [`Mirror::refresh`], for a caller that knows that something has changed.
    pub(crate) fn renew(&self, wire: &Rc<Wire>, wait: Wait) -> Result<Held, MirrorError> {
        for _ in 0..ATTEMPTS {
            let lock = Lock::exclusive(&self.dir, LOCK, wait.left())?;
            self.update(wire)?;
            drop(lock);
            if let Some(held) = self.hold(wait)? {
                return Ok(held);
            }
        }
        Err(MirrorError::Locked(
            "the mirror keeps being replaced".to_owned(),
        ))
    }

    /// Marks the mirror as not complete, so that the next refresh makes it anew.
    pub(crate) fn distrust(&self, wait: Wait) -> Result<(), MirrorError> {
        let _lock = Lock::exclusive(&self.dir, LOCK, wait.left())?;
        self.forget()
    }

    fn hold_if_current(&self, wire: &Rc<Wire>, wait: Wait) -> Result<Option<Held>, MirrorError> {
        let Some(held) = self.hold(wait)? else {
            return Ok(None);
        };
        let Some(repo) = open_intact(&held.path, &held.upstream) else {
            return Ok(None);
        };
        let now = mirrored(&remote::list(&repo, wire)?);
        Ok((now == held.upstream).then_some(held))
    }

    /// Holds the mirror as it is; none: it is not complete.
    pub(crate) fn hold(&self, wait: Wait) -> Result<Option<Held>, MirrorError> {
        let lock = Lock::shared(&self.dir, LOCK, wait.left())?;
        Ok(self.marker()?.map(|marker| Held {
            _lock: lock,
            path: self.repository(),
            upstream: marker.upstream,
        }))
    }

    fn marker(&self) -> Result<Option<Marker>, MirrorError> {
        use std::io::Read;
        let file = match self.dir.open(MARKER) {
            Ok(file) => file,
            Err(error) if error.kind() == std::io::ErrorKind::NotFound => return Ok(None),
            Err(error) => return Err(MirrorError::io("read the mirror's marker", error)),
        };
        let mut bytes = Vec::new();
        file.take(MARKER_BYTES_MAX)
            .read_to_end(&mut bytes)
            .map_err(|error| MirrorError::io("read the mirror's marker", error))?;
        // A marker that cannot be read marks nothing.
        let marker = serde_json::from_slice::<Marker>(&bytes).ok();
        Ok(marker.filter(|marker| marker.format == FORMAT))
    }

    fn forget(&self) -> Result<(), MirrorError> {
        match self.dir.remove_file(MARKER) {
            Err(error) if error.kind() != std::io::ErrorKind::NotFound => {
                Err(MirrorError::io("take away the mirror's marker", error))
            }
            _ => Ok(()),
        }
    }

    /// Fetches; a mirror that turns out to be broken is made anew. Under the exclusive lock.
    fn update(&self, wire: &Rc<Wire>) -> Result<(), MirrorError> {
        if let Some(marker) = self.marker()?
            && let Some(repo) = open_intact(&self.repository(), &marker.upstream)
        {
            self.sweep()?;
            match self.fetch(&repo, wire, Some(&marker.upstream)) {
                Err(MirrorError::Io { doing, source }) => {
                    tracing::warn!(mirror = %self.path.display(), doing, %source, "mirror is broken; made anew");
                }
                Err(MirrorError::Locked(name)) => {
                    tracing::warn!(mirror = %self.path.display(), name, "stale lock in a mirror; made anew");
                }
                result => return result,
            }
        }
        self.forget()?;
        warren_disk::remove::remove_tree(&self.dir, REPOSITORY).map_err(|error| {
            MirrorError::Io {
                doing: "take away a broken mirror".to_owned(),
                source: error.into(),
            }
        })?;
        let repo = make_bare(&self.repository())?;
        self.fetch(&repo, wire, None)
    }

    /// Takes away what fetches that were killed left behind. Under the exclusive lock.
    fn sweep(&self) -> Result<(), MirrorError> {
        let failed = |error| MirrorError::io("sweep the mirror", error);
        let repo = beneath::open_dir(&self.dir, Path::new(REPOSITORY)).map_err(failed)?;
        for dir in [&self.dir, &repo] {
            atomic::sweep(dir, Duration::ZERO).map_err(failed)?;
        }
        let packs = Path::new(REPOSITORY).join("objects/pack");
        let packs = beneath::open_dir(&self.dir, &packs).map_err(failed)?;
        for entry in packs.entries().map_err(failed)? {
            let name = entry.map_err(failed)?.file_name();
            if !name.as_encoded_bytes().starts_with(b"pack-") {
                packs.remove_file(&name).map_err(failed)?;
            }
        }
        Ok(())
    }

    fn fetch(
        &self,
        repo: &Repository,
        wire: &Rc<Wire>,
        before: Option<&Advertised>,
    ) -> Result<(), MirrorError> {
        let advertised = remote::download(repo, wire, |advertised| {
            let wanted = mirrored(advertised);
            if Some(&wanted) == before {
                return Ok(Vec::new());
            }
            Ok(refspecs(&wanted))
        })?;
        let wanted = mirrored(&advertised);
        if Some(&wanted) == before {
            return Ok(());
        }
        write_refs(repo, &wanted)?;
        let marker = Marker {
            format: FORMAT,
            url: wire.url(),
            upstream: wanted,
        };
        let bytes = serde_json::to_vec(&marker).map_err(|error| MirrorError::Io {
            doing: "write the mirror's marker".to_owned(),
            source: error.into(),
        })?;
        atomic::write(&self.dir, MARKER, &bytes, Durable::Yes)
            .map_err(|error| MirrorError::io("write the mirror's marker", error))
    }
}

/// Opens a mirror unless it is visibly broken.
fn open_intact(path: &Path, upstream: &Advertised) -> Option<Repository> {
    let repo = Repository::open_bare(path).ok()?;
    check_tips(&repo, upstream).ok()?;
    Some(repo)
}

/// Checks that the objects that refs point at are there: a remote may show more than it gives, and
/// a mirror may have lost a pack.
fn check_tips(repo: &Repository, upstream: &Advertised) -> Result<(), MirrorError> {
    let failed = |error| MirrorError::git("look for what was fetched", error);
    let odb = repo.odb().map_err(failed)?;
    for id in upstream.refs.values() {
        odb.read_header(Oid::from_str(id).map_err(failed)?)
            .map_err(failed)?;
    }
    Ok(())
}

/// Makes the refs of a repository of ours those of the remote, in one file: they keep objects and
/// say what need not be fetched again. Nobody else writes refs there.
pub(crate) fn write_refs(repo: &Repository, wanted: &Advertised) -> Result<(), MirrorError> {
    check_tips(repo, wanted)?;
    let lines: String = wanted
        .refs
        .iter()
        .map(|(name, id)| format!("{id} {name}\n"))
        .collect();
    let dir = warren_disk::open_root(repo.path())
        .map_err(|error| MirrorError::io("open a repository of our own", error))?;
    atomic::write(&dir, "packed-refs", lines.as_bytes(), Durable::No)
        .map_err(|error| MirrorError::io("write the refs of the mirror", error))
}

/// How long a caller may wait for a lock.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Wait(pub(crate) Instant);

impl Wait {
    fn left(self) -> Duration {
        self.0.saturating_duration_since(Instant::now())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn tenant_url_and_alias_all_make_the_key() {
        let keys = [
            key("t", "https://h/a", None),
            key("u", "https://h/a", None),
            key("t", "https://h/b", None),
            key("t", "https://h/a", Some("")),
            key("t", "https://h/a", Some("x")),
            key("thttps://h/a", "", None),
        ];
        for (at, one) in keys.iter().enumerate() {
            assert_eq!(one.len(), 64);
            assert!(!keys[at + 1..].contains(one));
        }
    }

    #[test]
    fn snapshots_of_others_are_not_mirrored() {
        let names = [
            "refs/heads/main",
            "refs/heads/vance/suspend/x",
            "refs/heads/vance/other",
            "refs/tags/v1",
            "refs/pull/1/head",
            "refs/notes/commits",
        ];
        let advertised = Advertised {
            refs: names
                .iter()
                .map(|name| ((*name).to_owned(), "1".repeat(40)))
                .collect(),
            head: Some("refs/heads/vance/suspend/x".to_owned()),
        };
        let kept = mirrored(&advertised);
        assert_eq!(
            kept.refs.keys().collect::<Vec<_>>(),
            ["refs/heads/main", "refs/heads/vance/other", "refs/tags/v1"]
        );
        assert_eq!(kept.head, None);
        assert_eq!(refspecs(&Advertised::default()), Vec::<String>::new());
    }
}
