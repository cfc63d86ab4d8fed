//! The environment: made in place, since it holds absolute paths, and never left half made.
//!
//! A rebuild moves the old one to `.venv.warren-old` until the new one is ready. That name is the
//! record of a rebuild under way: while it exists, the old environment is the good one.

use std::path::Path;

use warren_sdk::process::{Command, Program};
use warren_sdk::{Error, log, progress};

use crate::interpreter::{Installer, Interpreter, uv};
use crate::run;
use crate::tree::{self, Kind};

/// Name of the environment.
pub(crate) const NAME: &str = ".venv";

/// The old environment while a new one is made.
const OLD: &str = ".venv.warren-old";

/// The old environment once the new one is ready.
const GONE: &str = ".venv.warren-gone";

/// Its interpreter.
const PYTHON: &str = ".venv/bin/python";

const REQUIREMENTS: &str = "requirements.txt";

/// Longest one, in bytes: pip reads it whole and repeats what it does not understand.
const REQUIREMENTS_BYTES_MAX: u64 = 1024 * 1024;

/// Makes the environment and installs the requirements, in place of whatever is there. On failure
/// there is none.
pub(crate) fn make(python: &Interpreter, root: &Path) -> Result<(), Error> {
    let path = root.join(NAME);
    tree::remove(&path)?;
    fill(python, root).inspect_err(|_| clean_up(&path))
}

/// Makes the environment anew. On failure the one that was there is back.
pub(crate) fn rebuild(python: &Interpreter, root: &Path) -> Result<(), Error> {
    repair(root)?;
    let (path, old, gone) = (root.join(NAME), root.join(OLD), root.join(GONE));
    if tree::kind(&path)? != Kind::Directory {
        return make(python, root);
    }
    tree::rename(&path, &old)?;
    if let Err(error) = fill(python, root) {
        // The reason of the failure matters more; the next call repairs what this one cannot.
        if let Err(second) = take_back(root) {
            log::error(&format!("the old environment is not back: {second:?}"));
        }
        return Err(error);
    }
    // From here on the new one counts.
    tree::rename(&old, &gone)?;
    tree::remove(&gone)
}

/// Finishes or takes back a rebuild that was interrupted.
pub(crate) fn repair(root: &Path) -> Result<(), Error> {
    if tree::kind(&root.join(OLD))? == Kind::Directory {
        log::warn("a rebuild was interrupted: the old environment comes back");
        take_back(root)?;
    }
    let gone = root.join(GONE);
    if tree::kind(&gone)? == Kind::Directory {
        tree::remove(&gone)?;
    }
    Ok(())
}

/// Puts the old environment in place of the new one.
fn take_back(root: &Path) -> Result<(), Error> {
    let path = root.join(NAME);
    tree::remove(&path)?;
    tree::rename(&root.join(OLD), &path)
}

/// Best effort: the error that led here is what the caller must see.
fn clean_up(path: &Path) {
    if let Err(error) = tree::remove(path) {
        log::error(&format!("half an environment is left: {error:?}"));
    }
}

fn fill(python: &Interpreter, root: &Path) -> Result<(), Error> {
    let steps = Some(2);
    progress::report("venv", 0, steps);
    match python.installer {
        Installer::Uv => run::checked("uv venv", &uv_venv(python)).map(drop)?,
        Installer::Pip => plain_venv(python)?,
    }
    check_ready(python.installer)?;
    progress::report("install", 1, steps);
    if tree::kind(&root.join(REQUIREMENTS))? == Kind::Other {
        check_length(&root.join(REQUIREMENTS))?;
        let (what, command) = match python.installer {
            Installer::Uv => ("uv pip install", uv_install()),
            Installer::Pip => ("pip install", pip_install()),
        };
        run::checked(what, &command)?;
    }
    progress::report("install", 2, steps);
    Ok(())
}

fn check_length(requirements: &Path) -> Result<(), Error> {
    let found = std::fs::symlink_metadata(requirements);
    let bytes = found
        .map_err(|error| warren_sdk::io(requirements, error))?
        .len();
    match bytes > REQUIREMENTS_BYTES_MAX {
        true => Err(Error::ProgramFailed(format!(
            "`{REQUIREMENTS}` has {bytes} bytes; {REQUIREMENTS_BYTES_MAX} are read at most"
        ))),
        false => Ok(()),
    }
}

/// `uv` reads neither its configuration nor the checkout's, and downloads no interpreter. There is
/// no pip in the environment: `uv pip` installs from outside.
fn uv_venv(python: &Interpreter) -> Command {
    Command::new(uv())
        .args(["venv", "--no-config", "--no-project", "--no-progress"])
        .args(["--no-python-downloads", "--python", &python.path, NAME])
}

/// Copies instead of hard links: one RootDir must not be able to change the cache of all.
fn uv_install() -> Command {
    Command::new(uv())
        .args(["pip", "install", "--no-config", "--no-progress"])
        .args(["--no-python-downloads", "--python", PYTHON])
        .args(["--link-mode", "copy", "-r", REQUIREMENTS])
}

fn plain_venv(python: &Interpreter) -> Result<(), Error> {
    let output = run::any(&python.command().args(["-m", "venv", NAME]))?;
    if output.exit_code == 0 {
        return Ok(());
    }
    // Debian's `venv` explains at length that `ensurepip` is not available; or it is, and fails.
    if output.stderr.contains("ensurepip") || output.stdout.contains("ensurepip") {
        return Err(python.lacks_venv());
    }
    Err(Error::ProgramFailed(run::failure(
        "python -m venv",
        &output,
    )))
}

/// Never the pip of the interpreter: packages of a RootDir do not go to the Pod.
fn pip_install() -> Command {
    in_venv()
        .args(["-m", "pip", "--require-virtualenv", "--no-input"])
        .args(["--disable-pip-version-check", "--no-color", "install"])
        .args(["--progress-bar", "off", "-r", REQUIREMENTS])
}

fn in_venv() -> Command {
    Command::new(Program::InRoot(PYTHON.to_owned())).args(["-I"])
}

/// The environment's interpreter runs, has pip when pip is to install, and belongs to this root.
fn check_ready(installer: Installer) -> Result<(), Error> {
    let modules = match installer {
        Installer::Uv => "os, sys",
        Installer::Pip => "os, sys, pip",
    };
    let script = format!(
        "import {modules}; print(os.path.realpath(sys.prefix) == os.path.realpath('{NAME}'))"
    );
    let output = run::any(&in_venv().args(["-c", &script]))?;
    if output.exit_code == 0 && output.stdout.trim() == "True" {
        return Ok(());
    }
    let reason = match output.exit_code {
        0 => "its interpreter belongs to another directory".to_owned(),
        _ => run::failure(PYTHON, &output),
    };
    let action = crate::REBUILD;
    Err(Error::BrokenEnvironment(format!(
        "`{NAME}` does not work, run `{action}`: {reason}"
    )))
}
