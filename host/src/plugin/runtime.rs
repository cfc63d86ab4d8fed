//! The runtime: one engine, the loaded handlers, and calls into them.

use std::panic::AssertUnwindSafe;
use std::path::PathBuf;
use std::sync::Arc;
use std::sync::atomic::AtomicBool;
use std::time::Duration;

use futures_util::FutureExt;
use tokio::sync::mpsc;
use tokio::time::{Instant, timeout, timeout_at};
use warren_model::{HandlerType, Metadata, Receipt};
use wasmtime::{Engine, Store};

use super::audit::{End, Trail, Unrecorded, record_loads, whole_call};
use super::bindings::FullPre;
use super::bindings::warren::handler::types as wit;
use super::cache::Cache;
use super::call::{CallContext, CallMode, Request, Returned, StopOnDrop, Suspended};
use super::compile::{CompileConfig, Compiler};
use super::engine::{PoolSize, engine};
use super::error::PluginError;
use super::grants::Limits;
use super::load::{Examination, Found, LoadFailure, Sources, find_all, load_all};
use super::load_error::{LoadError, Origin};
use super::registry::{Description, Plugin, Registry};
use super::services::Services;
use super::slots::{Slot, Slots};
use super::state::{CallState, on_epoch};
use super::{convert, setup, verdict};

/// How long the end of a call waits for host work that was told to stop.
const STOP_GRACE: Duration = Duration::from_secs(30);

/// How much earlier than its call a capability's work must end.
const WORK_MARGIN: Duration = Duration::from_secs(1);

/// What `describe` counts as; no Project is called so.
const DESCRIBE: &str = "describe";

/// Longest `describe`.
const DESCRIBE_MAX: Duration = Duration::from_secs(5);

/// How a host runs plugins.
#[derive(Default)]
pub struct RuntimeConfig {
    /// The host's own directory; compiled components are kept in `cache` inside.
    pub state_dir: PathBuf,
    /// Which components.
    pub sources: Sources,
    /// How many calls at a time, and how big.
    pub pool: PoolSize,
    /// What stands behind the capabilities.
    pub services: Services,
    /// How components are compiled.
    pub compile: CompileConfig,
}

/// What loading and calling share.
pub(crate) struct Host {
    pub(crate) engine: Engine,
    pub(crate) cache: Cache,
    pub(crate) services: Services,
    slots: Slots,
    pub(crate) compiler: Compiler,
}

/// The loaded handlers, ready to be called.
pub struct Runtime {
    host: Host,
    registry: Registry,
    sources: Sources,
}

impl Runtime {
    /// Starts the engine and loads all handlers. A component that does not load is reported and
    /// left out.
    ///
    /// # Errors
    ///
    /// Fails when the engine or the cache cannot be set up.
    pub async fn start(config: RuntimeConfig) -> Result<(Self, Vec<LoadFailure>), PluginError> {
        let host = Host {
            engine: engine(&config.pool).map_err(|e| LoadError::Internal(format!("{e:#}")))?,
            cache: Cache::open(&config.state_dir).map_err(LoadError::Cache)?,
            services: config.services,
            slots: Slots::new(&config.pool),
            compiler: Compiler::new(config.compile),
        };
        let (registry, failures) = load_all(&host, &config.sources).await;
        for failure in &failures {
            let LoadFailure { origin, error, .. } = failure;
            tracing::warn!(%origin, code = error.code(), %error, "a plugin was not loaded");
        }
        record_loads(host.services.audit.as_ref(), &registry, &failures);
        let runtime = Self {
            host,
            registry,
            sources: config.sources,
        };
        Ok((runtime, failures))
    }

    /// Every component of the host, loaded or not.
    pub fn found(&self) -> Vec<Found> {
        find_all(&self.sources)
    }

    /// What is known about a component without running it, and why it would not load.
    ///
    /// # Errors
    ///
    /// When the bytes are no component.
    pub fn examine(&self, origin: Origin, bytes: &[u8]) -> Result<Examination, LoadError> {
        Examination::of(&self.host, &self.sources, origin, bytes)
    }

    /// What stands behind the capabilities.
    pub(crate) fn services(&self) -> &Services {
        &self.host.services
    }

    /// Which handlers there are.
    pub fn registry(&self) -> &Registry {
        &self.registry
    }

    /// The handler of a type.
    pub fn plugin(&self, handler: &HandlerType) -> Option<Arc<Plugin>> {
        self.registry.get(handler).cloned()
    }

    /// Fills an empty root; returns the metadata to keep.
    ///
    /// # Errors
    ///
    /// What the handler said, or how it failed. So for all calls; each may be repeated.
    pub async fn init(
        &self,
        plugin: &Plugin,
        cx: CallContext,
        spec: &Metadata,
    ) -> Result<Metadata, PluginError> {
        let spec = &spec.to_json();
        let ended = self.host.call(plugin, &cx, Request::Init { spec }).await?;
        verdict::metadata(plugin, ended.returned)
    }

