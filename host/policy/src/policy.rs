//! What the operator grants.

use std::collections::BTreeMap;

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use warren_model::HandlerType;

use crate::document::{self, DocumentError};
use crate::grant::Access;
use crate::item::{By, Kind};
pub use crate::limits::LimitsPolicy;
use crate::limits::{ChildLimits, HttpLimits, in_range};

/// The policy that is shipped, as TOML.
pub const SHIPPED: &str = include_str!("shipped.toml");

/// Most bytes of a policy.
pub const POLICY_BYTES_MAX: usize = 1024 * 1024;

/// The version that this host reads.
const VERSION: u32 = 1;

/// Uids above this are of nobody in particular, to the kernel and to others.
const UID_MAX: u32 = i32::MAX as u32;

/// What each plugin may reach. What is not granted is denied.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "kebab-case", deny_unknown_fields)]
pub struct Policy {
    /// Version of the format: 1.
    pub version: u32,
    /// Grants by type.
    #[serde(default)]
    #[schemars(with = "BTreeMap<String, PluginPolicy>")]
    pub plugin: BTreeMap<HandlerType, PluginPolicy>,
    /// How children are kept apart.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub confinement: Option<Confinement>,
}

/// What the plugin of one type may reach.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "kebab-case", deny_unknown_fields)]
pub struct PluginPolicy {
    /// Its RootDir.
    #[serde(default)]
    pub root: Access,
    /// Lines in the host's log.
    #[serde(default)]
    pub log: bool,
    /// Reports of progress.
    #[serde(default)]
    pub progress: bool,
    /// The capability `git`.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub git: Option<GitPolicy>,
    /// The capability `process`.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub process: Option<ProcessPolicy>,
    /// The capability `http`.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub http: Option<HttpPolicy>,
    /// Limits of each call.
    #[serde(default, skip_serializing_if = "LimitsPolicy::is_empty")]
    pub limits: LimitsPolicy,
}

/// What may be done with remotes.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "kebab-case", deny_unknown_fields)]
pub struct GitPolicy {
    /// Patterns as in `[git] allow`, which is always the outer bound; `@allow`: just that.
    #[serde(default)]
    pub remotes: Vec<String>,
    /// Patterns of refs that may be pushed and deleted.
    #[serde(default)]
    pub push: Vec<String>,
    /// Credential aliases; `@all`: every one of the configuration.
    #[serde(default)]
    pub credentials: Vec<String>,
    /// Most bytes that one verb may receive.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(range(min = 1))]
    pub received_bytes: Option<u64>,
    /// Whether git works on threads that are not confined, also where this machine could.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub unconfined: bool,
}

/// Which programs may run, and how.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "kebab-case", deny_unknown_fields)]
pub struct ProcessPolicy {
    /// Names looked for on the host's `PATH`, absolute paths, or `@python` and `@uv`.
    #[serde(default)]
    pub programs: Vec<String>,
    /// Programs in the RootDir by their path there.
    #[serde(default)]
    pub in_root: Vec<String>,
    /// Servers that children may talk to: `https://host[:port]`, `https://*.domain[:port]`, `*` for
    /// all on the public internet, or `@index`.
    #[serde(default)]
    pub network: Vec<String>,
    /// Variables that may be set; `PIP_*`: all that start so.
    #[serde(default)]
    pub environment: Vec<String>,
    /// Whether children run without confinement, also where this machine could confine them.
    #[serde(default)]
    pub unconfined: bool,
    /// Longest run of a child in seconds; 600.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(range(min = 1))]
    pub wall_seconds: Option<u64>,
    /// Bytes of memory of a child; 4 GiB.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(range(min = 1))]
    pub memory_bytes: Option<u64>,
    /// Processes and threads at a time; 512.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(range(min = 1))]
    pub processes: Option<u64>,
    /// Open files of one process; 4096.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(range(min = 1))]
    pub open_files: Option<u64>,
    /// Bytes of one file; 8 GiB.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(range(min = 1))]
    pub file_bytes: Option<u64>,
}

/// Which servers may be talked to.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "kebab-case", deny_unknown_fields)]
pub struct HttpPolicy {
    /// Servers: `https://host[:port]`, `https://*.domain[:port]`, or `*` for all on the public
    /// internet.
    #[serde(default)]
    pub hosts: Vec<String>,
    /// Requests of one call; 1000.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(range(min = 1))]
    pub requests: Option<u64>,
    /// Connections at a time; 8.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(range(min = 1, max = 64))]
    pub connections: Option<u64>,
    /// Bytes of the headers of a request, and of an answer (8 KiB at least); 32 KiB.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(range(min = 1))]
    pub header_bytes: Option<u64>,
    /// Bytes sent by all requests of one call; 256 MiB.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(range(min = 1))]
    pub sent_bytes: Option<u64>,
    /// Bytes received by all requests of one call; 256 MiB.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(range(min = 1))]
    pub received_bytes: Option<u64>,
    /// Longest time, in seconds, in which nothing moves on a connection; 60.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(range(min = 1))]
    pub silence_seconds: Option<u64>,
}

impl HttpPolicy {
    /// What is said, the default for the rest.
    pub(crate) fn limits(&self) -> HttpLimits {
        let default = HttpLimits::default();
        HttpLimits {
            requests: self.requests.unwrap_or(default.requests),
            connections: self.connections.unwrap_or(default.connections),
            header_bytes: self.header_bytes.unwrap_or(default.header_bytes),
            sent_bytes: self.sent_bytes.unwrap_or(default.sent_bytes),
            received_bytes: self.received_bytes.unwrap_or(default.received_bytes),
            silence_seconds: self.silence_seconds.unwrap_or(default.silence_seconds),
        }
    }

