//! The least policy that covers what a plugin was seen to use.

use std::collections::{BTreeMap, BTreeSet};

use warren_model::{Endpoint, HandlerType};
use warren_policy::{
    Access, Capability, DocumentError, GitPolicy, HttpPolicy, PluginPolicy, Policy, ProcessPolicy,
    capabilities,
};

use super::usage::{Usage, Used};

/// A policy with one table: what the plugin of this type needs for what it did, and no more.
///
/// Limits stay as they are in `current`, what the policy grants it now: how much it used says little
/// about how much it needs. `imports` is what its component imports: without a grant of each, it would not load. What was
/// refused is not in it. Where a name of this Pod stands for more than itself, `@python` for
/// `python` say, the policy's own word for it is used.
pub fn suggest<S: AsRef<str>>(
    handler: &HandlerType,
    current: Option<&PluginPolicy>,
    imports: &[S],
    usage: &Usage,
) -> Policy {
    let plain = PluginPolicy::default();
    let nothing = Used::default();
    let used = usage.by_handler.get(handler.as_str()).unwrap_or(&nothing);
    let granted = plugin(used, current.unwrap_or(&plain), &capabilities(imports));
    Policy {
        plugin: BTreeMap::from([(handler.clone(), granted)]),
        ..Policy::default()
    }
}

/// The policy as a file, with what it was made from.
///
/// # Errors
/// When it cannot be written as TOML, or is none that the host would read.
pub fn to_file<S: AsRef<str>>(
    handler: &HandlerType,
    current: Option<&PluginPolicy>,
    imports: &[S],
    usage: &Usage,
) -> Result<String, DocumentError> {
    let text = suggest(handler, current, imports, usage).to_toml()?;
    Policy::parse(text.as_bytes())?;
    let period = match usage.period {
        Some((from, to)) => format!("from {from:.0} to {to:.0}"),
        None => "of an empty audit log".to_owned(),
    };
    Ok(format!(
        "# What `{handler}` used {period}, and no more.\n{text}"
    ))
}

fn plugin(used: &Used, current: &PluginPolicy, imported: &BTreeSet<Capability>) -> PluginPolicy {
    let imports = |capability| imported.contains(&capability);
    let has = |key: &str| used.targets(key).any(|(_, uses)| uses.ok > 0);
    let names = |key: &str| -> Vec<String> {
        // What only ever failed may be anything that a caller wrote.
        let seen = used.targets(key).filter(|(_, uses)| uses.ok > 0);
        seen.map(|(name, _)| name.clone()).collect()
    };
    let calls = used.calls.values().any(super::Uses::is_used);
    PluginPolicy {
        root: match (has("root"), calls) {
            (true, _) => Access::ReadWrite,
            (false, true) => Access::ReadOnly,
            (false, false) => Access::None,
        },
        log: imports(Capability::Log),
        progress: imports(Capability::Progress),
        git: imports(Capability::Git).then(|| GitPolicy {
            remotes: names("git.remotes"),
            push: names("git.push").into_iter().map(full_ref).collect(),
            credentials: names("git.credentials"),
            received_bytes: current.git.as_ref().and_then(|git| git.received_bytes),
            unconfined: false,
        }),
        process: imports(Capability::Process).then(|| ProcessPolicy {
            programs: programs(names("process.programs")),
            in_root: names("process.in-root"),
            network: names("process.network")
                .iter()
                .map(|name| endpoint(name))
                .collect(),
            environment: names("process.environment"),
            unconfined: false,
            ..current.process.clone().unwrap_or_default()
        }),
        http: imports(Capability::Http).then(|| HttpPolicy {
            hosts: names("http.hosts")
                .iter()
                .map(|name| endpoint(name))
                .collect(),
            ..current.http.clone().unwrap_or_default()
        }),
        limits: current.limits.clone(),
    }
}

fn programs(names: Vec<String>) -> Vec<String> {
    let token = |name: String| match name.as_str() {
        "python" => "@python".to_owned(),
        "uv" => "@uv".to_owned(),
        _ => name,
    };
    let set: BTreeSet<String> = names.into_iter().map(token).collect();
    set.into_iter().collect()
}

fn full_ref(name: String) -> String {
    match name.starts_with("refs/") {
        true => name,
        false => format!("refs/heads/{name}"),
    }
}

/// The endpoint in the form that a policy has for it.
fn endpoint(server: &str) -> String {
    server
        .parse::<Endpoint>()
        .map_or_else(|_| server.to_owned(), |endpoint| endpoint.to_string())
}
