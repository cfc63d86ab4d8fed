//! The programs of this machine that a policy may name.

use std::io::Read;
use std::path::{Path, PathBuf};

use warren_process::{ProcessError, Programs};

use super::{Config, Installer};

/// What stands for the configured interpreter, and those on the `PATH`.
const PYTHON: &str = "@python";

/// What stands for `uv`, unless the configuration wants pip.
const UV: &str = "@uv";

/// The programs that a list of names, absolute paths and tokens gives. Programs in the managed
/// region are none.
pub(super) fn programs(config: &Config, names: &[String]) -> Result<Programs, ProcessError> {
    let search = search();
    let forbidden = [
        config.workspace_root.value.clone(),
        config.state_dir.value.clone(),
    ];
    let mut programs = Programs::new(&search, &forbidden)?;
    for name in names {
        match name.as_str() {
            PYTHON => python(config, &search, &mut programs)?,
            UV => uv(config, &mut programs),
            path if path.starts_with('/') => {
                programs.allow(PathBuf::from(path))?;
                // It may be asked for by its file name too.
                if let Some(alias) = Path::new(path).file_name().and_then(|name| name.to_str()) {
                    programs.alias(alias, &[path]);
                }
            }
            "python" => programs.alias("python", &interpreter(config, &search)),
            "uv" => uv(config, &mut programs),
            name => programs.alias(name, &[name]),
        }
    }
    Ok(programs)
}

fn python(
    config: &Config,
    search: &[PathBuf],
    programs: &mut Programs,
) -> Result<(), ProcessError> {
    programs.alias("python", &interpreter(config, search));
    for path in interpreters(search) {
        programs.allow(path)?;
    }
    let named = Path::new(&config.python_interpreter.value);
    if named.is_absolute() {
        programs.allow(named.to_owned())?;
    }
    Ok(())
}

fn interpreter(config: &Config, search: &[PathBuf]) -> Vec<String> {
    candidates(&config.python_interpreter.value, search)
}

fn uv(config: &Config, programs: &mut Programs) {
    if config.python_installer.value != Installer::Pip {
        programs.alias("uv", &["uv"]);
    }
}

/// Whether `uv` is on this machine.
pub(super) fn has_uv(config: &Config) -> bool {
    programs(config, &[UV.to_owned()]).is_ok_and(|found| found.resolve_alias("uv").is_ok())
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
