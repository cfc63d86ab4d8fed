//! One test's world: a workspace root, a state directory, remotes behind real smart HTTP, and the
//! program `warren` run on them with a clean environment.

use std::path::{Path, PathBuf};
use std::process::{Child, Command, Output, Stdio};
use std::sync::OnceLock;

use serde_json::Value;
use warren_testkit::{GitHttp, GitRepo, Work};

/// Directory of the programs `warren` and `warren-launch`, built once a run.
pub(crate) fn programs() -> &'static Path {
    static PROGRAMS: OnceLock<PathBuf> = OnceLock::new();
    PROGRAMS.get_or_init(|| {
        // Cargo builds the programs of a package only for that package's own tests.
        let profile = if cfg!(debug_assertions) {
            "dev"
        } else {
            "release"
        };
        let status = Command::new(env!("CARGO"))
            .args(["build", "--quiet", "--locked", "--profile", profile])
            .args(["-p", "warren", "-p", "warren-launch", "--bins"])
            .current_dir(env!("CARGO_MANIFEST_DIR"))
            .status()
            .expect("cargo runs");
        assert!(status.success(), "the programs do not build");
        // …/target/<profile>/deps/it-<hash>
        let test = std::env::current_exe().unwrap();
        test.parent().and_then(Path::parent).unwrap().to_owned()
    })
}

/// See the module.
pub(crate) struct World {
    pub(crate) work: Work,
    pub(crate) http: GitHttp,
    /// The workspace root that the next command uses.
    pub(crate) root: PathBuf,
    config: PathBuf,
}

impl World {
    pub(crate) fn new() -> Self {
        Self::with_config("")
    }

    /// A world with more lines in its configuration.
    pub(crate) fn with_config(more: &str) -> Self {
        let work = Work::new();
        let http = GitHttp::serve(work.dir("remotes"));
        let config = work.join("warren.toml");
        let world = Self {
            root: work.join("ws"),
            config,
            http,
            work,
        };
        world.configure(more);
        world
    }

    /// Writes the configuration anew, with more lines at its end.
    pub(crate) fn configure(&self, more: &str) {
        let allow = format!(
            "[git]\nallow = [\"http://127.0.0.1:{}/**\"]\n",
            self.http.port()
        );
        std::fs::write(&self.config, allow + more).unwrap();
    }

    /// Writes the policy beside the configuration: what is not in it is as it is shipped.
    pub(crate) fn policy(&self, text: &str) {
        let path = self.config.with_file_name("policy.toml");
        std::fs::write(path, format!("version = 1\n{text}")).unwrap();
    }

    /// Puts a component into the plugin directory.
    pub(crate) fn install(&self, file: &str, component: &[u8]) {
        let dir = self.work.join("state/plugins");
        std::fs::create_dir_all(&dir).unwrap();
        std::fs::write(dir.join(file), component).unwrap();
    }

    /// Approves the plugin of a type as it is now.
    pub(crate) fn approve(&self, handler: &str) {
        let said = self.ok(&["plugin", "approve", handler, "--yes", "--by", "tests"]);
        assert_eq!(said["approved"], true, "{said}");
    }

    /// A bare remote with a first commit on `branch`, and its URL.
    pub(crate) fn remote(
        &self,
        name: &str,
        branch: &str,
        files: &[(&str, &str)],
    ) -> (GitRepo, String) {
        let repo = GitRepo::bare(self.work.join("remotes").join(name));
        repo.seed(branch, files);
        (repo, self.http.url(name))
    }

    /// The program, ready to run.
    pub(crate) fn command<S: AsRef<std::ffi::OsStr>>(&self, args: &[S]) -> Command {
        let mut command = Command::new(programs().join("warren"));
        command
            .env_clear()
            .env("PATH", std::env::var_os("PATH").unwrap_or_default())
            .env("HOME", self.work.path())
            .env("WARREN_WORKSPACE_ROOT", &self.root)
            .env("WARREN_STATE_DIR", self.work.join("state"))
            .env("WARREN_CONFIG", &self.config)
            .args(["--output", "json"])
            .args(args)
            .stdin(Stdio::null());
        command
    }

    pub(crate) fn output<S: AsRef<std::ffi::OsStr>>(&self, args: &[S]) -> Output {
        self.command(args).output().expect("warren runs")
    }

    /// Starts the program and does not wait.
    pub(crate) fn spawn(&self, args: &[&str]) -> Child {
        self.command(args)
            .stdout(Stdio::piped())
            .stderr(Stdio::piped())
            .spawn()
            .expect("warren runs")
    }