    /// Saves the content; deletes nothing.
    ///
    /// # Errors
    ///
    /// Besides the handler's own errors, [`PluginError::SuspendUnproven`] when there is content,
    /// the handler is not ephemeral and no capability has seen anything saved.
    pub async fn suspend(
        &self,
        plugin: &Plugin,
        cx: CallContext,
        current: &Metadata,
    ) -> Result<Suspended, PluginError> {
        // Before the call, so that a handler cannot pass by emptying the root.
        let had_content = setup::has_content(&cx).await?;
        let current = &current.to_json();
        let ended = self
            .host
            .call(plugin, &cx, Request::Suspend { current })
            .await?;
        verdict::suspended(plugin, &cx, had_content, ended)
    }

    /// Fills an empty root with what suspend saved; returns the metadata to keep.
    ///
    /// # Errors
    ///
    /// As for [`Self::init`].
    pub async fn recover(
        &self,
        plugin: &Plugin,
        cx: CallContext,
        saved: &Metadata,
    ) -> Result<Metadata, PluginError> {
        let saved = &saved.to_json();
        let ended = self
            .host
            .call(plugin, &cx, Request::Recover { saved })
            .await?;
        verdict::metadata(plugin, ended.returned)
    }

    /// Tells the handler that the content will be deleted for good.
    ///
    /// # Errors
    ///
    /// As for [`Self::init`].
    pub async fn close(
        &self,
        plugin: &Plugin,
        cx: CallContext,
        current: &Metadata,
    ) -> Result<(), PluginError> {
        let current = &current.to_json();
        self.host
            .call(plugin, &cx, Request::Close { current })
            .await?;
        Ok(())
    }

    /// Runs one of the handler's actions; returns the metadata to keep.
    ///
    /// # Errors
    ///
    /// As for [`Self::init`]; an action that `describe` does not list is refused before the call.
    pub async fn perform(
        &self,
        plugin: &Plugin,
        cx: CallContext,
        action: &str,
        arguments: &Metadata,
        current: &Metadata,
    ) -> Result<Metadata, PluginError> {
        let actions = &plugin.description.actions;
        if !actions.iter().any(|listed| listed.name == action) {
            return Err(PluginError::UnsupportedAction(action.to_owned()));
        }
        let request = Request::Perform {
            action,
            arguments: &arguments.to_json(),
            current: &current.to_json(),
        };
        let ended = self.host.call(plugin, &cx, request).await?;
        verdict::metadata(plugin, ended.returned)
    }
}

/// A call's turn: how long it may take.
struct Turn {
    slot: Slot,
    deadline: Instant,
    limit: Duration,
}

/// A call that came to its end.
pub(crate) struct Ended {
    pub(crate) returned: Returned,
    pub(crate) receipts: Vec<Receipt>,
}

impl Host {
    /// One call, recorded before it begins and when it has ended.
    async fn call(
        &self,
        plugin: &Plugin,
        cx: &CallContext,
        request: Request<'_>,
    ) -> Result<Ended, PluginError> {
        let handler = plugin.handler_type().to_string();
        let (slot, deadline, limit) = self.slot(plugin, cx, &handler).await?;
        let trail = Trail::new(self.services.audit.clone(), plugin, cx, request.name())?;
        let open = trail.begin(whole_call(request.name()));
        let open = open.map_err(|Unrecorded| trail.error())?;
        let turn = Turn {
            slot,
            deadline,
            limit,
        };
        let (ended, counts) = self.run(plugin, cx, request, turn, &trail).await;
        // Whatever could not be recorded on the way makes the call fail, too.
        match open.end(End::of_call(ended.as_ref().err()), &counts) {
            Ok(()) if trail.is_whole() => ended,
            _ => Err(trail.error()),
        }
    }

