//! Loading at the start of a host.

use std::collections::BTreeSet;
use std::io::Read;
use std::os::unix::fs::OpenOptionsExt;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use futures_util::future::join_all;
use jiff::Timestamp;
use warren_model::HandlerType;
use warren_policy::{
    Candidate, Change, Grant, GrantId, Manifest, Verdict, Wants, diff, diff_wants,
};

use super::cache::Entry;
use super::component;
use super::inspect::{COMPONENT_BYTES_MAX, Inspection, check_exports, inspect};
use super::load_error::{LoadError, ManifestError, Origin};
use super::lock::LockFile;
use super::registry::{Description, Plugin, Registry};
use super::runtime::Host;
use super::trust::{Granted, Review, Trust};

/// What a host loads.
#[derive(Debug, Clone, Default)]
pub struct Sources {
    /// Shipped components: type and bytes.
    pub shipped: Vec<(&'static str, &'static [u8])>,
    /// Shipped components that are left out; their types are free for others.
    pub omit: BTreeSet<HandlerType>,
    /// A directory whose `*.wasm` files are loaded; one that is missing is empty.
    pub dir: Option<PathBuf>,
    /// Who may load, and with what.
    pub trust: Trust,
}

/// A component that did not load; the others did.
#[derive(Debug)]
pub struct LoadFailure {
    /// Where it comes from.
    pub origin: Origin,
    /// Its type, as far as its manifest says.
    pub handler: Option<HandlerType>,
    /// SHA-256 of the binary in hex, when it is a component.
    pub digest: Option<String>,
    /// Why.
    pub error: Arc<LoadError>,
}

/// A component that was found, and its bytes when it can be read.
pub type Found = (Origin, Result<Arc<[u8]>, LoadError>);

/// Every component: shipped ones first, then files by name.
pub(crate) fn find_all(sources: &Sources) -> Vec<Found> {
    let shipped = sources.shipped.iter().filter(|(name, _)| {
        let handler: Option<HandlerType> = name.parse().ok();
        handler.is_none_or(|handler| !sources.omit.contains(&handler))
    });
    let mut found: Vec<Found> = shipped
        .map(|(name, bytes)| (Origin::Shipped((*name).to_owned()), Ok(Arc::from(*bytes))))
        .collect();
    match sources.dir.as_deref().map(files).transpose() {
        Ok(files) => found.extend(files.into_iter().flatten().map(|path| {
            let bytes = read(&path);
            (Origin::File(path), bytes)
        })),
        Err(error) => found.push((
            Origin::File(sources.dir.clone().unwrap_or_default()),
            Err(LoadError::Read(error)),
        )),
    }
    found
}

impl Sources {
    /// Types that only shipped components may have.
    pub(crate) fn reserved(&self) -> Vec<HandlerType> {
        let types = self
            .shipped
            .iter()
            .filter_map(|(name, _)| name.parse().ok());
        types
            .filter(|handler| !self.omit.contains(handler))
            .collect()
    }
}

/// Loads all sources.
pub(crate) async fn load_all(host: &Host, sources: &Sources) -> (Registry, Vec<LoadFailure>) {
    let reserved = sources.reserved();
    let loads = find_all(sources).into_iter().map(|(origin, bytes)| {
        let reserved = &reserved;
        async move {
            let examined = bytes.and_then(|bytes| Ok((inspect(&bytes)?, bytes)));
            let (inspection, bytes) = match examined {
                Ok(examined) => examined,
                Err(error) => return (origin, None, Err(error)),
            };
            let loaded = load(host, &origin, &inspection, bytes, reserved, &sources.trust).await;
            (origin, Some(inspection), loaded)
        }
    });
    let (mut registry, mut failures) = (Registry::default(), Vec::new());
    for (origin, inspection, loaded) in join_all(loads).await {
        if let Err(error) = loaded.and_then(|plugin| registry.add(plugin)) {
            let manifest = inspection
                .as_ref()
                .and_then(|found| found.manifest.as_ref().ok());
            failures.push(LoadFailure {
                origin,
                handler: manifest.map(|manifest| manifest.handler_type.clone()),
                digest: inspection.map(|inspection| inspection.digest),
                error: Arc::new(error),
            });
        }
    }
    registry.note(&failures);
    (registry, failures)
}