    /// Runs a command that must succeed; its JSON.
    pub(crate) fn ok(&self, args: &[&str]) -> Value {
        let output = self.output(args);
        assert!(
            output.status.success(),
            "warren {args:?} failed: {}\n{}",
            String::from_utf8_lossy(&output.stdout),
            String::from_utf8_lossy(&output.stderr)
        );
        parse(&output)
    }

    /// Runs a recover of which some RootDirs fail; its report.
    pub(crate) fn ok_or_partial(&self, args: &[&str]) -> Value {
        let output = self.output(args);
        let report = parse(&output);
        assert!(
            report.get("error").is_none(),
            "warren {args:?} failed: {report}"
        );
        report
    }

    /// Runs a command that must fail with a code; its error.
    pub(crate) fn fails(&self, args: &[&str], code: &str) -> Value {
        let output = self.output(args);
        assert!(
            !output.status.success(),
            "warren {args:?} should fail with {code}: {}",
            String::from_utf8_lossy(&output.stdout)
        );
        let error = parse(&output)["error"].clone();
        assert_eq!(error["code"], code, "warren {args:?}: {error}");
        error
    }

    /// Makes a RootDir of a type; its dirName.
    pub(crate) fn create(&self, project: &str, args: &[&str]) -> String {
        let all = [&["rootdir", "create", project, "--creator", "c1"], args].concat();
        self.ok(&all)["dirName"].as_str().unwrap().to_owned()
    }

    /// A create that must fail with a code; its error.
    pub(crate) fn create_fails(&self, project: &str, args: &[&str], code: &str) -> Value {
        let all = [&["rootdir", "create", project, "--creator", "c"], args].concat();
        self.fails(&all, code)
    }

    /// Makes a git RootDir; its dirName.
    pub(crate) fn create_git(&self, project: &str, url: &str, args: &[&str]) -> String {
        self.create(project, &[&["--type", "git", "--repo", url], args].concat())
    }

    /// Path of a RootDir.
    pub(crate) fn dir(&self, project: &str, dir_name: &str) -> PathBuf {
        self.root.join(project).join(dir_name)
    }

    /// The repository in a RootDir.
    pub(crate) fn repo(&self, project: &str, dir_name: &str) -> GitRepo {
        GitRepo::at(self.dir(project, dir_name))
    }

    /// The Descriptor on disk.
    pub(crate) fn descriptor(&self, project: &str, dir_name: &str) -> Value {
        let path = self.root.join(project).join(format!("{dir_name}.json"));
        serde_json::from_slice(&std::fs::read(path).unwrap()).unwrap()
    }

    /// Status of the Workspace in the store.
    pub(crate) fn status(&self, project: &str) -> String {
        self.ok(&["workspace", "get", project])["status"]
            .as_str()
            .unwrap()
            .to_owned()
    }

    /// Suspends, sees the folder gone, and recovers into another workspace root.
    pub(crate) fn move_away(&mut self, project: &str) -> Value {
        let suspended = self.ok(&["workspace", "suspend", project]);
        assert!(!self.root.join(project).exists(), "the folder is gone");
        self.root = self.work.join("ws2");
        let report = self.ok(&["workspace", "recover", project]);
        assert_eq!(
            report["failed"].as_array().map(Vec::len),
            Some(0),
            "{report}"
        );
        suspended
    }
}

fn parse(output: &Output) -> Value {
    serde_json::from_slice(&output.stdout).unwrap_or_else(|error| {
        panic!(
            "no JSON on stdout ({error}): {}\n{}",
            String::from_utf8_lossy(&output.stdout),
            String::from_utf8_lossy(&output.stderr)
        )
    })
}

/// Everything that a person sees of a repository.
#[derive(Debug, PartialEq, Eq)]
pub(crate) struct Seen {
    status: String,
    unstaged: String,
    staged: String,
    refs: String,
    head: String,
    stash: String,
    log: String,
    files: String,
}

impl Seen {
    pub(crate) fn of(repo: &GitRepo) -> Self {
        let root = warren_disk::open_root(repo.path()).unwrap();
        Self {
            status: repo.git(&["status", "--porcelain=v2", "--branch", "-z"]),
            unstaged: repo.git(&["diff", "--binary"]),
            staged: repo.git(&["diff", "--cached", "--binary"]),
            refs: repo.git(&[
                "for-each-ref",
                "--format=%(refname) %(objectname) %(upstream)",
            ]),
            head: String::from_utf8(repo.run(&["symbolic-ref", "HEAD"]).stdout).unwrap(),
            stash: repo.git(&["stash", "list"]),
            log: String::from_utf8(repo.run(&["log", "--all", "--oneline"]).stdout).unwrap(),
            files: warren_disk::digest::tree_digest(&root, |path| path == b".git").unwrap(),
        }
    }
}
