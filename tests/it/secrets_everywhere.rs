//! What a reviewer greps: after a whole round with every kind of credential, and after all that was
//! denied on the way, no secret is anywhere but where the operator put it.

use std::collections::BTreeSet;
use std::fmt::Write as _;
use std::io::Read as _;
use std::os::unix::fs::PermissionsExt;
use std::path::{Path, PathBuf};
use std::process::Output;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex};
use std::thread::JoinHandle;

use serde_json::Value;
use warren_testkit::{GitRepo, Sshd};

use crate::world::World;

/// Secrets of this run and no other, so that all of the machine can be searched.
struct Planted {
    /// In every secret but the key.
    unique: String,
    /// In the host's environment, of a credential.
    token: String,
    /// In a file of the operator's.
    filed: String,
    /// What a command prints.
    printed: String,
    /// In the host's environment, of nothing that Warren knows.
    database: String,
    /// The middle of the ssh key.
    key: String,
}

impl Planted {
    fn new(key_file: &Path) -> Self {
        let mut unique = [0_u8; 12];
        let mut random = std::fs::File::open("/dev/urandom").unwrap();
        random.read_exact(&mut unique).unwrap();
        let hex = unique.iter().fold(String::new(), |mut hex, byte| {
            write!(hex, "{byte:02x}").unwrap();
            hex
        });
        let key = std::fs::read_to_string(key_file).unwrap();
        let lines: Vec<&str> = key.lines().collect();
        Self {
            token: format!("t0ken-{hex}"),
            filed: format!("f1led-{hex}"),
            printed: format!("pr1nted-{hex}"),
            database: format!("db-passw0rd-{hex}"),
            key: lines[lines.len() / 2].to_owned(),
            unique: hex,
        }
    }

    /// What finds every secret, in each form in which it travels: the part that all of them have in
    /// common is in the plain and in the percent-encoded ones.
    fn needles(&self) -> Vec<String> {
        let mut all = vec![self.unique.clone(), self.key.clone()];
        for secret in [&self.token, &self.filed, &self.printed] {
            all.push(basic("ada", secret));
        }
        all
    }
}

/// As basic authentication sends it.
fn basic(user: &str, password: &str) -> String {
    const DIGITS: &[u8; 64] = b"ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/";
    let text = format!("{user}:{password}");
    let mut out = String::new();
    for three in text.as_bytes().chunks(3) {
        let byte = |at: usize| u32::from(three.get(at).copied().unwrap_or(0));
        let bits = byte(0) << 16 | byte(1) << 8 | byte(2);
        for at in 0..=three.len() {
            out.push(char::from(DIGITS[(bits >> (18 - 6 * at) & 63) as usize]));
        }
    }
    out
}

/// Looks at the command line and the environment of every process until it ends.
struct Watch {
    stop: Arc<AtomicBool>,
    found: Arc<Mutex<BTreeSet<String>>>,
    thread: Option<JoinHandle<u64>>,
}

impl Watch {
    fn start(needles: Vec<String>) -> Self {
        let stop = Arc::new(AtomicBool::new(false));
        let found = Arc::new(Mutex::new(BTreeSet::new()));
        let (until, into) = (Arc::clone(&stop), Arc::clone(&found));
        let thread = std::thread::spawn(move || {
            let mut seen = 0;
            while !until.load(Ordering::Relaxed) {
                seen += look(&needles, &into);
                std::thread::sleep(std::time::Duration::from_millis(2));
            }
            seen
        });
        Self {
            stop,
            found,
            thread: Some(thread),
        }
    }

    fn end(mut self) -> (u64, BTreeSet<String>) {
        self.stop.store(true, Ordering::Relaxed);
        let seen = self.thread.take().unwrap().join().unwrap();
        (seen, self.found.lock().unwrap().clone())
    }
}

/// One look at all processes; how many of them were the host's children.
fn look(needles: &[String], found: &Mutex<BTreeSet<String>>) -> u64 {
    let mut launched = 0;
    for entry in std::fs::read_dir("/proc").unwrap().flatten() {
        let place = entry.path();
        let Ok(line) = std::fs::read(place.join("cmdline")) else {
            continue;
        };
        let program = std::fs::read_link(place.join("exe")).unwrap_or_default();
        launched += u64::from(program.ends_with("warren-launch"));
        // The host has what its operator and its caller gave it, and the operator's own helper is
        // the host's own; what they start for a plugin must not have it.
        if program.ends_with("warren") || holds(&line, "operator/helper") {
            continue;
        }
        let environment = std::fs::read(place.join("environ")).unwrap_or_default();
        for needle in needles {
            if holds(&line, needle) || holds(&environment, needle) {
                let line = String::from_utf8_lossy(&line).replace('\0', " ");
                found.lock().unwrap().insert(format!("{program:?}: {line}"));
            }
        }
    }
    launched
}

