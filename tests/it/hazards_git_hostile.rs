//! What a Worker or a remote plants to reach further: refused by name, or harmless.

use std::os::unix::fs::symlink;
use std::path::Path;
use std::process::Command;

use serde_json::Value;
use warren_testkit::{GitRepo, git_command};

use crate::hazards_git::Scene;
use crate::world::{Seen, World};

/// A repository of another Project, with a secret.
fn victim(scene: &Scene) -> GitRepo {
    let (_, url) = scene
        .world
        .remote("victim.git", "main", &[("secret", "SECRET\n")]);
    scene.world.ok(&["workspace", "init", "v"]);
    let name = scene.world.create_git("v", &url, &["--label", "victim"]);
    scene.world.repo("v", &name)
}

#[test]
fn a_dot_git_that_leaves_the_root_is_refused() {
    let scene = Scene::new();
    let victim = victim(&scene);
    let theirs = victim.path().join(".git");
    let git = scene.path().join(".git");
    let aside = scene.world.work.join("aside");
    let moved = |of: &str, plant: &dyn Fn(&Path)| {
        let path = scene.path().join(of);
        std::fs::rename(&path, &aside).unwrap();
        plant(&path);
        let said = scene.refuses("GitUnsafeRepository");
        std::fs::remove_file(&path).unwrap();
        std::fs::rename(&aside, &path).unwrap();
        assert!(!said.contains("SECRET"));
    };
    moved(".git", &|path| {
        std::fs::write(path, format!("gitdir: {}\n", theirs.display())).unwrap();
    });
    moved(".git", &|path| symlink(&theirs, path).unwrap());
    for inner in ["objects", "refs", "config", "HEAD", "index"] {
        moved(&format!(".git/{inner}"), &|path| {
            symlink(theirs.join(inner), path).unwrap()
        });
    }
    for pointer in [
        "commondir",
        "objects/info/alternates",
        "objects/info/http-alternates",
    ] {
        let path = git.join(pointer);
        std::fs::create_dir_all(path.parent().unwrap()).unwrap();
        std::fs::write(&path, format!("{}\n", theirs.join("objects").display())).unwrap();
        scene.refuses("GitUnsafeRepository");
        std::fs::remove_file(&path).unwrap();
    }
    for (key, value) in [
        ("core.worktree", victim.path().display().to_string()),
        ("include.path", theirs.join("config").display().to_string()),
        ("url.http://evil/.insteadOf", "http://".to_owned()),
    ] {
        let config = std::fs::read(git.join("config")).unwrap();
        let status = git_command(&git)
            .args(["config", "--file", "config", key, &value])
            .status();
        assert!(status.unwrap().success());
        scene.refuses("GitUnsafeRepository");
        std::fs::write(git.join("config"), config).unwrap();
    }
    // All undone: the refusals were about what was planted.
    let mut scene = scene;
    scene.repo().write("a.txt", "edited\n");
    scene.comes_back();
}

#[test]
fn nothing_planted_runs_in_the_host() {
    let mut scene = Scene::new();
    let repo = scene.repo();
    let mark = scene.world.work.join("PWN");
    let run = format!("touch {}", mark.display());
    let config = [
        "core.fsmonitor",
        "core.sshCommand",
        "core.askPass",
        "credential.helper",
        "gpg.program",
        "diff.external",
        "filter.x.clean",
        "filter.x.smudge",
        "core.pager",
        "uploadpack.packObjectsHook",
    ];
    repo.write("a.txt", "edited\n");
    repo.write("new.txt", "new\n");
    let before = Seen::of(&repo);
    for key in config {
        repo.git(&["config", key, &run]);
    }
    repo.git(&["config", "commit.gpgSign", "true"]);
    let hooks = [
        "pre-commit",
        "pre-push",
        "post-checkout",
        "post-index-change",
        "reference-transaction",
        "post-commit",
        "commit-msg",
    ];
    for hook in hooks {
        repo.hook(hook, &format!("{run}; exit 1"));
    }
    scene.world.move_away("p");
    assert!(!mark.exists());
    // The settings and hooks stay behind; the work does not.
    assert_eq!(before, Seen::of(&scene.repo()));
    assert!(!mark.exists());
}

