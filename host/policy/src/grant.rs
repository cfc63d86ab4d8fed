//! What a plugin effectively gets: what it wants, the policy grants and its binary imports.

use std::collections::BTreeSet;
use std::fmt;
use std::str::FromStr;

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use sha2::{Digest, Sha256};
use warren_model::HandlerType;

use crate::item::{By, Kind};
use crate::limits::{ChildLimits, HttpLimits, Limits};
use crate::manifest::{WantGit, WantHttp, WantProcess, Wants};
use crate::policy::{GitPolicy, HttpPolicy, PluginPolicy, ProcessPolicy};

/// How a plugin sees its RootDir.
#[derive(
    Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Default, Serialize, Deserialize, JsonSchema,
)]
#[serde(rename_all = "kebab-case")]
pub enum Access {
    /// Not at all.
    #[default]
    None,
    /// Nothing can be changed.
    ReadOnly,
    /// Everything inside can be changed.
    ReadWrite,
}

impl Access {
    /// As in TOML.
    pub fn as_str(self) -> &'static str {
        match self {
            Self::None => "none",
            Self::ReadOnly => "read-only",
            Self::ReadWrite => "read-write",
        }
    }
}

/// Something that a binary imports and a policy grants.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize)]
#[serde(rename_all = "lowercase")]
pub enum Capability {
    /// Work with git remotes.
    Git,
    /// Programs.
    Process,
    /// Requests over http.
    Http,
    /// Lines in the host's log.
    Log,
    /// Reports of progress.
    Progress,
}

impl Capability {
    /// The key under which manifest and policy have it.
    pub fn as_str(self) -> &'static str {
        match self {
            Self::Git => "git",
            Self::Process => "process",
            Self::Http => "http",
            Self::Log => "log",
            Self::Progress => "progress",
        }
    }

    /// The capability that an imported interface belongs to, `warren:handler/git@0.1.0` say,
    /// whatever its version. None: it gives no reach of its own, or this host does not know it.
    pub fn of_import(import: &str) -> Option<Self> {
        let path = import.split('@').next().unwrap_or(import);
        Some(match path {
            "warren:handler/git" => Self::Git,
            "warren:handler/process" => Self::Process,
            "warren:handler/log" => Self::Log,
            "warren:handler/progress" => Self::Progress,
            _ if path.starts_with("wasi:http/") => Self::Http,
            _ => return None,
        })
    }

    /// Whether a manifest asks for it.
    pub fn is_wanted(self, wants: &Wants) -> bool {
        match self {
            Self::Git => wants.git.is_some(),
            Self::Process => wants.process.is_some(),
            Self::Http => wants.http.is_some(),
            Self::Log => wants.log.is_some(),
            Self::Progress => wants.progress.is_some(),
        }
    }
}

impl fmt::Display for Capability {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.as_str())
    }
}

/// The capabilities that imports belong to.
pub fn capabilities<S: AsRef<str>>(imports: &[S]) -> BTreeSet<Capability> {
    let of = |import: &S| Capability::of_import(import.as_ref());
    imports.iter().filter_map(of).collect()
}

/// The effective grant in its one form: lists sorted, tokens (`@allow`, `@python`…) as they are,
/// limits filled in.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case", deny_unknown_fields)]
pub struct Grant {
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
    pub git: Option<GitGrant>,
    /// The capability `process`.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub process: Option<ProcessGrant>,
    /// The capability `http`.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub http: Option<HttpGrant>,
    /// Limits of each call.
    pub limits: Limits,
}

/// Two lists of patterns, both of which must allow.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case", deny_unknown_fields)]
pub struct Layers {
    /// What the policy grants.
    pub policy: Vec<String>,
    /// What the plugin wants.
    pub wanted: Vec<String>,
}

impl Layers {
    fn of(kind: Kind, policy: &[String], wanted: &[String]) -> Self {
        Self {
            policy: kind.canonical(policy),
            wanted: kind.canonical(wanted),
        }
    }
}

/// The effective grant of `git`.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case", deny_unknown_fields)]
pub struct GitGrant {
    /// Patterns of remotes, or `@allow`.
    pub remotes: Layers,
    /// Patterns of refs that may be pushed and deleted.
    pub push: Layers,
    /// Credential aliases, or `@all`.
    pub credentials: Vec<String>,
    /// Most bytes that one verb may receive; none: the host's own limit.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub received_bytes: Option<u64>,
    /// Whether git works on threads that are not confined, also where this machine could.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub unconfined: bool,
}

/// The effective grant of `process`.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case", deny_unknown_fields)]
pub struct ProcessGrant {
    /// Names, absolute paths, `@python`, `@uv`.
    pub programs: Vec<String>,
    /// Programs in the RootDir.
    pub in_root: Vec<String>,
    /// Servers, or `@index`.
    pub network: Layers,
    /// Variables; `PIP_*`: all that start so.
    pub environment: Vec<String>,
    /// Whether children run without confinement, also where this machine could confine them.
    pub unconfined: bool,
    /// Limits of each child.
    pub limits: ChildLimits,
}

/// The effective grant of `http`.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case", deny_unknown_fields)]
pub struct HttpGrant {
    /// Servers.
    pub hosts: Layers,
    /// Limits of the requests of one call.
    #[serde(default)]
    pub limits: HttpLimits,
}

