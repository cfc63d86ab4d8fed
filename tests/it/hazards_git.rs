//! Roots that cannot be saved whole: suspend refuses, says which and why, and changes nothing.

use std::path::{Path, PathBuf};
use std::process::{Child, Command};
use std::time::Instant;

use serde_json::Value;
use warren_testkit::{GitRepo, git_command};

use crate::world::{Seen, World};

const FILES: &[(&str, &str)] = &[("a.txt", "a\n"), ("b.txt", "b\n"), ("dir/c.txt", "c\n")];

/// A RootDir `repo` of the Project `p`, forked from `up.git`.
pub(crate) struct Scene {
    pub(crate) world: World,
    pub(crate) remote: GitRepo,
    pub(crate) url: String,
    pub(crate) name: String,
}

impl Scene {
    pub(crate) fn new() -> Self {
        Self::of(World::new(), FILES, &[])
    }

    /// With a seed, and more arguments for the create.
    pub(crate) fn of(world: World, files: &[(&str, &str)], args: &[&str]) -> Self {
        let (remote, url) = world.remote("up.git", "main", files);
        world.ok(&["workspace", "init", "p"]);
        let args = [&["--label", "repo"], args].concat();
        let name = world.create_git("p", &url, &args);
        Self {
            world,
            remote,
            url,
            name,
        }
    }

    pub(crate) fn repo(&self) -> GitRepo {
        self.world.repo("p", &self.name)
    }

    pub(crate) fn path(&self) -> PathBuf {
        self.world.dir("p", &self.name)
    }

    fn refs_of_remote(&self) -> String {
        self.remote.git(&["for-each-ref"])
    }

    /// Suspend fails with `code`; every byte of the root, the Descriptor and the remote stay.
    pub(crate) fn refuses(&self, code: &str) -> String {
        let before = (digest(&self.path()), self.refs_of_remote());
        let descriptor = self.world.descriptor("p", &self.name);
        let error = self.world.fails(&["workspace", "suspend", "p"], code);
        assert_eq!(before, (digest(&self.path()), self.refs_of_remote()));
        assert_eq!(descriptor, self.world.descriptor("p", &self.name));
        let workspace = self.world.ok(&["workspace", "get", "p"]);
        assert_eq!(workspace["status"], "RUNNING");
        assert_eq!(workspace["snapshots"], 0);
        error["message"].as_str().unwrap().to_owned()
    }

    /// The root comes back in another workspace root as it was; what the suspend said.
    pub(crate) fn comes_back(&mut self) -> Value {
        let before = Seen::of(&self.repo());
        let suspended = self.world.move_away("p");
        assert_eq!(before, Seen::of(&self.repo()));
        suspended
    }
}

/// Every file and link below, `.git` too.
fn digest(path: &Path) -> String {
    let root = warren_disk::open_root(path).unwrap();
    warren_disk::digest::tree_digest(&root, |_| false).unwrap()
}

/// Paths of one kind of loss, with their bytes.
pub(crate) fn losses(report: &Value, kind: &str) -> Vec<(String, u64)> {
    let losses = report["roots"][0]["loss"].as_array().unwrap().iter();
    losses
        .filter(|loss| loss["kind"] == kind)
        .map(|loss| {
            let path = loss["path"].as_str().unwrap().to_owned();
            (path, loss["bytes"].as_u64().unwrap())
        })
        .collect()
}

#[test]
fn nested_repositories_are_named() {
    let mut scene = Scene::new();
    let inner = GitRepo::init(scene.path().join("vendor/inner"));
    inner.write("f", "x\n");
    inner.commit("inner");
    GitRepo::init(scene.path().join("vendor/unborn")).write("g", "y\n");
    let said = scene.refuses("GitNestedRepository");
    assert!(said.contains("vendor/inner"), "{said}");
    assert!(said.contains("vendor/unborn"), "{said}");
    let plan = scene
        .world
        .output(&["workspace", "suspend", "p", "--dry-run"]);
    assert_eq!(
        plan.status.code(),
        Some(7),
        "a dry run exits as the real one would"
    );

    for name in ["inner", "unborn"] {
        std::fs::remove_dir_all(scene.path().join("vendor").join(name).join(".git")).unwrap();
    }
    scene.comes_back();
    assert_eq!(
        std::fs::read(scene.path().join("vendor/unborn/g")).unwrap(),
        b"y\n"
    );
}

