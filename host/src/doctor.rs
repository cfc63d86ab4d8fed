//! What this machine can enforce, found out by doing it: a child is confined and started, a thread
//! is restricted. What the policy needs and the machine does not give is said, with who needs it.

mod trial;

use serde::Serialize;
use warren_confine::{Layer, LayerSet, landlock_abi};
use warren_process::ProcessError;

use crate::config::{Config, OpenError};
use crate::error::chain;
use crate::plugin::{ProcessGrant, UidRange};
use crate::service::Service;

/// The interface of Landlock that children need: scopes of signals and abstract sockets.
const LANDLOCK_ABI_MIN: u32 = 6;

/// How something stands.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
#[serde(rename_all = "lowercase")]
pub enum State {
    /// In force, there, usable.
    Ok,
    /// Not to be had, and the host does without.
    Absent,
    /// Switched off by the policy.
    Off,
    /// Not to be had, and the policy needs it.
    Missing,
}

/// One thing that was looked at.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct Finding {
    /// Its name, for machines.
    pub name: String,
    /// How it stands.
    pub state: State,
    /// What was found.
    pub what: String,
    /// What to do about it.
    pub hint: Option<String>,
    /// Types of plugins that cannot do all that the policy grants them, or run without protection.
    pub plugins: Vec<String>,
}

/// All findings.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct Report {
    /// Whether nothing that the policy needs is missing.
    pub fit: bool,
    /// One by one.
    pub findings: Vec<Finding>,
}

impl Finding {
    fn new(name: &str, state: State, what: impl Into<String>) -> Self {
        Self {
            name: name.to_owned(),
            state,
            what: what.into(),
            hint: None,
            plugins: Vec::new(),
        }
    }

    fn hint(mut self, hint: Option<String>) -> Self {
        self.hint = hint;
        self
    }

    fn plugins(mut self, plugins: &[String]) -> Self {
        self.plugins = plugins.to_vec();
        self
    }
}

/// Looks at this machine with the settings of a host. Makes the host's directories when they are
/// missing, and leaves nothing else.
pub async fn examine(config: &Config) -> Report {
    let mut findings = vec![kernel(), landlock()];
    match config.open().await {
        Ok(opened) => {
            for failure in &opened.failures {
                let what = format!("{}: {}", failure.origin, chain(&failure.error));
                findings
                    .push(Finding::new("plugin", State::Missing, what).hint(failure.error.hint()));
            }
            let needs = Needs::of(&opened.service);
            findings.push(threads(&needs));
            findings.extend(children(config, &needs).await);
            findings.push(disk(&opened.service));
        }
        Err(error) => findings.push(not_opened(&error)),
    }
    Report {
        fit: findings.iter().all(|found| found.state != State::Missing),
        findings,
    }
}

/// Which plugins need what.
#[derive(Default)]
struct Needs {
    git: Vec<String>,
    confined: Vec<String>,
    unconfined: Vec<String>,
    network: Vec<String>,
    uids: Option<UidRange>,
}

impl Needs {
    fn of(service: &Service) -> Self {
        let mut needs = Self::default();
        for plugin in service.runtime().registry().iter() {
            let (name, grants) = (plugin.handler_type().to_string(), plugin.grants());
            if grants.git.as_ref().is_some_and(|git| !git.unconfined) {
                needs.git.push(name.clone());
            }
            if let Some(process) = &grants.process {
                needs.process(name, process);
            }
        }
        needs
    }

    fn process(&mut self, name: String, grant: &ProcessGrant) {
        self.uids = self.uids.or(grant.uids);
        if grant.unconfined {
            self.unconfined.push(name);
            return;
        }
        if !grant.network.is_empty() {
            self.network.push(name.clone());
        }
        self.confined.push(name);
    }
}

fn kernel() -> Finding {
    let uname = rustix::system::uname();
    let release = uname.release().to_string_lossy();
    Finding::new("kernel", State::Ok, format!("Linux {release}"))
}

fn landlock() -> Finding {
    match landlock_abi() {
        0 => Finding::new("landlock-abi", State::Absent, "the kernel has no Landlock").hint(Some(
            "add `landlock` to the kernel's `lsm=` parameter".to_owned(),
        )),
        abi if abi < LANDLOCK_ABI_MIN => {
            let what = format!("ABI {abi}; confined programs need {LANDLOCK_ABI_MIN}");
            Finding::new("landlock-abi", State::Absent, what)
                .hint(Some("Linux 6.12 or newer has it".to_owned()))
        }
        abi => Finding::new("landlock-abi", State::Ok, format!("ABI {abi}")),
    }
}

fn threads(needs: &Needs) -> Finding {
    let name = "git-threads";
    match trial::thread() {
        Ok(()) => Finding::new(
            name,
            State::Ok,
            "git works on threads that Landlock restricts",
        ),
        Err(error) => Finding::new(name, missing(&needs.git), error.to_string())
            .hint(error.hint())
            .plugins(&needs.git),
    }
}