    fn check(&self, at: &str) -> Result<(), DocumentError> {
        let most = HttpLimits::MAX;
        for (key, limit, max) in [
            ("requests", self.requests, most.requests),
            ("connections", self.connections, most.connections),
            ("header-bytes", self.header_bytes, most.header_bytes),
            ("sent-bytes", self.sent_bytes, most.sent_bytes),
            ("received-bytes", self.received_bytes, most.received_bytes),
            (
                "silence-seconds",
                self.silence_seconds,
                most.silence_seconds,
            ),
        ] {
            in_range(at, key, limit, max)?;
        }
        Ok(())
    }
}

/// How children are kept apart.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "kebab-case", deny_unknown_fields)]
pub struct Confinement {
    /// Uids that Projects' children run as when the host is root; none of them may be of anybody.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub uids: Option<UidRange>,
}

/// Some uids in a row.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "kebab-case", deny_unknown_fields)]
pub struct UidRange {
    /// The first.
    pub first: u32,
    /// How many.
    pub count: u32,
}

impl Default for Policy {
    /// Nothing is granted to anybody.
    fn default() -> Self {
        Self {
            version: VERSION,
            plugin: BTreeMap::new(),
            confinement: None,
        }
    }
}

impl Policy {
    /// Reads and checks a policy.
    ///
    /// # Errors
    ///
    /// Names what is wrong, with its line where it has one.
    pub fn parse(bytes: &[u8]) -> Result<Self, DocumentError> {
        let policy: Self = document::parse(bytes, POLICY_BYTES_MAX)?;
        policy.check()?;
        Ok(policy)
    }

    /// The shipped policy.
    ///
    /// # Errors
    ///
    /// Never, as a test shows.
    pub fn shipped() -> Result<Self, DocumentError> {
        Self::parse(SHIPPED.as_bytes())
    }

    /// This policy with the shipped grants of the types that it does not name.
    ///
    /// # Errors
    ///
    /// Never, as for [`Self::shipped`].
    pub fn over_shipped(mut self) -> Result<Self, DocumentError> {
        let shipped = Self::shipped()?;
        for (handler, granted) in shipped.plugin {
            self.plugin.entry(handler).or_insert(granted);
        }
        self.confinement = self.confinement.or(shipped.confinement);
        Ok(self)
    }

    /// The policy as TOML; [`Self::parse`] gives the same policy back.
    ///
    /// # Errors
    ///
    /// When it holds a number that TOML has no room for.
    pub fn to_toml(&self) -> Result<String, DocumentError> {
        toml::to_string(self).map_err(|error| DocumentError::invalid("policy", error.to_string()))
    }

    fn check(&self) -> Result<(), DocumentError> {
        if self.version != VERSION {
            let reason = format!("this host reads version {VERSION}, not {}", self.version);
            return Err(DocumentError::invalid("version", reason));
        }
        for (handler, plugin) in &self.plugin {
            plugin.check(&format!("plugin.{handler}"))?;
        }
        match self
            .confinement
            .as_ref()
            .and_then(|confinement| confinement.uids)
        {
            Some(uids) => uids.check(),
            None => Ok(()),
        }
    }
}

impl PluginPolicy {
    fn check(&self, at: &str) -> Result<(), DocumentError> {
        for (key, kind, items) in self.lists() {
            kind.check(&format!("{at}.{key}"), items)?;
        }
        if let Some(git) = &self.git {
            in_range(
                &format!("{at}.git"),
                "received-bytes",
                git.received_bytes,
                i64::MAX as u64,
            )?;
        }
        if let Some(process) = &self.process {
            let at = format!("{at}.process");
            let any = i64::MAX as u64;
            in_range(
                &at,
                "wall-seconds",
                process.wall_seconds,
                ChildLimits::WALL_SECONDS_MAX,
            )?;
            in_range(&at, "memory-bytes", process.memory_bytes, any)?;
            in_range(&at, "processes", process.processes, any)?;
            in_range(&at, "open-files", process.open_files, any)?;
            in_range(&at, "file-bytes", process.file_bytes, any)?;
        }
        if let Some(http) = &self.http {
            http.check(&format!("{at}.http"))?;
        }
        self.limits.check(&format!("{at}.limits"))
    }

    fn lists(&self) -> Vec<(&'static str, Kind, &[String])> {
        let mut lists: Vec<(&'static str, Kind, &[String])> = Vec::new();
        if let Some(git) = &self.git {
            lists.push(("git.remotes", Kind::Remotes, &git.remotes));
            lists.push(("git.push", Kind::Refs, &git.push));
            lists.push(("git.credentials", Kind::Credentials, &git.credentials));
        }
        if let Some(process) = &self.process {
            lists.push(("process.programs", Kind::Programs, &process.programs));
            lists.push(("process.in-root", Kind::InRoot, &process.in_root));
            lists.push((
                "process.network",
                Kind::Network(By::Operator),
                &process.network,
            ));
            lists.push((
                "process.environment",
                Kind::Environment,
                &process.environment,
            ));
        }
        if let Some(http) = &self.http {
            lists.push(("http.hosts", Kind::Hosts(By::Operator), &http.hosts));
        }
        lists
    }
}

impl UidRange {
    fn check(self) -> Result<(), DocumentError> {
        let last = u64::from(self.first) + u64::from(self.count);
        if self.first < 1000 || self.count == 0 || last > u64::from(UID_MAX) {
            let reason = format!("uids lie from 1000 to {UID_MAX}, and there is at least one");
            return Err(DocumentError::invalid("confinement.uids", reason));
        }
        Ok(())
    }
}

/// The JSON schema of a policy.
pub fn schema() -> serde_json::Value {
    schemars::schema_for!(Policy).into()
}
