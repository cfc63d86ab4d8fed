//! Programs that the `python` handler starts, kept from the rest of the machine: what an
//! environment needs works, and what a hostile package tries does not.

use std::path::{Path, PathBuf};
use std::process::Command;
use std::time::{Duration, Instant};

use warren_testkit::{GitHttp, Index, sdist, wheel, wheel_of};

use crate::world::World;

const INSTALLERS: [&str; 2] = ["pip", "auto"];

/// A world whose host knows the index, if there is one.
fn world(installer: &str, index: Option<&Index>) -> World {
    let index = index.map_or_else(String::new, |index| format!("index = {:?}\n", index.url()));
    World::with_config(&format!("[python]\ninstaller = {installer:?}\n{index}"))
}

/// A remote with these requirements, and what `fill` puts beside them.
fn remote(world: &World, requirements: &str, fill: impl FnOnce(&Path)) -> String {
    let (bare, url) = world.remote("py.git", "main", &[("requirements.txt", requirements)]);
    let work = bare.clone_to(world.work.join("seed"));
    fill(work.path());
    work.git(&["add", "-A", "-f"]);
    if !work.git(&["status", "--porcelain"]).is_empty() {
        work.commit("more");
        work.git(&["push", "-q", "origin", "main"]);
    }
    url
}

fn create(world: &World, url: &str) -> PathBuf {
    world.ok(&["workspace", "init", "p"]);
    let name = world.create("p", &["--type", "python", "--repo", url]);
    world.dir("p", &name)
}

fn create_fails(world: &World, url: &str) -> serde_json::Value {
    world.ok(&["workspace", "init", "p"]);
    let error = world.create_fails("p", &["--type", "python", "--repo", url], "ProgramFailed");
    let listed = world.ok(&["rootdir", "list", "p"]);
    assert_eq!(listed["items"].as_array().map(Vec::len), Some(0));
    error
}

/// `VALUE` of a module of the environment.
fn value(dir: &Path, module: &str) -> String {
    let script = format!("import {module}; print({module}.VALUE)");
    let output = Command::new(dir.join(".venv/bin/python"))
        .args(["-I", "-c", &script])
        .env_clear()
        .output()
        .unwrap();
    assert!(output.status.success(), "{output:?}");
    String::from_utf8(output.stdout).unwrap().trim().to_owned()
}

#[test]
fn wheels_and_sources_come_from_the_index_and_without_one_from_nowhere() {
    for installer in INSTALLERS {
        let packages = tempfile::tempdir().unwrap();
        wheel(packages.path(), "tiny", "a wheel");
        sdist(packages.path(), "built", "VALUE = 'sources'\n");
        let index = Index::serve(packages.path());
        let requirements = "tiny==0.1\nbuilt==0.1\n";
        let here = world(installer, Some(&index));
        let dir = create(&here, &remote(&here, requirements, |_| {}));
        assert_eq!(value(&dir, "tiny"), "a wheel");
        assert_eq!(value(&dir, "built"), "sources");
        let asked = index.seen().len();
        assert!(asked >= 4, "{:?}", index.seen());
        // The twin: the same host, which was told of no index, so that nothing is granted.
        let twin = world(installer, None);
        let named = format!("--index-url {}\n{requirements}", index.url());
        create_fails(&twin, &remote(&twin, &named, |_| {}));
        assert_eq!(index.seen().len(), asked, "{installer}");
    }
}

#[test]
fn another_index_of_the_requirements_is_not_reached() {
    for installer in INSTALLERS {
        let [private, public] = [(); 2].map(|()| tempfile::tempdir().unwrap());
        wheel(private.path(), "tiny", "private");
        wheel_of(public.path(), "tiny", "99.0", "public");
        let [private, public] = [private, public].map(|dir| (Index::serve(dir.path()), dir));
        let world = world(installer, Some(&private.0));
        let requirements = format!("--extra-index-url {}\ntiny\n", public.0.url());
        let url = remote(&world, &requirements, |_| {});
        world.ok(&["workspace", "init", "p"]);
        // uv takes the refusal for an error, pip for an index that has nothing.
        let made = world.output(&[
            "rootdir",
            "create",
            "p",
            "--creator",
            "c",
            "--type",
            "python",
            "--repo",
            &url,
        ]);
        if made.status.success() {
            let made: serde_json::Value = serde_json::from_slice(&made.stdout).unwrap();
            let dir = world.dir("p", made["dirName"].as_str().unwrap());
            assert_eq!(value(&dir, "tiny"), "private");
        }
        assert_eq!(public.0.seen(), [""; 0], "{installer}");
    }
}