#[test]
fn branches_named_like_options_run_nothing() {
    let mut scene = Scene::new();
    let repo = scene.repo();
    let mark = scene.world.work.join("PWN");
    let name = format!("--upload-pack=touch${{IFS}}{}", mark.display());
    let full = format!("refs/heads/{name}");
    repo.write("a.txt", "edited\n");
    // No git makes such a branch; a hand can.
    let config = format!("[branch \"main\"]\n\tremote = {name}\n\tmerge = {full}\n");
    let file = repo.path().join(".git/config");
    let whole = std::fs::read_to_string(&file).unwrap();
    std::fs::write(&file, whole.clone() + &config).unwrap();
    repo.git(&["update-ref", "refs/heads/--orphan", "HEAD"]);
    let output = scene.world.output(&["workspace", "suspend", "p"]);
    let json: Value = serde_json::from_slice(&output.stdout).unwrap();
    assert!(!mark.exists());
    if output.status.success() {
        scene.world.root = scene.world.work.join("ws2");
        scene.world.ok(&["workspace", "recover", "p"]);
        let status = scene.repo().git(&["status", "--porcelain", "--", "a.txt"]);
        assert_eq!(status, " M a.txt");
    } else {
        let code = json["error"]["code"].as_str().unwrap();
        assert!(
            ["GitInvalidArgument", "GitUnsafeRepository"].contains(&code),
            "{json}"
        );
        assert!(scene.path().join("a.txt").exists());
    }
    assert!(!mark.exists());
}

#[test]
fn a_descriptor_that_someone_edited_gets_no_further_than_the_policy() {
    let scene = Scene::new();
    scene.repo().write("a.txt", "edited\n");
    let victim = victim(&scene);
    let file = scene
        .world
        .root
        .join("p")
        .join(format!("{}.json", scene.name));
    let honest = std::fs::read(&file).unwrap();
    let mark = scene.world.work.join("PWN");
    for url in [
        format!("ext::sh -c touch% {}", mark.display()),
        "fd::17".to_owned(),
        format!("ssh://-oProxyCommand=touch${{IFS}}{}/x", mark.display()),
        format!("file://{}", victim.path().display()),
        victim.path().display().to_string(),
        "http://127.0.0.1:1/evil.git".to_owned(),
    ] {
        let mut descriptor: Value = serde_json::from_slice(&honest).unwrap();
        descriptor["metadata"]["repoUrl"] = url.clone().into();
        std::fs::write(&file, descriptor.to_string()).unwrap();
        // The seal stops it; behind the seal, the policy does.
        let reseal = ["workspace", "reseal", "p"];
        scene
            .world
            .fails(&["workspace", "suspend", "p"], "DescriptorDamaged");
        scene.world.ok(&reseal);
        let output = scene.world.output(&["workspace", "suspend", "p"]);
        let json: Value = serde_json::from_slice(&output.stdout).unwrap();
        let code = json["error"]["code"].as_str().unwrap_or_default();
        assert!(
            ["GitDenied", "GitInvalidArgument"].contains(&code),
            "{url}: {json}"
        );
        assert_eq!(scene.world.status("p"), "RUNNING");
        assert!(!mark.exists());
    }
    std::fs::write(&file, &honest).unwrap();
    let mut scene = scene;
    scene.comes_back();
}

#[test]
fn recover_asks_the_policy_of_today() {
    let scene = Scene::new();
    scene.repo().write("a.txt", "edited\n");
    let before = Seen::of(&scene.repo());
    scene.world.ok(&["workspace", "suspend", "p"]);
    std::fs::write(
        scene.world.work.join("warren.toml"),
        "[git]\nallow = [\"https://git.example/**\"]\n",
    )
    .unwrap();
    scene.world.http.forget();
    let report = scene.world.ok_or_partial(&["workspace", "recover", "p"]);
    assert_eq!(report["failed"][0]["code"], "GitDenied", "{report}");
    assert!(scene.world.http.seen().is_empty());
    assert_eq!(scene.world.ok(&["workspace", "get", "p"])["snapshots"], 1);
    scene.world.configure("");
    scene.world.ok(&["workspace", "recover", "p"]);
    assert_eq!(before, Seen::of(&scene.repo()));
    scene.world.ok(&["workspace", "suspend", "p"]);
}

#[test]
fn submodules_with_urls_that_run_commands_are_never_asked() {
    let world = World::new();
    let mark = world.work.join("PWN");
    let modules = format!(
        "[submodule \"a\"]\n\tpath = a\n\turl = ext::sh -c touch% {0}\n\tupdate = !touch {0}\n\
         [submodule \"../x\"]\n\tpath = ../x\n\turl = -u./x\n",
        mark.display()
    );
    let files = [("a.txt", "a\n"), (".gitmodules", modules.as_str())];
    let mut scene = Scene::of(world, &files, &[]);
    scene.repo().write("a.txt", "edited\n");
    scene.comes_back();
    assert!(!mark.exists());
}