/// A remote with a submodule `sub`, whose URL is that of another remote.
fn with_submodule() -> Scene {
    let world = World::new();
    let (sub, _) = world.remote("sub.git", "main", &[("s.txt", "s\n")]);
    let (up, _) = world.remote("up.git", "main", FILES);
    let work = up.clone_to(world.work.join("clone"));
    let entry = format!("160000,{},sub", sub.git(&["rev-parse", "main"]));
    work.git(&["update-index", "--add", "--cacheinfo", &entry]);
    let modules = format!(
        "[submodule \"sub\"]\n\tpath = sub\n\turl = {}\n",
        world.http.url("sub.git")
    );
    work.write(".gitmodules", modules);
    work.git(&["add", ".gitmodules"]);
    work.git(&["commit", "-q", "-m", "submodule"]);
    work.git(&["push", "-q", "origin", "HEAD:main"]);
    std::fs::remove_dir_all(work.path()).unwrap();
    Scene::of(world, &[("d.txt", "d\n")], &[])
}

#[test]
fn a_submodule_is_not_fetched_and_travels_while_it_is_empty() {
    let mut scene = with_submodule();
    assert!(scene.path().join("sub").is_dir());
    scene.repo().write("a.txt", "edited\n");
    scene.comes_back();
    assert!(
        scene
            .repo()
            .git(&["ls-files", "-s", "sub"])
            .starts_with("160000")
    );
    let asked = scene.world.http.seen();
    assert!(
        asked.iter().all(|seen| !seen.path.contains("sub.git")),
        "{asked:?}"
    );
}

#[test]
fn work_in_a_submodule_is_named() {
    let scene = with_submodule();
    // Invisible to `git status`.
    scene.repo().write("sub/new.txt", "new\n");
    assert_eq!(scene.repo().git(&["status", "--porcelain"]), "");
    assert!(scene.refuses("GitNestedRepository").contains("sub"));
    std::fs::remove_file(scene.path().join("sub/new.txt")).unwrap();

    scene.repo().git(&["submodule", "update", "-q", "--init"]);
    let sub = GitRepo::at(scene.path().join("sub"));
    sub.write("s.txt", "edited\n");
    assert!(scene.refuses("GitNestedRepository").contains("sub"));
    sub.commit("not pushed");
    assert!(scene.refuses("GitNestedRepository").contains("sub"));
}

/// Runs a git command that stops at a conflict.
fn stops(repo: &GitRepo, args: &[&str]) {
    let output = repo.run(args);
    assert!(!output.status.success(), "git {args:?} stops at a conflict");
}

#[test]
fn an_operation_in_progress_is_named() {
    let mut scene = Scene::new();
    let repo = scene.repo();
    repo.git(&["switch", "-q", "-c", "other"]);
    repo.write("a.txt", "theirs\n");
    repo.commit("theirs");
    repo.git(&["switch", "-q", "main"]);
    repo.write("a.txt", "ours\n");
    repo.commit("ours");
    for (start, abort, name) in [
        (&["merge", "other"][..], &["merge", "--abort"][..], "merge"),
        (&["rebase", "other"], &["rebase", "--abort"], "rebase"),
        (
            &["cherry-pick", "other"],
            &["cherry-pick", "--abort"],
            "cherry-pick",
        ),
        (
            &["revert", "--no-edit", "HEAD~1"],
            &["revert", "--abort"],
            "revert",
        ),
    ] {
        stops(&repo, start);
        let said = scene.refuses("GitOperationInProgress");
        assert!(said.contains(name), "{name}: {said}");
        repo.git(abort);
    }
    repo.write("a.txt", "stashed\n");
    repo.git(&["stash", "-q"]);
    repo.write("a.txt", "in the way\n");
    repo.commit("in the way");
    stops(&repo, &["stash", "pop"]);
    let said = scene.refuses("GitOperationInProgress");
    assert!(said.contains("conflict"), "{said}");
    repo.git(&["checkout", "-q", "--ours", "a.txt"]);
    repo.git(&["reset", "-q"]);
    scene.comes_back();
}

#[test]
fn locks_of_a_killed_git_are_removed() {
    let mut scene = Scene::new();
    let repo = scene.repo();
    repo.write("a.txt", "edited\n");
    let before = Seen::of(&repo);
    for lock in [
        "index.lock",
        "HEAD.lock",
        "config.lock",
        "refs/heads/main.lock",
    ] {
        repo.write(&format!(".git/{lock}"), "");
    }
    let output = scene.world.output(&["workspace", "suspend", "p"]);
    let log = String::from_utf8_lossy(&output.stderr);
    assert!(output.status.success(), "{log}");
    assert!(
        log.contains("stale lock") && log.contains("index.lock"),
        "{log}"
    );
    scene.world.root = scene.world.work.join("ws2");
    scene.world.ok(&["workspace", "recover", "p"]);
    assert_eq!(before, Seen::of(&scene.repo()));
}

/// Ended when dropped, so that a failing test leaves nothing behind.
struct Sleeper(Child);

impl Sleeper {
    fn start(command: &mut Command) -> Self {
        Self(command.spawn().unwrap())
    }
}

impl Drop for Sleeper {
    fn drop(&mut self) {
        drop(self.0.kill());
        drop(self.0.wait());
    }
}

