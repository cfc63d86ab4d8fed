//! `wasi:filesystem` on a RootDir: permission first, then the budget, then the file system.

mod host;
mod ledger;
mod links;
mod stream;

use std::collections::HashMap;
use std::fs::File;
use std::sync::Arc;

use tokio::sync::mpsc;
use warren_audit::capability;
use warren_disk::Dir;
use warren_disk::beneath::Stat;
use warren_disk::budget::{Budget, Refusals, Short};
use wasmtime::component::HasData;
use wasmtime_wasi::filesystem::WasiFilesystemCtxView;
use wasmtime_wasi::p2::bindings::filesystem::types::ErrorCode;

use super::audit::{Target, Trail};
use super::state::Label;
use ledger::{Account, Ledger};

/// Entries of all directory streams that a guest holds at a time: the host keeps them in memory.
const LISTED_MAX: u64 = 200_000;

/// Code of a path that was not opened or made.
const PATH_REFUSED: &str = "PathRefused";

/// What a call did to its RootDir.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub(crate) struct FileCounts {
    /// Bytes that the guest wrote.
    pub(crate) written_bytes: u64,
    /// Files, directories and links that it made.
    pub(crate) made: u64,
    /// Those that it removed or replaced.
    pub(crate) removed: u64,
    /// Paths that were refused.
    pub(crate) refused_paths: u32,
    /// What was refused because it was too much.
    pub(crate) refusals: Refusals,
}

/// The file system of one call.
pub(crate) struct FileCall {
    ledger: Arc<Ledger>,
    /// The preopened directory; none: nothing is preopened.
    root: Option<Stat>,
    /// Entries of each directory stream that is open.
    listed: HashMap<u32, u64>,
    made: u64,
    removed: u64,
    refused_paths: u32,
    /// Held by host work on other threads.
    jobs: mpsc::Sender<()>,
}

impl FileCall {
    /// Of a call that sees no directory.
    pub(crate) fn none(jobs: mpsc::Sender<()>) -> Self {
        Self {
            ledger: Arc::new(Ledger::new(Budget::unlimited())),
            root: None,
            listed: HashMap::new(),
            made: 0,
            removed: 0,
            refused_paths: 0,
            jobs,
        }
    }

    /// Of a call that sees `root`.
    pub(crate) fn of(root: &Dir, budget: Budget, jobs: mpsc::Sender<()>) -> std::io::Result<Self> {
        Ok(Self {
            ledger: Arc::new(Ledger::new(budget)),
            root: Some(Stat::of(root)?),
            ..Self::none(jobs)
        })
    }

    /// The budget of the RootDir, shared with all who write into it.
    pub(crate) fn budget(&self) -> &Budget {
        self.ledger.budget()
    }

    pub(crate) fn counts(&self) -> FileCounts {
        FileCounts {
            written_bytes: self.ledger.written(),
            made: self.made,
            removed: self.removed,
            refused_paths: self.refused_paths,
            refusals: self.budget().refusals(),
        }
    }

    /// Measures the RootDir if that has to be, where it may take its time.
    async fn measure(&self) -> Result<(), ErrorCode> {
        if !self.budget().needs_walk() {
            return Ok(());
        }
        let (budget, job) = (self.budget().clone(), self.jobs.clone());
        let measured = tokio::task::spawn_blocking(move || {
            let measured = budget.measure();
            drop(job);
            measured
        });
        match measured.await {
            Ok(Ok(())) => Ok(()),
            Ok(Err(short)) => Err(refused(&short)),
            Err(_) => Err(ErrorCode::Io),
        }
    }

    fn account(&self, file: &File) -> Result<Option<Arc<Account>>, ErrorCode> {
        Ok(self.ledger.find(file)?)
    }

    /// Logs a path that was not opened or made; a guest that tries many is told about once a while.
    fn report_refused(&mut self, label: &Label, trail: Option<&Trail>, path: &str) {
        self.refused_paths = self.refused_paths.saturating_add(1);
        if self.refused_paths.is_power_of_two() {
            if let Some(trail) = trail {
                // The path is refused anyway; when that cannot be recorded, the call fails.
                let _ = trail.denied(
                    capability::FILES,
                    "open",
                    Target::Path(path.into()),
                    PATH_REFUSED,
                );
            }
            tracing::warn!(
                plugin = &*label.plugin,
                handler = label.handler(),
                project = label.project(),
                dir_name = label.dir_name(),
                path = super::text::clean_line(path, 200),
                times = self.refused_paths,
                "a path was refused: it leaves the rootdir, is no file or may not be written"
            );
        }
    }
}

/// What a guest is told.
fn refused(short: &Short) -> ErrorCode {
    match short {
        Short::Quota { .. } => ErrorCode::Quota,
        Short::Disk { .. } => ErrorCode::InsufficientSpace,
        Short::Walk(error) => {
            tracing::warn!(%error, "a rootdir cannot be measured");
            ErrorCode::Io
        }
        Short::Space(error) => stream::code(error),
    }
}

/// The host side of `wasi:filesystem` in a call.
pub(crate) struct FilesView<'a> {
    pub(crate) wasi: WasiFilesystemCtxView<'a>,
    pub(crate) call: &'a mut FileCall,
    pub(crate) label: &'a Label,
    pub(crate) trail: Option<&'a Trail>,
}

/// [`FilesView`] for the linker.
pub(crate) struct HasFiles;

impl HasData for HasFiles {
    type Data<'a> = FilesView<'a>;
}
