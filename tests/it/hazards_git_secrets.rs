//! A credential is in no file, no output and no command line.

use std::fs::Permissions;
use std::os::unix::fs::PermissionsExt;
use std::process::{Output, Stdio};
use std::time::Instant;

use serde_json::Value;
use warren_testkit::{Fault, GitRepo};

use crate::world::{Seen, World};

const SECRET: &str = "s3cr3t-t0ken-0f-acme";
const CONFIG: &str = "timeout-seconds = 4\n[credentials.acme]\nusername = \"ada\"\n\
                      password = { env = \"ACME_TOKEN\" }\n";

struct Secrets {
    world: World,
    remote: GitRepo,
    url: String,
    root: String,
}

impl Secrets {
    fn new() -> Self {
        let world = World::with_config(CONFIG);
        let (remote, url) = world.remote("private/up.git", "main", &[("a.txt", "a\n")]);
        world.http.require("/private", "ada", SECRET);
        world.ok(&["workspace", "init", "p"]);
        let mut secrets = Self {
            world,
            remote,
            url,
            root: String::new(),
        };
        let create = ["rootdir", "create", "p", "--creator", "c", "--type", "git"];
        let which = ["--repo", &secrets.url, "--credential", "acme"];
        let made = secrets.run(&[&create[..], &which].concat());
        let json: Value = serde_json::from_slice(&made.stdout).unwrap();
        secrets.root = json["dirName"]
            .as_str()
            .unwrap_or_else(|| panic!("{json}"))
            .to_owned();
        secrets
    }

    /// Runs the program with the token and all the logs there are; neither holds the secret.
    fn run(&self, args: &[&str]) -> Output {
        let output = self
            .world
            .command(&[&["-vvv"], args].concat())
            .env("ACME_TOKEN", SECRET)
            .output()
            .unwrap();
        for (name, bytes) in [("stdout", &output.stdout), ("stderr", &output.stderr)] {
            let text = String::from_utf8_lossy(bytes);
            assert!(!shows(&text), "{args:?}: the secret is in {name}: {text}");
        }
        output
    }

    fn fails(&self, args: &[&str], code: &str) -> Output {
        let output = self.run(args);
        let json: Value = serde_json::from_slice(&output.stdout).unwrap();
        assert_eq!(json["error"]["code"], code, "{args:?}: {json}");
        output
    }

    fn in_no_file(&self) {
        for needle in [SECRET, &basic(), &encoded()] {
            let found = self.world.work.files_holding(needle.as_bytes());
            assert!(found.is_empty(), "{needle}: {found:?}");
        }
    }
}

/// `ada:SECRET` as basic authentication sends it.
fn basic() -> String {
    // The text is ASCII and the kit's server compares it as well: a wrong one lets nobody in.
    "YWRhOnMzY3IzdC10MGtlbi0wZi1hY21l".to_owned()
}

/// The secret as a URL may carry it.
fn encoded() -> String {
    SECRET.replace('-', "%2D")
}

fn shows(text: &str) -> bool {
    text.contains(SECRET) || text.contains(&basic()) || text.contains(&encoded())
}

#[test]
fn a_whole_round_leaves_the_secret_nowhere() {
    let mut secrets = Secrets::new();
    let repo = secrets.world.repo("p", &secrets.root);
    repo.write("new.txt", "new\n");
    let before = Seen::of(&repo);
    // Whoever looks at the processes while the server works sees no secret either.
    let list = secrets.world.work.join("cmdlines");
    let script = format!(
        "cat /proc/[0-9]*/cmdline 2>/dev/null | tr '\\0' ' ' > {}",
        list.display()
    );
    secrets.remote.hook("post-receive", &script);
    let suspended = secrets.run(&["workspace", "suspend", "p"]);
    assert!(suspended.status.success());
    let seen = std::fs::read_to_string(&list).unwrap();
    assert!(seen.contains("suspend"), "the program was running: {seen}");
    secrets.in_no_file();
    for args in [
        &["workspace", "get", "p"][..],
        &["workspace", "list"],
        &["config", "show", "--origin"],
        &["plugin", "list"],
    ] {
        assert!(secrets.run(args).status.success(), "{args:?}");
    }
    secrets.world.root = secrets.world.work.join("ws2");
    assert!(secrets.run(&["workspace", "recover", "p"]).status.success());
    assert_eq!(before, Seen::of(&secrets.world.repo("p", &secrets.root)));
    assert!(secrets.run(&["rootdir", "list", "p"]).status.success());
    secrets.in_no_file();
    let sent: Vec<_> = secrets
        .world
        .http
        .seen()
        .into_iter()
        .filter_map(|s| s.authorization)
        .collect();
    assert!(
        sent.iter().any(|sent| sent.ends_with(&basic())),
        "it was used"
    );
}

