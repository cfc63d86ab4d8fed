//! What the host keeps for one call: the data of its store, dropped with it.

use std::sync::Arc;

use tokio::sync::mpsc;
use warren_model::{DirName, HandlerType, ProjectId};
use wasmtime::component::ResourceTable;
use wasmtime::{ResourceLimiter, StoreContextMut, UpdateDeadline};
use wasmtime_wasi::filesystem::WasiFilesystemCtxView;
use wasmtime_wasi::{WasiCtx, WasiCtxView, WasiView};

use super::audit::Trail;
use super::capabilities::git::GitCall;
use super::capabilities::http::HttpCall;
use super::capabilities::log::LogCall;
use super::capabilities::process::ProcessCall;
use super::capabilities::progress::ProgressCall;
use super::error::LimitKind;
use super::files::{FileCall, FilesView};
use super::grants::Limits;
use super::slots::Slot;
use super::stdio::Tail;

/// Which call this is, for logs.
#[derive(Debug, Clone)]
pub(crate) struct Label {
    pub(crate) handler: Option<HandlerType>,
    pub(crate) plugin: Arc<str>,
    pub(crate) project: Option<ProjectId>,
    pub(crate) dir_name: Option<DirName>,
}

impl Label {
    pub(crate) fn handler(&self) -> &str {
        self.handler.as_ref().map_or("", HandlerType::as_str)
    }

    pub(crate) fn project(&self) -> &str {
        self.project.as_ref().map_or("", ProjectId::as_str)
    }

    pub(crate) fn dir_name(&self) -> &str {
        self.dir_name.as_ref().map_or("", DirName::as_str)
    }
}

/// Data of a store.
pub(crate) struct CallState {
    pub(crate) label: Label,
    pub(crate) wasi: WasiCtx,
    pub(crate) table: ResourceTable,
    pub(crate) meter: Meter,
    pub(crate) stdout: Tail,
    pub(crate) stderr: Tail,
    pub(crate) log: LogCall,
    pub(crate) progress: ProgressCall,
    pub(crate) files: FileCall,
    pub(crate) git: Option<GitCall>,
    pub(crate) process: Option<ProcessCall>,
    pub(crate) http: HttpCall,
    /// Held by host work on other threads; the call has ended when all clones are gone.
    pub(crate) jobs: mpsc::Sender<()>,
    /// Takes what this call does; none: it can reach nothing.
    pub(crate) trail: Option<Trail>,
}

impl CallState {
    /// The file system of the call.
    pub(crate) fn files(&mut self) -> FilesView<'_> {
        FilesView {
            wasi: WasiFilesystemCtxView {
                ctx: self.wasi.filesystem(),
                table: &mut self.table,
            },
            call: &mut self.files,
            label: &self.label,
            trail: self.trail.as_ref(),
        }
    }
}

impl WasiView for CallState {
    fn ctx(&mut self) -> WasiCtxView<'_> {
        WasiCtxView {
            ctx: &mut self.wasi,
            table: &mut self.table,
        }
    }
}

/// Counts what a guest uses, and remembers the limit that it ran into: the guest itself often
/// only says "unreachable".
#[derive(Debug)]
pub(crate) struct Meter {
    memory_max: usize,
    memory: usize,
    table_elements_max: usize,
    table_elements: usize,
    instances: usize,
    epochs_left: u64,
    slot: Slot,
    pub(crate) hit: Option<LimitKind>,
}

impl Meter {
    pub(crate) fn new(limits: &Limits, slot: Slot) -> Self {
        Self {
            memory_max: limits.memory_bytes,
            memory: 0,
            table_elements_max: limits.table_elements,
            table_elements: 0,
            instances: limits.instances,
            epochs_left: limits.cpu_epochs,
            slot,
            hit: None,
        }
    }
}

/// How often a guest lets others go first at most.
const TURNS_MAX: u32 = 64;

/// A guest passed its CPU limit.
#[derive(Debug, thiserror::Error)]
#[error("the limit of CPU time was passed")]
struct CpuLimit;

/// Runs when guest code meets a new epoch: counts it and lets other tasks run.
pub(crate) fn on_epoch(
    mut store: StoreContextMut<'_, CallState>,
) -> wasmtime::Result<UpdateDeadline> {
    let meter = &mut store.data_mut().meter;
    if meter.epochs_left == 0 {
        meter.hit = Some(LimitKind::Cpu);
        return Err(CpuLimit.into());
    }
    meter.epochs_left -= 1;
    // Once for each call of the Project: however many it has, they get one turn a round.
    let turns = meter.slot.running().clamp(1, TURNS_MAX);
    Ok(UpdateDeadline::YieldCustom(
        1,
        Box::pin(async move {
            for _ in 0..turns {
                tokio::task::yield_now().await;
            }
        }),
    ))
}

impl ResourceLimiter for Meter {
    fn memory_growing(
        &mut self,
        current: usize,
        desired: usize,
        _maximum: Option<usize>,
    ) -> wasmtime::Result<bool> {
        let total = self.memory.saturating_add(desired.saturating_sub(current));
        if total > self.memory_max {
            self.hit = Some(LimitKind::Memory);
            return Ok(false);
        }
        if !self.slot.grow(total) {
            self.hit = Some(LimitKind::HostMemory);
            return Ok(false);
        }
        self.memory = total;
        Ok(true)
    }

    fn memory_grow_failed(&mut self, error: wasmtime::Error) -> wasmtime::Result<()> {
        tracing::debug!(%error, "a guest's memory did not grow");
        self.hit = Some(LimitKind::Memory);
        Ok(())
    }

    fn table_growing(
        &mut self,
        current: usize,
        desired: usize,
        _maximum: Option<usize>,
    ) -> wasmtime::Result<bool> {
        let total = self
            .table_elements
            .saturating_add(desired.saturating_sub(current));
        if total > self.table_elements_max {
            self.hit = Some(LimitKind::Table);
            return Ok(false);
        }
        self.table_elements = total;
        Ok(true)
    }

    fn instances(&self) -> usize {
        self.instances
    }

    fn tables(&self) -> usize {
        self.instances
    }

    fn memories(&self) -> usize {
        self.instances
    }
}
