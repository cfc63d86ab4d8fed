//! Loading at the start of a host.

use std::collections::BTreeSet;
use std::io::Read;
use std::os::unix::fs::OpenOptionsExt;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use futures_util::future::join_all;
use warren_model::HandlerType;

use super::cache::Entry;
use super::component;
use super::grants::GrantTable;
use super::inspect::{COMPONENT_BYTES_MAX, Inspection, check_exports, inspect};
use super::load_error::{LoadError, Origin};
use super::registry::{Description, Plugin, Registry};
use super::runtime::Host;

/// What a host loads.
#[derive(Debug, Clone, Default)]
pub struct Sources {
    /// Shipped components: type and bytes.
    pub shipped: Vec<(&'static str, &'static [u8])>,
    /// Shipped components that are left out; their types are free for others.
    pub omit: BTreeSet<HandlerType>,
    /// A directory whose `*.wasm` files are loaded; one that is missing is empty.
    pub dir: Option<PathBuf>,
    /// What each may reach.
    pub grants: GrantTable,
}

/// A component that did not load; the others did.
#[derive(Debug)]
pub struct LoadFailure {
    /// Where it comes from.
    pub origin: Origin,
    /// Why.
    pub error: LoadError,
}

/// Loads all sources: shipped ones first, then files by name.
pub(crate) async fn load_all(host: &Host, sources: &Sources) -> (Registry, Vec<LoadFailure>) {
    let (mut candidates, mut failures) = (Vec::new(), Vec::new());
    let mut reserved = Vec::new();
    for (name, bytes) in &sources.shipped {
        let handler: Option<HandlerType> = name.parse().ok();
        if handler
            .as_ref()
            .is_some_and(|handler| sources.omit.contains(handler))
        {
            continue;
        }
        reserved.extend(handler);
        candidates.push((Origin::Shipped((*name).to_owned()), Ok(Arc::from(*bytes))));
    }
    match sources.dir.as_deref().map(files).transpose() {
        Ok(files) => candidates.extend(files.into_iter().flatten().map(|path| {
            let bytes = read(&path);
            (Origin::File(path), bytes)
        })),
        Err(error) => failures.push(LoadFailure {
            origin: Origin::File(sources.dir.clone().unwrap_or_default()),
            error: LoadError::Read(error),
        }),
    }
    let loads = candidates.into_iter().map(|(origin, bytes)| async move {
        let loaded = match bytes {
            Ok(bytes) => load(host, &origin, bytes, &sources.grants).await,
            Err(error) => Err(error),
        };
        (origin, loaded)
    });
    let mut registry = Registry::reserving(reserved);
    for (origin, loaded) in join_all(loads).await {
        if let Err(error) = loaded.and_then(|plugin| registry.add(plugin)) {
            failures.push(LoadFailure { origin, error });
        }
    }
    (registry, failures)
}

/// Loads one component: inspect, compile or take from the cache, link, describe.
async fn load(
    host: &Host,
    origin: &Origin,
    bytes: Arc<[u8]>,
    grants: &GrantTable,
) -> Result<Plugin, LoadError> {
    let inspection = inspect(&bytes)?;
    check_exports(&inspection)?;
    let grants = grants.get(&origin.name()).clone();
    let cached = host.cache.load(&host.engine, &inspection.digest);
    if let Some((entry, description)) = cached.and_then(with_description) {
        let pre = component::link(&host.engine, &entry.component, &inspection, &grants)?;
        let plugin = Plugin {
            origin: origin.clone(),
            inspection,
            description,
            grants,
            pre,
        };
        return check_shipped(plugin);
    }
    // Imports are checked on the binary, before a component that may not load costs a compilation.
    component::check_imports(&host.engine, &inspection, &grants)?;
    let component = component::compile(&host.engine, bytes).await?;
    let pre = component::link(&host.engine, &component, &inspection, &grants)?;
    let description = host.describe(origin, &pre, &grants.limits).await?;
    keep(host, &inspection, component, &description);
    let plugin = Plugin {
        origin: origin.clone(),
        inspection,
        description,
        grants,
        pre,
    };
    check_shipped(plugin)
}

fn with_description(entry: Entry) -> Option<(Entry, Description)> {
    match serde_json::from_slice(&entry.description) {
        Ok(description) => Some((entry, description)),
        Err(error) => {
            tracing::warn!(%error, "a cached description is of another version; loading anew");
            None
        }
    }
}

/// Keeps the compiled component for the next start; without it the host works all the same.
fn keep(
    host: &Host,
    inspection: &Inspection,
    component: wasmtime::component::Component,
    description: &Description,
) {
    let kept = serde_json::to_vec(description)
        .map_err(std::io::Error::other)
        .and_then(|description| {
            let entry = Entry {
                component,
                description,
            };
            host.cache.store(&host.engine, &inspection.digest, &entry)
        });
    if let Err(error) = kept {
        tracing::warn!(%error, digest = inspection.digest, "cannot keep a compiled component");
    }
}

/// A shipped component has the type that it is shipped as.
fn check_shipped(plugin: Plugin) -> Result<Plugin, LoadError> {
    match &plugin.origin {
        Origin::Shipped(name) if name != plugin.handler_type().as_str() => {
            Err(LoadError::BadDescription {
                field: "type-name",
                reason: format!("it is `{}`, shipped as `{name}`", plugin.handler_type()),
            })
        }
        _ => Ok(plugin),
    }
}

/// The `*.wasm` files of a directory, sorted.
fn files(dir: &Path) -> std::io::Result<Vec<PathBuf>> {
    let entries = match std::fs::read_dir(dir) {
        Ok(entries) => entries,
        Err(error) if error.kind() == std::io::ErrorKind::NotFound => return Ok(Vec::new()),
        Err(error) => return Err(error),
    };
    let mut files = Vec::new();
    for entry in entries {
        let path = entry?.path();
        if path
            .extension()
            .is_some_and(|extension| extension == "wasm")
        {
            files.push(path);
        }
    }
    files.sort();
    Ok(files)
}

/// Reads a component from a file.
///
/// # Errors
///
/// Refuses what is no regular file or too large, before reading it.
pub fn read(path: &Path) -> Result<Arc<[u8]>, LoadError> {
    let bytes_max = COMPONENT_BYTES_MAX;
    // A FIFO must not be waited for.
    let flags = rustix::fs::OFlags::NONBLOCK.bits().cast_signed();
    let file = std::fs::File::options()
        .read(true)
        .custom_flags(flags)
        .open(path)
        .map_err(LoadError::Read)?;
    let found = file.metadata().map_err(LoadError::Read)?;
    if !found.is_file() {
        let error = std::io::Error::other("it is not a regular file");
        return Err(LoadError::Read(error));
    }
    let length = found.len();
    if length > bytes_max {
        return Err(LoadError::TooLarge {
            bytes: length,
            bytes_max,
        });
    }
    let mut bytes = Vec::new();
    file.take(bytes_max + 1)
        .read_to_end(&mut bytes)
        .map_err(LoadError::Read)?;
    Ok(bytes.into())
}
