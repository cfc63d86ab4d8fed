//! The servers serve what the git program expects, and go wrong when told to.

use warren_testkit::{Fault, GitHttp, GitRepo, Sshd, Work, git_command};

fn clone(work: &Work, url: &str, into: &str) -> (bool, String) {
    let output = git_command(work.path())
        .args(["clone", "-q", url, into])
        .output()
        .unwrap();
    let said = String::from_utf8_lossy(&output.stderr).into_owned();
    (output.status.success(), said)
}

#[test]
fn http_serves_clones_and_pushes() {
    let work = Work::new();
    let up = GitRepo::bare(work.dir("srv/up.git"));
    let first = up.seed("main", &[("a.txt", "one")]);
    let server = GitHttp::serve(work.join("srv"));
    assert!(clone(&work, &server.url("up.git"), "c").0);
    let clone = GitRepo::at(work.join("c"));
    assert_eq!(clone.head(), first);
    clone.write("big.bin", vec![7; 3 << 20]);
    let second = clone.commit("two");
    clone.git(&["-c", "http.postBuffer=4096", "push", "-q", "origin", "main"]);
    assert_eq!(up.ref_id("main"), Some(second));
    assert!(
        server
            .seen()
            .iter()
            .any(|seen| seen.path == "/up.git/git-receive-pack")
    );

    up.hook("pre-receive", "echo policy says no >&2; exit 1");
    clone.commit("three");
    let refused = clone.run(&["push", "-q", "origin", "main"]);
    assert!(String::from_utf8_lossy(&refused.stderr).contains("policy says no"));
}

#[test]
fn http_misbehaves_on_demand_and_stops_while_stalled() {
    let work = Work::new();
    GitRepo::bare(work.dir("srv/up.git")).seed("main", &[("a", "1")]);
    let server = GitHttp::serve(work.join("srv"));
    let url = server.url("up.git");
    server.require("/up.git", "ada", "secret");
    assert!(!clone(&work, &url, "a").0);
    let with = url.replace("http://", "http://ada:secret@");
    assert!(clone(&work, &with, "b").0);
    server.misbehave("info/refs", Fault::Status(500));
    assert!(clone(&work, &with, "c").1.contains("500"));
    server.behave();
    server.misbehave("git-upload-pack", Fault::Cut(10));
    assert!(!clone(&work, &with, "d").0);
    server.misbehave("info/refs", Fault::NoAnswer);
    let mut child = git_command(work.path())
        .args(["clone", "-q", &with, "e"])
        .stderr(std::process::Stdio::null())
        .spawn()
        .unwrap();
    server.forget();
    while server.seen().is_empty() {
        std::thread::yield_now();
    }
    drop(server);
    assert!(!child.wait().unwrap().success());
}

#[test]
fn ssh_serves_clones() {
    let work = Work::new();
    let up = GitRepo::bare(work.dir("srv/up.git"));
    let first = up.seed("main", &[("a.txt", "one")]);
    let server = Sshd::start(work.join("ssh")).unwrap();
    std::fs::write(work.join("known"), server.known_hosts().unwrap()).unwrap();
    let ssh = format!(
        "ssh -F none -i {} -o UserKnownHostsFile={} -o StrictHostKeyChecking=yes",
        server.user_key().display(),
        work.join("known").display()
    );
    let output = git_command(work.path())
        .env("GIT_SSH_COMMAND", ssh)
        .args(["clone", "-q", &server.url(up.path()), "c"])
        .output()
        .unwrap();
    assert!(output.status.success(), "{output:?}");
    assert_eq!(GitRepo::at(work.join("c")).head(), first);
}
