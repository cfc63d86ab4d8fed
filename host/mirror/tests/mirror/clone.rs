//! Filling a root from a remote, and what the mirror does meanwhile.

use crate::setup::{Host, code, limits, mirrors, spec};
use warren_mirror::{CredentialStore, Origin};
use warren_testkit::{GitRepo, git_command};

#[test]
fn clone_gives_the_default_branch_whatever_its_name() {
    let host = Host::new();
    let up = host.bare("up.git");
    up.seed("main", &[("a.txt", "main")]);
    let trunk = up.seed("trunk", &[("a.txt", "trunk")]);
    up.git(&["symbolic-ref", "HEAD", "refs/heads/trunk"]);
    let head = host
        .session("r")
        .clone(&host.origin("up.git"), None)
        .unwrap();
    assert_eq!(head.branch.as_deref(), Some("trunk"));
    assert_eq!(head.commit.as_deref(), Some(trunk.as_str()));
    let root = host.root("r");
    assert_eq!(
        root.git(&["status", "--porcelain=v2", "--branch"]),
        format!(
            "# branch.oid {trunk}\n# branch.head trunk\n# branch.upstream origin/trunk\n# branch.ab +0 -0"
        )
    );
    assert_eq!(
        root.git(&["remote", "get-url", "origin"]),
        host.server.url("up.git")
    );
    assert_eq!(root.git(&["fsck", "--full"]), "");
    let again = host.session("r").clone(&host.origin("up.git"), None);
    assert_eq!(code(again), "GitInvalidArgument");
    assert!(host.scratch_is_empty());
}

#[test]
fn a_branch_called_head_misleads_nobody() {
    let host = Host::new();
    let up = host.bare("up.git");
    let main = up.seed("main", &[("a.txt", "main")]);
    up.seed("other", &[("a.txt", "other")]);
    up.git(&["update-ref", "refs/heads/HEAD", "refs/heads/other"]);
    let head = host
        .session("r")
        .clone(&host.origin("up.git"), None)
        .unwrap();
    assert_eq!(head.branch.as_deref(), Some("main"));
    assert_eq!(head.commit, Some(main));
    let named = host
        .session("s")
        .clone(&host.origin("up.git"), Some("HEAD"));
    assert_eq!(code(named), "GitInvalidArgument");
}

#[test]
fn branches_tags_and_commits_can_be_asked_for() {
    let host = Host::new();
    let up = host.bare("up.git");
    let first = up.seed("main", &[("a.txt", "1")]);
    let second = up.seed("main", &[("a.txt", "2")]);
    up.git(&["tag", "light", &first]);
    up.git(&["tag", "-a", "-m", "x", "heavy", &first]);
    up.git(&["branch", "feature/x", &first]);
    let origin = host.origin("up.git");
    let clone = |root: &str, branch: &str| host.session(root).clone(&origin, Some(branch));
    for (root, name, branch, commit) in [
        ("a", "feature/x", Some("feature/x"), &first),
        ("b", "light", None, &first),
        ("c", "heavy", None, &first),
        ("d", first.as_str(), None, &first),
        ("e", "main", Some("main"), &second),
    ] {
        let head = clone(root, name).unwrap();
        assert_eq!(head.branch.as_deref(), branch, "{name}");
        assert_eq!(head.commit.as_ref(), Some(commit), "{name}");
        assert_eq!(&host.root(root).head(), commit);
    }
    assert_eq!(code(clone("f", "no-such")), "GitMissing");
    assert_eq!(code(clone("f", &"d".repeat(40))), "GitMissing");
    assert_eq!(
        code(clone("f", "--upload-pack=touch x")),
        "GitInvalidArgument"
    );
    let at = host
        .session("g")
        .clone_at(&origin, Some("main"), &first)
        .unwrap();
    assert_eq!(at.branch.as_deref(), Some("main"));
    assert_eq!(host.root("g").head(), first);
    let gone = host.session("h").clone_at(&origin, None, &"d".repeat(40));
    assert_eq!(code(gone), "GitMissing");
}