#[test]
fn a_lock_of_a_living_process_is_waited_for_and_named() {
    let mut scene = Scene::new();
    scene.repo().write("a.txt", "edited\n");
    scene.repo().write(".git/index.lock", "");
    let living = Sleeper::start(Command::new("sleep").arg("600").current_dir(scene.path()));
    let start = Instant::now();
    let said = scene.refuses("GitLocked");
    assert!(said.contains("index.lock"), "{said}");
    assert!(start.elapsed().as_secs() >= 4, "it waits for a while");
    drop(living);
    scene.world.ok(&["workspace", "suspend", "p"]);
    scene.world.root = scene.world.work.join("ws2");
    scene.world.ok(&["workspace", "recover", "p"]);
    assert_eq!(scene.repo().git(&["status", "--porcelain"]), " M a.txt");
}

#[test]
fn what_ignore_rules_of_this_session_hide_is_listed() {
    let mut scene = Scene::new();
    let repo = scene.repo();
    repo.write(".gitignore", "data/\n");
    repo.write("data/big", vec![b'x'; 300_000]);
    let plan = scene.world.ok(&["workspace", "suspend", "p", "--dry-run"]);
    let [(path, bytes)] = &losses(&plan, "ignored")[..] else {
        panic!("{plan}");
    };
    assert_eq!(path.trim_end_matches('/'), "data");
    assert!(*bytes >= 300_000, "{plan}");
    assert!(
        scene.path().join("data/big").exists(),
        "a dry run changes nothing"
    );
    let said = scene.world.move_away("p");
    assert_eq!(losses(&said, "ignored"), losses(&plan, "ignored"));
    assert_eq!(
        scene.repo().git(&["status", "--porcelain"]),
        "?? .gitignore"
    );
}

#[test]
fn a_rule_that_hides_everything_hides_no_loss() {
    let mut scene = Scene::new();
    let repo = scene.repo();
    repo.write(".gitignore", "*\n");
    repo.write("work.txt", "hours of work\n");
    repo.write("a.txt", "edited, and tracked\n");
    assert_eq!(repo.git(&["status", "--porcelain"]), " M a.txt");
    let plan = scene.world.ok(&["workspace", "suspend", "p", "--dry-run"]);
    let paths: Vec<_> = losses(&plan, "ignored").into_iter().map(|l| l.0).collect();
    assert_eq!(paths, [".gitignore", "work.txt"], "{plan}");
    assert_eq!(losses(&scene.world.move_away("p"), "ignored").len(), 2);
    assert_eq!(
        std::fs::read(scene.path().join("a.txt")).unwrap(),
        b"edited, and tracked\n"
    );
}

#[test]
fn names_of_losses_can_be_given_back() {
    use std::ffi::OsStr;
    use std::os::unix::ffi::OsStrExt;
    let scene = Scene::new();
    scene.repo().write(".git/info/exclude", "*.ign\n");
    let odd = OsStr::from_bytes(b"\xff new\nline\".ign");
    std::fs::write(scene.path().join(odd), "odd\n").unwrap();
    let plan = scene.world.ok(&["workspace", "suspend", "p", "--dry-run"]);
    assert_eq!(
        losses(&plan, "ignored"),
        [("%FF new%0Aline\".ign".to_owned(), 4)]
    );
    scene
        .world
        .ok(&["rootdir", "dispose", "p", &scene.name, "--force"]);

    let keep = format!("keep:={}", serde_json::json!(["%FF new%0Aline\".ign"]));
    let mut world = scene.world;
    let name = world.create_git("p", &scene.url, &["--meta", &keep]);
    let exclude = world.dir("p", &name).join(".git/info/exclude");
    std::fs::write(exclude, "*.ign\n").unwrap();
    std::fs::write(world.dir("p", &name).join(odd), "odd\n").unwrap();
    let said = world.move_away("p");
    assert_eq!(losses(&said, "ignored"), []);
    assert_eq!(
        std::fs::read(world.dir("p", &name).join(odd)).unwrap(),
        b"odd\n"
    );
}

#[test]
fn a_root_that_became_shallow_is_named() {
    let scene = Scene::new();
    scene.remote.seed("main", &[("a.txt", "2\n")]);
    let repo = scene.repo();
    assert_eq!(repo.git(&["rev-list", "--count", "HEAD"]), "1");
    assert!(!repo.path().join(".git/shallow").exists());
    let url = format!("file://{}", scene.remote.path().display());
    let fetch = ["fetch", "-q", "--depth=1", &url, "main"];
    assert!(
        git_command(repo.path())
            .args(fetch)
            .status()
            .unwrap()
            .success()
    );
    assert!(repo.path().join(".git/shallow").exists());
    repo.write("a.txt", "edited\n");
    let said = scene.refuses("GitUnsupportedFormat");
    assert!(said.contains("shallow"), "{said}");
}
