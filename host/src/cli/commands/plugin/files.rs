//! Components in and out of the plugin directory.

use std::io::Read;
use std::path::{Path, PathBuf};

use serde_json::json;
use warren::ProjectKey;
use warren::config::{Config, Opened};
use warren::plugin::audit::Decision;
use warren::plugin::{LoadError, Origin, inspect, read};
use warren_disk::atomic::{self, Durable};
use warren_model::{DEFAULT_TENANT, HandlerType};
use warren_policy::{MANIFEST_BYTES_MAX, Manifest, SectionError, append_section, find_section};

use super::super::super::console::{Reply, safe};
use super::super::super::error::CliError;
use super::approval::who;
use super::decided::decided;

/// How many RootDirs an error names.
const PLACES_SHOWN: usize = 10;

/// How much is read at a time.
const PAGE: usize = 1000;

/// What keeps a component out even when everything is granted and approved later.
fn is_final(error: &LoadError) -> bool {
    !matches!(
        error,
        LoadError::NotApproved(_) | LoadError::UngrantedImport(_) | LoadError::Lock(_)
    )
}

pub(super) fn add(config: &Config, opened: &Opened, file: &Path) -> Result<Reply, CliError> {
    let failed = |source| CliError::Inspect {
        subject: file.display().to_string(),
        source,
    };
    let bytes = read(file).map_err(failed)?;
    let runtime = opened.service.runtime();
    let examined = runtime
        .examine(Origin::File(file.to_owned()), &bytes)
        .map_err(failed)?;
    let handler = examined
        .inspection
        .manifest()
        .map_err(failed)?
        .handler_type
        .clone();
    let problem = match examined.problem {
        Some(error) if is_final(&error) => return Err(failed(error)),
        problem => problem,
    };
    let dir = &config.plugins_dir.value;
    let name = format!("{handler}.wasm");
    if let Some(other) = files_of(opened, &handler)
        .iter()
        .find(|path| !path.ends_with(&name))
    {
        return Err(CliError::Unusable {
            file: safe(&file.to_string_lossy()),
            reason: format!("`{}` serves type `{handler}` already", other.display()),
        });
    }
    let doing = || format!("copy the component into `{}`", dir.display());
    std::fs::create_dir_all(dir).map_err(CliError::io(doing()))?;
    let opened_dir = warren_disk::open_root(dir).map_err(CliError::io(doing()))?;
    let decision = Decision {
        verb: "add",
        handler: handler.as_str(),
        digest: Some(&examined.inspection.digest),
        grant: None,
        by: &who(None),
    };
    decided(config, decision, || {
        atomic::write(&opened_dir, &name, &bytes, Durable::Yes).map_err(CliError::io(doing()))
    })?;
    let next = match &problem {
        None => "it is approved: it loads from the next command on".to_owned(),
        Some(error) => error.hint().unwrap_or_else(|| error.to_string()),
    };
    let path = dir.join(&name);
    let value = json!({
        "type": handler,
        "digest": examined.inspection.digest,
        "file": path,
        "problem": problem.as_ref().map(super::problem),
    });
    let said = safe(&path.to_string_lossy());
    Reply::new(&value, format!("copied to {said}\nnext: {next}\n"))
}

/// Files in the plugin directory whose manifest names the type.
fn files_of(opened: &Opened, handler: &HandlerType) -> Vec<PathBuf> {
    let found = opened.service.runtime().found().into_iter();
    found
        .filter_map(|(origin, bytes)| match origin {
            Origin::File(path) => Some((path, bytes.ok()?)),
            Origin::Shipped(_) => None,
        })
        .filter(|(_, bytes)| {
            let manifest = inspect(bytes).ok().and_then(|found| found.manifest.ok());
            manifest.is_some_and(|manifest| manifest.handler_type == *handler)
        })
        .map(|(path, _)| path)
        .collect()
}

