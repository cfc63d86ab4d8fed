//! A Pod that exists in memory, with a real directory as the root.

use std::cell::RefCell;
use std::fs;
use std::path::{Path, PathBuf};
use std::rc::Rc;

use warren_sdk::process::{Command, Output, Program};
use warren_sdk::testing::{FakeRepo, Host};

use super::super::*;

/// What goes wrong on the Pod.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Trouble {
    None,
    /// `import venv, ensurepip` fails.
    NoVenvModule,
    /// `venv` starts, then `ensurepip` fails.
    EnsurepipFails,
    /// The environment belongs to another directory.
    ForeignPrefix,
    /// `.venv/bin/python` does not start.
    DeadPython,
    /// Requirements can not be installed.
    NoWheel,
}

pub(super) struct Pod {
    pub(super) host: Host,
    pub(super) root: Root,
    pub(super) repo: Rc<RefCell<FakeRepo>>,
    trouble: Rc<RefCell<Trouble>>,
}

impl Pod {
    pub(super) fn new() -> Self {
        let host = Host::new();
        let repo = FakeRepo::new().install(&host);
        let trouble = Rc::new(RefCell::new(Trouble::None));
        let now = Rc::clone(&trouble);
        host.add_program(Program::Alias("python".into()), "/usr/bin/python3");
        host.on_run(move |command, root| Ok(answer(command, root, *now.borrow())));
        Self {
            root: host.root_named("py"),
            host,
            repo,
            trouble,
        }
    }

    pub(super) fn with_uv() -> Self {
        let pod = Self::new();
        let uv = Program::Alias("uv".into());
        pod.host.add_program(uv, "/usr/bin/uv");
        pod
    }

    pub(super) fn trouble(&self, trouble: Trouble) {
        *self.trouble.borrow_mut() = trouble;
    }

    /// Command lines so far, each with its program in front.
    pub(super) fn lines(&self) -> Vec<String> {
        let line = |command: Command| {
            let program = match command.program {
                Program::Alias(name) | Program::Path(name) | Program::InRoot(name) => name,
            };
            format!("{program} {}", command.arguments.join(" "))
        };
        self.host.runs().into_iter().map(line).collect()
    }

    pub(super) fn path(&self, path: &str) -> PathBuf {
        self.host.root().join(path)
    }

    pub(super) fn has(&self, path: &str) -> bool {
        fs::symlink_metadata(self.path(path)).is_ok()
    }

    pub(super) fn write(&self, path: &str, content: &str) {
        let path = self.path(path);
        fs::create_dir_all(path.parent().unwrap()).unwrap();
        fs::write(path, content).unwrap();
    }

    pub(super) fn read(&self, path: &str) -> String {
        fs::read_to_string(self.path(path)).unwrap()
    }

    pub(super) fn init(&self, spec: &str) -> Result<Metadata<Settings>, Error> {
        Python::init(&self.root, metadata(spec))
    }

    pub(super) fn rebuild(&self, arguments: Value) -> Result<Metadata<Settings>, Error> {
        let current = metadata(r#"{"pythonPath":"/usr/bin/python3"}"#);
        self.host
            .add_program(Program::Path("/usr/bin/python3".into()), "/usr/bin/python3");
        Python::perform(&self.root, REBUILD, arguments, current)
    }
}

pub(super) fn metadata(text: &str) -> Metadata<Settings> {
    Metadata::from_json(text).unwrap()
}

fn exit(exit_code: i32, stdout: &str, stderr: &str) -> Output {
    Output {
        exit_code,
        stdout: stdout.to_owned(),
        stderr: stderr.to_owned(),
        truncated: false,
    }
}

/// Does what the programs of a Pod do to the root.
fn answer(command: &Command, root: &Path, trouble: Trouble) -> Output {
    let arguments = command.arguments.join(" ");
    let makes_venv = arguments.contains("-m venv") || arguments.starts_with("venv ");
    if makes_venv {
        fs::create_dir_all(root.join(".venv/bin")).unwrap();
        fs::write(root.join(".venv/pyvenv.cfg"), "new").unwrap();
        if trouble == Trouble::EnsurepipFails {
            return exit(1, "ensurepip is not available", "");
        }
        fs::write(root.join(".venv/bin/python"), "").unwrap();
        return exit(0, "", "");
    }
    let in_root = matches!(command.program, Program::InRoot(_));
    match trouble {
        Trouble::NoVenvModule if arguments.contains("ensurepip") => {
            let said = "ModuleNotFoundError: No module named 'ensurepip'";
            exit(1, "", said)
        }
        Trouble::ForeignPrefix if in_root && arguments.contains("sys.prefix") => {
            exit(0, "False\n", "")
        }
        Trouble::DeadPython if in_root => exit(127, "", "not found"),
        Trouble::NoWheel if arguments.contains("install") => exit(
            1,
            "Collecting x",
            "notice\nERROR: No matching distribution for x",
        ),
        _ if arguments.contains("sys.prefix") => exit(0, "True\n", ""),
        _ => exit(0, "3.11.7\n", ""),
    }
}