#[test]
fn an_empty_remote_gives_an_unborn_branch() {
    let host = Host::new();
    host.bare("up.git");
    let head = host
        .session("r")
        .clone(&host.origin("up.git"), None)
        .unwrap();
    assert_eq!((head.branch.as_deref(), head.commit), (Some("main"), None));
    let root = host.root("r");
    assert_eq!(root.git(&["symbolic-ref", "HEAD"]), "refs/heads/main");
    let origin = host.origin("up.git");
    assert_eq!(
        code(host.session("s").clone(&origin, Some("main"))),
        "GitMissing"
    );
}

#[test]
fn a_sha256_remote_is_refused_by_name() {
    let host = Host::new();
    let path = host.work.dir("srv/up.git");
    let made = git_command(&path)
        .args(["init", "-q", "--bare", "--object-format=sha256"])
        .status()
        .unwrap();
    assert!(made.success());
    let up = GitRepo::at(&path);
    up.seed("main", &[("a", "1")]);
    let clone = host.session("r").clone(&host.origin("up.git"), None);
    assert_eq!(code(clone), "GitUnsupportedFormat");
}

#[test]
fn an_unchanged_remote_is_not_fetched_again() {
    let host = Host::new();
    let up = host.bare("up.git");
    up.seed("main", &[("a.txt", "1")]);
    up.seed("side", &[("a.txt", "2")]);
    host.cloned("a");
    host.server.forget();
    host.cloned("b");
    let seen = host.server.seen();
    assert_eq!(seen.len(), 1, "{seen:?}");
    assert_eq!(seen[0].path, "/up.git/info/refs");
    // What is gone or replaced on the remote is so in the next fork.
    up.git(&["branch", "-D", "side"]);
    up.seed("side/deeper", &[("a.txt", "3")]);
    let root = host.cloned("c");
    let branches = root.git(&["for-each-ref", "--format=%(refname)", "refs/remotes"]);
    assert!(
        branches.contains("refs/remotes/origin/side/deeper"),
        "{branches}"
    );
    assert!(
        !branches
            .lines()
            .any(|line| line == "refs/remotes/origin/side")
    );
}

#[test]
fn snapshots_of_others_never_enter_the_mirror() {
    let host = Host::new();
    let up = host.bare("up.git");
    up.seed("main", &[("a.txt", "1")]);
    let secret = up.seed(
        "vance/suspend/other",
        &[("secret.txt", "of another project")],
    );
    let root = host.cloned("r");
    assert!(!root.run(&["cat-file", "-e", &secret]).status.success());
    for mirror in host.mirror_repositories() {
        let mirror = GitRepo::at(mirror);
        assert!(!mirror.run(&["cat-file", "-e", &secret]).status.success());
    }
}

#[test]
fn a_broken_mirror_is_made_anew() {
    let host = Host::new();
    let up = host.bare("up.git");
    let commit = up.seed("main", &[("a.txt", "1")]);
    host.cloned("a");
    let mirrors = host.mirror_repositories();
    assert_eq!(mirrors.len(), 1);
    // A pack that lost its bytes, as after a loss of power.
    for entry in std::fs::read_dir(mirrors[0].join("objects/pack")).unwrap() {
        std::fs::remove_file(entry.unwrap().path()).unwrap();
    }
    assert_eq!(host.cloned("b").head(), commit);
    // One that was interrupted.
    std::fs::remove_file(mirrors[0].parent().unwrap().join("mirror.json")).unwrap();
    std::fs::write(mirrors[0].join("HEAD"), "nonsense").unwrap();
    assert_eq!(host.cloned("c").head(), commit);
}

#[test]
fn tenants_do_not_share_a_mirror() {
    let host = Host::new();
    host.bare("up.git").seed("main", &[("a.txt", "1")]);
    host.cloned("a");
    let mut other = spec(&host.work, "b");
    other.tenant = "u".into();
    let origin = host.origin("up.git");
    host.mirrors.session(other).clone(&origin, None).unwrap();
    assert_eq!(host.mirror_repositories().len(), 2);
}

