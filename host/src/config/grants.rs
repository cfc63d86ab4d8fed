//! What each plugin may do: what is shipped, and what `[plugins.grants]` says beside it.

use std::io::Read;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::Duration;

use warren_mirror::RefPatterns;
use warren_model::{Endpoint, Endpoints, Target};
use warren_process::{ChildLimits, Programs};

use super::build::OpenError;
use super::{Config, ConfigError, Installer, PluginGrants, Setting};
use crate::plugin::{GitGrant, GrantTable, Grants, ProcessGrant, UidRange};

/// Refs that `git` and `python` may push: `commitOnClose` goes to the branch itself. Nothing is
/// ever forced.
const PUSH_REFS: [&str; 1] = ["refs/heads/**"];

/// What a build of packages needs, and no more.
const CHILD_LIMITS: ChildLimits = ChildLimits {
    open_files: Some(4096),
    file_bytes: Some(8 << 30),
    processes: Some(512),
    memory_bytes: Some(4 << 30),
};

/// Longest run of a child.
const CHILD_WALL_MAX: Duration = Duration::from_secs(600);

/// Users of Projects' children, when the host is root.
const UIDS: UidRange = UidRange {
    first: 200_000,
    count: 65_536,
};

/// The grants by plugin.
pub(super) fn table(config: &Config) -> Result<GrantTable, OpenError> {
    let git = GitGrant {
        push_refs: RefPatterns::new(&PUSH_REFS).map_err(OpenError::Mirrors)?,
        aliases: None,
        received_bytes_max: None,
    };
    let mut table = GrantTable::shipped(git.clone(), python(config)?);
    for (name, more) in &config.plugin_grants {
        let mut grants = table.get(name).clone();
        match more.git.as_ref().map(|git| git.value) {
            Some(true) => grants.git = Some(git.clone()),
            Some(false) => grants.git = None,
            None => {}
        }
        more_programs(config, name, more, &mut grants)?;
        table.set(name, grants);
    }
    Ok(table)
}

fn python(config: &Config) -> Result<ProcessGrant, OpenError> {
    let search = search();
    let mut programs = no_programs(config, &search)?;
    programs.alias(
        "python",
        &candidates(&config.python_interpreter.value, &search),
    );
    let installer = &config.python_installer;
    if installer.value != Installer::Pip {
        programs.alias("uv", &["uv"]);
    }
    if installer.value == Installer::Uv && programs.resolve_alias("uv").is_err() {
        return Err(invalid(
            "python.installer",
            installer,
            "there is no `uv` on the host's `PATH`",
        ));
    }
    for path in interpreters(&search) {
        programs.allow(path).map_err(OpenError::Programs)?;
    }
    let named = Path::new(&config.python_interpreter.value);
    if named.is_absolute() {
        programs
            .allow(named.to_owned())
            .map_err(OpenError::Programs)?;
    }
    Ok(ProcessGrant {
        in_root: [".venv/bin/python", ".venv/bin/pip"]
            .map(str::to_owned)
            .into(),
        variables: installers(config.python_index.value.as_deref()),
        network: index(config)?,
        ..process(programs)
    })
}

/// The server of the index.
fn index(config: &Config) -> Result<Endpoints, OpenError> {
    let setting = &config.python_index;
    let Some(url) = &setting.value else {
        return Ok(Endpoints::default());
    };
    let target = Target::from_url(url)
        .map_err(|error| invalid("python.index", setting, &error.to_string()))?;
    Ok(Endpoints::new(vec![Endpoint::exact(target)]))
}

/// Variables for pip and uv: no configuration of the Pod's, no questions, caches in `HOME`, which is
/// gone with the call, and the one index.
fn installers(index: Option<&str>) -> Vec<(String, String)> {
    let mut variables = vec![
        ("PIP_CONFIG_FILE", "/dev/null"),
        ("PIP_DISABLE_PIP_VERSION_CHECK", "1"),
        ("PIP_NO_INPUT", "1"),
        ("PYTHONNOUSERSITE", "1"),
        ("UV_NO_CONFIG", "1"),
        ("UV_PYTHON_DOWNLOADS", "never"),
    ];
    if let Some(index) = index {
        variables.extend([("PIP_INDEX_URL", index), ("UV_DEFAULT_INDEX", index)]);
    }
    let owned = |(name, value): (&str, &str)| (name.to_owned(), value.to_owned());
    variables.into_iter().map(owned).collect()
}

