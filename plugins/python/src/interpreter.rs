//! The interpreter and the installer that an environment is made with.

use warren_sdk::process::{self, Command, Program};
use warren_sdk::{Error, log};

use crate::run;

/// What makes the environment and fills it.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Installer {
    /// `uv`, which needs nothing of the interpreter.
    Uv,
    /// The interpreter's own `venv` and pip.
    Pip,
}

/// An interpreter that was tried, and the installer.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Interpreter {
    /// How the host knows it.
    pub(crate) program: Program,
    /// Its absolute path on the Pod.
    pub(crate) path: String,
    /// What makes environments for it.
    pub(crate) installer: Installer,
}

/// The program `uv`, under the name that the policy has for it.
pub(crate) fn uv() -> Program {
    Program::Alias("uv".to_owned())
}

impl Interpreter {
    /// Finds the one that was asked for, or the Pod's own, and tries that it has what the installer
    /// needs.
    ///
    /// Fails with [`Error::MissingProgram`] when it is absent or lacks `venv` or `ensurepip`.
    pub(crate) fn find(python_path: Option<&str>) -> Result<Self, Error> {
        let (program, name) = match python_path {
            Some(path) => (Program::Path(path.to_owned()), path),
            None => (Program::Alias("python".to_owned()), "python"),
        };
        let Some(path) = process::find(&program)? else {
            let hint = match python_path {
                Some(_) => {
                    "`pythonPath` names no interpreter that this Pod has and the policy grants"
                }
                None => "this Pod has no interpreter, or the policy grants none",
            };
            return Err(Error::MissingProgram(format!("`{name}`: {hint}")));
        };
        let installer = match process::find(&uv())? {
            Some(_) => Installer::Uv,
            None => Installer::Pip,
        };
        let found = Self {
            program,
            path,
            installer,
        };
        found.check()?;
        Ok(found)
    }

    /// A command of this interpreter. Always isolated: without `-I`, a `venv.py` in the checkout
    /// would run in place of the real one.
    pub(crate) fn command(&self) -> Command {
        Command::new(self.program.clone()).args(["-I"])
    }

    fn check(&self) -> Result<(), Error> {
        let modules = match self.installer {
            Installer::Uv => "sys",
            Installer::Pip => "sys, venv, ensurepip",
        };
        let script = format!("import {modules}; print('%d.%d.%d' % sys.version_info[:3])");
        let output = run::any(&self.command().args(["-c", &script]))?;
        if output.exit_code == 0 {
            log::info(&format!(
                "Python {} at `{}`",
                output.stdout.trim(),
                self.path
            ));
            return Ok(());
        }
        if output.stderr.contains("ModuleNotFoundError") {
            return Err(self.lacks_venv());
        }
        Err(Error::ProgramFailed(run::failure(&self.path, &output)))
    }

    /// The interpreter can not make an environment.
    pub(crate) fn lacks_venv(&self) -> Error {
        Error::MissingProgram(format!(
            "`{}` lacks `venv` or `ensurepip`: install the package `python3-venv`, or `uv`",
            self.path
        ))
    }
}