#[test]
fn variables_of_the_host_do_not_get_into_requirements() {
    let index = {
        let packages = tempfile::tempdir().unwrap();
        wheel(packages.path(), "tiny", "x");
        (Index::serve(packages.path()), packages)
    };
    let world = world("pip", Some(&index.0));
    let foreign = format!("http://127.0.0.1:{}/${{MONGO_URI}}/simple", index.0.port());
    let requirements = format!("--index-url {foreign}\ntiny\n");
    let url = remote(&world, &requirements, |_| {});
    world.ok(&["workspace", "init", "p"]);
    let args = [
        "rootdir",
        "create",
        "p",
        "--creator",
        "c",
        "--type",
        "python",
        "--repo",
        &url,
    ];
    let output = world
        .command(&args)
        .env("MONGO_URI", "mongodb-SECRET")
        .output()
        .unwrap();
    assert!(!output.status.success());
    let seen = index.0.seen();
    assert!(!seen.is_empty(), "the index was asked for something");
    assert!(!seen.concat().contains("SECRET"), "{seen:?}");
    assert!(!String::from_utf8_lossy(&output.stdout).contains("SECRET"));
}

/// What a build tries; each says what came of it.
fn tries(world: &World, index: &Index, other: &GitHttp) -> String {
    let work = world.work.path().display();
    let state = world.work.join("state");
    let state = state.display();
    let (index, other) = (index.port(), other.port());
    format!(
        r#"
import socket, urllib.request, ctypes, signal
def attempt(f):
    try:
        return 'DONE ' + repr(f())
    except BaseException as e:
        return type(e).__name__
def get(url, **proxies):
    opener = urllib.request.build_opener(urllib.request.ProxyHandler(proxies or None))
    try:
        return opener.open(url, timeout=5).status
    except urllib.error.HTTPError as e:
        if e.code in (403, 404):
            raise PermissionError(e.code)
        raise
def mount():
    libc = ctypes.CDLL(None, use_errno=True)
    if libc.mount(b'none', b'/tmp', b'tmpfs', 0, None) or libc.unshare(0x10000000):
        raise PermissionError
VALUE = {{
    'write outside': attempt(lambda: open('{work}/PWN', 'w')),
    'write system': attempt(lambda: open('/usr/PWN', 'w')),
    'read config': attempt(lambda: open('{work}/warren.toml').read()),
    'read remotes': attempt(lambda: os.listdir('{work}/remotes')),
    'read store': attempt(lambda: open('{state}/store.redb', 'rb').read(1)),
    'read shadow': attempt(lambda: open('/etc/shadow').read()),
    'host process': attempt(lambda: os.kill({pid}, 0)),
    'other server': attempt(lambda: socket.create_connection(('127.0.0.1', {other}), 5)),
    'index directly': attempt(lambda: socket.create_connection(('127.0.0.1', {index}), 5)),
    'other by proxy': attempt(lambda: get('http://127.0.0.1:{other}/x')),
    'mount': attempt(mount),
    'be root': attempt(lambda: os.setuid(0)) if os.getuid() else 'DONE',
}}
VALUE['index by proxy'] = attempt(lambda: get('http://127.0.0.1:{index}/simple/built/'))
VALUE['write inside'] = attempt(lambda: open(os.path.join(os.environ['HOME'], 'x'), 'w').write('x'))
VALUE['environment'] = ' '.join(sorted(os.environ))
"#,
        pid = std::process::id(),
    )
}

