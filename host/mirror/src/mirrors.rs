//! The host's mirrors and what may be done with them.

use std::path::{Path, PathBuf};
use std::sync::Arc;

use rustix::fs::Mode;
use rustix::io::Errno;
use warren_disk::budget::{Budget, Quota};
use warren_disk::{Dir, beneath};
use warren_repo::Exclude;

use crate::session::{Session, SessionSpec};
use crate::{CredentialStore, Limits, MirrorError, UrlPolicy, wire};

/// What [`Mirrors`] are made of.
#[derive(Debug)]
pub struct MirrorsSpec {
    /// The host's state directory; `mirrors/` and `scratch/` are made in it.
    pub state: Dir,
    /// Its absolute path: libgit2 takes no handle.
    pub state_path: PathBuf,
    /// Which remotes may be used.
    pub policy: UrlPolicy,
    /// Credentials by alias.
    pub credentials: CredentialStore,
    /// File with the keys of ssh hosts, in OpenSSH's format; may be missing.
    pub known_hosts: PathBuf,
    /// File with certificates to trust for https beside the system's, in PEM; holds for the whole
    /// process.
    pub ca_file: Option<PathBuf>,
    /// Limits of work on the network.
    pub limits: Limits,
    /// Limits of work on a RootDir.
    pub repo_limits: warren_repo::Limits,
    /// What no snapshot and no commit may hold.
    pub exclude: Exclude,
    /// How full the disk of the state directory may get; none: as full as it is.
    pub disk: Option<warren_disk::space::Limits>,
}

/// The host's mirrors. Cheap to clone; work happens in [`Session`]s.
#[derive(Debug, Clone)]
pub struct Mirrors(pub(crate) Arc<Shared>);

#[derive(Debug)]
pub(crate) struct Shared {
    pub(crate) mirrors: Dir,
    pub(crate) mirrors_path: PathBuf,
    pub(crate) scratch: Dir,
    pub(crate) scratch_path: PathBuf,
    pub(crate) policy: UrlPolicy,
    pub(crate) credentials: CredentialStore,
    pub(crate) known_hosts: PathBuf,
    pub(crate) limits: Limits,
    pub(crate) repo_limits: warren_repo::Limits,
    pub(crate) exclude: Exclude,
    pub(crate) ca_file: Option<PathBuf>,
    /// Room for mirrors and snapshots.
    pub(crate) store: Budget,
}

impl Mirrors {
    /// Opens the mirrors in a state directory and sets libgit2 up for the process: no config from
    /// outside, no socket that the policy has not judged.
    ///
    /// # Errors
    /// When a directory cannot be made, or libgit2 refuses.
    pub fn open(spec: MirrorsSpec) -> Result<Self, MirrorError> {
        warren_repo::setup::init()?;
        wire::register(spec.limits.timeout_ms)?;
        if let Some(file) = &spec.ca_file {
            wire::trust(file)?;
        }
        let open = |name: &str| {
            // Whoever may read the state directory need not read private repositories.
            match rustix::fs::mkdirat(&spec.state, name, Mode::RWXU) {
                Err(error) if error != Errno::EXIST => Err(error.into()),
                _ => beneath::open_dir(&spec.state, Path::new(name)),
            }
            .map_err(|error| {
                MirrorError::io(format!("open `{name}` of the state directory"), error)
            })
        };
        Ok(Self(Arc::new(Shared {
            mirrors: open("mirrors")?,
            mirrors_path: spec.state_path.join("mirrors"),
            scratch: open("scratch")?,
            scratch_path: spec.state_path.join("scratch"),
            policy: spec.policy,
            credentials: spec.credentials,
            known_hosts: spec.known_hosts,
            limits: spec.limits,
            repo_limits: spec.repo_limits,
            exclude: spec.exclude,
            ca_file: spec.ca_file,
            store: Budget::new(spec.state, Quota::default(), spec.disk),
        })))
    }

    /// Checks a URL against the policy and gives its canonical form. Asks nobody.
    ///
    /// # Errors
    /// [`MirrorError::InvalidArgument`] or [`MirrorError::Denied`].
    pub fn check_url(&self, url: &str) -> Result<String, MirrorError> {
        self.0.policy.check(url).map(|url| url.to_string())
    }

    /// Begins the git work of one operation on one RootDir.
    pub fn session(&self, spec: SessionSpec) -> Session {
        Session::new(Arc::clone(&self.0), spec)
    }
}
