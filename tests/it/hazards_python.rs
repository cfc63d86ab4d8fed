//! Interpreters that lack parts, wheels that do not fit, environments that moved.

use std::os::unix::fs::PermissionsExt;
use std::path::{Path, PathBuf};
use std::process::Command;

use warren_testkit::GitRepo;

use crate::world::World;

/// An interpreter that answers some calls itself, before the Pod's own one.
struct Wrapper(PathBuf);

impl Wrapper {
    fn new(world: &World, cases: &str) -> Self {
        let wrapper = Self(world.work.dir("bin").join("python3"));
        wrapper.write(cases);
        wrapper
    }

    fn write(&self, cases: &str) {
        let script =
            format!("#!/bin/sh\ncase \"$*\" in\n{cases}\nesac\nexec /usr/bin/env python3 \"$@\"\n");
        std::fs::write(&self.0, script).unwrap();
        std::fs::set_permissions(&self.0, std::fs::Permissions::from_mode(0o755)).unwrap();
    }

    fn configure(&self, world: &World) {
        world.configure(&format!(
            "[python]\ninstaller = \"pip\"\ninterpreter = {:?}\n",
            self.0.to_str().unwrap()
        ));
    }
}

const NO_ENSUREPIP: &str =
    "*ensurepip*) echo \"ModuleNotFoundError: No module named 'ensurepip'\" >&2; exit 1;;";

/// What Debian's `venv` does without `ensurepip`: half an environment, then an explanation.
const HALF_WAY: &str = "*'-m venv'*) mkdir -p .venv/bin; ln -s /usr/bin/python3 .venv/bin/python; \
    echo 'The virtual environment was not created successfully because ensurepip is not available.'; \
    exit 1;;";

fn remote(world: &World, more: impl FnOnce(&GitRepo)) -> String {
    let (bare, url) = world.remote("py.git", "main", &[("main.py", "print('hi')\n")]);
    let work = bare.clone_to(world.work.join("seed"));
    more(&work);
    work.git(&["add", "-A", "-f"]);
    if !work.git(&["status", "--porcelain"]).is_empty() {
        work.commit("more");
        work.git(&["push", "-q", "origin", "main"]);
    }
    url
}

fn run(dir: &Path, program: &str, args: &[&str]) -> String {
    let mut command = Command::new(dir.join(program));
    let output = command
        .args(args)
        .current_dir(dir)
        .env_clear()
        .output()
        .unwrap();
    assert!(output.status.success(), "{output:?}");
    String::from_utf8(output.stdout).unwrap().trim().to_owned()
}

#[test]
fn an_interpreter_without_ensurepip_leaves_nothing_and_a_retry_works() {
    let world = World::new();
    let wrapper = Wrapper::new(&world, "");
    wrapper.configure(&world);
    let url = remote(&world, |_| {});
    world.ok(&["workspace", "init", "p"]);
    let args = [
        "rootdir",
        "create",
        "p",
        "--type",
        "python",
        "--creator",
        "c",
        "--repo",
        &url,
    ];
    for cases in [NO_ENSUREPIP, HALF_WAY] {
        wrapper.write(cases);
        let error = world.fails(&args, "ProgramMissing");
        let said = error["message"].as_str().unwrap();
        assert!(said.contains("python3-venv"), "{error}");
        let listed = world.ok(&["rootdir", "list", "p"]);
        assert_eq!(
            listed["items"].as_array().map(Vec::len),
            Some(0),
            "{listed}"
        );
    }
    wrapper.write("");
    let name = world.ok(&args)["dirName"].as_str().unwrap().to_owned();
    let dir = world.dir("p", &name);
    let version = || run(&dir, ".venv/bin/python", &["-I", "-m", "pip", "--version"]);
    let before = version();
    // The same while there is an environment already: the old one stays.
    for cases in [NO_ENSUREPIP, HALF_WAY] {
        wrapper.write(cases);
        world.fails(&["python", "rebuild", "p", &name], "ProgramMissing");
        assert_eq!(version(), before);
    }
    let entries: Vec<_> = std::fs::read_dir(&dir)
        .unwrap()
        .map(|entry| entry.unwrap().file_name().into_string().unwrap())
        .filter(|name| name.starts_with(".venv"))
        .collect();
    assert_eq!(entries, [".venv"]);
    wrapper.write("");
    world.ok(&["python", "rebuild", "p", &name]);
    assert_eq!(version(), before);
}

#[test]
fn a_wheel_for_another_python_fails_the_environment_and_keeps_the_work() {
    let mut world = World::with_config("[python]\ninstaller = \"auto\"\n");
    let url = remote(&world, |_| {});
    world.ok(&["workspace", "init", "p"]);
    let name = world.create("p", &["--type", "python", "--repo", &url]);
    let wheels = world.dir("p", &name).join("wheels");
    std::fs::create_dir(&wheels).unwrap();
    warren_testkit::wheel(&wheels, "only", "x");
    std::fs::rename(
        wheels.join("only-0.1-py3-none-any.whl"),
        wheels.join("only-0.1-cp39-cp39-win32.whl"),
    )
    .unwrap();
    let repo = world.repo("p", &name);
    repo.write(
        "requirements.txt",
        "--no-index\n--find-links ./wheels\nonly==0.1\n",
    );
    repo.write("work.py", "work\n");
    world.ok(&["workspace", "suspend", "p"]);
    world.root = world.work.join("ws2");
    for _ in 0..2 {
        let report = world.ok_or_partial(&["workspace", "recover", "p"]);
        assert_eq!(report["failed"][0]["code"], "ProgramFailed", "{report}");
        let said = report["failed"][0]["message"].as_str().unwrap();
        assert!(said.contains("only"), "{report}");
        assert_eq!(world.ok(&["workspace", "get", "p"])["snapshots"], 1);
    }
}

#[test]
fn after_a_move_every_script_is_of_this_root_and_pip_is_the_interpreters() {
    let mut world = World::with_config("[python]\ninstaller = \"pip\"\n");
    let url = remote(&world, |work| {
        work.write(
            "requirements.txt",
            "--no-index\n./wheels/tiny-0.1-py3-none-any.whl\n",
        );
        std::fs::create_dir(work.path().join("wheels")).unwrap();
        warren_testkit::wheel(&work.path().join("wheels"), "tiny", "x");
    });
    world.ok(&["workspace", "init", "p"]);
    let name = world.create("p", &["--type", "python", "--repo", &url]);
    world.repo("p", &name).write("work.py", "work\n");
    let first = world.dir("p", &name);
    let bundled = run(
        &first,
        ".venv/bin/python",
        &["-I", "-c", "import ensurepip; print(ensurepip.version())"],
    );
    world.move_away("p");
    let dir = world.dir("p", &name);
    let version = run(&dir, ".venv/bin/pip", &["--version"]);
    assert!(
        version.contains(&format!("pip {bundled} ")),
        "{version}: not {bundled}"
    );
    assert!(version.contains(dir.to_str().unwrap()), "{version}");
    let old = first.to_str().unwrap().as_bytes();
    for entry in std::fs::read_dir(dir.join(".venv/bin")).unwrap() {
        let path = entry.unwrap().path();
        if path.symlink_metadata().unwrap().is_file() {
            let bytes = std::fs::read(&path).unwrap();
            let prefix = [old, b"/"].concat();
            let stale = bytes.windows(prefix.len()).any(|window| window == prefix);
            assert!(!stale, "{path:?} names the old place");
        }
    }
}
