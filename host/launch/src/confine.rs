//! What a confined child is started with.

use std::os::fd::OwnedFd;
use std::path::PathBuf;

use rustix::io::Errno;
use rustix::process::{Pid, geteuid};
use warren_confine::{
    Access, Cgroup, CgroupLimits, ConfineError, PathRules, SeccompProgram, Sockets,
};
use warren_launch::{ChildLimits, Confinement, Identity, Layer, PROXY_ADDRESS, Stage};

use crate::places::{Identified, Place, Places, Use, path_of};
use crate::receive::Request;
use crate::report::Failure;

/// The confinement of a request, looked up while the host's files are still in sight.
pub(crate) struct Plan {
    pub(crate) identity: Option<Identity>,
    pub(crate) places: Places,
    pub(crate) temporary_bytes: u64,
    pub(crate) proxy: bool,
    pub(crate) cgroup: Option<Cgroup>,
    pub(crate) entrances: Vec<std::fs::File>,
    /// The program when it is pinned: to be found again in the new root.
    pub(crate) program: Option<(PathBuf, Identified)>,
}

/// For `map_err`: this layer could not be put in force.
pub(crate) fn missing(layer: Layer) -> impl Fn(Errno) -> Failure {
    Failure::at(Stage::Confinement(layer))
}

pub(crate) fn refused(error: &ConfineError) -> Failure {
    let mut cause: &(dyn std::error::Error + 'static) = error;
    while let Some(next) = cause.source() {
        cause = next;
    }
    let found = cause.downcast_ref::<std::io::Error>();
    Failure {
        stage: Stage::Confinement(error.layer()),
        errno: found.and_then(std::io::Error::raw_os_error).unwrap_or(0),
    }
}

impl Plan {
    pub(crate) fn new(request: &Request) -> Result<Option<Self>, Failure> {
        let Some(confinement) = &request.spec.confinement else {
            return Ok(None);
        };
        check_identity(confinement)?;
        let places = Places::new(&request.directory, &request.writable, &confinement.readable)
            .map_err(missing(Layer::PrivateRoot))?;
        let (cgroup, entrances) = cgroup(request.spec.limits)?;
        Ok(Some(Self {
            identity: confinement.identity,
            places,
            temporary_bytes: confinement.temporary_bytes,
            proxy: confinement.proxy,
            cgroup,
            entrances,
            program: pinned(request.program.as_ref())?,
        }))
    }

    /// Which files and ports the child reaches.
    pub(crate) fn rules(&self, private_root: bool) -> Result<PathRules, ConfineError> {
        let mut rules = PathRules::new();
        for (path, place) in &self.places.places {
            let access = match place {
                Place::Link(_) => continue,
                // All of its own `/etc` is for it.
                Place::Host { usage, .. } => match usage {
                    Use::Read if private_root => continue,
                    Use::Read => Access::Read,
                    Use::ReadExecute => Access::ReadExecute,
                    Use::Write => Access::WriteExecute,
                    Use::Device => Access::Device,
                },
            };
            rules.allow_path(path, access)?;
        }
        if private_root {
            for (path, access) in [
                ("/tmp", Access::WriteExecute),
                ("/dev/shm", Access::Write),
                ("/proc", Access::Read),
                ("/etc", Access::Read),
            ] {
                rules.allow_path(path.as_ref(), access)?;
            }
        }
        Ok(rules)
    }

    pub(crate) fn ports(&self) -> Vec<u16> {
        self.proxy
            .then(|| PROXY_ADDRESS.port())
            .into_iter()
            .collect()
    }
}

/// Without a file system or a network of its own, sockets lead to the host's.
pub(crate) fn seccomp(private_root: bool, network: bool) -> Result<SeccompProgram, ConfineError> {
    SeccompProgram::new(Sockets {
        unix: private_root,
        inet: network,
    })
}

/// Puts a process, and what it forks from now on, into the groups.
pub(crate) fn join(entrances: &[std::fs::File], process: Pid) -> Result<(), Errno> {
    let number = process.as_raw_pid().to_string();
    entrances
        .iter()
        .try_for_each(|entrance| rustix::io::write(entrance, number.as_bytes()).map(drop))
}

/// Root is confined by no user, and nobody else can become one.
fn check_identity(confinement: &Confinement) -> Result<(), Failure> {
    let fits = match confinement.identity {
        None => !geteuid().is_root(),
        Some(Identity { uid, gid }) => geteuid().is_root() && uid != 0 && gid != 0,
    };
    let failed = missing(Layer::ProjectUser);
    if fits {
        Ok(())
    } else {
        Err(failed(Errno::INVAL))
    }
}

fn cgroup(limits: ChildLimits) -> Result<(Option<Cgroup>, Vec<std::fs::File>), Failure> {
    let limits = CgroupLimits {
        memory_bytes: limits.memory_bytes,
        // The supervisor is one of them.
        processes: limits.processes.map(|count| count.saturating_add(1)),
    };
    let failed = |error: std::io::Error| {
        missing(Layer::Cgroup)(Errno::from_io_error(&error).unwrap_or(Errno::IO))
    };
    let cgroup = Cgroup::new(limits).map_err(failed)?;
    let entrances = cgroup.as_ref().map(Cgroup::entrances);
    let entrances = entrances.transpose().map_err(failed)?;
    Ok((cgroup, entrances.unwrap_or_default()))
}

fn pinned(program: Option<&OwnedFd>) -> Result<Option<(PathBuf, Identified)>, Failure> {
    let Some(program) = program else {
        return Ok(None);
    };
    let find = || {
        Ok((
            path_of(std::os::fd::AsFd::as_fd(program))?,
            Identified::new(program)?,
        ))
    };
    find().map(Some).map_err(Failure::at(Stage::Execute))
}
