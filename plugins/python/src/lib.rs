//! The `python` handler: sources in git, and a virtual environment made for them.
//!
//! The sources are a fork of `repoUrl`, or an empty repository without it. The environment is
//! `.venv`, made by `uv` where the Pod has it and by `venv` and pip elsewhere; it is never saved, but
//! made again on recover. A `requirements.txt` is installed whenever the environment is made: on
//! init, on recover and by `rebuild-venv`.

mod gitignore;
mod interpreter;
mod run;
mod settings;
mod tree;
mod venv;

#[cfg(test)]
mod tests;

use serde_json::{Map, Value};
use warren_sdk::{Description, Error, Handler, LossKind, Metadata, Root, Suspended, git, worktree};

use interpreter::Interpreter;
pub use settings::Settings;

/// Name of the action that makes the environment anew.
pub const REBUILD: &str = "rebuild-venv";

/// Branch of a repository that is not a fork.
const FIRST_BRANCH: &str = "main";

/// Keeps Python sources and an environment for them.
pub struct Python;

impl Handler for Python {
    type Settings = Settings;

    fn describe() -> Description {
        Description::new(
            "python",
            env!("CARGO_PKG_VERSION"),
            "Python sources in git, with a virtual environment made for them",
        )
        .default_label("python")
        .action(
            REBUILD,
            "Makes `.venv` anew, with another interpreter if one is named",
        )
    }

    fn init(_: &Root, mut spec: Metadata<Settings>) -> Result<Metadata<Settings>, Error> {
        // First what fails fast: a clone may take long.
        let python = Interpreter::find(spec.python_path.as_deref())?;
        if spec.git.repo_url.is_some() {
            worktree::init(&mut spec.git)?;
        } else {
            spec.refuse_what_needs_a_remote()?;
            let branch = spec.git.branch.as_deref().unwrap_or(FIRST_BRANCH);
            git::init(branch, None)?;
        }
        let root = warren_sdk::root();
        gitignore::merge(&root)?;
        venv::make(&python, &root)?;
        Ok(spec)
    }

    fn suspend(root: &Root, mut current: Metadata<Settings>) -> Result<Suspended<Settings>, Error> {
        if current.git.repo_url.is_none() {
            return Err(Error::SuspendNotConfigured(format!(
                "`{}` was made without a remote: make it again with `repoUrl` (`--repo URL`), \
                 or dispose of it",
                root.dir_name
            )));
        }
        venv::repair(&warren_sdk::root())?;
        let mut loss = worktree::suspend(root, &mut current.git)?;
        for lost in &mut loss {
            let first = lost.path.split('/').next();
            if lost.kind == LossKind::Ignored && first == Some(venv::NAME) {
                lost.kind = LossKind::Rebuilt;
            }
        }
        Ok(Suspended {
            metadata: current,
            loss,
        })
    }

    fn recover(_: &Root, mut saved: Metadata<Settings>) -> Result<Metadata<Settings>, Error> {
        let python = Interpreter::find(saved.python_path.as_deref())?;
        worktree::recover(&mut saved.git)?;
        // `.gitignore` stays as it was saved: the tree comes back exactly.
        venv::make(&python, &warren_sdk::root())?;
        Ok(saved)
    }

    fn close(root: &Root, current: Metadata<Settings>) -> Result<(), Error> {
        if current.git.repo_url.is_none() || !current.git.commit_on_close {
            return Ok(());
        }
        venv::repair(&warren_sdk::root())?;
        worktree::close(root, &current.git)
    }

    fn perform(
        _: &Root,
        action: &str,
        arguments: Value,
        mut current: Metadata<Settings>,
    ) -> Result<Metadata<Settings>, Error> {
        if action != REBUILD {
            return Err(Error::UnsupportedAction(action.to_owned()));
        }
        let arguments = arguments.as_object().cloned().unwrap_or_default();
        if let Some(path) = python_path(arguments)? {
            current.python_path = path;
        }
        let python = Interpreter::find(current.python_path.as_deref())?;
        venv::rebuild(&python, &warren_sdk::root())?;
        Ok(current)
    }
}

/// Reads `pythonPath` of the arguments: none when it is not given, none inside when it is `null`,
/// which goes back to the Pod's own interpreter.
fn python_path(mut arguments: Map<String, Value>) -> Result<Option<Option<String>>, Error> {
    let path = match arguments.remove("pythonPath") {
        None => None,
        Some(Value::Null) => Some(None),
        Some(Value::String(path)) => Some(Some(path)),
        Some(_) => return Err(Error::invalid_metadata("pythonPath", "not a string")),
    };
    match arguments.keys().next() {
        Some(key) => Err(Error::invalid_metadata(
            key,
            "not an argument of this action",
        )),
        None => Ok(path),
    }
}

warren_sdk::export_handler!(Python, manifest = "manifest.toml");
