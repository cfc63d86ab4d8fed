//! Where the demo takes place.

use std::path::{Path, PathBuf};

use serde_json::{Map, Value};
use tempfile::TempDir;
use warren::config::{Config, Overrides, Surroundings};
use warren::service::{CreateRootDir, Service};
use warren_model::{DirName, Metadata};

use super::super::args::{Demo, Global};
use super::super::console::{Console, safe};
use super::super::error::CliError;
use super::super::progress;
use super::repository;

/// One directory with two workspace roots, a state directory, and the repository.
pub(super) struct Scene {
    dir: TempDir,
    base: PathBuf,
    first: PathBuf,
    second: PathBuf,
    url: String,
    credential: Option<String>,
    /// Files of the repository, when it is ours.
    made: Option<usize>,
    config: Option<PathBuf>,
    keep: bool,
}

/// A RootDir of the demo.
pub(super) struct Root {
    kind: &'static str,
    name: DirName,
    path: PathBuf,
}

impl Root {
    pub(super) fn new(kind: &'static str, name: DirName, path: PathBuf) -> Self {
        Self { kind, name, path }
    }

    pub(super) fn name(&self) -> &DirName {
        &self.name
    }

    pub(super) fn path(&self) -> &Path {
        &self.path
    }

    pub(super) fn has_git(&self) -> bool {
        self.kind != "temp"
    }

    pub(super) fn is_python(&self) -> bool {
        self.kind == "python"
    }
}

impl Scene {
    pub(super) fn new(global: &Global, args: &Demo) -> Result<Self, CliError> {
        let dir = tempfile::Builder::new()
            .prefix("warren-demo-")
            .tempdir()
            .map_err(CliError::io("make a directory for the demo"))?;
        let base = dir
            .path()
            .canonicalize()
            .map_err(CliError::io("resolve the demo's directory"))?;
        let (url, made, config) = match &args.repo {
            Some(url) => (url.clone(), None, global.config.clone()),
            None => {
                let (url, files) = upstream(&base)?;
                (url, Some(files), Some(own_config(&base)?))
            }
        };
        Ok(Self {
            first: base.join("first"),
            second: base.join("second"),
            credential: args.credential.clone(),
            keep: args.keep,
            dir,
            base,
            url,
            made,
            config,
        })
    }

    pub(super) fn base(&self) -> &Path {
        &self.base
    }

    /// The workspace root that the Workspace is made in.
    pub(super) fn first(&self) -> &Path {
        &self.first
    }

    /// The one that it is recovered into.
    pub(super) fn second(&self) -> &Path {
        &self.second
    }

    pub(super) fn made(&self) -> Option<usize> {
        self.made
    }

    pub(super) fn keeps(&self) -> bool {
        self.keep
    }

    /// A host on one of the workspace roots; the state directory is always the same.
    pub(super) async fn open(&self, root: &Path, console: &Console) -> Result<Service, CliError> {
        let overrides = Overrides {
            workspace_root: Some(root.to_owned()),
            state_dir: Some(self.base.join("state")),
            config: self.config.clone(),
            policy: None,
        };
        let env = |name: &str| std::env::var_os(name);
        let config = Config::load(&overrides, &Surroundings::of_platform(&env))?;
        let service = config.open().await?.service;
        Ok(match progress::sink(console) {
            Some(sink) => service.with_progress(sink),
            None => service,
        })
    }

    /// What to ask for, by type.
    pub(super) fn spec(&self, kind: &str) -> Result<CreateRootDir, CliError> {
        let mut spec = CreateRootDir::new(kind.parse()?, "warren-demo".parse()?);
        spec.label = Some(format!("demo-{kind}"));
        if kind != "temp" {
            let mut map = Map::from_iter([("repoUrl".to_owned(), Value::from(self.url.clone()))]);
            if let Some(alias) = &self.credential {
                map.insert("credentialAlias".to_owned(), Value::from(alias.clone()));
            }
            spec.metadata = Metadata::new(map).map_err(warren::Error::from)?;
        }
        Ok(spec)
    }

    /// Removes everything, or says where it is kept.
    pub(super) fn end(self, keep: bool) -> Result<Option<PathBuf>, CliError> {
        if keep {
            return Ok(Some(self.dir.keep()));
        }
        self.dir
            .close()
            .map_err(CliError::io("remove the demo's directory"))?;
        Ok(None)
    }
}

fn upstream(base: &Path) -> Result<(String, usize), CliError> {
    let path = base.join("upstream.git");
    let files = repository::make(&path).map_err(|error| {
        CliError::Demo(format!("cannot make a repository: {}", error.message()))
    })?;
    let url = url::Url::from_file_path(&path)
        .map_err(|()| CliError::Demo(format!("`{}` is no file URL", path.display())))?;
    Ok((url.to_string(), files))
}

/// Settings that allow exactly the repository we made.
fn own_config(base: &Path) -> Result<PathBuf, CliError> {
    let path = base.join("warren.toml");
    let allow = format!("file://{}/**", base.display());
    let text = format!("[git]\nallow = [{}]\n", toml::Value::from(allow));
    std::fs::write(&path, text).map_err(CliError::io("write the demo's configuration"))?;
    Ok(path)
}

/// Names in a directory, safe to print.
pub(super) fn entries(path: &Path) -> Result<Vec<String>, CliError> {
    let failed = || CliError::io(format!("read `{}`", path.display()));
    let mut names = Vec::new();
    for entry in std::fs::read_dir(path).map_err(failed())? {
        let name = entry.map_err(failed())?.file_name();
        names.push(safe(&name.to_string_lossy()));
    }
    Ok(names)
}
