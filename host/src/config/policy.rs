//! The policy file, and what its grants are on this machine.

use std::io::Read;
use std::path::Path;
use std::sync::Arc;
use std::time::Duration;

use warren_mirror::{RefPatterns, UrlPolicy};
use warren_model::{Endpoint, Endpoints, Target};
use warren_policy::{
    DocumentError, Grant, GrantId, Layers, POLICY_BYTES_MAX, PluginPolicy, Policy, UidRange,
};
use warren_process::ChildLimits;

use super::build::OpenError;
use super::{Config, ConfigError, Installer, programs};
use crate::error::Error;
use crate::plugin::{
    Authority, GitGrant, Grants, HttpGrant, HttpLimits, LockFile, ProcessGrant, Resolver, Trust,
};

/// Whatever `[git] allow` lists: a layer that takes nothing away.
const ALLOW: &str = "@allow";

/// Every alias of the configuration.
const ALL: &str = "@all";

/// The server of `[python] index`.
const INDEX: &str = "@index";

/// Variables for pip and uv: no configuration of the Pod's, no questions, no interpreters from
/// elsewhere. Caches go to `HOME`, which is gone with the call.
const INSTALLERS: [(&str, &str); 6] = [
    ("PIP_CONFIG_FILE", "/dev/null"),
    ("PIP_DISABLE_PIP_VERSION_CHECK", "1"),
    ("PIP_NO_INPUT", "1"),
    ("PYTHONNOUSERSITE", "1"),
    ("UV_NO_CONFIG", "1"),
    ("UV_PYTHON_DOWNLOADS", "never"),
];

/// What installers are told of the index.
const INDEX_VARIABLES: [&str; 2] = ["PIP_INDEX_URL", "UV_DEFAULT_INDEX"];

impl Config {
    /// The policy in force: the operator's, over the shipped one.
    ///
    /// # Errors
    /// When the file cannot be read or used.
    pub fn policy(&self) -> Result<Policy, ConfigError> {
        match &self.policy_file.value {
            Some(path) => read_policy(path),
            None => Policy::shipped().map_err(shipped_is_broken),
        }
    }

    /// Who may load on this host, and with what.
    pub(super) fn trust(&self, state: &Path) -> Result<Trust, OpenError> {
        self.check_installer()?;
        let policy = self.policy()?;
        let uids = policy
            .confinement
            .as_ref()
            .and_then(|confinement| confinement.uids);
        let shipped = Policy::shipped().map_err(shipped_is_broken)?;
        let lock = self.approvals(state)?.read();
        let authority = Authority::new(policy, shipped, lock, self.resolver(uids));
        Ok(Trust::Reviewed(Arc::new(authority)))
    }

    /// The approvals in a state directory, which must exist.
    ///
    /// # Errors
    /// When the host's key cannot be read or made.
    pub fn approvals(&self, state: &Path) -> Result<LockFile, OpenError> {
        LockFile::open(state).map_err(|error| Error::io("open the host's key")(error).into())
    }

    fn check_installer(&self) -> Result<(), ConfigError> {
        let installer = &self.python_installer;
        if installer.value != Installer::Uv || programs::has_uv(self) {
            return Ok(());
        }
        Err(ConfigError::Invalid {
            key: "python.installer".to_owned(),
            origin: installer.origin.clone(),
            reason: "there is no `uv` on the host's `PATH`".to_owned(),
        })
    }

    /// Makes of a canonical grant what calls are checked against.
    fn resolver(&self, uids: Option<UidRange>) -> Resolver {
        let config = self.clone();
        Arc::new(move |_, grant| config.resolve(grant, uids))
    }

    fn resolve(&self, grant: &Grant, uids: Option<UidRange>) -> Result<Grants, String> {
        Ok(Grants {
            id: GrantId::default(),
            git: grant.git.as_ref().map(git).transpose()?,
            process: grant
                .process
                .as_ref()
                .map(|process| self.process(process, uids))
                .transpose()?,
            http: match &grant.http {
                Some(http) => Some(HttpGrant {
                    hosts: self.servers(&http.hosts)?,
                    limits: http_limits(&http.limits),
                }),
                None => None,
            },
            log: grant.log,
            progress: grant.progress,
            root: grant.root,
            limits: (&grant.limits).into(),
        })
    }

    fn process(
        &self,
        grant: &warren_policy::ProcessGrant,
        uids: Option<UidRange>,
    ) -> Result<ProcessGrant, String> {
        let programs = programs::programs(self, &grant.programs).map_err(|e| e.to_string())?;
        let network = self.servers(&grant.network)?;
        let limits = &grant.limits;
        Ok(ProcessGrant {
            programs: Arc::new(programs),
            in_root: grant.in_root.clone(),
            environment: grant.environment.clone(),
            variables: self.variables(&network),
            network_limits: warren_egress::proxy::Limits::default(),
            uids,
            wall_max: Duration::from_secs(limits.wall_seconds),
            limits: ChildLimits {
                open_files: limits.open_files,
                file_bytes: limits.file_bytes,
                processes: limits.processes,
                memory_bytes: limits.memory_bytes,
            },
            network,
            unconfined: grant.unconfined,
        })
    }