    /// A fresh store and instance, dropped at the end however it ends; and what it did often.
    async fn run(
        &self,
        plugin: &Plugin,
        cx: &CallContext,
        request: Request<'_>,
        turn: Turn,
        trail: &Trail,
    ) -> (Result<Ended, PluginError>, Vec<(&'static str, u64)>) {
        let handler = plugin.handler_type().to_string();
        let Turn {
            slot,
            deadline,
            limit,
        } = turn;
        let stop = StopOnDrop(Arc::new(AtomicBool::new(false)));
        let (jobs, mut jobs_ended) = mpsc::channel(1);
        // Host work ends a little earlier, so that the handler can still say what failed.
        let work_deadline = deadline - (limit / 10).min(WORK_MARGIN);
        let state = setup::state(
            &self.services,
            plugin,
            cx,
            work_deadline,
            &stop,
            (slot, jobs),
            trail,
        );
        let state = match state {
            Ok(state) => state,
            Err(error) => return (Err(error), Vec::new()),
        };
        let git = state.git.clone();
        let mut store = self.store(state, &plugin.grants.limits);
        let root = setup::root(cx);
        let guest = AssertUnwindSafe(dispatch(&mut store, &plugin.pre, &root, request));
        let ended = tokio::select! {
            ended = timeout_at(deadline, guest.catch_unwind()) => match ended {
                Ok(Ok(Ok(returned))) => returned.map_err(convert::error),
                Ok(Ok(Err(error))) => Err(verdict::failure(&error, store.data(), &handler)),
                Ok(Err(panic)) => Err(verdict::host_panic(&*panic)),
                Err(_) => Err(PluginError::Timeout { handler: handler.clone(), limit }),
            },
            () = cx.cancel.cancelled() => Err(PluginError::Cancelled),
        }
        .map_err(|error| verdict::out_of_room(error, store.data(), &handler));
        setup::finish(store.data(), request.name(), ended.as_ref().err());
        let counts = setup::counts(store.data());
        drop(store);
        drop(stop);
        // The caller may delete the root next: nothing of this call may still work in it.
        if timeout(STOP_GRACE, jobs_ended.recv()).await.is_err() {
            tracing::error!(
                handler,
                call = request.name(),
                "host work of a call did not stop"
            );
            let error = PluginError::Internal("host work of the call did not stop".into());
            return (Err(error), counts);
        }
        let receipts = git.map_or_else(Vec::new, |git| git.receipts());
        let ended = ended.map(|returned| Ended { returned, receipts });
        (ended, counts)
    }

    /// Waits for a slot: when all are taken, calls queue instead of failing.
    async fn slot(
        &self,
        plugin: &Plugin,
        cx: &CallContext,
        handler: &str,
    ) -> Result<(Slot, Instant, Duration), PluginError> {
        let limits = &plugin.grants.limits;
        let asked = Instant::now();
        let latest = cx.deadline.unwrap_or(asked + limits.wall);
        let project = format!("{}/{}", cx.tenant, cx.project);
        let slot = tokio::select! {
            slot = timeout_at(latest, self.slots.acquire(&project)) => slot,
            () = cx.cancel.cancelled() => return Err(PluginError::Cancelled),
        };
        let Ok(slot) = slot else {
            return Err(PluginError::Timeout {
                handler: handler.to_owned(),
                limit: latest.saturating_duration_since(asked),
            });
        };
        let start = Instant::now();
        let own = start + limits.wall;
        let deadline = cx.deadline.map_or(own, |asked| asked.min(own));
        Ok((slot, deadline, deadline.saturating_duration_since(start)))
    }

    fn store(&self, state: CallState, limits: &Limits) -> Store<CallState> {
        let mut store = Store::new(&self.engine, state);
        store.limiter(|state| &mut state.meter);
        store.set_hostcall_fuel(limits.hostcall_bytes);
        store.set_epoch_deadline(1);
        store.epoch_deadline_callback(on_epoch);
        store
    }

    /// Asks a component what it is, in an instance that can reach nothing.
    pub(crate) async fn describe(
        &self,
        origin: &Origin,
        pre: &FullPre<CallState>,
        limits: &Limits,
    ) -> Result<Description, LoadError> {
        let name = origin.name();
        let failed = |error| LoadError::Describe(Box::new(error));
        let slot = self.slots.acquire(DESCRIBE).await;
        let (jobs, _jobs_ended) = mpsc::channel(1);
        let mut store = self.store(setup::bare_state(&name, limits, slot, jobs), limits);
        let guest = async {
            let instance = pre.instantiate_async(&mut store).await?;
            let handler = instance.warren_handler_handler();
            handler.call_describe(&mut store).await
        };
        let said = timeout(DESCRIBE_MAX, AssertUnwindSafe(guest).catch_unwind()).await;
        match said {
            Ok(Ok(Ok(said))) => Description::from_guest(said),
            Ok(Ok(Err(error))) => Err(failed(verdict::failure(&error, store.data(), &name))),
            Ok(Err(panic)) => Err(failed(verdict::host_panic(&*panic))),
            Err(_) => Err(failed(PluginError::Timeout {
                handler: name,
                limit: DESCRIBE_MAX,
            })),
        }
    }
}

/// Instantiates and calls one export.
async fn dispatch(
    store: &mut Store<CallState>,
    pre: &FullPre<CallState>,
    root: &wit::Root,
    request: Request<'_>,
) -> wasmtime::Result<Result<Returned, wit::Error>> {
    let instance = pre.instantiate_async(&mut *store).await?;
    let handler = instance.warren_handler_handler();
    let metadata = |metadata| Returned {
        metadata: Some(metadata),
        loss: Vec::new(),
    };
    Ok(match request {
        Request::Init { spec } => handler.call_init(store, root, spec).await?.map(metadata),
        Request::Recover { saved } => handler
            .call_recover(store, root, saved)
            .await?
            .map(metadata),
        Request::Suspend { current } => {
            let suspended = handler.call_suspend(store, root, current).await?;
            suspended.map(|suspended| Returned {
                metadata: Some(suspended.metadata),
                loss: convert::losses(suspended.loss),
            })
        }
        Request::Close { current } => handler
            .call_close(store, root, current)
            .await?
            .map(|()| Returned::default()),
        Request::Perform {
            action,
            arguments,
            current,
        } => handler
            .call_perform(store, root, action, arguments, current)
            .await?
            .map(metadata),
    })
}

/// Whether a call may change nothing.
pub(crate) fn is_dry(cx: &CallContext) -> bool {
    cx.mode == CallMode::DryRun
}