#[test]
fn many_clones_at_a_time_share_one_fetch() {
    let host = Host::new();
    let commit = host.bare("up.git").seed("main", &[("a.txt", "1")]);
    std::thread::scope(|scope| {
        for at in 0..8 {
            let (host, commit) = (&host, &commit);
            scope.spawn(move || assert_eq!(&host.cloned(&format!("r{at}")).head(), commit));
        }
    });
    let fetches = host
        .server
        .seen()
        .iter()
        .filter(|seen| seen.path.ends_with("/git-upload-pack"))
        .count();
    assert_eq!(fetches, 1);
}

#[test]
fn what_the_policy_does_not_list_is_refused_before_anything_is_made() {
    let host = Host::new();
    host.bare("up.git").seed("main", &[("a.txt", "1")]);
    let elsewhere = format!("http://localhost:{}/up.git", host.server.port());
    let path = host.work.join("srv/up.git").display().to_string();
    for url in [
        elsewhere.as_str(),
        &format!("file://{path}"),
        &path,
        "ext::sh -c x",
        "git@127.0.0.1:up.git",
        "https://github.com/x/y",
    ] {
        let origin = Origin {
            url: url.to_owned(),
            credential_alias: None,
        };
        let found = code(host.session("r").clone(&origin, None));
        assert!(
            matches!(found, "GitDenied" | "GitInvalidArgument"),
            "{url}: {found}"
        );
        let init = code(host.session("r").init("main", Some(&origin)));
        assert_eq!(init, found, "{url}");
    }
    assert!(host.server.seen().is_empty());
    assert!(host.mirror_repositories().is_empty());
    host.session("r")
        .init("trunk", Some(&host.origin("up.git")))
        .unwrap();
    assert_eq!(
        host.root("r").git(&["symbolic-ref", "HEAD"]),
        "refs/heads/trunk"
    );
}

#[test]
fn a_listed_directory_serves_files_and_a_link_out_of_it_does_not() {
    let host = Host::new();
    let up = host.bare("up.git");
    let commit = up.seed("main", &[("a.txt", "1")]);
    GitRepo::bare(host.work.dir("secret/up.git")).seed("main", &[("s.txt", "s")]);
    std::os::unix::fs::symlink(host.work.join("secret"), host.work.join("srv/out")).unwrap();
    let pattern = format!("file://{}/**", host.work.join("srv").display());
    let mirrors = mirrors(
        &host.work,
        &[&pattern],
        CredentialStore::default(),
        limits(),
    );
    let origin = |path: &str| Origin {
        url: format!("file://{}", host.work.join(path).display()),
        credential_alias: None,
    };
    let clone = |root: &str, path: &str| {
        let session = mirrors.session(spec(&host.work, root));
        session.clone(&origin(path), None)
    };
    assert_eq!(clone("r", "srv/up.git").unwrap().commit, Some(commit));
    host.root("r").write("new.txt", "x");
    let mut session = mirrors.session(spec(&host.work, "r"));
    let made = session.snapshot(&origin("srv/up.git"), &[]).unwrap();
    let name = "refs/heads/vance/suspend/r";
    session
        .push(&origin("srv/up.git"), &made.commit, name, None)
        .unwrap();
    assert_eq!(up.ref_id(name), Some(made.commit));
    assert_eq!(code(clone("s", "srv/out/up.git")), "GitDenied");
    assert_eq!(code(clone("s", "secret/up.git")), "GitDenied");
    assert_eq!(code(clone("s", "srv/none.git")), "GitUnreachable");
}

#[test]
fn a_shallow_remote_is_refused() {
    let host = Host::new();
    let full = GitRepo::bare(host.work.dir("full.git"));
    full.seed("main", &[("a.txt", "1")]);
    full.seed("main", &[("a.txt", "2")]);
    let url = format!("file://{}", full.path().display());
    let shallow = host.work.join("srv/up.git").display().to_string();
    full.git(&["clone", "-q", "--bare", "--depth=1", &url, &shallow]);
    let result = host.session("r").clone(&host.origin("up.git"), None);
    // Its list of refs is nonsense to libgit2; a half history could never be pushed elsewhere.
    assert_eq!(code(result), "GitUnreachable");
    assert!(
        host.mirror_repositories()
            .iter()
            .all(|path| !path.join("shallow").exists())
    );
    assert!(host.scratch_is_empty());
}
