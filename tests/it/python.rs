//! `python` RootDirs with real interpreters, venv, pip and uv. Wheels are made here and lie in the
//! checkout, so that no index is asked.

use std::os::unix::fs::symlink;
use std::path::Path;
use std::process::Command;

use crate::world::{Seen, World};
use warren_testkit::GitRepo;

const PIP: &str = "[python]\ninstaller = \"pip\"\n";
const AUTO: &str = "[python]\ninstaller = \"auto\"\n";

/// A remote with a wheel and a requirements.txt that installs it.
fn remote(world: &World, more: impl FnOnce(&GitRepo)) -> (GitRepo, String) {
    let (bare, url) = world.remote(
        "py.git",
        "main",
        &[("main.py", "import tiny\nprint(tiny.VALUE)\n")],
    );
    let work = bare.clone_to(world.work.join("seed"));
    std::fs::create_dir(work.path().join("wheels")).unwrap();
    warren_testkit::wheel(&work.path().join("wheels"), "tiny", "from the wheel");
    work.write(
        "requirements.txt",
        "--no-index\n./wheels/tiny-0.1-py3-none-any.whl\n",
    );
    more(&work);
    work.git(&["add", "-A", "-f"]);
    work.commit("a wheel");
    work.git(&["push", "-q", "origin", "main"]);
    (bare, url)
}

fn run(world: &World, project: &str, name: &str, args: &[&str]) -> String {
    let dir = world.dir(project, name);
    let output = Command::new(dir.join(".venv/bin/python"))
        .args(args)
        .current_dir(&dir)
        .env_clear()
        .output()
        .unwrap();
    assert!(
        output.status.success(),
        "{}",
        String::from_utf8_lossy(&output.stderr)
    );
    String::from_utf8(output.stdout).unwrap()
}

fn create(world: &World, url: &str, more: &[&str]) -> String {
    world.create("p", &[&["--type", "python", "--repo", url], more].concat())
}

fn comes_back(config: &str) {
    let mut world = World::with_config(config);
    let (_remote, url) = remote(&world, |_| {});
    world.ok(&["workspace", "init", "p"]);
    let name = create(&world, &url, &[]);
    assert_eq!(name, "python");
    assert_eq!(run(&world, "p", &name, &["main.py"]), "from the wheel\n");
    let repo = world.repo("p", &name);
    let ignore = std::fs::read_to_string(repo.path().join(".gitignore")).unwrap();
    assert_eq!(ignore, ".venv\n__pycache__/\n*.pyc\n");
    repo.write("main.py", "import tiny, sys\nprint(tiny.VALUE, 'again')\n");
    let before = repo.git(&["status", "--porcelain=v2", "--branch"]);
    let plan = world.ok(&["workspace", "suspend", "p", "--dry-run"]);
    let loss = plan["roots"][0]["loss"].as_array().unwrap();
    assert!(
        loss.iter()
            .any(|loss| loss["path"] == ".venv/" && loss["kind"] == "rebuilt"),
        "{plan}"
    );
    world.move_away("p");
    assert_eq!(
        before,
        world
            .repo("p", &name)
            .git(&["status", "--porcelain=v2", "--branch"])
    );
    assert_eq!(
        run(&world, "p", &name, &["main.py"]),
        "from the wheel again\n"
    );
    // The environment belongs to this root, not to the one it came from.
    let prefix = run(
        &world,
        "p",
        &name,
        &["-I", "-c", "import sys; print(sys.prefix)"],
    );
    assert_eq!(
        Path::new(prefix.trim()),
        world.dir("p", &name).join(".venv")
    );
}

#[test]
fn it_comes_back_with_venv_and_pip() {
    comes_back(PIP);
}

#[test]
fn it_comes_back_with_uv() {
    let on_path = Command::new("uv").arg("--version").output();
    assert!(on_path.is_ok(), "uv is not on the PATH: pip install uv");
    comes_back(AUTO);
}

#[test]
fn a_checkout_cannot_run_code_in_the_making_of_the_venv() {
    for config in [PIP, AUTO] {
        let world = World::with_config(config);
        let pwn = world.work.join("PWN");
        let code = format!("open({:?}, 'w')\n", pwn.to_str().unwrap());
        let (_remote, url) = remote(&world, |work| {
            for module in [
                "venv.py",
                "logging.py",
                "pip.py",
                "ensurepip.py",
                "sitecustomize.py",
            ] {
                work.write(module, &code);
            }
        });
        world.ok(&["workspace", "init", "p"]);
        let name = create(&world, &url, &[]);
        assert!(world.dir("p", &name).join(".venv/bin/python").exists());
        assert!(!pwn.exists());
    }
}

#[test]
fn a_venv_in_the_checkout_is_removed_without_following_links() {
    let world = World::with_config(AUTO);
    let victim = world.work.join("victim");
    std::fs::write(&victim, "untouched").unwrap();
    let outside = world.work.dir("outside");
    let (_remote, url) = remote(&world, |work| {
        std::fs::create_dir_all(work.path().join(".venv/bin")).unwrap();
        symlink(&victim, work.path().join(".venv/pyvenv.cfg")).unwrap();
        symlink(&outside, work.path().join(".venv/lib")).unwrap();
        symlink(&victim, work.path().join(".venv/bin/activate")).unwrap();
    });
    world.ok(&["workspace", "init", "p"]);
    let name = create(&world, &url, &[]);
    assert_eq!(std::fs::read_to_string(&victim).unwrap(), "untouched");
    assert_eq!(std::fs::read_dir(&outside).unwrap().count(), 0);
    assert_eq!(run(&world, "p", &name, &["main.py"]), "from the wheel\n");
}

