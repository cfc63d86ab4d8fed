//! Rounds that other tools lose something in: odd clocks, no identity, moved branches, close.

use warren_testkit::{Fault, GitRepo, git_command};

use crate::hazards_git::Scene;
use crate::world::{Seen, World};

const FILES: &[(&str, &str)] = &[("a.txt", "a\n"), ("b.txt", "b\n")];

/// Full names of the remote's refs.
fn refs(scene: &Scene) -> Vec<String> {
    let text = scene.remote.git(&["for-each-ref", "--format=%(refname)"]);
    text.lines().map(str::to_owned).collect()
}

#[test]
fn notes_and_every_kind_of_local_ref_come_back() {
    let mut scene = Scene::new();
    let repo = scene.repo();
    repo.git(&["notes", "add", "-m", "a note"]);
    repo.git(&["branch", "wip"]);
    repo.git(&["tag", "local"]);
    repo.write("a.txt", "x\n");
    repo.git(&["stash", "-q"]);
    assert_eq!(repo.git(&["status", "--porcelain"]), "");
    scene.comes_back();
    assert_eq!(scene.repo().git(&["notes", "show"]), "a note");
}

#[test]
fn a_reset_to_the_base_replaces_the_first_round() {
    let mut scene = Scene::new();
    let repo = scene.repo();
    repo.write("a.txt", "one\n");
    repo.commit("one");
    scene.comes_back();
    let repo = scene.repo();
    repo.git(&["reset", "-q", "--hard", "origin/main"]);
    repo.write("a.txt", "two\n");
    repo.commit("two");
    let before = Seen::of(&repo);
    scene.world.ok(&["workspace", "suspend", "p"]);
    scene.world.ok(&["workspace", "recover", "p"]);
    assert_eq!(before, Seen::of(&scene.repo()));
    assert_eq!(
        refs(&scene),
        ["refs/heads/main", "refs/heads/vance/suspend/repo"]
    );
}

#[test]
fn a_tag_checked_out_stays_detached() {
    let world = World::new();
    let (remote, _) = world.remote("up.git", "main", FILES);
    remote.git(&["tag", "v1", "main"]);
    let mut scene = Scene::of(world, &[("c.txt", "c\n")], &[]);
    let repo = scene.repo();
    repo.git(&["checkout", "-q", "v1"]);
    for text in ["1\n", "2\n"] {
        repo.write("a.txt", text);
        repo.commit(text.trim());
    }
    repo.write("b.txt", "dirty\n");
    scene.comes_back();
    assert!(
        !scene
            .repo()
            .run(&["symbolic-ref", "-q", "HEAD"])
            .status
            .success()
    );
    assert_eq!(scene.repo().git(&["branch", "--list", "vance/*"]), "");
}

#[test]
fn a_default_branch_that_was_renamed_does_not_change_what_comes_back() {
    let mut scene = Scene::new();
    let head = scene.repo().head();
    scene.world.ok(&["workspace", "suspend", "p"]);
    scene.remote.git(&["branch", "-m", "main", "trunk"]);
    scene
        .remote
        .git(&["symbolic-ref", "HEAD", "refs/heads/trunk"]);
    scene.remote.seed("trunk", &[("a.txt", "moved on\n")]);
    scene
        .remote
        .git(&["update-ref", "refs/heads/HEAD", "trunk"]);
    scene.world.root = scene.world.work.join("ws2");
    scene.world.ok(&["workspace", "recover", "p"]);
    let repo = scene.repo();
    assert_eq!(repo.head(), head);
    assert_eq!(repo.git(&["symbolic-ref", "HEAD"]), "refs/heads/main");
    assert_eq!(repo.git(&["status", "--porcelain"]), "");
}

#[test]
fn without_an_identity_or_a_home_work_is_saved() {
    let mut scene = Scene::new();
    let repo = scene.repo();
    repo.write("new.txt", "untracked\n");
    let before = Seen::of(&repo);
    let suspend = ["workspace", "suspend", "p"];
    let output = scene
        .world
        .command(&suspend)
        .env("HOME", "/nonexistent")
        .output()
        .unwrap();
    assert!(output.status.success(), "{output:?}");
    scene.world.root = scene.world.work.join("ws2");
    scene.world.ok(&["workspace", "recover", "p"]);
    assert_eq!(before, Seen::of(&scene.repo()));
    let commit = "refs/heads/vance/suspend/repo";
    let by = scene
        .remote
        .git(&["log", "-1", "--format=%an <%ae> %cn <%ce>", commit]);
    assert!(
        by.to_lowercase().contains("warren"),
        "an identity of our own: {by}"
    );
}

