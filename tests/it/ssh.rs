//! A remote behind a real ssh server: one full round, and host keys.

use crate::world::{Seen, World};
use warren_testkit::{GitRepo, Sshd};

struct Ssh {
    world: World,
    server: Sshd,
    url: String,
    remote: GitRepo,
}

impl Ssh {
    /// A server that `known-hosts` does not know yet, and a key that it lets in as `deploy`.
    fn new() -> Self {
        let world = World::new();
        let server = Sshd::start(world.work.dir("ssh")).unwrap();
        let remote = GitRepo::bare(world.work.join("remotes/up.git"));
        remote.seed("main", &[("a.txt", "a\n"), ("b.txt", "b\n")]);
        let known = world.work.join("known_hosts");
        let config = format!(
            "[git]\nallow = [\"ssh://127.0.0.1:*/**\"]\nknown-hosts = {known:?}\n\
             [credentials.deploy]\nssh-key = {{ file = {:?} }}\n\
             [credentials.wrong]\nssh-key = {{ file = {:?} }}\n",
            server.user_key(),
            world.work.join("ssh/other_host_key"),
        );
        std::fs::write(world.work.join("warren.toml"), config).unwrap();
        world.ok(&["workspace", "init", "p"]);
        Self {
            url: server.url(remote.path()),
            world,
            server,
            remote,
        }
    }

    fn know(&self, line: &str) {
        std::fs::write(self.world.work.join("known_hosts"), line).unwrap();
    }

    /// A create that fails with `code` leaves nothing; its message.
    fn cannot_create(&self, alias: &str, code: &str) -> String {
        let create = ["rootdir", "create", "p", "--creator", "c", "--type", "git"];
        let which = ["--repo", &self.url, "--credential", alias];
        let error = self.world.fails(&[&create[..], &which].concat(), code);
        let listed = self.world.ok(&["rootdir", "list", "p"]);
        assert_eq!(listed["items"].as_array().map(Vec::len), Some(0));
        error["message"].as_str().unwrap().to_owned()
    }
}

#[test]
fn a_root_goes_and_comes_back_over_ssh() {
    let mut ssh = Ssh::new();
    ssh.know(&ssh.server.known_hosts().unwrap());
    let name = ssh
        .world
        .create_git("p", &ssh.url, &["--credential", "deploy"]);
    let repo = ssh.world.repo("p", &name);
    repo.write("a.txt", "committed\n");
    repo.commit("local only");
    repo.write("a.txt", "staged\n");
    repo.git(&["add", "a.txt"]);
    repo.write("b.txt", "edited\n");
    repo.write("new.txt", "new\n");
    let before = Seen::of(&repo);
    let suspended = ssh.world.move_away("p");
    let branch = suspended["roots"][0]["receipts"][0]["refName"].as_str();
    let branch = branch.unwrap_or_else(|| panic!("{suspended}"));
    assert!(ssh.remote.ref_id(branch).is_some(), "{branch}");
    assert_eq!(before, Seen::of(&ssh.world.repo("p", &name)));
}

#[test]
fn an_unknown_and_a_changed_host_key_are_refused_and_told_apart() {
    let ssh = Ssh::new();
    let said = ssh.cannot_create("deploy", "GitHostKeyUnknown");
    assert!(said.contains("SHA256:"), "{said}");
    ssh.know(&ssh.server.changed_known_hosts().unwrap());
    let said = ssh.cannot_create("deploy", "GitHostKeyChanged");
    assert!(said.contains("changed"), "{said}");
    ssh.know(&ssh.server.known_hosts().unwrap());
    ssh.cannot_create("wrong", "GitAuthenticationFailed");
}

#[test]
fn a_host_key_that_changes_before_suspend_keeps_the_work() {
    let ssh = Ssh::new();
    ssh.know(&ssh.server.known_hosts().unwrap());
    let name = ssh
        .world
        .create_git("p", &ssh.url, &["--credential", "deploy"]);
    let repo = ssh.world.repo("p", &name);
    repo.write("new.txt", "new\n");
    let before = Seen::of(&repo);
    ssh.know(&ssh.server.changed_known_hosts().unwrap());
    ssh.world
        .fails(&["workspace", "suspend", "p"], "GitHostKeyChanged");
    assert_eq!(before, Seen::of(&repo));
    assert_eq!(ssh.world.status("p"), "RUNNING");
    assert_eq!(
        ssh.remote.git(&["for-each-ref", "--format=%(refname)"]),
        "refs/heads/main"
    );
}