/// What is checked before anything is compiled: the binary, its manifest, what it may reach.
pub(crate) fn check(
    host: &Host,
    origin: &Origin,
    inspection: &Inspection,
    reserved: &[HandlerType],
    trust: &Trust,
) -> Result<Granted, LoadError> {
    check_exports(inspection)?;
    let handler = &inspection.manifest()?.handler_type;
    match origin {
        Origin::Shipped(name) if name != handler.as_str() => {
            return Err(LoadError::BadDescription {
                field: "type-name",
                reason: format!("it is `{handler}`, shipped as `{name}`"),
            });
        }
        // A shipped component that failed to load leaves no room for another one.
        Origin::File(_) if reserved.contains(handler) => {
            return Err(LoadError::ReservedHandlerType(handler.clone()));
        }
        _ => {}
    }
    let granted = trust.grants(origin, inspection)?;
    component::check_imports(&host.engine, inspection, &granted.grants)?;
    Ok(granted)
}

/// What is known about a component, and why it would not load.
#[derive(Debug)]
pub struct Examination {
    /// Where it comes from.
    pub origin: Origin,
    /// What its binary says.
    pub inspection: Inspection,
    /// What policy and approvals make of it; none: it has no manifest, or nobody reviews here.
    pub review: Option<Review>,
    /// Why it would not load; what is only found when it is compiled is not among it.
    pub problem: Option<LoadError>,
}

impl Examination {
    pub(crate) fn of(
        host: &Host,
        sources: &Sources,
        origin: Origin,
        bytes: &[u8],
    ) -> Result<Self, LoadError> {
        let inspection = inspect(bytes)?;
        let checked = check(
            host,
            &origin,
            &inspection,
            &sources.reserved(),
            &sources.trust,
        );
        let problem = checked
            .and_then(|granted| granted.check_approved(&inspection.manifest()?.handler_type))
            .err();
        Ok(Self {
            review: sources.trust.review(&origin, &inspection).ok().flatten(),
            origin,
            inspection,
            problem,
        })
    }
}

impl Examination {
    /// How it, and what it would get, differ from what was approved; from nothing when nothing was.
    pub fn changes(&self) -> Vec<Change> {
        let (Ok(manifest), Some(review)) = (&self.inspection.manifest, &self.review) else {
            return Vec::new();
        };
        if let Verdict::Differs(changes) = &review.verdict {
            return changes.clone();
        }
        match &review.approval {
            Some(approval) => approval.changes(self.candidate(manifest, review)),
            None => {
                let nothing = Grant {
                    limits: warren_policy::Limits::default(),
                    ..Grant::default()
                };
                let mut changes = diff_wants(&Wants::default(), &manifest.wants);
                changes.extend(diff(&nothing, &review.grant));
                changes
            }
        }
    }

    /// Notes that it was approved as it is, with what it would get now.
    ///
    /// # Errors
    ///
    /// When it has no manifest, the host has no approvals, or they cannot be written.
    pub fn approve(&self, approvals: &LockFile, by: &str) -> Result<GrantId, LoadError> {
        let manifest = self.inspection.manifest()?;
        let review = self
            .review
            .as_ref()
            .ok_or_else(|| LoadError::Internal("nobody reviews plugins here".into()))?;
        approvals
            .change(|lock| lock.approve(self.candidate(manifest, review), by, Timestamp::now()))
            .map_err(|error| LoadError::Lock(Arc::new(error)))
    }

    fn candidate<'a>(&'a self, manifest: &'a Manifest, review: &'a Review) -> Candidate<'a> {
        Candidate {
            digest: &self.inspection.digest,
            imports: &self.inspection.imports,
            manifest,
            grant: &review.grant,
            shipped: None,
        }
    }
}

/// Loads one component: check, compile or take from the cache, link, describe.
async fn load(
    host: &Host,
    origin: &Origin,
    inspection: &Inspection,
    bytes: Arc<[u8]>,
    reserved: &[HandlerType],
    trust: &Trust,
) -> Result<Plugin, LoadError> {
    let granted = check(host, origin, inspection, reserved, trust)?;
    let manifest = inspection.manifest()?.clone();
    granted.check_approved(&manifest.handler_type)?;
    let Granted { grants, review } = granted;
    let cached = host.cache.load(&host.engine, &inspection.digest);
    let (pre, description) = match cached.and_then(with_description) {
        Some((entry, description)) => {
            let pre = component::link(&host.engine, &entry.component, inspection, &grants)?;
            (pre, description)
        }
        None => {
            let component = host
                .compiler
                .compile(&host.engine, &host.cache, &inspection.digest, bytes)
                .await?;
            let pre = component::link(&host.engine, &component, inspection, &grants)?;
            let description = host.describe(origin, &pre, &grants.limits).await?;
            keep(host, inspection, component, &description);
            (pre, description)
        }
    };
    if description.handler_type != manifest.handler_type {
        return Err(LoadError::Manifest(ManifestError::Type {
            manifest: manifest.handler_type,
            described: description.handler_type,
        }));
    }
    Ok(Plugin {
        origin: origin.clone(),
        inspection: inspection.clone(),
        manifest,
        description,
        grants,
        review,
        pre,
    })
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
