//! Which places a confined child may use, and how: its root's, the system's and those in the request.

use std::collections::BTreeMap;
use std::fs;
use std::os::fd::{AsFd, AsRawFd, BorrowedFd, OwnedFd};
use std::path::{Path, PathBuf};

use rustix::fs::{CWD, Mode, OFlags, Stat, fstat, openat};
use rustix::io::Errno;

/// The system's programs and libraries.
const SYSTEM: [&str; 7] = [
    "/usr", "/bin", "/sbin", "/lib", "/lib32", "/lib64", "/libx32",
];

/// What programs read of `/etc`: how libraries are found, names of services and time zones, whom to
/// trust. Nothing of people, passwords or this machine's services.
const SETTINGS: [&str; 17] = [
    "/etc/alternatives",
    "/etc/debian_version",
    "/etc/host.conf",
    "/etc/ld.so.cache",
    "/etc/localtime",
    "/etc/mime.types",
    "/etc/nsswitch.conf",
    "/etc/os-release",
    "/etc/pki/ca-trust/extracted",
    "/etc/pki/tls/certs",
    "/etc/pki/tls/cert.pem",
    "/etc/protocols",
    "/etc/services",
    "/etc/ssl/cert.pem",
    "/etc/ssl/certs",
    "/etc/ssl/openssl.cnf",
    "/etc/timezone",
];

/// Folders of `/etc` in which an interpreter of the system keeps a part of itself.
const SETTINGS_OF_INTERPRETERS: &str = "python";

/// Devices that lead nowhere.
pub(crate) const DEVICES: [&str; 5] = [
    "/dev/null",
    "/dev/zero",
    "/dev/full",
    "/dev/random",
    "/dev/urandom",
];

/// How a place may be used.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Use {
    Read,
    ReadExecute,
    Write,
    Device,
}

/// A place by the path that it has for the child.
#[derive(Debug)]
pub(crate) enum Place {
    /// Something of the host's, at its own path: this file, or whatever is there.
    Host {
        file: Option<Identified>,
        usage: Use,
    },
    /// A link.
    Link(PathBuf),
}

/// What was open when the request came, to be recognised when it is found again by path.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Identified {
    device: u64,
    inode: u64,
}

impl From<Stat> for Identified {
    #[allow(
        clippy::unnecessary_cast,
        reason = "the types differ between architectures"
    )]
    fn from(stat: Stat) -> Self {
        Self {
            device: stat.st_dev as u64,
            inode: stat.st_ino as u64,
        }
    }
}

impl Identified {
    pub(crate) fn new(file: impl AsFd) -> Result<Self, Errno> {
        fstat(file).map(Self::from)
    }

    /// Opens what is at a path, if it is still the same.
    pub(crate) fn open(self, path: &Path) -> Result<OwnedFd, Errno> {
        let file = open(path)?;
        self.check(&file)?;
        Ok(file)
    }

    /// Refuses another file.
    pub(crate) fn check(self, file: &OwnedFd) -> Result<(), Errno> {
        if Self::new(file)? == self {
            Ok(())
        } else {
            Err(Errno::STALE)
        }
    }
}

/// All places by path, those around others first.
#[derive(Debug)]
pub(crate) struct Places {
    /// The working directory.
    pub(crate) root: PathBuf,
    pub(crate) root_file: Identified,
    pub(crate) places: BTreeMap<PathBuf, Place>,
}

impl Places {
    /// Looks them all up.
    pub(crate) fn new(
        directory: &OwnedFd,
        writable: &[OwnedFd],
        readable: &[PathBuf],
    ) -> Result<Self, Errno> {
        let root = path_of(directory.as_fd())?;
        let mut found = Self {
            root_file: Identified::new(directory)?,
            places: BTreeMap::new(),
            root: root.clone(),
        };
        for path in SYSTEM {
            found.add_system(Path::new(path), Use::ReadExecute);
        }
        for path in SETTINGS
            .map(PathBuf::from)
            .into_iter()
            .chain(interpreters())
        {
            found.add_system(&path, Use::Read);
        }
        for path in DEVICES {
            found.add(Path::new(path), None, Use::Device);
        }
        for path in readable {
            found.add_readable(path)?;
        }
        for folder in std::iter::once(directory).chain(writable) {
            let path = path_of(folder.as_fd())?;
            found.refuse_around(&path)?;
            found.add(&path, Some(Identified::new(folder)?), Use::Write);
        }
        Ok(found)
    }

    fn add(&mut self, path: &Path, file: Option<Identified>, usage: Use) {
        self.places
            .insert(path.to_owned(), Place::Host { file, usage });
    }

    /// Something of the system's. Where it is a link into another of its folders, as where `/usr` is
    /// all there is, a link is enough.
    fn add_system(&mut self, path: &Path, usage: Use) {
        match fs::read_link(path) {
            Ok(target) if is_of_usr(&target) => {
                self.places.insert(path.to_owned(), Place::Link(target));
            }
            Ok(_) | Err(_) => self.add(path, None, usage),
        }
    }

    fn add_readable(&mut self, path: &Path) -> Result<(), Errno> {
        let real = path_of(open(path)?.as_fd())?;
        if !self.covers(&real) {
            self.add(&real, None, Use::ReadExecute);
        }
        if path != real && !self.covers(path) {
            self.places.insert(path.to_owned(), Place::Link(real));
        }
        Ok(())
    }

    /// Whether a path is at or below a place already.
    fn covers(&self, path: &Path) -> bool {
        let host = |at| matches!(self.places.get(at), Some(Place::Host { .. }));
        path.ancestors().any(host)
    }

    /// A place to read around one to write would show what lies beside that one: other roots.
    fn refuse_around(&self, path: &Path) -> Result<(), Errno> {
        let around = path
            .ancestors()
            .skip(1)
            .any(|at| self.places.contains_key(at));
        if around { Err(Errno::INVAL) } else { Ok(()) }
    }
}

fn interpreters() -> Vec<PathBuf> {
    let entries = fs::read_dir("/etc").into_iter().flatten().flatten();
    let named = |name: &std::ffi::OsStr| {
        let name = name.to_str();
        name.is_some_and(|name| name.starts_with(SETTINGS_OF_INTERPRETERS))
    };
    let found = entries.filter(|entry| named(&entry.file_name()));
    found.map(|entry| entry.path()).collect()
}

/// `usr/lib`, `/usr/lib` and, from `/etc`, `../usr/lib`.
fn is_of_usr(target: &Path) -> bool {
    ["usr", "/usr", "../usr"]
        .iter()
        .any(|usr| target.starts_with(usr))
}

/// Opens what a path leads to, as a place only.
pub(crate) fn open(path: &Path) -> Result<OwnedFd, Errno> {
    openat(CWD, path, OFlags::PATH | OFlags::CLOEXEC, Mode::empty())
}

/// The path of what is open.
pub(crate) fn path_of(file: BorrowedFd<'_>) -> Result<PathBuf, Errno> {
    let link = format!("/proc/self/fd/{}", file.as_raw_fd());
    let path =
        fs::read_link(link).map_err(|error| Errno::from_io_error(&error).unwrap_or(Errno::IO))?;
    // The kernel marks what was deleted at the end of the path.
    let deleted = path.as_os_str().as_encoded_bytes().ends_with(b" (deleted)");
    if deleted || !path.is_absolute() {
        return Err(Errno::NOENT);
    }
    Ok(path)
}