fn holds(bytes: &[u8], needle: &str) -> bool {
    String::from_utf8_lossy(bytes).contains(needle)
}

struct Round {
    world: World,
    server: Sshd,
    planted: Planted,
    private: GitRepo,
    said: usize,
}

impl Round {
    fn new() -> Self {
        let world = World::new();
        let server = Sshd::start(world.work.dir("operator/ssh")).unwrap();
        let planted = Planted::new(&server.user_key());
        let (private, _) = world.remote("private/up.git", "main", &[("a.txt", "a\n")]);
        world.http.require("/private", "ada", &planted.token);
        let (_filed, _) = world.remote("filed/up.git", "main", &[("b.txt", "b\n")]);
        world.http.require("/filed", "ada", &planted.filed);
        let (_printed, _) = world.remote("printed/up.git", "main", &[("c.txt", "c\n")]);
        world.http.require("/printed", "ada", &planted.printed);
        let round = Self {
            world,
            server,
            planted,
            private,
            said: 0,
        };
        round.configure();
        round
    }

    fn configure(&self) {
        let operator = self.world.work.dir("operator");
        let file = operator.join("token");
        std::fs::write(&file, &self.planted.filed).unwrap();
        let helper = operator.join("helper");
        let script = format!("#!/bin/sh\necho {}\n", self.planted.printed);
        std::fs::write(&helper, script).unwrap();
        std::fs::set_permissions(&helper, std::fs::Permissions::from_mode(0o700)).unwrap();
        let known = operator.join("known_hosts");
        std::fs::write(&known, self.server.known_hosts().unwrap()).unwrap();
        let config = format!(
            "[git]\nallow = [\"http://127.0.0.1:{}/**\", \"ssh://127.0.0.1:*/**\"]\n\
             known-hosts = {known:?}\ntimeout-seconds = 20\n\
             [credentials.acme]\nusername = \"ada\"\npassword = {{ env = \"ACME_TOKEN\" }}\n\
             [credentials.filed]\nusername = \"ada\"\npassword = {{ file = {file:?} }}\n\
             [credentials.printed]\nusername = \"ada\"\n\
             password = {{ command = [{helper:?}] }}\n\
             [credentials.deploy]\nssh-key = {{ file = {:?} }}\n\
             [python]\ninstaller = \"pip\"\n",
            self.world.http.port(),
            self.server.user_key(),
        );
        std::fs::write(self.world.work.join("warren.toml"), config).unwrap();
    }

    /// Runs the program with all logs there are; what it says holds no secret.
    fn run(&mut self, args: &[&str]) -> Output {
        let output = self
            .world
            .command(&[&["-vvv"], args].concat())
            .env("ACME_TOKEN", &self.planted.token)
            .env("MONGO_URI", &self.planted.database)
            .env("TMPDIR", self.world.work.dir("tmp"))
            .output()
            .unwrap();
        for needle in self.planted.needles() {
            for bytes in [&output.stdout, &output.stderr] {
                let text = String::from_utf8_lossy(bytes);
                assert!(!text.contains(&needle), "{args:?} says {needle}: {text}");
            }
        }
        self.said += output.stdout.len() + output.stderr.len();
        output
    }

    fn ok(&mut self, args: &[&str]) -> Value {
        let output = self.run(args);
        assert!(output.status.success(), "{args:?}: {output:?}");
        serde_json::from_slice(&output.stdout).unwrap()
    }

    fn fails(&mut self, args: &[&str]) -> String {
        let output = self.run(args);
        assert!(!output.status.success(), "{args:?} should fail");
        let json: Value = serde_json::from_slice(&output.stdout).unwrap();
        json["error"]["code"]
            .as_str()
            .unwrap_or_default()
            .to_owned()
    }

    fn create(&mut self, more: &[&str]) -> String {
        let made = self.ok(&[&CREATE, more].concat());
        made["dirName"].as_str().unwrap().to_owned()
    }

    /// Files below the test's directory that hold a secret, without the operator's own.
    fn leaks(&self) -> Vec<(String, PathBuf)> {
        let operator = self.world.work.join("operator");
        let mut leaks = Vec::new();
        for needle in self.planted.needles() {
            for file in self.world.work.files_holding(needle.as_bytes()) {
                if !file.starts_with(&operator) {
                    leaks.push((needle.clone(), file));
                }
            }
        }
        leaks
    }
}

const CREATE: [&str; 5] = ["rootdir", "create", "p", "--creator", "c"];

