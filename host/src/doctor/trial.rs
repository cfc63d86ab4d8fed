//! The things themselves, tried.

use std::io;
use std::path::{Path, PathBuf};
use std::time::Duration;

use warren_confine::{ConfineError, LayerSet, PathRules, restrict_thread};
use warren_disk::scratch::Scratch;
use warren_process::{
    ChildLimits, Command, Confined, Confinement, Environment, Identity, Launcher, OutputCaps,
    ProcessError, Programs, ProxyStart,
};

use crate::plugin::UidRange;

/// What is started: it does nothing, and every system has it.
const PROGRAM: &str = "true";

/// Where it is looked for.
const SEARCH: [&str; 2] = ["/usr/bin", "/bin"];

/// Longer than starting it takes.
const PATIENCE: Duration = Duration::from_secs(30);

/// Restricts a thread as the git work is.
pub(super) fn thread() -> Result<(), ConfineError> {
    let restricted = std::thread::spawn(|| restrict_thread(&PathRules::new(), &[]));
    match restricted.join() {
        Ok(outcome) => outcome,
        Err(panic) => std::panic::resume_unwind(panic),
    }
}

/// Whom a child runs as: nobody else when the host is not root.
pub(super) fn identity(uids: Option<UidRange>) -> Option<Identity> {
    let is_root = rustix::process::geteuid().is_root();
    uids.filter(|_| is_root).map(|uids| Identity {
        uid: uids.first,
        gid: uids.first,
    })
}

/// Starts children.
pub(super) struct Child {
    pub(super) launcher: Launcher,
    pub(super) state: PathBuf,
}

impl Child {
    /// Starts one that is confined; what was in force.
    pub(super) async fn run(
        &self,
        identity: Option<Identity>,
        proxy: bool,
    ) -> Result<LayerSet, ProcessError> {
        let failed = |source| ProcessError::Failed {
            what: "a folder for the trial could not be made".to_owned(),
            source: Some(source),
        };
        let path = self.state.join("scratch");
        let parent = warren_disk::open_root(&path).map_err(failed)?;
        let scratch =
            Scratch::new(&parent, &path).map_err(|error| failed(io::Error::other(error)))?;
        let folder = scratch.path().join("trial");
        std::fs::create_dir(&folder).map_err(failed)?;
        if let Some(identity) = identity {
            let (uid, gid) = (Some(identity.uid), Some(identity.gid));
            std::os::unix::fs::chown(&folder, uid, gid).map_err(failed)?;
        }
        let directory = warren_disk::open_root(&folder).map_err(failed)?;
        let mut programs = Programs::new(&SEARCH.map(PathBuf::from), &[])?;
        programs.alias(PROGRAM, &[PROGRAM]);
        let program = programs.resolve_alias(PROGRAM)?;
        let output = self
            .launcher
            .run(
                Command {
                    program: &program,
                    arguments: Vec::new(),
                    environment: Environment::new(&folder, Path::new("/tmp"))?,
                    directory: &directory,
                    stdin: None,
                    deadline: PATIENCE,
                    output_caps: OutputCaps::default(),
                    limits: ChildLimits::default(),
                    confinement: Confinement::Confined(Confined {
                        identity,
                        proxy: proxy.then(|| ProxyStart::new(Ok)),
                        ..Confined::default()
                    }),
                },
                None,
            )
            .await?;
        match output.exit_code {
            0 => Ok(output.isolation),
            code => Err(ProcessError::Failed {
                what: format!("`{PROGRAM}` exited with {code}: {}", output.stderr.text()),
                source: None,
            }),
        }
    }
}