#[test]
fn ignore_rules_are_merged() {
    let world = World::with_config(AUTO);
    let (_remote, url) = remote(&world, |work| work.write(".gitignore", "node_modules"));
    world.ok(&["workspace", "init", "p"]);
    let name = create(&world, &url, &[]);
    let text = std::fs::read_to_string(world.dir("p", &name).join(".gitignore")).unwrap();
    assert_eq!(text, "node_modules\n.venv\n__pycache__/\n*.pyc\n");
    world.ok(&["workspace", "suspend", "p"]);
    world.ok(&["workspace", "init", "p"]);
    assert_eq!(
        text,
        std::fs::read_to_string(world.dir("p", &name).join(".gitignore")).unwrap()
    );
}

#[test]
fn bytecode_and_a_linked_venv_are_not_saved() {
    let world = World::with_config(AUTO);
    let (bare, url) = remote(&world, |_| {});
    world.ok(&["workspace", "init", "p"]);
    let name = create(&world, &url, &["--label", "py"]);
    let dir = world.dir("p", &name);
    std::fs::rename(dir.join(".venv"), dir.join(".kept")).unwrap();
    std::fs::remove_dir_all(dir.join(".kept")).unwrap();
    symlink("/usr", dir.join(".venv")).unwrap();
    std::fs::write(dir.join("m.pyc"), "x").unwrap();
    std::fs::write(dir.join("work.txt"), "x").unwrap();
    world.ok(&["workspace", "suspend", "p"]);
    let tree = bare.git(&["ls-tree", "-r", "--name-only", "vance/suspend/py"]);
    assert!(tree.contains("work.txt"), "{tree}");
    assert!(!tree.contains(".venv") && !tree.contains("m.pyc"), "{tree}");
}

#[test]
fn without_a_remote_it_says_so_and_nothing_goes() {
    let world = World::with_config(AUTO);
    world.ok(&["workspace", "init", "p"]);
    let name = world.create("p", &["--type", "python"]);
    let temp = world.create("p", &["--type", "temp"]);
    std::fs::write(world.dir("p", &name).join("x.py"), "x = 1\n").unwrap();
    let error = world.fails(
        &["workspace", "suspend", "p"],
        "WorkspaceSuspendNotConfigured",
    );
    assert!(
        error["hint"].is_string() && error["message"].as_str().unwrap().contains(&name),
        "{error}"
    );
    assert!(world.dir("p", &name).join("x.py").exists() && world.dir("p", &temp).exists());
    let plan = world.ok_or_partial(&["workspace", "suspend", "p", "--dry-run"]);
    assert_eq!(plan["failed"][0]["code"], "WorkspaceSuspendNotConfigured");
}

#[test]
fn a_missing_interpreter_is_named() {
    let world = World::with_config("[python]\ninterpreter = \"/nowhere/python3\"\n");
    world.ok(&["workspace", "init", "p"]);
    world.fails(
        &[
            "rootdir",
            "create",
            "p",
            "--type",
            "python",
            "--creator",
            "c",
        ],
        "ProgramMissing",
    );
    assert_eq!(
        world.ok(&["rootdir", "list", "p"])["items"]
            .as_array()
            .map(Vec::len),
        Some(0)
    );
}

#[test]
fn a_broken_environment_is_rebuilt() {
    for config in [PIP, AUTO] {
        let world = World::with_config(config);
        let (_remote, url) = remote(&world, |_| {});
        world.ok(&["workspace", "init", "p"]);
        let name = create(&world, &url, &[]);
        let bin = world.dir("p", &name).join(".venv/bin");
        for link in ["python", "python3"] {
            let _ = std::fs::remove_file(bin.join(link));
            symlink("/nonexistent", bin.join(link)).unwrap();
        }
        let before = Seen::of(&world.repo("p", &name));
        world.ok(&["python", "rebuild", "p", &name]);
        assert_eq!(run(&world, "p", &name, &["main.py"]), "from the wheel\n");
        assert_eq!(
            format!("{before:?}").len(),
            format!("{:?}", Seen::of(&world.repo("p", &name))).len()
        );
        world.fails(
            &["python", "rebuild", "p", &name, "--python", "/bin/sh"],
            "ProgramMissing",
        );
        assert_eq!(run(&world, "p", &name, &["main.py"]), "from the wheel\n");
    }
}

#[test]
fn a_failing_environment_costs_only_its_own_root() {
    let mut world = World::with_config(AUTO);
    let (bare, url) = remote(&world, |_| {});
    world.ok(&["workspace", "init", "p"]);
    let name = create(&world, &url, &[]);
    let git = world.create_git("p", &url, &["--label", "repo"]);
    let repo = world.repo("p", &name);
    repo.write("requirements.txt", "--no-index\nno-such-package==1.0\n");
    world.repo("p", &git).write("new", "new\n");
    world.ok(&["workspace", "suspend", "p"]);
    world.root = world.work.join("ws2");
    let report = world.ok_or_partial(&["workspace", "recover", "p"]);
    assert_eq!(report["failed"][0]["code"], "ProgramFailed", "{report}");
    assert!(
        report["failed"][0]["message"]
            .as_str()
            .unwrap()
            .contains("no-such-package"),
        "{report}"
    );
    assert!(world.dir("p", &git).join("new").exists());
    assert_eq!(world.ok(&["workspace", "get", "p"])["snapshots"], 1);
    assert!(bare.ref_id("refs/heads/vance/suspend/python").is_some());
}