#[test]
fn a_server_that_repeats_what_it_was_sent_is_masked_and_cut() {
    let secrets = Secrets::new();
    secrets
        .world
        .repo("p", &secrets.root)
        .write("new.txt", "new\n");
    let script = format!(
        "printf '\\033]0;x\\007 token {SECRET} %s\\n' ada:{SECRET} >&2\n\
         head -c 5000000 /dev/zero | tr '\\0' x >&2\nexit 1"
    );
    secrets.remote.hook("pre-receive", &script);
    let output = secrets.fails(&["workspace", "suspend", "p"], "GitRejected");
    let said = String::from_utf8_lossy(&output.stdout);
    assert!(said.contains("***"), "masked: {said}");
    assert!(
        !said.contains('\u{1b}') && !said.contains("\\u001b"),
        "{said}"
    );
    assert!(said.len() < 16 * 1024, "{} bytes", said.len());
    let log = String::from_utf8_lossy(&output.stderr);
    assert!(!log.contains("\u{1b}]0"), "no title is set");
    assert!(
        log.lines().all(|line| line.len() < 16 * 1024),
        "{} bytes",
        log.len()
    );
    secrets.remote.unhook("pre-receive");
    secrets.in_no_file();
}

#[test]
fn a_remote_that_breaks_or_refuses_shows_no_secret() {
    let secrets = Secrets::new();
    let repo = secrets.world.repo("p", &secrets.root);
    repo.write("new.txt", "new\n");
    let before = Seen::of(&repo);
    let suspend = ["workspace", "suspend", "p"];
    for (fault, code) in [
        (Fault::Status(500), "GitUnreachable"),
        (Fault::Status(403), "GitAuthenticationFailed"),
        (
            Fault::Redirect("http://localhost:1".to_owned()),
            "GitDenied",
        ),
        (Fault::NoAnswer, "GitTimeout"),
        (Fault::Cut(3), "GitUnreachable"),
    ] {
        secrets.world.http.misbehave("up.git", fault);
        let output = secrets.fails(&suspend, code);
        let said = String::from_utf8_lossy(&output.stdout);
        assert!(
            said.contains("private/up.git"),
            "it names the remote: {said}"
        );
        secrets.world.http.behave();
        assert_eq!(before, Seen::of(&repo));
        assert_eq!(secrets.world.status("p"), "RUNNING");
    }
    // The token was revoked.
    secrets.world.http.require("/private", "ada", "another");
    secrets.fails(&suspend, "GitAuthenticationFailed");
    assert_eq!(before, Seen::of(&repo));
    secrets.in_no_file();
}

#[test]
fn a_url_with_a_login_is_refused() {
    let secrets = Secrets::new();
    let host = secrets.url.strip_prefix("http://").unwrap();
    for url in [
        format!("http://ada:{SECRET}@{host}"),
        format!("http://{SECRET}@{host}"),
        format!("http://ada:{}@{host}", encoded()),
        format!("https://ada:{SECRET}@127.0.0.1/x"),
        format!("ssh://git:{SECRET}@127.0.0.1/x"),
    ] {
        let create = ["rootdir", "create", "p", "--creator", "c", "--type", "git"];
        secrets.fails(
            &[&create[..], &["--repo", &url]].concat(),
            "GitInvalidArgument",
        );
        let json = format!("repoUrl:={}", serde_json::json!(url));
        secrets.fails(
            &[&create[..], &["--meta", &json]].concat(),
            "GitInvalidArgument",
        );
    }
    let listed = secrets.world.ok(&["rootdir", "list", "p"]);
    assert_eq!(listed["items"].as_array().map(Vec::len), Some(1));
    secrets.in_no_file();
}

#[test]
fn nobody_is_asked_for_a_password() {
    let world = World::new();
    let (_remote, url) = world.remote("private/up.git", "main", &[("a", "a\n")]);
    world.http.require("/private", "u", "SECRETTOKEN");
    world.ok(&["workspace", "init", "p"]);
    let mark = world.work.join("PWN");
    let ask = world.work.join("ask");
    std::fs::write(
        &ask,
        format!("#!/bin/sh\ntouch {}\nexec sleep 600\n", mark.display()),
    )
    .unwrap();
    std::fs::set_permissions(&ask, Permissions::from_mode(0o755)).unwrap();
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
    let start = Instant::now();
    let output = world
        .command(&create)
        .env("GIT_ASKPASS", &ask)
        .env("SSH_ASKPASS", &ask)
        .env("SSH_ASKPASS_REQUIRE", "force")
        .env("DISPLAY", ":0")
        .stdin(Stdio::piped())
        .output()
        .unwrap();
    let json: Value = serde_json::from_slice(&output.stdout).unwrap();
    assert_eq!(json["error"]["code"], "GitAuthenticationFailed", "{json}");
    assert!(start.elapsed().as_secs() < 60);
    assert!(!mark.exists());
}