/// A checkout that installs a wheel of its own, and one that asks for what the host knows.
fn python_remotes(world: &World) -> [String; 2] {
    let (bare, good) = world.remote("py.git", "main", &[("main.py", "import tiny\n")]);
    let work = bare.clone_to(world.work.join("seed"));
    std::fs::create_dir(work.path().join("wheels")).unwrap();
    warren_testkit::wheel(&work.path().join("wheels"), "tiny", "from the wheel");
    let requirements = "--no-index\n./wheels/tiny-0.1-py3-none-any.whl\n";
    work.write("requirements.txt", requirements);
    work.git(&["add", "-A", "-f"]);
    work.commit("a wheel");
    work.git(&["push", "-q", "origin", "main"]);
    let port = world.http.port();
    let asks = format!(
        "--index-url http://127.0.0.1:{port}/${{MONGO_URI}}/${{ACME_TOKEN}}/simple\nnothing-there\n"
    );
    let (_, bad) = world.remote("bad.git", "main", &[("requirements.txt", &asks)]);
    [good, bad]
}

#[test]
fn after_a_whole_round_no_secret_is_anywhere_else() {
    let mut round = Round::new();
    let watch = Watch::start(round.planted.needles());
    let [good, bad] = python_remotes(&round.world);
    round.ok(&["workspace", "init", "p"]);
    let mut work = Vec::new();
    for alias in ["acme", "filed", "printed"] {
        let folder = if alias == "acme" { "private" } else { alias };
        let url = round.world.http.url(&format!("{folder}/up.git"));
        let name = round.create(&["--type", "git", "--repo", &url, "--credential", alias]);
        round.world.repo("p", &name).write("new.txt", "new\n");
        work.push(name);
    }
    let url = round.server.url(round.private.path());
    let name = round.create(&["--type", "git", "--repo", &url, "--credential", "deploy"]);
    round.world.repo("p", &name).write("over-ssh.txt", "new\n");
    work.push(name);
    let name = round.create(&["--type", "python", "--repo", &good]);
    assert!(
        round
            .world
            .dir("p", &name)
            .join(".venv/bin/python")
            .exists()
    );
    round.world.repo("p", &name).write("more.py", "x = 1\n");
    work.push(name);

    // Denied, each in its own way.
    let private = round.world.http.url("private/up.git");
    let host = private.strip_prefix("http://").unwrap().to_owned();
    let with_login = format!("http://ada:{}@{host}", round.planted.token);
    let elsewhere = "https://git.example/x.git";
    for more in [
        &["--type", "git", "--repo", &with_login][..],
        &["--type", "git", "--repo", elsewhere, "--credential", "acme"],
        &["--type", "git", "--repo", &private, "--credential", "filed"],
        &["--type", "git", "--repo", &private],
        &[
            "--type",
            "git",
            "--repo",
            &private,
            "--credential",
            "nobody",
        ],
        &["--type", "python", "--repo", &bad],
    ] {
        let code = round.fails(&[&CREATE, more].concat());
        assert!(!code.is_empty() && code != "Internal", "{more:?}: {code}");
    }
    let leaks = round.leaks();
    assert!(leaks.is_empty(), "before suspend: {leaks:?}");

    round.ok(&["workspace", "suspend", "p"]);
    assert!(!round.world.root.join("p").exists());
    let leaks = round.leaks();
    assert!(leaks.is_empty(), "while suspended: {leaks:?}");
    round.world.root = round.world.work.join("ws2");
    round.ok(&["workspace", "recover", "p"]);
    for name in &work {
        assert!(round.world.dir("p", name).exists(), "{name}");
    }
    for args in [
        &["rootdir", "list", "p"][..],
        &["workspace", "get", "p"],
        &["plugin", "list"],
        &["config", "show", "--origin"],
    ] {
        round.ok(args);
    }
    round.ok(&["rootdir", "dispose", "p", &work[0]]);
    round.ok(&["workspace", "dispose", "p", "--force"]);
    let leaks = round.leaks();
    assert!(leaks.is_empty(), "at the end: {leaks:?}");

    let (launched, found) = watch.end();
    assert!(found.is_empty(), "{found:?}");
    assert!(launched > 0, "the launcher was never seen at work");
    assert!(
        round.said > 10_000,
        "the logs were on: {} bytes",
        round.said
    );
    // The index of the hostile checkout was not asked with what the host knows.
    for seen in round.world.http.seen() {
        assert!(
            !seen.path.contains(&round.planted.database),
            "{}",
            seen.path
        );
        assert!(!seen.path.contains(&round.planted.token), "{}", seen.path);
    }
    // The search finds what is there.
    let own = round.planted.filed.clone();
    assert!(!round.world.work.files_holding(own.as_bytes()).is_empty());
    let sent = round.world.http.seen().into_iter();
    let sent: Vec<String> = sent.filter_map(|seen| seen.authorization).collect();
    let wanted = basic("ada", &round.planted.token);
    assert!(
        sent.iter().any(|sent| sent.contains(&wanted)),
        "it was used"
    );
}