#[test]
fn a_hostile_build_gets_nowhere() {
    for installer in INSTALLERS {
        let packages = tempfile::tempdir().unwrap();
        let index = Index::serve(packages.path());
        let world = world(installer, Some(&index));
        let other = GitHttp::serve(world.work.dir("others"));
        sdist(packages.path(), "built", &tries(&world, &index, &other));
        let dir = create(&world, &remote(&world, "built\n", |_| {}));
        let report = value(&dir, "built").replace("', '", "'\n'");
        let of = |what: &str| {
            let start = format!("'{what}': ");
            let line = report.split(&start).nth(1);
            let line = line.unwrap_or_else(|| panic!("no `{what}` in {report}"));
            line.lines().next().unwrap_or_default().to_owned()
        };
        for what in [
            "write outside",
            "write system",
            "read config",
            "read remotes",
            "read store",
            "read shadow",
            "host process",
            "other server",
            "index directly",
            "other by proxy",
            "mount",
            "be root",
        ] {
            assert!(!of(what).contains("DONE"), "{installer}, {what}: {report}");
        }
        // The twins.
        assert!(of("index by proxy").contains("DONE 200"), "{report}");
        assert!(of("write inside").contains("DONE 1"), "{report}");
        let environment = of("environment");
        assert!(environment.contains("HTTP_PROXY"), "{environment}");
        assert!(!environment.contains("WARREN"), "{environment}");
        assert_eq!(other.seen(), []);
        assert!(!world.work.join("PWN").exists());
    }
}

/// Whether a process with this word on its command line runs.
fn runs(word: &str) -> bool {
    std::fs::read_dir("/proc").unwrap().flatten().any(|entry| {
        let line = std::fs::read(entry.path().join("cmdline")).unwrap_or_default();
        let line = String::from_utf8_lossy(&line).replace('\0', " ");
        line.contains(word) && line.contains("WARREN-IT-DAEMON")
    })
}

#[test]
fn a_build_that_stays_or_multiplies_ends_with_the_call() {
    let packages = tempfile::tempdir().unwrap();
    let index = Index::serve(packages.path());
    let word = format!("WARREN-IT-DAEMON-{}", std::process::id());
    let daemon = format!(
        "import subprocess\n\
         subprocess.Popen([sys.executable, '-c', 'import time; time.sleep(3600)', {word:?}], \
         start_new_session=True, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)\n"
    );
    sdist(packages.path(), "daemon", &daemon);
    let bomb = "import time\n\
        try:\n    \
            while True:\n        \
                if os.fork() == 0: os.closerange(0, 64); time.sleep(600); os._exit(0)\n\
        except OSError as e:\n    \
            VALUE = type(e).__name__\n";
    sdist(packages.path(), "bomb", bomb);
    let world = world("pip", Some(&index));
    let dir = create(&world, &remote(&world, "daemon\nbomb\n", |_| {}));
    let end = Instant::now() + Duration::from_secs(30);
    while runs(&word) {
        assert!(Instant::now() < end, "the daemon survives");
        std::thread::sleep(Duration::from_millis(20));
    }
    assert_eq!(value(&dir, "bomb"), "BlockingIOError");
}

#[test]
fn requirements_that_are_a_bomb_are_a_short_error() {
    let world = world("pip", None);
    for requirements in [
        "-r requirements.txt\n".to_owned(),
        format!("--no-index\nx{}\n", "y".repeat(5 << 20)),
        "--no-index\nno-such-thing\n".repeat(200_000),
        "-r/etc/hostname\n".to_owned(),
        "--no-index\n--target=/usr/PWN\n./none.whl\n".to_owned(),
    ] {
        let (_bare, url) = world.remote(
            &format!("{}.git", requirements.len()),
            "main",
            &[("requirements.txt", &requirements)],
        );
        let error = create_fails(&world, &url);
        let message = error["message"].as_str().unwrap();
        assert!(message.len() < 8 * 1024, "{}", message.len());
    }
    assert!(!Path::new("/usr/PWN").exists());
}

/// The interpreters of this machine: the system's, and the one that a version manager runs.
fn interpreters() -> Vec<PathBuf> {
    let real = |program: &str| {
        let script = "import ensurepip, os, sys; print(os.path.realpath(sys.executable))";
        let output = Command::new(program).args(["-I", "-c", script]).output();
        let output = output.ok().filter(|output| output.status.success())?;
        Some(PathBuf::from(String::from_utf8(output.stdout).ok()?.trim()))
    };
    let mut found: Vec<_> = ["/usr/bin/python3", "python3"]
        .iter()
        .filter_map(|program| real(program))
        .collect();
    found.dedup();
    assert!(!found.is_empty(), "there is no Python with ensurepip");
    found
}