#[test]
fn formats_that_cannot_be_handled_are_named() {
    let scene = Scene::new();
    let repo = scene.repo();
    repo.write("a.txt", "edited\n");
    for (key, value, name) in [
        ("extensions.partialClone", "origin", "partialclone"),
        ("extensions.refStorage", "reftable", "reftable"),
        ("extensions.objectFormat", "sha256", "sha256"),
    ] {
        let config = std::fs::read(repo.path().join(".git/config")).unwrap();
        let file = ["config", "--file", ".git/config"];
        let set = |key, value| {
            let status = git_command(repo.path())
                .args(file)
                .args([key, value])
                .status();
            assert!(status.unwrap().success());
        };
        set("core.repositoryFormatVersion", "1");
        set(key, value);
        let said = scene.refuses("GitUnsupportedFormat");
        assert!(said.contains(name), "{name}: {said}");
        std::fs::write(repo.path().join(".git/config"), config).unwrap();
    }

    let path = scene.world.work.join("remotes/sha256.git");
    let init = [
        "init",
        "-q",
        "--bare",
        "-b",
        "main",
        "--object-format=sha256",
    ];
    let work = scene.world.work.path();
    assert!(
        git_command(work)
            .args(init)
            .arg(&path)
            .status()
            .unwrap()
            .success()
    );
    GitRepo::at(&path).seed("main", &[("a", "a\n")]);
    let url = scene.world.http.url("sha256.git");
    let create = [
        "rootdir",
        "create",
        "p",
        "--creator",
        "c",
        "--type",
        "git",
        "--repo",
        &url,
    ];
    let error = scene.world.fails(&create, "GitUnsupportedFormat");
    assert!(error.to_string().contains("sha256"), "{error}");
    let listed = scene.world.ok(&["rootdir", "list", "p"]);
    assert_eq!(listed["items"].as_array().map(Vec::len), Some(1));
}

/// Stores a tree that no git would make; its id.
fn raw_tree(repo: &GitRepo, name: &str, mode: &str, id: &str) -> String {
    let mut bytes = format!("{mode} {name}\0").into_bytes();
    bytes.extend(
        (0..40)
            .step_by(2)
            .map(|at| u8::from_str_radix(&id[at..at + 2], 16).unwrap()),
    );
    let file = repo.path().join("raw-tree");
    std::fs::write(&file, bytes).unwrap();
    repo.git(&["hash-object", "-t", "tree", "-w", "--literally", "raw-tree"])
}

#[test]
fn hostile_trees_are_refused_and_write_nothing() {
    let world = World::new();
    let (remote, url) = world.remote("up.git", "main", &[("a.txt", "a\n")]);
    world.ok(&["workspace", "init", "p"]);
    let blob = remote.git(&["rev-parse", "main:a.txt"]);
    for (number, name) in [
        ".git",
        ".GIT",
        "GIT~1",
        ".git.",
        "..",
        "a\\b",
        ".g\u{200c}it",
        ".git ",
        "a/../../x",
        ".git::$INDEX_ALLOCATION",
    ]
    .iter()
    .enumerate()
    {
        let tree = raw_tree(&remote, name, "100644", &blob);
        let commit = remote.git(&["commit-tree", &tree, "-m", "hostile"]);
        let branch = format!("h{number}");
        std::fs::write(
            remote.path().join("refs/heads").join(&branch),
            format!("{commit}\n"),
        )
        .unwrap();
        let create = ["rootdir", "create", "p", "--creator", "c", "--type", "git"];
        let args = [&create[..], &["--repo", &url, "--branch", &branch]].concat();
        let output = world.output(&args);
        let json: Value = serde_json::from_slice(&output.stdout).unwrap();
        assert_eq!(
            json["error"]["code"], "GitUnsafeRepository",
            "{name:?}: {json}"
        );
        let listed = world.ok(&["rootdir", "list", "p"]);
        assert_eq!(
            listed["items"].as_array().map(Vec::len),
            Some(0),
            "{name:?}"
        );
        let left: Vec<_> = std::fs::read_dir(world.root.join("p"))
            .unwrap()
            .flatten()
            .collect();
        assert_eq!(left.len(), 1, "only `workspace.json`: {left:?}");
    }
    assert!(!world.root.join("x").exists());
}

#[test]
fn a_root_of_another_owner_is_saved() {
    if !rustix::process::geteuid().is_root() {
        // Only root gives files away; `warren-repo` has a test of its own for the rest.
        return;
    }
    let mut scene = Scene::new();
    scene.repo().write("a.txt", "edited\n");
    let before = Seen::of(&scene.repo());
    let status = Command::new("chown")
        .args(["-R", "12345:12345"])
        .arg(scene.path())
        .status();
    assert!(status.unwrap().success());
    scene.world.move_away("p");
    assert_eq!(before, Seen::of(&scene.repo()));
}