    /// Variables of every child: installers are told of the index when they may reach it.
    fn variables(&self, network: &Endpoints) -> Vec<(String, String)> {
        let own = |(name, value): (&str, &str)| (name.to_owned(), value.to_owned());
        let mut variables: Vec<_> = INSTALLERS.into_iter().map(own).collect();
        if let Some(url) = &self.python_index.value
            && Target::from_url(url).is_ok_and(|server| network.permit(&server).is_some())
        {
            variables.extend(INDEX_VARIABLES.map(|name| own((name, url))));
        }
        variables
    }

    fn servers(&self, layers: &Layers) -> Result<Endpoints, String> {
        let list = |items: &[String]| -> Result<Vec<Endpoint>, String> {
            let mut list = Vec::new();
            for item in items {
                if item != INDEX {
                    list.push(
                        item.parse::<Endpoint>()
                            .map_err(|error| error.to_string())?,
                    );
                } else if let Some(url) = &self.python_index.value {
                    let server = Target::from_url(url).map_err(|error| error.to_string())?;
                    list.push(Endpoint::exact(server));
                }
            }
            Ok(list)
        };
        Ok(Endpoints::new(list(&layers.policy)?).within(list(&layers.wanted)?))
    }
}

fn http_limits(limits: &warren_policy::HttpLimits) -> HttpLimits {
    let size = |limit: u64| usize::try_from(limit).unwrap_or(usize::MAX);
    HttpLimits {
        requests: u32::try_from(limits.requests).unwrap_or(u32::MAX),
        connections: size(limits.connections),
        header_bytes: size(limits.header_bytes),
        sent_bytes: limits.sent_bytes,
        received_bytes: limits.received_bytes,
        silence: Duration::from_secs(limits.silence_seconds),
    }
}

fn git(grant: &warren_policy::GitGrant) -> Result<GitGrant, String> {
    let all = grant.credentials.iter().any(|alias| alias == ALL);
    Ok(GitGrant {
        remotes: remote_layers(&grant.remotes)?,
        push_refs: vec![refs(&grant.push.policy)?, refs(&grant.push.wanted)?],
        aliases: (!all).then(|| grant.credentials.iter().cloned().collect()),
        received_bytes_max: grant.received_bytes,
        unconfined: grant.unconfined,
    })
}

fn remote_layers(layers: &Layers) -> Result<Vec<UrlPolicy>, String> {
    let narrowing = [&layers.policy, &layers.wanted]
        .into_iter()
        .filter(|layer| !layer.iter().any(|pattern| pattern == ALLOW));
    narrowing
        .map(|layer| UrlPolicy::new(layer).map_err(|error| error.to_string()))
        .collect()
}

fn refs(patterns: &[String]) -> Result<RefPatterns, String> {
    RefPatterns::new(patterns).map_err(|error| error.to_string())
}

/// Reads a policy over the shipped one.
///
/// # Errors
/// When the file cannot be read or used.
pub fn read_policy(path: &Path) -> Result<Policy, ConfigError> {
    let invalid = |source| ConfigError::Policy {
        path: path.to_owned(),
        source,
    };
    let mut bytes = Vec::new();
    std::fs::File::open(path)
        .and_then(|file| {
            file.take(POLICY_BYTES_MAX as u64 + 1)
                .read_to_end(&mut bytes)
        })
        .map_err(|source| ConfigError::Read {
            path: path.to_owned(),
            source,
        })?;
    let policy = Policy::parse(&bytes).map_err(invalid)?;
    for (handler, plugin) in &policy.plugin {
        check_patterns(handler.as_str(), plugin).map_err(invalid)?;
    }
    policy.over_shipped().map_err(invalid)
}

/// What only the crates that use them can say of patterns.
fn check_patterns(handler: &str, plugin: &PluginPolicy) -> Result<(), DocumentError> {
    let Some(git) = &plugin.git else {
        return Ok(());
    };
    let remotes = git
        .remotes
        .iter()
        .filter(|item| !matches!(item.as_str(), ALLOW | "**"));
    let remotes: Vec<&String> = remotes.collect();
    let wrong = |key: &str, error: warren_mirror::MirrorError| DocumentError::Invalid {
        key: format!("plugin.{handler}.git.{key}"),
        reason: error.to_string(),
    };
    UrlPolicy::new(&remotes).map_err(|error| wrong("remotes", error))?;
    RefPatterns::new(&git.push).map_err(|error| wrong("push", error))?;
    Ok(())
}

/// Not to be: a test reads the shipped policy.
fn shipped_is_broken(source: DocumentError) -> ConfigError {
    ConfigError::Policy {
        path: "shipped.toml".into(),
        source,
    }
}