/// What a plugin gets that wants `wants` and imports `imports`, under `policy`; none: its type is not
/// named there.
///
/// Every limit is the policy's, and above the default only for who wants it.
pub fn effective<S: AsRef<str>>(
    policy: Option<&PluginPolicy>,
    wants: &Wants,
    imports: &[S],
) -> Grant {
    let nothing = PluginPolicy::default();
    let policy = policy.unwrap_or(&nothing);
    let imported = capabilities(imports);
    let has = |capability| imported.contains(&capability);
    let wanted_root = wants.root.as_ref().map_or(Access::None, |root| root.access);
    Grant {
        root: policy.root.min(wanted_root),
        log: policy.log && wants.log.is_some() && has(Capability::Log),
        progress: policy.progress && wants.progress.is_some() && has(Capability::Progress),
        git: both(&policy.git, &wants.git)
            .filter(|_| has(Capability::Git))
            .map(git),
        process: both(&policy.process, &wants.process)
            .filter(|_| has(Capability::Process))
            .map(process),
        http: both(&policy.http, &wants.http)
            .filter(|_| has(Capability::Http))
            .map(http),
        limits: Limits::effective(&policy.limits, wants.limits.as_ref()),
    }
}

fn both<'a, P, W>(policy: &'a Option<P>, wants: &'a Option<W>) -> Option<(&'a P, &'a W)> {
    policy.as_ref().zip(wants.as_ref())
}

fn git((policy, wants): (&GitPolicy, &WantGit)) -> GitGrant {
    GitGrant {
        remotes: Layers::of(Kind::Remotes, &policy.remotes, &wants.remotes),
        push: Layers::of(Kind::Refs, &policy.push, &wants.push),
        credentials: Kind::Credentials.meet(&policy.credentials, &wants.credentials),
        received_bytes: policy.received_bytes,
        unconfined: policy.unconfined,
    }
}

fn process((policy, wants): (&ProcessPolicy, &WantProcess)) -> ProcessGrant {
    ProcessGrant {
        programs: Kind::Programs.meet(&policy.programs, &wants.programs),
        in_root: Kind::InRoot.meet(&policy.in_root, &wants.in_root),
        network: Layers::of(Kind::Network(By::Operator), &policy.network, &wants.network),
        environment: Kind::Environment.meet(&policy.environment, &wants.environment),
        unconfined: policy.unconfined,
        limits: ChildLimits {
            wall_seconds: policy.wall_seconds.unwrap_or(ChildLimits::WALL_SECONDS),
            memory_bytes: policy.memory_bytes.or(ChildLimits::MEMORY_BYTES),
            processes: policy.processes.or(ChildLimits::PROCESSES),
            open_files: policy.open_files.or(ChildLimits::OPEN_FILES),
            file_bytes: policy.file_bytes.or(ChildLimits::FILE_BYTES),
        },
    }
}

fn http((policy, wants): (&HttpPolicy, &WantHttp)) -> HttpGrant {
    HttpGrant {
        hosts: Layers::of(Kind::Hosts(By::Operator), &policy.hosts, &wants.hosts),
        limits: policy.limits(),
    }
}

/// Names a grant of one component in logs: 16 hex digits over type, digest and grant.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[serde(try_from = "String", into = "String")]
pub struct GrantId(String);

const ID_DIGITS: usize = 16;

impl Default for GrantId {
    /// Zeros: of what no policy gave.
    fn default() -> Self {
        Self("0".repeat(ID_DIGITS))
    }
}

impl GrantId {
    /// The id of what the component with this digest gets.
    pub fn of(handler: &HandlerType, digest: &str, grant: &Grant) -> Self {
        // Struct fields come in their order and lists are sorted: one grant has one text.
        let grant = serde_json::to_vec(grant)
            .unwrap_or_else(|_| unreachable!("a grant is made of texts and numbers"));
        let mut hash = Sha256::new();
        for part in [handler.as_str().as_bytes(), digest.as_bytes(), &grant] {
            hash.update((part.len() as u64).to_le_bytes());
            hash.update(part);
        }
        let digest = hash.finalize();
        let hex = digest
            .iter()
            .take(ID_DIGITS / 2)
            .map(|byte| format!("{byte:02x}"));
        Self(hex.collect())
    }

    /// The digits.
    pub fn as_str(&self) -> &str {
        &self.0
    }
}

impl fmt::Display for GrantId {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.0)
    }
}

impl FromStr for GrantId {
    type Err = &'static str;

    fn from_str(text: &str) -> Result<Self, &'static str> {
        let hex = |byte: u8| byte.is_ascii_digit() || (b'a'..=b'f').contains(&byte);
        if text.len() == ID_DIGITS && text.bytes().all(hex) {
            Ok(Self(text.to_owned()))
        } else {
            Err("a grant id has 16 hex digits")
        }
    }
}

impl TryFrom<String> for GrantId {
    type Error = &'static str;

    fn try_from(text: String) -> Result<Self, &'static str> {
        text.parse()
    }
}

impl From<GrantId> for String {
    fn from(id: GrantId) -> Self {
        id.0
    }
}
