use std::any::Any;
use std::fmt;
use std::io;
use std::net::TcpListener;
use std::path::PathBuf;

use cap_std::fs::Dir;
use warren_launch::{Identity, WRITABLE_MAX};

use crate::ProcessError;

/// Size of a child's `/tmp`, and of its `/dev/shm`, in bytes.
const TEMPORARY_BYTES: u64 = 256 * 1024 * 1024;

/// What a program may reach of the machine.
#[derive(Debug)]
pub enum Confinement<'a> {
    /// Its working directory and what is listed here.
    Confined(Confined<'a>),
    /// All that the host may.
    Unconfined,
}

/// What a confined program may reach beside its working directory, which it may write, and the
/// system's programs and libraries, which it may read and execute. It has a `/tmp`, a `/proc` and a
/// network of its own.
#[derive(Debug, Default)]
pub struct Confined<'a> {
    /// Whom it runs as; needed when the host is root. The working directory and the folders in
    /// `writable`, with all in them, are made its own first.
    pub identity: Option<Identity>,
    /// Folders that it may write, too, at the paths that they have for the host. At most four.
    pub writable: Vec<&'a Dir>,
    /// Folders and files that it may read and execute, by absolute path. What the granted
    /// programs need is added to these.
    pub readable: Vec<PathBuf>,
    /// Who serves its network; without, there is none.
    pub proxy: Option<ProxyStart>,
}

/// Serves the network of one program: called once, before the program starts, with the socket that
/// listens at [`PROXY_ADDRESS`](crate::PROXY_ADDRESS) in its network. What it returns is kept until
/// the program has ended and dropped then, also when the run is cancelled.
pub struct ProxyStart(Box<Serve>);

type Serve = dyn FnOnce(TcpListener) -> io::Result<Box<dyn Any + Send>> + Send;

impl ProxyStart {
    /// Serves so. The socket does not block.
    pub fn new<T: Any + Send>(
        serve: impl FnOnce(TcpListener) -> io::Result<T> + Send + 'static,
    ) -> Self {
        Self(Box::new(|socket| Ok(Box::new(serve(socket)?))))
    }

    pub(crate) fn serve(self, socket: TcpListener) -> io::Result<Box<dyn Any + Send>> {
        socket.set_nonblocking(true)?;
        (self.0)(socket)
    }
}

impl fmt::Debug for ProxyStart {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("ProxyStart")
    }
}

impl Confinement<'_> {
    pub(crate) fn check(&self) -> Result<(), ProcessError> {
        let Self::Confined(confined) = self else {
            return Ok(());
        };
        let refuse = |what: &str| Err(ProcessError::InvalidArgument(what.to_owned()));
        if confined.writable.len() > WRITABLE_MAX {
            return refuse("more than four folders are to be written");
        }
        if !confined.readable.iter().all(|path| path.is_absolute()) {
            return refuse("a folder to be read is not an absolute path");
        }
        Ok(())
    }

    /// Whom the program runs as.
    pub(crate) fn identity(&self) -> Option<Identity> {
        match self {
            Self::Confined(confined) => confined.identity,
            Self::Unconfined => None,
        }
    }

    /// Folders besides the working directory.
    pub(crate) fn writable(&self) -> impl Iterator<Item = &Dir> {
        let folders = match self {
            Self::Confined(confined) => confined.writable.as_slice(),
            Self::Unconfined => &[],
        };
        folders.iter().copied()
    }

    /// For the launcher. `program` is what the program itself needs to have readable.
    pub(crate) fn spec<'p>(
        &self,
        program: impl Iterator<Item = &'p PathBuf>,
    ) -> Option<warren_launch::Confinement> {
        let Self::Confined(confined) = self else {
            return None;
        };
        Some(warren_launch::Confinement {
            identity: confined.identity,
            writable: confined.writable.len() as u8,
            readable: confined
                .readable
                .iter()
                .cloned()
                .chain(program.cloned())
                .collect(),
            proxy: confined.proxy.is_some(),
            temporary_bytes: TEMPORARY_BYTES,
        })
    }

    pub(crate) fn take_proxy(&mut self) -> Option<ProxyStart> {
        match self {
            Self::Confined(confined) => confined.proxy.take(),
            Self::Unconfined => None,
        }
    }
}
