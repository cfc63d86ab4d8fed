//! What a call starts with, and what is said when it is over.

use std::os::fd::AsRawFd;
use std::sync::Arc;

use tokio::sync::mpsc;
use tokio::time::Instant;
use wasmtime::component::ResourceTable;
use wasmtime_wasi::{FsPerms, WasiCtx, WasiCtxBuilder};

use super::audit::Trail;
use super::bindings::warren::handler::types as wit;
use super::call::{CallContext, StopOnDrop};
use super::capabilities::http::{Denials, HttpCall};
use super::capabilities::log::LogCall;
use super::capabilities::progress::ProgressCall;
use super::error::PluginError;
use super::files::FileCall;
use super::grants::{Limits, RootAccess};
use super::registry::Plugin;
use super::runtime::is_dry;
use super::services::Services;
use super::slots::Slot;
use super::state::{CallState, Label, Meter};
use super::stdio::Tail;

/// Handles for which a table has room from the start.
const TABLE_START: usize = 8;

/// State of a call on a RootDir.
pub(crate) fn state(
    services: &Services,
    plugin: &Plugin,
    cx: &CallContext,
    deadline: Instant,
    stop: &StopOnDrop,
    (slot, jobs): (Slot, mpsc::Sender<()>),
    trail: &Trail,
) -> Result<CallState, PluginError> {
    let limits = &plugin.grants.limits;
    let (stdout, stderr) = (Tail::new(limits.stdio_bytes), Tail::new(limits.stdio_bytes));
    let mut wasi = builder(limits, &stdout, &stderr);
    let access = match plugin.grants.root {
        RootAccess::None => None,
        RootAccess::ReadWrite if !is_dry(cx) => Some(FsPerms::ReadWrite),
        RootAccess::ReadOnly | RootAccess::ReadWrite => Some(FsPerms::ReadOnly),
    };
    if let Some(access) = access {
        preopen(&mut wasi, cx, access)?;
    }
    let budget = services.budget(plugin, cx)?;
    let files = FileCall::of(&cx.root, budget.clone(), jobs.clone()).map_err(PluginError::Root)?;
    let label = Label {
        handler: Some(plugin.handler_type().clone()),
        plugin: plugin.origin.name().into(),
        project: Some(cx.project.clone()),
        dir_name: Some(cx.dir_name.clone()),
    };
    let mut state = new_state(label, wasi.build(), limits, (stdout, stderr), slot, jobs);
    state.files = files;
    state.trail = Some(trail.clone());
    state.progress = ProgressCall::new(Some(cx.progress.clone()));
    state.git = services.git_call(plugin, cx, deadline, stop, &budget)?;
    state.process = services.process_call(plugin, cx, deadline, &budget)?;
    let denials = Arc::new(Denials::new(state.trail.clone(), state.label.clone()));
    let jobs = state.jobs.clone();
    let session = services.http_session(plugin, cx, deadline, &denials, jobs);
    state.http = HttpCall::new(session, denials);
    Ok(state)
}

/// State of a call that can reach nothing: `describe`.
pub(crate) fn bare_state(
    plugin: &str,
    limits: &Limits,
    slot: Slot,
    jobs: mpsc::Sender<()>,
) -> CallState {
    let (stdout, stderr) = (Tail::new(limits.stdio_bytes), Tail::new(limits.stdio_bytes));
    let wasi = builder(limits, &stdout, &stderr).build();
    let label = Label {
        handler: None,
        plugin: plugin.into(),
        project: None,
        dir_name: None,
    };
    new_state(label, wasi, limits, (stdout, stderr), slot, jobs)
}

fn new_state(
    label: Label,
    wasi: WasiCtx,
    limits: &Limits,
    (stdout, stderr): (Tail, Tail),
    slot: Slot,
    jobs: mpsc::Sender<()>,
) -> CallState {
    let mut table = ResourceTable::with_capacity(TABLE_START);
    table.set_max_capacity(limits.handles);
    CallState {
        label,
        wasi,
        table,
        meter: Meter::new(limits, slot),
        stdout,
        stderr,
        log: LogCall::new(limits),
        progress: ProgressCall::new(None),
        files: FileCall::none(jobs.clone()),
        git: None,
        process: None,
        http: HttpCall::none(),
        jobs,
        trail: None,
    }
}

