//! Random operations, some killed and some at the same time, against a model of what must be there.
//!
//! After each step every RootDir of the model is on disk as the model says, or in a Snapshot; never
//! both, never neither. `WARREN_STRESS_SEED` and `WARREN_STRESS_SECONDS` run it for longer.

use std::collections::BTreeMap;
use std::process::Child;
use std::time::{Duration, Instant};

use serde_json::Value;

use crate::world::World;

const SEED: u64 = 7;
const SECONDS: u64 = 12;

/// What may come of an operation beside which others run, or whose remote is away.
const REFUSALS: &[&str] = &[
    "WorkspaceNotRunning",
    "WorkspaceBusy",
    "RootDirNotFound",
    "RootDirNotReady",
    "StoreConflict",
    "GitUnreachable",
    "OrphanedContent",
];

struct Root {
    is_git: bool,
    /// What its file `work` holds; none: it is not there.
    work: Option<String>,
}

struct Stress {
    world: World,
    url: String,
    state: u64,
    roots: BTreeMap<String, Root>,
    count: u64,
    is_away: bool,
    log: Vec<String>,
}

impl Stress {
    fn new(seed: u64) -> Self {
        let world = World::new();
        let (_, url) = world.remote("up.git", "main", &[("a", "a\n")]);
        world.ok(&["workspace", "init", "p"]);
        Self {
            world,
            url,
            state: seed,
            roots: BTreeMap::new(),
            count: 0,
            is_away: false,
            log: vec![format!("seed {seed}")],
        }
    }

    fn random(&mut self, below: u64) -> u64 {
        self.state ^= self.state << 13;
        self.state ^= self.state >> 7;
        self.state ^= self.state << 17;
        self.state % below
    }

    fn any_root(&mut self) -> Option<String> {
        let count = self.roots.len() as u64;
        let at = self.random(count.max(1));
        self.roots.keys().nth(usize::try_from(at).unwrap()).cloned()
    }

    fn run(&mut self, args: &[&str]) -> Value {
        self.log.push(args.join(" "));
        let child = self.world.spawn(args);
        self.end(child)
    }

    /// What a command printed; a refusal that nobody expects fails the test.
    fn end(&self, child: Child) -> Value {
        let output = child.wait_with_output().unwrap();
        let value: Value = serde_json::from_slice(&output.stdout).unwrap_or_else(|error| {
            let said = String::from_utf8_lossy(&output.stderr);
            panic!("{error}: {said}\n{:#?}", self.log)
        });
        if let Some(code) = value["error"]["code"].as_str() {
            assert!(REFUSALS.contains(&code), "{value}\n{:#?}", self.log);
        }
        value
    }

    fn create(&mut self) -> (bool, Vec<String>) {
        let is_git = self.random(2) == 0;
        // Few labels, so that names are fought over.
        let label = format!("r{}", self.random(3));
        let mut args = vec![
            "rootdir",
            "create",
            "p",
            "--creator",
            "c",
            "--label",
            &label,
        ];
        match is_git {
            true => args.extend(["--type", "git", "--repo", &self.url]),
            false => args.extend(["--type", "temp"]),
        }
        (is_git, args.into_iter().map(str::to_owned).collect())
    }

    fn created(&mut self, is_git: bool, made: &Value) {
        if let Some(name) = made["dirName"].as_str() {
            let fresh = Root { is_git, work: None };
            let old = self.roots.insert(name.to_owned(), fresh);
            assert!(old.is_none(), "{name} was given twice\n{:#?}", self.log);
        }
    }

    fn suspended(&mut self, report: &Value) {
        if report.get("error").is_none() {
            for root in self.roots.values_mut().filter(|root| !root.is_git) {
                root.work = None;
            }
        }
    }

    fn edit(&mut self) {
        let Some(name) = self.any_root() else { return };
        let path = self.world.dir("p", &name).join("work");
        self.count += 1;
        let work = format!("work {}", self.count);
        if path.parent().is_some_and(|dir| dir.exists()) {
            self.log.push(format!("write {name}"));
            std::fs::write(path, &work).unwrap();
            self.roots.get_mut(&name).unwrap().work = Some(work);
        }
    }

    fn toggle_remote(&mut self) {
        let here = self.world.work.join("remotes/up.git");
        let away = self.world.work.join("away.git");
        let (from, to) = if self.is_away {
            (&away, &here)
        } else {
            (&here, &away)
        };
        std::fs::rename(from, to).unwrap();
        self.is_away = !self.is_away;
        self.log.push(format!("remote away: {}", self.is_away));
    }

    fn dispose(&mut self) {
        let Some(name) = self.any_root() else { return };
        let report = self.run(&["rootdir", "dispose", "p", &name]);
        if report.get("error").is_none() {
            self.roots.remove(&name);
        }
    }

