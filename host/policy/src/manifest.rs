//! What a plugin says that it is and wants.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use warren_model::HandlerType;

use crate::document::{self, DocumentError};
use crate::grant::Access;
use crate::item::{By, Kind};
pub use crate::limits::WantLimits;

/// Most bytes of a manifest.
pub const MANIFEST_BYTES_MAX: usize = 64 * 1024;

/// The format that this version reads.
const FORMAT: u32 = 1;

const LINE_CHARS_MAX: usize = 300;

/// What a component carries in its section [`crate::SECTION`], as TOML.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "kebab-case", deny_unknown_fields)]
pub struct Manifest {
    /// Format of the manifest: 1.
    pub manifest: u32,
    /// What people call the plugin, in a line.
    pub name: String,
    /// Its version.
    pub version: String,
    /// The type that it serves; its `describe` must say the same.
    #[serde(rename = "type")]
    #[schemars(with = "String")]
    pub handler_type: HandlerType,
    /// What it wants.
    #[serde(default)]
    pub wants: Wants,
}

/// What a plugin wants; what is not there it does not.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "kebab-case", deny_unknown_fields)]
pub struct Wants {
    /// Its RootDir.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub root: Option<WantRoot>,
    /// The capability `git`.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub git: Option<WantGit>,
    /// The capability `process`.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub process: Option<WantProcess>,
    /// The capability `http`.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub http: Option<WantHttp>,
    /// Lines in the host's log.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub log: Option<WantPlain>,
    /// Reports of progress.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub progress: Option<WantPlain>,
    /// More than the usual limits.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub limits: Option<WantLimits>,
}

/// A wish for the RootDir.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "kebab-case", deny_unknown_fields)]
pub struct WantRoot {
    /// How far.
    pub access: Access,
    /// Why, in a line for the reviewer.
    pub reason: String,
}

/// A wish for `git`.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "kebab-case", deny_unknown_fields)]
pub struct WantGit {
    /// Patterns of remotes as in `[git] allow`; `**`: any.
    #[serde(default)]
    pub remotes: Vec<String>,
    /// Patterns of refs that it pushes and deletes.
    #[serde(default)]
    pub push: Vec<String>,
    /// Credential aliases; `*`: whichever the caller names.
    #[serde(default)]
    pub credentials: Vec<String>,
    /// Why, in a line for the reviewer.
    pub reason: String,
}

/// A wish for `process`.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "kebab-case", deny_unknown_fields)]
pub struct WantProcess {
    /// Programs by alias or absolute path; `@python`: the host's interpreters, `@uv`: its uv.
    #[serde(default)]
    pub programs: Vec<String>,
    /// Programs in the RootDir by their path there.
    #[serde(default)]
    pub in_root: Vec<String>,
    /// Endpoints that its programs talk to, `https://host:port`; `*`: any, `@index`: the host's
    /// package index.
    #[serde(default)]
    pub network: Vec<String>,
    /// Variables that it sets; `PIP_*`: all that start so.
    #[serde(default)]
    pub environment: Vec<String>,
    /// Why, in a line for the reviewer.
    pub reason: String,
}

/// A wish for `http`.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "kebab-case", deny_unknown_fields)]
pub struct WantHttp {
    /// Endpoints, `https://host:port`; `*`: any.
    #[serde(default)]
    pub hosts: Vec<String>,
    /// Why, in a line for the reviewer.
    pub reason: String,
}

/// A wish for something that is had whole or not at all.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "kebab-case", deny_unknown_fields)]
pub struct WantPlain {
    /// Why, in a line for the reviewer.
    pub reason: String,
}

impl Manifest {
    /// Reads and checks a manifest.
    ///
    /// # Errors
    ///
    /// Names what is wrong, with its line where it has one.
    pub fn parse(bytes: &[u8]) -> Result<Self, DocumentError> {
        let manifest: Self = document::parse(bytes, MANIFEST_BYTES_MAX)?;
        manifest.check()?;
        Ok(manifest)
    }

    fn check(&self) -> Result<(), DocumentError> {
        if self.manifest != FORMAT {
            let reason = format!("this host reads format {FORMAT}, not {}", self.manifest);
            return Err(DocumentError::invalid("manifest", reason));
        }
        line("name", &self.name)?;
        line("version", &self.version)?;
        self.wants.check()
    }
}

impl Wants {
    fn check(&self) -> Result<(), DocumentError> {
        for (at, reason) in self.reasons() {
            line(&format!("wants.{at}.reason"), reason)?;
        }
        for (at, kind, items) in self.lists() {
            kind.check(&format!("wants.{at}"), items)?;
        }
        if self
            .root
            .as_ref()
            .is_some_and(|root| root.access == Access::None)
        {
            let reason = "leave `wants.root` out instead";
            return Err(DocumentError::invalid("wants.root.access", reason));
        }
        match &self.limits {
            Some(limits) => limits.check("wants.limits"),
            None => Ok(()),
        }
    }

    /// Why each wish is there, by the wish's key.
    pub fn reasons(&self) -> Vec<(&'static str, &str)> {
        let all = [
            ("root", self.root.as_ref().map(|want| &want.reason)),
            ("git", self.git.as_ref().map(|want| &want.reason)),
            ("process", self.process.as_ref().map(|want| &want.reason)),
            ("http", self.http.as_ref().map(|want| &want.reason)),
            ("log", self.log.as_ref().map(|want| &want.reason)),
            ("progress", self.progress.as_ref().map(|want| &want.reason)),
            ("limits", self.limits.as_ref().map(|want| &want.reason)),
        ];
        all.into_iter()
            .filter_map(|(at, reason)| Some((at, reason?.as_str())))
            .collect()
    }

    /// Every list, by its key.
    pub(crate) fn lists(&self) -> Vec<(&'static str, Kind, &[String])> {
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
                Kind::Network(By::Plugin),
                &process.network,
            ));
            lists.push((
                "process.environment",
                Kind::Environment,
                &process.environment,
            ));
        }
        if let Some(http) = &self.http {
            lists.push(("http.hosts", Kind::Hosts(By::Plugin), &http.hosts));
        }
        lists
    }
}

/// Checks a line for people: some text, and nothing that plays tricks on a terminal.
fn line(at: &str, text: &str) -> Result<(), DocumentError> {
    if text.trim().is_empty() || text.chars().count() > LINE_CHARS_MAX {
        let reason = format!("it is no line of 1 to {LINE_CHARS_MAX} characters");
        return Err(DocumentError::invalid(at, reason));
    }
    if text.chars().any(is_hidden) {
        return Err(DocumentError::invalid(
            at,
            "it holds control or invisible characters",
        ));
    }
    Ok(())
}

/// Control characters, and those that reorder or hide text.
fn is_hidden(c: char) -> bool {
    c.is_control()
        || matches!(c, '\u{200b}'..='\u{200f}' | '\u{2028}'..='\u{202e}' | '\u{2060}'..='\u{206f}' | '\u{feff}')
}
