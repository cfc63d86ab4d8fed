//! What goes wrong at a remote: a typed error, nothing deleted, the Workspace still running, and a
//! later retry works.

use crate::world::{Seen, World};
use warren_testkit::{Fault, GitRepo};

const FILES: &[(&str, &str)] = &[("a.txt", "a\n"), ("b.txt", "b\n")];

struct Scene {
    world: World,
    remote: GitRepo,
    name: String,
    before: Seen,
}

/// A dirty git RootDir beside a temp one.
fn scene() -> Scene {
    let world = World::with_config("timeout-seconds = 4\n");
    let (remote, url) = world.remote("up.git", "main", FILES);
    world.ok(&["workspace", "init", "p"]);
    let name = world.create_git("p", &url, &["--label", "repo"]);
    let temp = world.create("p", &["--type", "temp", "--label", "scratch"]);
    std::fs::write(world.dir("p", &temp).join("t"), "t").unwrap();
    let repo = world.repo("p", &name);
    repo.write("a.txt", "edited\n");
    repo.write("new.txt", "new\n");
    let before = Seen::of(&repo);
    Scene {
        world,
        remote,
        name,
        before,
    }
}

impl Scene {
    /// Suspend fails with `code` and changes nothing.
    fn refuses(&self, code: &str) -> serde_json::Value {
        let descriptor = self.world.descriptor("p", &self.name);
        let error = self.world.fails(&["workspace", "suspend", "p"], code);
        assert_eq!(self.before, Seen::of(&self.world.repo("p", &self.name)));
        assert_eq!(descriptor, self.world.descriptor("p", &self.name));
        assert!(self.world.dir("p", "scratch").join("t").exists());
        assert_eq!(self.world.status("p"), "RUNNING");
        let snapshots = &self.world.ok(&["workspace", "get", "p"])["snapshots"];
        assert_eq!(*snapshots, 0);
        error
    }

    /// A retry works and brings everything back.
    fn then_works(mut self) -> Self {
        self.world.move_away("p");
        assert_eq!(self.before, Seen::of(&self.world.repo("p", &self.name)));
        self
    }
}

#[test]
fn a_hook_that_refuses() {
    let scene = scene();
    scene.remote.hook(
        "pre-receive",
        "#!/bin/sh\nprintf 'policy \\033[31msays no\\n'; exit 1\n",
    );
    let error = scene.refuses("GitRejected");
    let message = error["message"].as_str().unwrap();
    assert!(
        message.contains("refs/heads/vance/suspend/repo"),
        "{message}"
    );
    assert!(!message.contains('\u{1b}'), "{message:?}");
    scene.remote.unhook("pre-receive");
    scene.then_works();
}

#[test]
fn a_hook_that_floods() {
    let scene = scene();
    scene.remote.hook(
        "pre-receive",
        "#!/bin/sh\nhead -c 5000000 /dev/zero | tr '\\0' x >&2; exit 1\n",
    );
    let error = scene.refuses("GitRejected");
    assert!(error.to_string().len() < 16 * 1024);
}

#[test]
fn an_update_hook_that_protects_the_ref() {
    let scene = scene();
    scene
        .remote
        .hook("update", "#!/bin/sh\necho protected; exit 1\n");
    scene.refuses("GitRejected");
    scene.remote.unhook("update");
    scene.then_works();
}

#[test]
fn a_remote_that_is_gone() {
    let scene = scene();
    let aside = scene.remote.path().with_extension("aside");
    std::fs::rename(scene.remote.path(), &aside).unwrap();
    scene.refuses("GitUnreachable");
    std::fs::rename(&aside, scene.remote.path()).unwrap();
    scene.then_works();
}

#[test]
fn a_remote_that_became_read_only() {
    let scene = scene();
    scene
        .world
        .http
        .misbehave("git-receive-pack", Fault::Status(403));
    let error = scene.world.output(&["workspace", "suspend", "p"]);
    assert!(!error.status.success());
    assert_eq!(scene.world.status("p"), "RUNNING");
    assert_eq!(scene.before, Seen::of(&scene.world.repo("p", &scene.name)));
    scene.world.http.behave();
    scene.then_works();
}

#[test]
fn a_server_that_stalls_before_it_answers() {
    let scene = scene();
    scene.world.http.misbehave("up.git", Fault::NoAnswer);
    scene.refuses("GitTimeout");
    scene.world.http.behave();
    scene.then_works();
}

#[test]
fn a_server_that_stalls_in_the_push() {
    let scene = scene();
    scene
        .world
        .http
        .misbehave("git-receive-pack", Fault::StallAfterHeaders);
    scene.refuses("GitTimeout");
    scene.world.http.behave();
    scene.then_works();
}

#[test]
fn a_foreign_commit_under_our_name_is_left_alone() {
    let scene = scene();
    let foreign = scene.remote.head();
    scene
        .remote
        .git(&["update-ref", "refs/heads/vance/suspend/repo", &foreign]);
    let scene = scene.then_works();
    let remote = &scene.remote;
    assert_eq!(
        remote.ref_id("refs/heads/vance/suspend/repo").as_deref(),
        Some(foreign.as_str())
    );
    assert!(remote.ref_id("refs/heads/vance/suspend/repo-2").is_some());
}