fn more_programs(
    config: &Config,
    name: &str,
    more: &PluginGrants,
    grants: &mut Grants,
) -> Result<(), OpenError> {
    let Some(listed) = &more.programs else {
        return Ok(());
    };
    if listed.value.is_empty() {
        grants.process = None;
        return Ok(());
    }
    let mut granted = match grants.process.take() {
        Some(granted) => granted,
        None => process(no_programs(config, &search())?),
    };
    let programs = Arc::make_mut(&mut granted.programs);
    for program in &listed.value {
        let path = Path::new(program);
        let key = || format!("plugins.grants.{name}.programs");
        let Some(alias) = path.file_name().and_then(|name| name.to_str()) else {
            return Err(invalid(
                key(),
                listed,
                &format!("`{program}` is no program"),
            ));
        };
        if path.is_absolute() {
            programs
                .allow(path.to_owned())
                .map_err(OpenError::Programs)?;
        } else if alias != program {
            let reason = format!("`{program}` is neither a name nor an absolute path");
            return Err(invalid(key(), listed, &reason));
        }
        programs.alias(alias, &[program]);
    }
    grants.process = Some(granted);
    Ok(())
}

/// A policy that grants nothing yet; programs in the managed region are none.
fn no_programs(config: &Config, search: &[PathBuf]) -> Result<Programs, OpenError> {
    let forbidden = [
        config.workspace_root.value.clone(),
        config.state_dir.value.clone(),
    ];
    Programs::new(search, &forbidden).map_err(OpenError::Programs)
}

fn process(programs: Programs) -> ProcessGrant {
    ProcessGrant {
        programs: Arc::new(programs),
        in_root: Vec::new(),
        environment: Vec::new(),
        variables: Vec::new(),
        network: Endpoints::default(),
        network_limits: warren_egress::proxy::Limits::default(),
        uids: Some(UIDS),
        unconfined: false,
        wall_max: CHILD_WALL_MAX,
        limits: CHILD_LIMITS,
    }
}

fn invalid<T>(key: impl Into<String>, setting: &Setting<T>, reason: &str) -> OpenError {
    OpenError::Config(ConfigError::Invalid {
        key: key.into(),
        origin: setting.origin.clone(),
        reason: reason.to_owned(),
    })
}

/// The host's `PATH`, relative parts left out.
fn search() -> Vec<PathBuf> {
    let path = std::env::var_os("PATH").unwrap_or_default();
    std::env::split_paths(&path)
        .filter(|path| path.is_absolute())
        .collect()
}

/// Where an interpreter may be, best first. A script in its place, as version managers put there,
/// starts another one that nobody granted: real programs come before it.
fn candidates(name: &str, search: &[PathBuf]) -> Vec<String> {
    let mut found: Vec<String> = search
        .iter()
        .map(|dir| dir.join(name))
        .filter(|path| is_binary(path))
        .filter_map(|path| path.to_str().map(str::to_owned))
        .collect();
    found.push(name.to_owned());
    found
}

fn is_binary(path: &Path) -> bool {
    let mut start = [0; 4];
    std::fs::metadata(path).is_ok_and(|found| found.is_file())
        && std::fs::File::open(path).is_ok_and(|mut file| file.read_exact(&mut start).is_ok())
        && start == *b"\x7fELF"
}

/// Interpreters on the Pod, which `pythonPath` may name.
fn interpreters(search: &[PathBuf]) -> Vec<PathBuf> {
    let mut found = Vec::new();
    for dir in search {
        // A folder of `PATH` that is not there is nothing unusual.
        for entry in std::fs::read_dir(dir).into_iter().flatten().flatten() {
            if entry.file_name().to_str().is_some_and(is_python) {
                found.push(entry.path());
            }
        }
    }
    found.sort();
    found.dedup();
    found
}

/// `python`, `python3` and `python3.N`.
fn is_python(name: &str) -> bool {
    let Some(version) = name.strip_prefix("python") else {
        return false;
    };
    let minor = version.strip_prefix("3.");
    matches!(version, "" | "3")
        || minor.is_some_and(|minor| !minor.is_empty() && minor.bytes().all(|b| b.is_ascii_digit()))
}

#[cfg(test)]
mod tests {
    use super::{candidates, is_python};

    #[test]
    fn a_real_program_comes_before_a_script() {
        let dir = tempfile::tempdir().unwrap();
        let [shims, real, none] = ["shims", "real", "none"].map(|name| dir.path().join(name));
        for (folder, content) in [(&shims, &b"#!/bin/sh\n"[..]), (&real, b"\x7fELF...")] {
            std::fs::create_dir(folder).unwrap();
            std::fs::write(folder.join("python3"), content).unwrap();
        }
        let search = [none, shims, real.clone()];
        let real = real.join("python3").to_str().unwrap().to_owned();
        assert_eq!(candidates("python3", &search), [real, "python3".to_owned()]);
        assert_eq!(candidates("python4", &search), ["python4"]);
    }

    #[test]
    fn only_interpreters_are_interpreters() {
        for name in ["python", "python3", "python3.13"] {
            assert!(is_python(name), "{name}");
        }
        for name in [
            "python3-config",
            "python3.",
            "python3.13t-config",
            "python2",
            "pythonw",
            "sh",
        ] {
            assert!(!is_python(name), "{name}");
        }
    }
}