fn missing(needed_by: &[String]) -> State {
    match needed_by.is_empty() {
        true => State::Absent,
        false => State::Missing,
    }
}

async fn children(config: &Config, needs: &Needs) -> Vec<Finding> {
    let mut findings = Vec::new();
    if !needs.unconfined.is_empty() {
        let what = "programs run with all the rights of the host: `unconfined = true`";
        let hint = "take it out of the policy where this machine can confine programs";
        findings.push(
            Finding::new("unconfined", State::Off, what)
                .hint(Some(hint.to_owned()))
                .plugins(&needs.unconfined),
        );
    }
    let all = [needs.confined.as_slice(), &needs.unconfined].concat();
    let launcher = match config.launcher() {
        Ok(Some(launcher)) => launcher,
        Ok(None) => {
            let hint = "keep `warren-launch` beside `warren`, or name it by `launcher.path`";
            let found = Finding::new("launcher", missing(&all), "there is no `warren-launch`");
            findings.push(found.hint(Some(hint.to_owned())).plugins(&all));
            return findings;
        }
        Err(error) => {
            let found = Finding::new("launcher", missing(&all), chain(&error));
            findings.push(found.hint(error.hint()).plugins(&all));
            return findings;
        }
    };
    let path = launcher.path().display().to_string();
    findings.push(Finding::new("launcher", State::Ok, path));
    let trial = trial::Child {
        launcher,
        state: config.state_dir.value.clone(),
    };
    findings.push(users(&trial, needs).await);
    let identity = trial::identity(needs.uids);
    let tried = trial.run(identity, false).await;
    let confined = tried.is_ok();
    findings.extend(layers(tried, needs));
    if confined {
        findings.push(network(trial.run(identity, true).await, needs));
    }
    findings
}

/// The first and the last user of the range.
async fn users(trial: &trial::Child, needs: &Needs) -> Finding {
    let name = "uid-range";
    if !rustix::process::geteuid().is_root() {
        let what = "the host is not root: programs run as its own user";
        return Finding::new(name, State::Absent, what);
    }
    let Some(range) = needs.uids else {
        let what = "the host is root, and the policy has no `[confinement] uids`";
        return Finding::new(name, missing(&needs.confined), what).plugins(&needs.confined);
    };
    let last = range.first.saturating_add(range.count.saturating_sub(1));
    for uid in [range.first, last] {
        let one = UidRange {
            first: uid,
            count: 1,
        };
        if let Err(ProcessError::Confinement {
            layer: Layer::ProjectUser,
            source,
        }) = trial.run(trial::identity(Some(one)), false).await
        {
            let why = source.map_or_else(String::new, |source| format!(": {source}"));
            let hint = "in a user namespace of a container, only the users that it maps are usable";
            return Finding::new(name, missing(&needs.confined), format!("user {uid}{why}"))
                .hint(Some(hint.to_owned()))
                .plugins(&needs.confined);
        }
    }
    Finding::new(name, State::Ok, format!("users {} to {last}", range.first))
}

fn layers(tried: Result<LayerSet, ProcessError>, needs: &Needs) -> Vec<Finding> {
    let set = match tried {
        Ok(set) => set,
        Err(error) => {
            let found = Finding::new("confinement", missing(&needs.confined), chain(&error));
            return vec![found.hint(error.hint()).plugins(&needs.confined)];
        }
    };
    let one = |layer: Layer| match set.has(layer) {
        true => Finding::new(layer.name(), State::Ok, "in force for programs"),
        // Without what is required nothing would have started.
        false => Finding::new(layer.name(), State::Absent, "not used for programs"),
    };
    Layer::ALL.into_iter().map(one).collect()
}

fn network(tried: Result<LayerSet, ProcessError>, needs: &Needs) -> Finding {
    let name = "network-of-programs";
    match tried {
        Ok(_) => Finding::new(name, State::Ok, "granted servers, through the host's proxy"),
        Err(error) => Finding::new(name, missing(&needs.network), chain(&error))
            .hint(error.hint())
            .plugins(&needs.network),
    }
}

fn disk(service: &Service) -> Finding {
    let name = "disk";
    match service.quota() {
        Ok(report) => {
            let what = format!(
                "bytes at {} percent, inodes at {} percent; creates are refused from {} percent",
                report.bytes_used_percent, report.inodes_used_percent, report.hard_limit_percent
            );
            let state = match report.verdict {
                "hard" => State::Missing,
                _ => State::Ok,
            };
            Finding::new(name, state, what)
        }
        Err(error) => Finding::new(name, State::Missing, chain(&error)).hint(error.hint()),
    }
}

fn not_opened(error: &OpenError) -> Finding {
    Finding::new("host", State::Missing, chain(error)).hint(error.hint())
}
