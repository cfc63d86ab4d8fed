//! `process`: programs in the RootDir, as the grant lists them.

use std::path::{Path, PathBuf};
use std::time::Duration;

use cap_std::fs::Dir;
use tokio::time::Instant;
use warren_disk::scratch::Scratch;
use warren_process::{
    Command as Child, Confinement, Environment, Launcher, OutputCaps, ProcessError as Failure,
    Program as File,
};
use wasmtime::component::{HasSelf, Linker};

use crate::plugin::bindings::warren::handler::process::{
    Command, Host, Output, Program, add_to_linker,
};
use crate::plugin::bindings::warren::handler::types::ProcessError;
use crate::plugin::grants::{Grants, ProcessGrant};
use crate::plugin::state::CallState;

/// Bytes kept of each output stream: both must fit into the guest in one call.
const OUTPUT_BYTES: u32 = 256 * 1024;

/// The children's folder in a scratch folder: the lock beside it is out of their way.
const HOME: &str = "home";

/// Most arguments and variables of one command.
const ARGUMENTS_MAX: usize = 4096;

pub(crate) fn granted(grants: &Grants) -> bool {
    grants.process.is_some()
}

pub(crate) fn link(linker: &mut Linker<CallState>) -> wasmtime::Result<()> {
    add_to_linker::<_, HasSelf<CallState>>(linker, |state| state)
}

/// What one call may run, and where.
pub(crate) struct ProcessCall {
    launcher: Launcher,
    grant: ProcessGrant,
    root: Dir,
    scratch: PathBuf,
    /// `HOME` and `TMPDIR` of the call's children: made for the first, gone with the call.
    home: Option<Scratch>,
    deadline: Instant,
}

impl ProcessCall {
    pub(crate) fn new(
        launcher: Launcher,
        grant: ProcessGrant,
        root: Dir,
        scratch: PathBuf,
        deadline: Instant,
    ) -> Self {
        Self {
            launcher,
            grant,
            root,
            scratch,
            home: None,
            deadline,
        }
    }

    /// The program, if the grant lists it and the file is what it should be.
    fn check(&self, program: &Program) -> Result<File, Failure> {
        let grant = &self.grant;
        match program {
            Program::Alias(alias) => grant.programs.resolve_alias(alias),
            Program::Path(path) => grant.programs.resolve_path(Path::new(path)),
            Program::InRoot(path) => {
                grant
                    .programs
                    .resolve_in_root(&self.root, path, &grant.in_root)
            }
        }
    }

    /// The time that a command gets: what it asks for, the grant and the call allow.
    fn time(&self, asked_ms: Option<u64>) -> Duration {
        let left = self.deadline.saturating_duration_since(Instant::now());
        let limit = self.grant.wall_max.min(left);
        asked_ms.map_or(limit, |asked| limit.min(Duration::from_millis(asked)))
    }

    fn home(&mut self) -> Result<PathBuf, Failure> {
        let scratch = match &self.home {
            Some(made) => made,
            None => self.home.insert(make_scratch(&self.scratch)?),
        };
        Ok(scratch.path().join(HOME))
    }

    async fn run(&mut self, command: Command) -> Result<Output, Failure> {
        if command.arguments.len() + command.environment.len() > ARGUMENTS_MAX {
            return Err(Failure::InvalidArgument(format!(
                "there are more than {ARGUMENTS_MAX} arguments and variables"
            )));
        }
        let program = self.check(&command.program)?;
        let home = self.home()?;
        let environment =
            Environment::new(&home, &home)?.with(command.environment, &self.grant.environment)?;
        let child = Child {
            program: &program,
            arguments: command.arguments,
            environment,
            directory: &self.root,
            stdin: None,
            deadline: self.time(command.timeout_ms),
            output_caps: OutputCaps {
                stdout_bytes: OUTPUT_BYTES,
                stderr_bytes: OUTPUT_BYTES,
            },
            limits: self.grant.limits,
            confinement: Confinement::Unconfined,
        };
        let output = self.launcher.run(child, None).await?;
        Ok(Output {
            exit_code: output.exit_code,
            stdout: output.stdout.text(),
            stderr: output.stderr.text(),
            truncated: output.stdout.truncated() || output.stderr.truncated(),
        })
    }
}

fn make_scratch(path: &Path) -> Result<Scratch, Failure> {
    let failed = |source| Failure::Failed {
        what: "the scratch directory could not be made".to_owned(),
        source: Some(source),
    };
    let parent = warren_disk::open_root(path).map_err(failed)?;
    let made = Scratch::new(&parent, path).map_err(|error| failed(std::io::Error::other(error)))?;
    std::fs::create_dir(made.path().join(HOME)).map_err(failed)?;
    Ok(made)
}

impl Host for CallState {
    async fn find(&mut self, program: Program) -> Result<Option<String>, ProcessError> {
        let Some(call) = &self.process else {
            return Err(unavailable());
        };
        // Looking reads the disk a few times; the executor may wait that long.
        match call.check(&program) {
            Ok(file) => Ok(Some(file.path().to_owned())),
            Err(Failure::NotFound(_) | Failure::Denied(_)) => Ok(None),
            Err(error) => Err(to_guest(error)),
        }
    }

    async fn run(&mut self, command: Command) -> Result<Output, ProcessError> {
        match &mut self.process {
            Some(call) => call.run(command).await.map_err(to_guest),
            None => Err(unavailable()),
        }
    }
}

/// In `describe`, in a dry run, and on a host without a launcher.
fn unavailable() -> ProcessError {
    ProcessError::Denied("programs in this call".to_owned())
}

fn to_guest(error: Failure) -> ProcessError {
    match error {
        Failure::Denied(what) => ProcessError::Denied(what),
        Failure::InvalidArgument(what) => ProcessError::InvalidArgument(what),
        Failure::NotFound(name) => ProcessError::NotFound(name),
        Failure::Timeout { tail } => ProcessError::Timeout(tail),
        Failure::Killed { signal, .. } => ProcessError::Killed(signal),
        Failure::OutOfMemory { .. }
        | Failure::Confinement { .. }
        | Failure::NoLauncher(_)
        | Failure::Failed { .. } => {
            tracing::warn!(%error, "a child of a handler could not be started");
            ProcessError::Failed(error.to_string())
        }
    }
}