pub(super) async fn remove(
    config: &Config,
    opened: &Opened,
    handler: &HandlerType,
    force: bool,
) -> Result<Reply, CliError> {
    let files = files_of(opened, handler);
    if files.is_empty() {
        return Err(CliError::PluginNotFound(handler.to_string()));
    }
    let places = uses(opened, handler).await?;
    if !places.is_empty() && !force {
        return Err(CliError::PluginInUse {
            handler: handler.to_string(),
            places,
        });
    }
    let decision = Decision {
        verb: "remove",
        handler: handler.as_str(),
        digest: None,
        grant: None,
        by: &who(None),
    };
    decided(config, decision, || {
        config
            .approvals(&config.state_dir.value)?
            .change(|lock| lock.plugin.remove(handler))?;
        files.iter().try_for_each(|path| {
            let doing = format!("delete `{}`", path.display());
            std::fs::remove_file(path).map_err(CliError::io(doing))
        })
    })?;
    let value = json!({ "type": handler, "removed": files, "leftWithout": places });
    let deleted = files
        .iter()
        .map(|path| format!("deleted {}\n", safe(&path.to_string_lossy())));
    let without = places
        .iter()
        .map(|place| format!("without a handler now: {place}\n"));
    Reply::new(&value, deleted.chain(without).collect())
}

/// RootDirs of a type in running Workspaces of the default tenant, by Project and name.
async fn uses(opened: &Opened, handler: &HandlerType) -> Result<Vec<String>, CliError> {
    let service = &opened.service;
    let (mut places, mut after) = (Vec::new(), None);
    loop {
        let page = service.list(DEFAULT_TENANT, after, PAGE).await?;
        for view in page.items {
            let key = ProjectKey {
                tenant: view.tenant.parse()?,
                project: view.project_id.parse()?,
            };
            let roots = match service.list_root_dirs(&key, None, PAGE).await {
                Ok(roots) => roots.items,
                // Not on disk: nothing to see.
                Err(
                    warren::Error::WorkspaceNotRunning { .. }
                    | warren::Error::WorkspaceElsewhere { .. },
                ) => {
                    continue;
                }
                Err(error) => return Err(error.into()),
            };
            let of_type = roots.iter().filter(|root| root.handler_type == *handler);
            places.extend(of_type.map(|root| safe(&format!("{}/{}", key.project, root.dir_name))));
        }
        after = page.next;
        if after.is_none() || places.len() >= PLACES_SHOWN {
            places.truncate(PLACES_SHOWN);
            return Ok(places);
        }
    }
}

pub(super) fn stamp(file: &Path, manifest: &Path, out: &Path) -> Result<Reply, CliError> {
    let unusable = |path: &Path, reason: String| CliError::Unusable {
        file: safe(&path.to_string_lossy()),
        reason,
    };
    let failed = |source| CliError::Inspect {
        subject: file.display().to_string(),
        source,
    };
    let component = read(file).map_err(failed)?;
    inspect(&component).map_err(failed)?;
    match find_section(&component) {
        Err(SectionError::Missing) => {}
        Ok(_) => return Err(unusable(file, "it carries a manifest already".to_owned())),
        Err(error) => return Err(unusable(file, error.to_string())),
    }
    let mut text = Vec::new();
    std::fs::File::open(manifest)
        .and_then(|file| {
            file.take(MANIFEST_BYTES_MAX as u64 + 1)
                .read_to_end(&mut text)
        })
        .map_err(CliError::io(format!("read `{}`", manifest.display())))?;
    let said = Manifest::parse(&text).map_err(|error| unusable(manifest, error.to_string()))?;
    let stamped = append_section(&component, &text);
    let inspection = inspect(&stamped).map_err(failed)?;
    let doing = || format!("write `{}`", out.display());
    let name = out.file_name().and_then(|name| name.to_str());
    let name = name.ok_or_else(|| unusable(out, "it is no file name".to_owned()))?;
    let parent = match out.parent() {
        Some(parent) if parent != Path::new("") => parent,
        _ => Path::new("."),
    };
    let parent = std::fs::canonicalize(parent).map_err(CliError::io(doing()))?;
    let dir = warren_disk::open_root(&parent).map_err(CliError::io(doing()))?;
    atomic::write(&dir, name, &stamped, Durable::No).map_err(CliError::io(doing()))?;
    let value = json!({ "type": said.handler_type, "file": out, "digest": inspection.digest });
    let shown = safe(&out.to_string_lossy());
    Reply::new(
        &value,
        format!(
            "{shown} is `{}` {}\n",
            said.handler_type,
            safe(&said.version)
        ),
    )
}