#[test]
fn line_ends_that_disagree_with_the_attributes_are_no_work() {
    let world = World::new();
    let (_, _) = world.remote("up.git", "main", &[("crlf.txt", "a\r\nb\r\n")]);
    let mut scene = Scene::of(world, &[(".gitattributes", "* text=auto\n")], &[]);
    assert_eq!(scene.repo().git(&["status", "--porcelain"]), "");
    scene.world.move_away("p");
    assert_eq!(refs(&scene), ["refs/heads/main"]);
    assert_eq!(
        std::fs::read(scene.path().join("crlf.txt")).unwrap(),
        b"a\r\nb\r\n"
    );
}

#[test]
fn commits_of_any_time_are_saved_and_the_snapshot_asks_no_clock() {
    for date in ["2097-01-02T03:04:05Z", "1970-01-01T00:00:01Z"] {
        let scene = Scene::new();
        let repo = scene.repo();
        repo.write("a.txt", "1\n");
        repo.git(&["add", "-A"]);
        let commit = git_command(repo.path())
            .args(["commit", "-q", "-m", "odd time"])
            .env("GIT_AUTHOR_DATE", date)
            .env("GIT_COMMITTER_DATE", date)
            .status();
        assert!(commit.unwrap().success());
        for text in ["2\n", "3\n"] {
            scene.repo().write("a.txt", text);
            let before = Seen::of(&scene.repo());
            scene.world.ok(&["workspace", "suspend", "p"]);
            scene.world.ok(&["workspace", "recover", "p"]);
            assert_eq!(before, Seen::of(&scene.repo()));
            let log = [
                "log",
                "-1",
                "--format=%cI %aI",
                "refs/heads/vance/suspend/repo",
            ];
            let said = scene.remote.git(&log).replace("+00:00", "Z");
            assert_eq!(said, format!("{date} {date}"), "HEAD's time, in UTC");
        }
    }
}

#[test]
fn close_after_recover_pushes_the_work_and_no_snapshot() {
    let mut scene = Scene::of(World::new(), FILES, &["--meta", "commitOnClose:=true"]);
    let repo = scene.repo();
    repo.git(&["switch", "-q", "-c", "feature/x/y"]);
    repo.write("a.txt", "1\n");
    repo.write("b.txt", "2\n");
    repo.git(&["add", "a.txt"]);
    scene.comes_back();
    let repo = scene.repo();
    assert_eq!(
        repo.git(&["symbolic-ref", "HEAD"]),
        "refs/heads/feature/x/y"
    );
    // Without the suspend ref, nothing of the branch goes.
    scene
        .remote
        .git(&["update-ref", "-d", "refs/heads/vance/suspend/repo"]);
    scene.world.ok(&["rootdir", "dispose", "p", &scene.name]);
    let log = scene.remote.git(&["log", "--format=%s", "feature/x/y"]);
    assert_eq!(log, "Save `repo` on close\nseed");
    assert_eq!(scene.remote.git(&["show", "feature/x/y:b.txt"]), "2");
    assert_eq!(refs(&scene), ["refs/heads/feature/x/y", "refs/heads/main"]);
}

/// A dispose that fails with `code` and leaves everything; its message.
fn stays(scene: &Scene, code: &str) -> String {
    let before = Seen::of(&scene.repo());
    let refs = scene.remote.git(&["for-each-ref"]);
    let error = scene
        .world
        .fails(&["rootdir", "dispose", "p", &scene.name], code);
    assert_eq!(before, Seen::of(&scene.repo()));
    assert_eq!(refs, scene.remote.git(&["for-each-ref"]));
    scene.world.descriptor("p", &scene.name);
    error["message"].as_str().unwrap().to_owned()
}

#[test]
fn a_close_that_cannot_push_keeps_the_folder() {
    let scene = Scene::of(World::new(), FILES, &["--meta", "commitOnClose:=true"]);
    let repo = scene.repo();
    repo.write("a.txt", "edited\n");
    scene
        .remote
        .hook("update", "echo 'GH006: protected branch'; exit 1");
    let said = stays(&scene, "GitRejected");
    assert!(said.contains("refs/heads/main"), "{said}");
    scene.remote.unhook("update");

    scene
        .remote
        .seed("main", &[("b.txt", "someone was faster\n")]);
    let moved = scene.remote.ref_id("refs/heads/main");
    let said = stays(&scene, "GitConflict");
    assert!(said.contains("refs/heads/main"), "{said}");
    assert_eq!(scene.remote.ref_id("refs/heads/main"), moved);

    repo.git(&["checkout", "-q", "--detach"]);
    let said = stays(&scene, "InvalidMetadata");
    assert!(said.contains("detached"), "{said}");
    repo.git(&["switch", "-q", "main"]);
    repo.git(&["pull", "-q", "--ff-only", "origin", "main"]);
    scene.world.ok(&["rootdir", "dispose", "p", &scene.name]);
    assert!(!scene.path().exists());
    assert_eq!(scene.remote.git(&["show", "main:a.txt"]), "edited");
    let theirs = scene.remote.git(&["show", "main:b.txt"]);
    assert_eq!(theirs, "someone was faster", "their commit is still there");
}