#[test]
fn our_own_leftover_that_someone_moved_is_left_alone() {
    let Scene {
        mut world,
        remote,
        name,
        ..
    } = scene();
    world.move_away("p");
    let foreign = remote.head();
    remote.git(&["update-ref", "refs/heads/vance/suspend/repo", &foreign]);
    let repo = world.repo("p", &name);
    repo.write("a.txt", "edited again\n");
    let before = Seen::of(&repo);
    world.ok(&["workspace", "suspend", "p"]);
    world.ok(&["workspace", "init", "p"]);
    assert_eq!(before, Seen::of(&world.repo("p", &name)));
    assert_eq!(
        remote.ref_id("refs/heads/vance/suspend/repo").as_deref(),
        Some(foreign.as_str())
    );
}

#[test]
fn two_projects_with_one_name_keep_their_own_work() {
    let mut world = World::new();
    let (_remote, url) = world.remote("up.git", "main", FILES);
    let mut seen = Vec::new();
    for project in ["p1", "p2"] {
        world.ok(&["workspace", "init", project]);
        let name = world.create_git(project, &url, &["--label", "repo"]);
        world
            .repo(project, &name)
            .write("a.txt", format!("work of {project}\n"));
        seen.push(Seen::of(&world.repo(project, &name)));
    }
    for project in ["p1", "p2"] {
        world.ok(&["workspace", "suspend", project]);
    }
    world.root = world.work.join("ws2");
    for (project, before) in ["p1", "p2"].iter().zip(&seen) {
        world.ok(&["workspace", "recover", project]);
        assert_eq!(*before, Seen::of(&world.repo(project, "repo")));
    }
}

#[test]
fn a_ref_that_is_gone_or_moved_fails_the_recover_and_keeps_the_snapshot() {
    let Scene {
        mut world,
        remote,
        name,
        before,
    } = scene();
    world.ok(&["workspace", "suspend", "p"]);
    let ours = remote.ref_id("refs/heads/vance/suspend/repo").unwrap();
    let foreign = remote.head();
    world.root = world.work.join("ws2");

    remote.git(&["update-ref", "-d", "refs/heads/vance/suspend/repo"]);
    let report = world.ok_or_partial(&["workspace", "recover", "p"]);
    assert_eq!(report["failed"][0]["code"], "GitMissing", "{report}");
    assert_eq!(report["recovered"][0]["dirName"], "scratch");
    assert!(!world.dir("p", &name).exists());

    remote.git(&["update-ref", "refs/heads/vance/suspend/repo", &foreign]);
    let report = world.ok_or_partial(&["workspace", "init", "p"]);
    assert_eq!(report["failed"][0]["code"], "GitConflict", "{report}");
    assert_eq!(world.ok(&["workspace", "get", "p"])["snapshots"], 1);

    remote.git(&["update-ref", "refs/heads/vance/suspend/repo", &ours]);
    let report = world.ok(&["workspace", "init", "p"]);
    assert_eq!(
        report["recovered"].as_array().map(Vec::len),
        Some(1),
        "{report}"
    );
    assert_eq!(before, Seen::of(&world.repo("p", &name)));
    assert_eq!(world.ok(&["workspace", "get", "p"])["snapshots"], 0);
}

#[test]
fn a_worker_that_changed_origin_does_not_redirect_the_push() {
    let scene = scene();
    let evil = GitRepo::bare(scene.world.work.join("remotes/evil.git"));
    let repo = scene.world.repo("p", &scene.name);
    let url = scene.world.http.url("evil.git");
    let own = repo.git(&["remote", "get-url", "origin"]);
    repo.git(&["remote", "set-url", "--push", "origin", &url]);
    repo.git(&["remote", "set-url", "origin", &url]);
    scene.world.ok(&["workspace", "suspend", "p"]);
    assert_eq!(evil.git(&["for-each-ref"]), "");
    assert!(
        scene
            .remote
            .ref_id("refs/heads/vance/suspend/repo")
            .is_some()
    );
    assert!(own.contains("up.git"));
}

#[test]
fn one_failing_root_leaves_all_in_place() {
    let scene = scene();
    let (_other, url) = scene.world.remote("other.git", "main", FILES);
    let second = scene.world.create_git("p", &url, &["--label", "second"]);
    scene.world.repo("p", &second).write("x", "x\n");
    let before = Seen::of(&scene.world.repo("p", &second));
    scene.world.http.misbehave("other.git", Fault::Status(500));
    scene.refuses("GitUnreachable");
    assert_eq!(before, Seen::of(&scene.world.repo("p", &second)));
    scene.world.http.behave();
    scene.then_works();
}

#[test]
fn credentials_that_are_wanted_are_not_asked_for() {
    let world = World::new();
    let (_remote, url) = world.remote("private/up.git", "main", FILES);
    world.http.require("/private", "u", "SECRETTOKEN");
    world.ok(&["workspace", "init", "p"]);
    world.create_fails(
        "p",
        &["--type", "git", "--repo", &url],
        "GitAuthenticationFailed",
    );
    assert_eq!(
        world.ok(&["rootdir", "list", "p"])["items"]
            .as_array()
            .map(Vec::len),
        Some(0)
    );
}
