//! `process`: programs in the RootDir, as the grant lists them.

mod home;
mod network;
mod watch;

use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::Duration;

use cap_std::fs::Dir;
use tokio::time::Instant;
use warren_disk::budget::Budget;
use warren_egress::Connector;
use warren_process::{
    Command as Child, Confined, Confinement, Identities, Identity, Launcher, OutputCaps,
    ProcessError as Failure, Program as File,
};
use wasmtime::component::{HasSelf, Linker};

use crate::plugin::audit::process::{self as record, UNCONFINED};
use crate::plugin::audit::{End, Open, Trail, Unrecorded, Use};
use crate::plugin::bindings::warren::handler::process::{
    Command, Host, Output, Program, add_to_linker,
};
use crate::plugin::bindings::warren::handler::types::ProcessError;
use crate::plugin::grants::{Grants, ProcessGrant};
use crate::plugin::state::CallState;
use home::Home;
use watch::Watched;

/// Bytes kept of each output stream: both must fit into the guest in one call.
const OUTPUT_BYTES: u32 = 256 * 1024;

/// Most arguments and variables of one command.
const ARGUMENTS_MAX: usize = 4096;

pub(crate) fn granted(grants: &Grants) -> bool {
    grants.process.is_some()
}

pub(crate) fn link(linker: &mut Linker<CallState>) -> wasmtime::Result<()> {
    add_to_linker::<_, HasSelf<CallState>>(linker, |state| state)
}

/// What a call's children are given.
pub(crate) struct ProcessSpec {
    pub(crate) launcher: Launcher,
    pub(crate) grant: ProcessGrant,
    /// The RootDir.
    pub(crate) root: Dir,
    /// A directory of the host, for the children's own folder.
    pub(crate) scratch: PathBuf,
    /// Whom they run as, when the host is root.
    pub(crate) user: Option<ProjectUser>,
    /// What the RootDir may use of the disk.
    pub(crate) budget: Budget,
    /// Connects for them.
    pub(crate) connector: Connector,
    pub(crate) deadline: Instant,
}

/// The Project, and who knows its user.
pub(crate) struct ProjectUser {
    pub(crate) identities: Identities,
    pub(crate) tenant: String,
    pub(crate) project: String,
}

/// What one call may run, and where.
pub(crate) struct ProcessCall {
    spec: ProcessSpec,
    /// Made for the first child, gone with the call.
    home: Option<Arc<Home>>,
}

impl ProcessCall {
    pub(crate) fn new(spec: ProcessSpec) -> Self {
        Self { spec, home: None }
    }

    fn is_unconfined(&self) -> bool {
        self.spec.grant.unconfined
    }

    /// The program, if the grant lists it and the file is what it should be.
    fn check(&self, program: &Program) -> Result<File, Failure> {
        let grant = &self.spec.grant;
        match program {
            Program::Alias(alias) => grant.programs.resolve_alias(alias),
            Program::Path(path) => grant.programs.resolve_path(Path::new(path)),
            Program::InRoot(path) => {
                grant
                    .programs
                    .resolve_in_root(&self.spec.root, path, &grant.in_root)
            }
        }
    }

    /// The time that a command gets: what it asks for, the grant and the call allow.
    fn time(&self, asked_ms: Option<u64>) -> Duration {
        let left = self.spec.deadline.saturating_duration_since(Instant::now());
        let limit = self.spec.grant.wall_max.min(left);
        asked_ms.map_or(limit, |asked| limit.min(Duration::from_millis(asked)))
    }

    fn home(&mut self) -> Result<Arc<Home>, Failure> {
        let home = match &self.home {
            Some(made) => made,
            None => self.home.insert(Arc::new(Home::new(&self.spec.scratch)?)),
        };
        Ok(Arc::clone(home))
    }

    /// Whom children run as; none when the host is not root. Then it is the host's own user.
    fn identity(&self) -> Result<Option<Identity>, Failure> {
        let (Some(user), Some(range)) = (&self.spec.user, self.spec.grant.uids) else {
            return Ok(None);
        };
        let (tenant, project) = (&user.tenant, &user.project);
        let found = user
            .identities
            .of(tenant, project, range.first, range.count);
        found.map(Some)
    }