#[test]
fn every_interpreter_makes_environments_and_loads_big_extensions() {
    // `.ci/run` fetches the wheel; by hand it may be absent.
    let wheels = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../target/ci/wheels");
    let numpy: Vec<PathBuf> = std::fs::read_dir(&wheels)
        .into_iter()
        .flatten()
        .flatten()
        .map(|entry| entry.path())
        .filter(|path| path.extension().is_some_and(|end| end == "whl"))
        .collect();
    let in_ci = std::env::var_os("WARREN_CI").is_some();
    assert!(!in_ci || !numpy.is_empty(), "no wheel in {wheels:?}");
    for interpreter in interpreters() {
        let world = World::with_config(&format!(
            "[python]\ninstaller = \"pip\"\ninterpreter = {interpreter:?}\n"
        ));
        // Loaded by a build, which runs confined; the environment's twin is loaded below.
        let build = "\
            import glob, tempfile\n\
            root = os.path.dirname(os.path.dirname(os.path.dirname(sys.executable)))\n\
            where = tempfile.mkdtemp()\n\
            for wheel in glob.glob(root + '/wheels/numpy*.whl'):\n    \
                zipfile.ZipFile(wheel).extractall(where)\n    \
                sys.path.insert(0, where)\n    \
                import numpy\n    \
                VALUE = int(numpy.arange(10).sum())\n";
        let fits = numpy.iter().filter(|wheel| fits(&interpreter, wheel));
        let fits: Vec<_> = fits.collect();
        assert!(!in_ci || !fits.is_empty(), "no wheel for {interpreter:?}");
        let names = fits.iter().filter_map(|wheel| wheel.file_name()?.to_str());
        let lines: String = names.map(|name| format!("./wheels/{name}\n")).collect();
        let requirements = format!("--no-index\n./wheels/built-0.1.tar.gz\n{lines}");
        let url = remote(&world, &requirements, |checkout| {
            let here = checkout.join("wheels");
            std::fs::create_dir(&here).unwrap();
            sdist(&here, "built", build);
            for wheel in &fits {
                std::fs::copy(wheel, here.join(wheel.file_name().unwrap())).unwrap();
            }
        });
        let dir = create(&world, &url);
        let expected = if fits.is_empty() { "None" } else { "45" };
        assert_eq!(value(&dir, "built"), expected, "{interpreter:?}");
    }
}

/// Whether the interpreter's version is that of the wheel, `cp311` say.
fn fits(interpreter: &Path, wheel: &Path) -> bool {
    let script = "import sys; print('cp%d%d' % sys.version_info[:2])";
    let output = Command::new(interpreter)
        .args(["-I", "-c", script])
        .output()
        .unwrap();
    let tag = String::from_utf8(output.stdout).unwrap();
    let name = wheel.file_name().unwrap().to_string_lossy();
    name.contains(&format!("-{}-", tag.trim()))
}

#[test]
fn doctor_says_what_is_enforced_and_for_whom() {
    let world = World::new();
    let report = world.ok(&["doctor"]);
    assert_eq!(report["fit"], true, "{report}");
    let state = |name: &str| {
        let findings = report["findings"].as_array().unwrap();
        let found = findings.iter().find(|found| found["name"] == name);
        found.unwrap_or_else(|| panic!("no `{name}` in {report}"))["state"].clone()
    };
    for name in [
        "landlock-abi",
        "landlock",
        "seccomp",
        "no-new-privs",
        "launcher",
        "git-threads",
        "disk",
    ] {
        assert_eq!(state(name), "ok", "{name}: {report}");
    }
    // What the policy needs and is not there: who needs it, what to do, and an exit code for scripts.
    world.configure(&format!(
        "[launcher]\npath = {:?}\n",
        world.work.join("none").to_str().unwrap()
    ));
    let output = world.output(&["doctor"]);
    assert_eq!(output.status.code(), Some(9));
    let report: serde_json::Value = serde_json::from_slice(&output.stdout).unwrap();
    assert_eq!(report["fit"], false, "{report}");
    let findings = report["findings"].as_array().unwrap();
    let missing: Vec<_> = findings
        .iter()
        .filter(|found| found["state"] == "missing")
        .collect();
    assert_eq!(missing.len(), 1, "{report}");
    let what = missing[0]["what"].as_str().unwrap();
    assert!(what.contains("launcher.path"), "{report}");
}