    /// kill -9 somewhere in the middle; for dispose and create either end is right.
    fn killed(&mut self) {
        let name = self.any_root().unwrap_or_default();
        let (is_git, create) = self.create();
        let create: Vec<&str> = create.iter().map(String::as_str).collect();
        let which = self.random(5);
        let args: &[&str] = match which {
            0 => &create,
            1 => &["rootdir", "dispose", "p", &name],
            2 => &["workspace", "recover", "p"],
            _ => &["workspace", "suspend", "p"],
        };
        let delay = Duration::from_millis(self.random(200));
        self.log
            .push(format!("kill after {delay:?}: {}", args.join(" ")));
        let mut child = self.world.spawn(args);
        std::thread::sleep(delay);
        let _ = child.kill();
        child.wait().unwrap();
        let before = self.run(&["workspace", "get", "p"]);
        self.run(&["workspace", "init", "p"]);
        let listed = self.listed();
        match which {
            0 => listed
                .keys()
                .filter(|name| !self.roots.contains_key(*name))
                .cloned()
                .collect::<Vec<_>>()
                .into_iter()
                .for_each(|name| self.created(is_git, &serde_json::json!({ "dirName": name }))),
            1 if !listed.contains_key(&name) => drop(self.roots.remove(&name)),
            // It was committed if the record said so; then temp content is gone.
            3.. if before["snapshots"] != 0 => self.suspended(&Value::Null),
            _ => {}
        }
    }

    fn at_once(&mut self) {
        let creates = [self.create(), self.create()];
        let name = self.any_root().unwrap_or_else(|| "none".to_owned());
        self.log.push(format!(
            "at once: {creates:?}, dispose {name}, suspend, init, init"
        ));
        let start = |args: &[String]| {
            let args: Vec<&str> = args.iter().map(String::as_str).collect();
            self.world.spawn(&args)
        };
        let made = creates.each_ref().map(|(_, args)| start(args));
        let dispose = self.world.spawn(&["rootdir", "dispose", "p", &name]);
        let suspend = self.world.spawn(&["workspace", "suspend", "p"]);
        let inits = [(); 2].map(|()| self.world.spawn(&["workspace", "init", "p"]));
        let (dispose, suspend) = (self.end(dispose), self.end(suspend));
        if dispose.get("error").is_none() {
            self.roots.remove(&name);
        }
        for (child, (is_git, _)) in made.into_iter().zip(creates) {
            let made = self.end(child);
            self.created(is_git, &made);
        }
        inits.into_iter().for_each(|child| drop(self.end(child)));
        self.suspended(&suspend);
    }

    fn step(&mut self) {
        match self.random(14) {
            0..=2 if self.roots.len() < 6 => {
                let (is_git, args) = self.create();
                let args: Vec<&str> = args.iter().map(String::as_str).collect();
                let made = self.run(&args);
                self.created(is_git, &made);
            }
            3 | 4 => self.edit(),
            5 => self.dispose(),
            6 => {
                let report = self.run(&["workspace", "suspend", "p"]);
                self.suspended(&report);
            }
            7 => drop(self.run(&["workspace", "suspend", "p", "--dry-run"])),
            8 => drop(self.run(&["workspace", "recover", "p"])),
            9 => drop(self.run(&["workspace", "dispose", "p", "--dry-run"])),
            10 => self.toggle_remote(),
            11 if !self.is_away => self.at_once(),
            12 | 13 => self.killed(),
            _ => drop(self.run(&["workspace", "init", "p"])),
        }
        self.check();
    }

    /// State by dirName; nothing when the Workspace is not running.
    fn listed(&self) -> BTreeMap<String, String> {
        let listed = self.end(self.world.spawn(&["rootdir", "list", "p"]));
        for field in ["orphans", "damaged"] {
            assert!(listed.get(field).is_none(), "{listed}\n{:#?}", self.log);
        }
        let text = |value: &Value| value.as_str().unwrap().to_owned();
        let items = listed["items"].as_array().into_iter().flatten();
        items
            .map(|item| (text(&item["dirName"]), text(&item["state"])))
            .collect()
    }

    fn check(&self) {
        let workspace = self.end(self.world.spawn(&["workspace", "get", "p"]));
        let listed = self.listed();
        let context = || format!("{workspace}\n{listed:?}\n{:#?}", self.log);
        let snapshots = workspace["snapshots"].as_u64().unwrap();
        let ready = listed.values().filter(|state| *state == "ready").count();
        assert_eq!(
            snapshots + ready as u64,
            self.roots.len() as u64,
            "{}",
            context()
        );
        for name in listed.keys() {
            assert!(
                self.roots.contains_key(name),
                "{name} is unknown\n{}",
                context()
            );
        }
        for (name, root) in &self.roots {
            let dir = self.world.dir("p", name);
            let is_ready = listed.get(name).is_some_and(|state| state == "ready");
            assert_eq!(dir.exists(), is_ready, "{name}\n{}", context());
            if is_ready {
                let work = std::fs::read_to_string(dir.join("work")).ok();
                assert_eq!(work, root.work, "{name}\n{}", context());
                assert_eq!(dir.join("a").exists(), root.is_git, "{name}\n{}", context());
            }
        }
    }
}

#[test]
fn nothing_is_lost_and_nothing_is_there_twice() {
    let number = |name: &str, fixed| {
        std::env::var(name).map_or(fixed, |text| text.parse().expect("a number"))
    };
    let end = Instant::now() + Duration::from_secs(number("WARREN_STRESS_SECONDS", SECONDS));
    let mut stress = Stress::new(number("WARREN_STRESS_SEED", SEED));
    while Instant::now() < end {
        stress.step();
    }
    // Whatever state that was, it can be left.
    if stress.is_away {
        stress.toggle_remote();
    }
    let report = stress.run(&["workspace", "init", "p"]);
    assert_eq!(
        report["failed"].as_array().map(Vec::len),
        Some(0),
        "{report}"
    );
    stress.check();
    stress.world.ok(&["workspace", "suspend", "p"]);
    stress.world.ok(&["workspace", "dispose", "p"]);
}