    async fn run(&mut self, command: Command, trail: Option<Trail>) -> Result<Output, Failure> {
        if command.arguments.len() + command.environment.len() > ARGUMENTS_MAX {
            return Err(Failure::InvalidArgument(format!(
                "there are more than {ARGUMENTS_MAX} arguments and variables"
            )));
        }
        let program = self.check(&command.program)?;
        let home = self.home()?;
        let (spec, grant) = (&self.spec, &self.spec.grant);
        let proxy = network::start(grant, &spec.connector, trail);
        let proxy_variables = proxy.as_ref().map(|_| network::variables());
        let environment = home
            .environment()?
            .with_own(grant.variables.iter().cloned())
            .with(command.environment, &grant.environment)?
            .with_own(proxy_variables.into_iter().flatten());
        let confinement = match grant.unconfined {
            true => Confinement::Unconfined,
            false => Confinement::Confined(Confined {
                identity: self.identity()?,
                writable: vec![home.dir()],
                readable: Vec::new(),
                proxy,
            }),
        };
        let child = Child {
            program: &program,
            arguments: command.arguments,
            environment,
            directory: &spec.root,
            stdin: None,
            deadline: self.time(command.timeout_ms),
            output_caps: OutputCaps {
                stdout_bytes: OUTPUT_BYTES,
                stderr_bytes: OUTPUT_BYTES,
            },
            limits: grant.limits,
            confinement,
        };
        let mut watched = Watched::new(spec.budget.clone(), &spec.root, &home)
            .map_err(failed("the RootDir could not be opened"))?;
        // The child and all that it started are killed when its future is dropped.
        let output = tokio::select! {
            output = spec.launcher.run(child, None) => output,
            over = watched.over() => return Err(over),
        };
        watched.settle().await?;
        let output = output?;
        Ok(Output {
            exit_code: output.exit_code,
            stdout: output.stdout.text(),
            stderr: output.stderr.text(),
            truncated: output.stdout.truncated() || output.stderr.truncated(),
        })
    }
}

fn failed(what: &str) -> impl FnOnce(std::io::Error) -> Failure {
    move |source| Failure::Failed {
        what: what.to_owned(),
        source: Some(source),
    }
}

impl Host for CallState {
    async fn find(&mut self, program: Program) -> Result<Option<String>, ProcessError> {
        let open = self.begin(record::find(&program))?;
        let Some(call) = &self.process else {
            return self.refuse(open);
        };
        // Looking reads the disk a few times; the executor may wait that long.
        let found = call.check(&program);
        record(open, |open| record::found(open, &found))?;
        match found {
            Ok(file) => Ok(Some(file.path().to_owned())),
            Err(Failure::NotFound(_) | Failure::Denied(_)) => Ok(None),
            Err(error) => Err(to_guest(error)),
        }
    }

    async fn run(&mut self, command: Command) -> Result<Output, ProcessError> {
        let mut what = record::run(&command);
        if self
            .process
            .as_ref()
            .is_some_and(ProcessCall::is_unconfined)
        {
            what.counts.push((UNCONFINED, 1));
        }
        let open = self.begin(what)?;
        let trail = self.trail.clone();
        let Some(call) = &mut self.process else {
            return self.refuse(open);
        };
        let done = call.run(command, trail).await;
        record(open, |open| record::ran(open, &done))?;
        done.map_err(to_guest)
    }
}

impl CallState {
    /// In `describe`, in a dry run, and on a host without a launcher.
    fn refuse<T>(&self, open: Option<Open>) -> Result<T, ProcessError> {
        record(open, |open| {
            open.end(End::failed("ProcessDenied", true), &[])
        })?;
        Err(ProcessError::Denied("programs in this call".to_owned()))
    }

    /// Records what is about to be done.
    fn begin(&self, what: Use) -> Result<Option<Open>, ProcessError> {
        let begun = self.trail.as_ref().map(|trail| trail.begin(what));
        begun.transpose().map_err(|Unrecorded| unrecorded())
    }
}

fn record(
    open: Option<Open>,
    end: impl FnOnce(Open) -> Result<(), Unrecorded>,
) -> Result<(), ProcessError> {
    open.map_or(Ok(()), end).map_err(|Unrecorded| unrecorded())
}

fn unrecorded() -> ProcessError {
    ProcessError::Failed("the audit log cannot be written".to_owned())
}

fn to_guest(error: Failure) -> ProcessError {
    match error {
        Failure::Denied(what) => ProcessError::Denied(what),
        Failure::InvalidArgument(what) => ProcessError::InvalidArgument(what),
        Failure::NotFound(name) => ProcessError::NotFound(name),
        Failure::Timeout { tail } => ProcessError::Timeout(tail),
        Failure::Killed { signal, .. } => ProcessError::Killed(signal),
        Failure::OutOfMemory { .. }
        | Failure::Quota(_)
        | Failure::Confinement { .. }
        | Failure::NoLauncher(_)
        | Failure::Failed { .. } => {
            tracing::warn!(%error, "a child of a handler could not be started");
            ProcessError::Failed(error.to_string())
        }
    }
}
