//! What the tests share.

use std::collections::BTreeMap;
use std::fs;
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicU32, Ordering};
use std::time::Duration;

use cap_std::ambient_authority;
use cap_std::fs::Dir;
use tempfile::TempDir;
use warren_process::{
    ChildLimits, Command, Confined, Confinement, Environment, Identity, Launcher, Output,
    OutputCaps, ProcessError, Program, Programs,
};

/// Name of the variable by which a test finds its children.
const MARK: &str = "WARREN_TEST_MARK";

/// Both ways to end a tree.
pub(crate) const BOTH: [bool; 2] = [true, false];

pub(crate) fn launcher(namespaces: bool) -> Launcher {
    let path = Path::new(env!("CARGO_BIN_EXE_warren-launch"));
    let launcher = Launcher::locate(Some(path)).unwrap();
    launcher.with_namespaces(namespaces)
}

/// The launcher, started by a command that gives it less.
pub(crate) fn launcher_by(place: &Place, command: &str) -> Launcher {
    let path = place.path().join("launcher");
    // Where others may execute it.
    let own = place.path().join("warren-launch");
    fs::copy(env!("CARGO_BIN_EXE_warren-launch"), &own).unwrap();
    fs::write(&path, format!("#!/bin/sh\n{command} {}\n", own.display())).unwrap();
    for path in [&place.path(), &own, &path] {
        fs::set_permissions(path, std::os::unix::fs::PermissionsExt::from_mode(0o755)).unwrap();
    }
    Launcher::locate(Some(&path)).unwrap()
}

/// A working directory, the shell, and a mark of their own.
pub(crate) struct Place {
    temporary: TempDir,
    pub(crate) directory: Dir,
    pub(crate) shell: Program,
    pub(crate) mark: String,
}

impl Place {
    pub(crate) fn new() -> Self {
        static COUNT: AtomicU32 = AtomicU32::new(0);
        let number = COUNT.fetch_add(1, Ordering::Relaxed);
        Self::with_mark(format!("{}-{number}-", std::process::id()))
    }

    pub(crate) fn with_mark(mark: String) -> Self {
        let memory = Path::new("/dev/shm");
        let temporary = if memory.is_dir() {
            tempfile::tempdir_in(memory).unwrap()
        } else {
            tempfile::tempdir().unwrap()
        };
        let mut programs = Programs::new(&[], &[]).unwrap();
        programs.alias("sh", &["/bin/sh"]);
        Self {
            directory: Dir::open_ambient_dir(temporary.path(), ambient_authority()).unwrap(),
            temporary,
            shell: programs.resolve_alias("sh").unwrap(),
            mark,
        }
    }

    pub(crate) fn path(&self) -> PathBuf {
        self.temporary.path().canonicalize().unwrap()
    }

    pub(crate) fn environment(&self) -> Environment {
        let environment = Environment::new(&self.path(), &self.path()).unwrap();
        let mark = [(MARK.to_owned(), self.mark.clone())];
        environment.with(mark, &[MARK]).unwrap()
    }

    pub(crate) fn command<'a>(&'a self, program: &'a Program, arguments: &[&str]) -> Command<'a> {
        Command {
            program,
            arguments: arguments.iter().map(|&text| text.to_owned()).collect(),
            environment: self.environment(),
            directory: &self.directory,
            stdin: None,
            deadline: Duration::from_secs(60),
            output_caps: OutputCaps::default(),
            limits: ChildLimits::default(),
            confinement: Confinement::Unconfined,
        }
    }

    pub(crate) fn script(&self, script: &str) -> Command<'_> {
        self.command(&self.shell, &["-c", script])
    }

    /// The script, confined as the project of this place.
    pub(crate) fn confined(&self, script: &str) -> Command<'_> {
        Command {
            confinement: self.confinement(),
            ..self.script(script)
        }
    }

    /// As the project of this place.
    pub(crate) fn confinement(&self) -> Confinement<'_> {
        Confinement::Confined(Confined {
            identity: self.identity(),
            ..Confined::default()
        })
    }

    /// An interpreter.
    pub(crate) fn python(&self, path: &str) -> Program {
        let mut programs = Programs::new(&[], &[]).unwrap();
        programs.alias("python", &[path]);
        programs.resolve_alias("python").unwrap()
    }

    /// A user for the project of this place; none unless we are root.
    pub(crate) fn identity(&self) -> Option<Identity> {
        if !rustix::process::geteuid().is_root() {
            return None;
        }
        let number = self.mark.split('-').nth(1).unwrap();
        let uid = 200_000 + number.parse::<u32>().unwrap();
        Some(Identity { uid, gid: uid })
    }

    /// Runs a script with namespaces.
    pub(crate) async fn run(&self, script: &str) -> Result<Output, ProcessError> {
        launcher(true).run(self.script(script), None).await
    }

    /// Processes with this place's mark.
    pub(crate) fn alive(&self) -> Vec<i32> {
        let mark = format!("{MARK}={}", self.mark);
        let marked = |pid: &i32| {
            let environment = fs::read(format!("/proc/{pid}/environ")).unwrap_or_default();
            environment
                .split(|&byte| byte == 0)
                .any(|variable| variable == mark.as_bytes())
        };
        processes().into_keys().filter(marked).collect()
    }

    /// Waits until that many marked processes live.
    pub(crate) async fn until_alive(&self, wanted: impl Fn(usize) -> bool) {
        for _ in 0..3000 {
            if wanted(self.alive().len()) {
                return;
            }
            tokio::time::sleep(Duration::from_millis(10)).await;
        }
        panic!("processes: {:?}", self.alive());
    }
}

/// All processes and their parents.
pub(crate) fn processes() -> BTreeMap<i32, i32> {
    let entries = fs::read_dir("/proc").unwrap().flatten();
    entries
        .filter_map(|entry| {
            let pid = entry.file_name().to_str()?.parse().ok()?;
            let status = fs::read_to_string(format!("/proc/{pid}/status")).ok()?;
            let parent = status.lines().find_map(|line| line.strip_prefix("PPid:"))?;
            Some((pid, parent.trim().parse().ok()?))
        })
        .collect()
}

/// The launchers that this process has started.
pub(crate) fn launchers() -> Vec<i32> {
    let own = std::process::id() as i32;
    let children = processes().into_iter().filter(|&(_, parent)| parent == own);
    children.map(|(pid, _)| pid).collect()
}
