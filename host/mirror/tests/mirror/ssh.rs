//! One round over ssh, and host keys.

use std::fs;
use std::process::Command;

use crate::setup::{code, limits, mirrors, spec};
use warren_mirror::{Credential, CredentialStore, Lay, Limits, Mirrors, Origin};
use warren_testkit::{GitRepo, Sshd, Work};

const REF: &str = "refs/heads/vance/suspend/r";

struct Ssh {
    work: Work,
    server: Sshd,
    up: GitRepo,
    mirrors: Mirrors,
}

impl Ssh {
    fn new() -> Self {
        let work = Work::new();
        let server = Sshd::start(work.dir("ssh")).unwrap();
        let up = GitRepo::bare(work.dir("srv/up.git"));
        up.seed("main", &[("a.txt", "1")]);
        let key = |file| Credential::SshKey {
            username: None,
            private_key: file,
            passphrase: None,
        };
        let mut store = CredentialStore::default();
        let anywhere: &[&str] = &[];
        store
            .insert("key", key(server.user_key()), anywhere)
            .unwrap();
        let wrong = work.join("ssh/other_host_key");
        store.insert("wrong", key(wrong), anywhere).unwrap();
        let limits = Limits { ..limits() };
        let mirrors = mirrors(&work, &["ssh://127.0.0.1:*/**"], store, limits);
        Self {
            work,
            server,
            up,
            mirrors,
        }
    }

    fn origin(&self, alias: &str) -> Origin {
        Origin {
            url: self.server.url(self.up.path()),
            credential_alias: Some(alias.to_owned()),
        }
    }

    fn know(&self, text: String) {
        fs::write(self.work.join("known_hosts"), text).unwrap();
    }
}

#[test]
fn a_host_key_must_be_known_and_unchanged() {
    let ssh = Ssh::new();
    let clone = |root: &str, alias: &str| {
        ssh.mirrors
            .session(spec(&ssh.work, root))
            .clone(&ssh.origin(alias), None)
    };
    assert_eq!(code(clone("r", "key")), "GitHostKeyUnknown");
    ssh.know(ssh.server.changed_known_hosts().unwrap());
    assert_eq!(code(clone("r", "key")), "GitHostKeyChanged");
    ssh.know(ssh.server.known_hosts().unwrap());
    assert_eq!(code(clone("r", "wrong")), "GitAuthenticationFailed");
    clone("r", "key").unwrap();

    // Hashed by the program that everybody uses.
    let file = ssh.work.join("known_hosts");
    let hashed = Command::new("ssh-keygen")
        .args(["-H", "-f"])
        .arg(&file)
        .output()
        .unwrap();
    assert!(hashed.status.success());
    assert!(fs::read_to_string(&file).unwrap().starts_with("|1|"));
    clone("s", "key").unwrap();
}

#[test]
fn a_root_goes_and_comes_over_ssh() {
    let ssh = Ssh::new();
    ssh.know(ssh.server.known_hosts().unwrap());
    let origin = ssh.origin("key");
    let mut session = ssh.mirrors.session(spec(&ssh.work, "r"));
    session.clone(&origin, None).unwrap();
    let root = GitRepo::at(ssh.work.join("roots/r"));
    root.write("new.txt", "work");
    let made = session.snapshot(&origin, &[]).unwrap();
    session.push(&origin, &made.commit, REF, None).unwrap();
    assert_eq!(ssh.up.ref_id(REF), Some(made.commit.clone()));
    assert_eq!(session.receipts().len(), 1);
    ssh.up.hook("pre-receive", "echo no >&2; exit 1");
    let refused = session.delete_remote_ref(&origin, REF, &made.commit);
    assert_eq!(code(refused), "GitRejected");
    ssh.mirrors
        .session(spec(&ssh.work, "s"))
        .restore(&origin, REF, &made.commit, Lay::WorkingTree)
        .unwrap();
    let back = GitRepo::at(ssh.work.join("roots/s"));
    assert_eq!(back.git(&["status", "--porcelain"]), "?? new.txt");
}
