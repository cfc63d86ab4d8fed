use std::env;
use std::os::unix::fs::PermissionsExt;
use std::path::{Path, PathBuf};

use crate::client;
use crate::{Command, Output, OutputSink, ProcessError};

/// File name of the launcher.
const NAME: &str = "warren-launch";

/// Where `warren-launch` is, and how it is used.
#[derive(Debug, Clone)]
pub struct Launcher {
    path: PathBuf,
    namespaces: bool,
}

impl Launcher {
    /// Finds the launcher: at the path given, else beside the running program (cargo puts tests one
    /// folder below the programs; that is looked at too).
    ///
    /// # Errors
    /// `NoLauncher`: there is no such executable file.
    pub fn locate(explicit: Option<&Path>) -> Result<Self, ProcessError> {
        let candidates = match explicit {
            Some(path) => vec![path.to_owned()],
            None => beside_this_program()?,
        };
        let first = candidates.first().cloned().unwrap_or_default();
        let found = candidates
            .iter()
            .filter_map(|path| path.canonicalize().ok());
        let path = found.into_iter().find(|path| is_executable(path));
        Ok(Self {
            path: path.ok_or(ProcessError::NoLauncher(first))?,
            namespaces: true,
        })
    }

    /// The program itself, without links.
    pub fn path(&self) -> &Path {
        &self.path
    }

    /// Whether children get namespaces of their own where the kernel allows it; they do by default.
    /// Without, their descendants are found through `/proc`.
    #[must_use]
    pub fn with_namespaces(mut self, namespaces: bool) -> Self {
        self.namespaces = namespaces;
        self
    }

    /// Runs a program to its end and kills whatever it leaves behind.
    ///
    /// Must run on a tokio runtime with I/O and time. When the future is dropped, the program and
    /// all its descendants are killed, in the background.
    ///
    /// # Errors
    /// See [`ProcessError`]. An exit code other than 0 is not an error.
    pub async fn run(
        &self,
        command: Command<'_>,
        on_output: Option<&mut OutputSink<'_>>,
    ) -> Result<Output, ProcessError> {
        command.check()?;
        client::run(&self.path, self.namespaces, command, on_output).await
    }
}

fn beside_this_program() -> Result<Vec<PathBuf>, ProcessError> {
    let program = env::current_exe().map_err(ProcessError::failed(
        "the path of this program is not known",
    ))?;
    let mut folders: Vec<_> = program.parent().into_iter().collect();
    if folders[..].iter().any(|folder| folder.ends_with("deps")) {
        folders.extend(folders[0].parent());
    }
    Ok(folders
        .into_iter()
        .map(|folder| folder.join(NAME))
        .collect())
}

fn is_executable(path: &Path) -> bool {
    let metadata = path.metadata();
    metadata.is_ok_and(|metadata| metadata.is_file() && metadata.permissions().mode() & 0o111 != 0)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_missing_launcher_is_named() {
        let error = Launcher::locate(Some(Path::new("/nowhere/warren-launch"))).unwrap_err();
        assert_eq!(error.code(), "ProcessNoLauncher");
        assert!(error.to_string().contains("/nowhere/warren-launch"));
        assert!(error.hint().unwrap().contains("cargo build"));
        // There, but not a program.
        assert!(Launcher::locate(Some(Path::new("/etc/passwd"))).is_err());
    }
}