/// What lies in a Project's folder.
fn entries(world: &World, project: &str) -> Vec<std::ffi::OsString> {
    let entries = std::fs::read_dir(world.root.join(project)).unwrap();
    entries.map(|entry| entry.unwrap().file_name()).collect()
}

#[test]
fn a_stalled_create_ends_in_time_and_leaves_nothing() {
    let world = World::with_config("timeout-seconds = 3\n");
    let (_, url) = world.remote("slow.git", "main", FILES);
    world.ok(&["workspace", "init", "q"]);
    let create = [
        "rootdir",
        "create",
        "q",
        "--creator",
        "c",
        "--type",
        "git",
        "--repo",
        &url,
    ];
    for fault in [Fault::NoAnswer, Fault::StallAfterHeaders] {
        world.http.misbehave("slow.git", fault);
        world.fails(&create, "GitTimeout");
        assert_eq!(entries(&world, "q"), ["workspace.json"]);
    }
    world.http.behave();
    world.ok(&create);
}

#[test]
fn a_stalled_create_stops_no_other_project() {
    let mut scene = Scene::new();
    let (_, slow) = scene.world.remote("slow.git", "main", FILES);
    scene.world.ok(&["workspace", "init", "q"]);
    scene
        .world
        .http
        .misbehave("slow.git", Fault::StallAfterHeaders);
    let create = [
        "rootdir",
        "create",
        "q",
        "--creator",
        "c",
        "--type",
        "git",
        "--repo",
        &slow,
    ];
    let mut stalled = scene.world.spawn(&create);
    let asked = |scene: &Scene| {
        let seen = scene.world.http.seen();
        seen.iter().any(|seen| seen.path.contains("slow.git"))
    };
    while !asked(&scene) {
        assert!(
            stalled.try_wait().unwrap().is_none(),
            "the create is on its way"
        );
        std::thread::sleep(std::time::Duration::from_millis(20));
    }
    scene.repo().write("a.txt", "edited\n");
    scene.comes_back();
    assert!(
        stalled.try_wait().unwrap().is_none(),
        "it was stalled all the time"
    );
    stalled.kill().unwrap();
    stalled.wait().unwrap();
    scene.world.root = scene.world.work.join("ws");
    scene.world.ok(&["workspace", "init", "q"]);
    assert_eq!(entries(&scene.world, "q"), ["workspace.json"]);
}

#[test]
fn a_changed_origin_is_reported_and_comes_back_as_it_was() {
    let mut scene = Scene::new();
    let evil = GitRepo::bare(scene.world.work.join("remotes/evil.git"));
    scene.repo().write("a.txt", "edited\n");
    let suspend = ["workspace", "suspend", "p"];
    let plan = [&suspend[..], &["--dry-run"]].concat();
    let log = |output: std::process::Output| String::from_utf8_lossy(&output.stderr).into_owned();
    let said = log(scene.world.output(&plan));
    assert!(!said.contains("origin"), "{said}");
    let url = scene.world.http.url("evil.git");
    for change in [
        &["remote", "set-url", "--push", "origin", &url][..],
        &["remote", "set-url", "origin", &url],
    ] {
        scene.repo().git(change);
        let said = log(scene.world.output(&plan));
        assert!(
            said.contains("origin") && said.contains(&scene.url),
            "{said}"
        );
    }
    scene.world.ok(&suspend);
    scene.world.root = scene.world.work.join("ws2");
    scene.world.ok(&["workspace", "recover", "p"]);
    assert_eq!(scene.repo().git(&["status", "--porcelain"]), " M a.txt");
    assert_eq!(
        scene.repo().git(&["remote", "get-url", "--push", "origin"]),
        scene.url
    );
    assert_eq!(evil.git(&["for-each-ref"]), "");
}

#[test]
fn a_remote_that_lost_its_history_gets_all_of_it() {
    let world = World::new();
    let (remote, _) = world.remote("up.git", "main", FILES);
    remote.seed("main", &[("a.txt", "second\n")]);
    let mut scene = Scene::of(world, &[("a.txt", "third\n")], &[]);
    scene.repo().write("b.txt", "edited\n");
    std::fs::remove_dir_all(scene.remote.path()).unwrap();
    GitRepo::bare(scene.remote.path());
    scene.world.ok(&["workspace", "suspend", "p"]);
    assert_eq!(scene.remote.git(&["fsck", "--full", "--no-dangling"]), "");
    let history = ["rev-list", "--count", "refs/heads/vance/suspend/repo^1"];
    assert_eq!(scene.remote.git(&history), "3");
    // On another Pod, which has seen nothing of it.
    std::fs::remove_dir_all(scene.world.work.join("state/mirrors")).unwrap();
    scene.world.root = scene.world.work.join("ws2");
    scene.world.ok(&["workspace", "recover", "p"]);
    let repo = scene.repo();
    assert_eq!(repo.git(&["log", "--format=%H", "HEAD"]).lines().count(), 3);
    assert_eq!(repo.git(&["status", "--porcelain"]), " M b.txt");
}
