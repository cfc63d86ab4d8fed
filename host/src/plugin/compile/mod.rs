//! From bytes to code, within limits: in a process of its own, else on a thread of its own.

mod client;
mod worker;

use std::env;
use std::path::PathBuf;
use std::sync::Arc;
use std::time::Duration;

use tokio::sync::{Semaphore, oneshot};
use tokio::time::timeout;
use wasmtime::component::Component;
use wasmtime::{CodeBuilder, Engine};

use super::cache::Cache;
use super::component::chain;
use super::load_error::LoadError;

pub use worker::{COMPILE_WORKER, compile_worker};

/// Compilations at a time: they take a core each, and calls want some too.
const AT_A_TIME: usize = 2;

/// How much a compilation may take.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct CompileLimits {
    /// From start to end.
    pub wall: Duration,
    /// CPU time; only a worker is held to it.
    pub cpu: Duration,
    /// Bytes of memory; only a worker is held to it.
    pub memory_bytes: u64,
}

impl Default for CompileLimits {
    fn default() -> Self {
        Self {
            wall: Duration::from_secs(120),
            cpu: Duration::from_secs(60),
            memory_bytes: 1024 * 1024 * 1024,
        }
    }
}

/// How components are compiled.
#[derive(Debug, Clone, Default)]
pub struct CompileConfig {
    /// The program `warren`, which compiles in a process of its own; none: a thread of this
    /// process does, which cannot be stopped when it takes too long, only left alone.
    pub worker: Option<PathBuf>,
    /// How much one may take.
    pub limits: CompileLimits,
}

impl CompileConfig {
    /// With the `warren` that lies beside the running program, or is it.
    pub fn beside_this_program() -> Self {
        let worker = env::current_exe().ok().and_then(|this| {
            let beside = this.parent()?.join("warren");
            // Another program of that name has another answer, which is seen when it is asked.
            beside.is_file().then_some(beside)
        });
        Self {
            worker,
            ..Self::default()
        }
    }
}

/// Why a compilation failed.
#[derive(Debug)]
enum Failed {
    /// The component is at fault.
    Component(String),
    /// A limit was passed, or the compiler crashed: the same would happen again.
    Limit(String),
    /// The host is at fault.
    Host(String),
}

/// Compiles components.
#[derive(Debug)]
pub(crate) struct Compiler {
    config: CompileConfig,
    running: Semaphore,
}

impl Compiler {
    pub(crate) fn new(config: CompileConfig) -> Self {
        Self {
            config,
            running: Semaphore::new(AT_A_TIME),
        }
    }

    /// Compiles a component, unless it passed these limits before.
    ///
    /// The size of the binary is checked by [`super::inspect::inspect`] before.
    ///
    /// # Errors
    ///
    /// Tells a fault of the component and a limit apart.
    pub(crate) async fn compile(
        &self,
        engine: &Engine,
        cache: &Cache,
        digest: &str,
        bytes: Arc<[u8]>,
    ) -> Result<Component, LoadError> {
        let limits = format!(
            "{:?} {:?}",
            self.config.limits,
            self.config.worker.is_some()
        );
        if let Some(why) = cache.failure(engine, digest, &limits) {
            return Err(LoadError::CompileLimit(format!(
                "{why}, at an earlier start"
            )));
        }
        let permit = self.running.acquire().await;
        let permit = permit.map_err(|error| LoadError::Internal(error.to_string()))?;
        let compiled = match &self.config.worker {
            Some(worker) => client::compile(worker, &self.config.limits, engine, &bytes).await,
            None => on_thread(engine, &self.config.limits, bytes).await,
        };
        drop(permit);
        compiled.map_err(|failed| match failed {
            Failed::Component(why) => LoadError::Compile(why),
            Failed::Host(why) => LoadError::Internal(why),
            Failed::Limit(why) => {
                if let Err(error) = cache.store_failure(engine, digest, &limits, &why) {
                    tracing::warn!(%error, digest, "cannot remember that a component does not compile");
                }
                LoadError::CompileLimit(why)
            }
        })
    }
}

async fn on_thread(
    engine: &Engine,
    limits: &CompileLimits,
    bytes: Arc<[u8]>,
) -> Result<Component, Failed> {
    let (engine, (sender, receiver)) = (engine.clone(), oneshot::channel());
    let thread = std::thread::Builder::new().name("warren-compile".into());
    thread
        .spawn(move || {
            let compiled = CodeBuilder::new(&engine)
                .wasm_binary(&bytes[..], None)
                .and_then(|builder| builder.compile_component());
            // Nobody may wait for it any more.
            drop(sender.send(compiled));
        })
        .map_err(|error| Failed::Host(error.to_string()))?;
    match timeout(limits.wall, receiver).await {
        Ok(Ok(compiled)) => compiled.map_err(|error| Failed::Component(chain(&error))),
        Ok(Err(_)) => Err(Failed::Limit("the compiler crashed".into())),
        Err(_) => Err(too_long(limits.wall)),
    }
}

fn too_long(limit: Duration) -> Failed {
    Failed::Limit(format!("it took longer than {} ms", limit.as_millis()))
}