/// No arguments, no environment, no stdin; output goes to memory.
fn builder(limits: &Limits, stdout: &Tail, stderr: &Tail) -> WasiCtxBuilder {
    let mut wasi = WasiCtxBuilder::new();
    wasi.stdout(stdout.clone())
        .stderr(stderr.clone())
        .max_random_size(limits.random_bytes)
        // A hop to another thread costs more than a file call; guests yield between them.
        .allow_blocking_current_thread(true);
    wasi
}

/// Preopens the directory that was opened, not whatever has its name now.
fn preopen(
    wasi: &mut WasiCtxBuilder,
    cx: &CallContext,
    access: FsPerms,
) -> Result<(), PluginError> {
    let path = format!("/proc/self/fd/{}", cx.root.as_raw_fd());
    wasi.preopened_dir(path, "/", access)
        .map(drop)
        .map_err(|error| PluginError::Root(std::io::Error::other(format!("{error:#}"))))
}

/// The identity of the RootDir, as the guest gets it.
pub(crate) fn root(cx: &CallContext) -> wit::Root {
    wit::Root {
        tenant: cx.tenant.to_string(),
        project_id: cx.project.to_string(),
        dir_name: cx.dir_name.to_string(),
        label: cx.label.clone(),
    }
}

/// Whether there is anything in the root.
pub(crate) async fn has_content(cx: &CallContext) -> Result<bool, PluginError> {
    let root = cx.root.try_clone().map_err(PluginError::Root)?;
    let found = tokio::task::spawn_blocking(move || root.entries()?.next().transpose());
    match found.await {
        Ok(Ok(entry)) => Ok(entry.is_some()),
        Ok(Err(error)) => Err(PluginError::Root(error)),
        Err(error) => Err(PluginError::Internal(error.to_string())),
    }
}

/// What a call did often.
pub(crate) fn counts(state: &CallState) -> Vec<(&'static str, u64)> {
    let stdio = [&state.stdout, &state.stderr].map(|tail| tail.written());
    let files = state.files.counts();
    let all = [
        ("bytesWritten", files.written_bytes),
        ("filesMade", files.made),
        ("filesRemoved", files.removed),
        ("refusedPaths", files.refused_paths.into()),
        ("overQuota", files.refusals.quota),
        ("diskFull", files.refusals.disk),
        ("logLines", state.log.lines()),
        ("logLinesDropped", state.log.dropped()),
        ("progressReports", state.progress.passed()),
        ("outputBytes", stdio.iter().sum()),
    ];
    all.into_iter().filter(|(_, count)| *count > 0).collect()
}

/// Logs how a call ended, and what its limits cut.
pub(crate) fn finish(state: &CallState, call: &str, error: Option<&PluginError>) {
    let label = &state.label;
    state.log.finish(label);
    let files = state.files.counts();
    tracing::debug!(
        target: "warren::plugin",
        plugin = &*label.plugin,
        handler = label.handler(),
        written_bytes = files.written_bytes,
        made = files.made,
        removed = files.removed,
        refused_paths = files.refused_paths,
        over_quota = files.refusals.quota,
        over_disk = files.refusals.disk,
        "file work of a handler"
    );
    for (stream, tail) in [("stdout", &state.stdout), ("stderr", &state.stderr)] {
        let (text, dropped) = tail.text();
        if text.is_empty() {
            continue;
        }
        let text = super::text::clean(&text);
        tracing::debug!(
            target: "warren::plugin",
            plugin = &*label.plugin,
            handler = label.handler(),
            stream,
            dropped,
            text,
            "output of a handler"
        );
    }
    if let Some(error) = error {
        tracing::info!(
            plugin = &*label.plugin,
            handler = label.handler(),
            project = label.project(),
            dir_name = label.dir_name(),
            call,
            code = error.code(),
            %error,
            "a call into a handler failed"
        );
    }
}
