//! `warren rootdir …`

use serde_json::{Map, Value, json};
use warren::service::{CreateRootDir, Service};
use warren::{Error, ProjectKey};
use warren_model::{CreatorId, Descriptor, Metadata};

use super::super::args::{Create, RootDir};
use super::super::console::Reply;
use super::super::error::CliError;
use super::super::text;
use super::key;
use super::workspace::{disposed, options};

pub(super) async fn run(service: &Service, command: &RootDir) -> Result<Reply, CliError> {
    match command {
        RootDir::Create(create) => {
            let key = key(&create.project)?;
            let made = service.create_root_dir(&key, spec(create)?).await?;
            shown(service, &key, &made).await
        }
        RootDir::List { project, page } => {
            let limit = usize::from(page.limit);
            let list = service
                .list_root_dirs(&key(project)?, page.after.as_deref(), limit)
                .await?;
            Reply::new(&list, text::root_dirs(&list))
        }
        RootDir::Get { project, dir_name } => {
            let key = key(project)?;
            let found = service.get_root_dir(&key, &dir_name.parse()?).await?;
            shown(service, &key, &found).await
        }
        RootDir::Dispose {
            project,
            dir_name,
            creator,
            how,
        } => {
            let (key, how) = (key(project)?, options(how));
            let report = match (dir_name, creator) {
                (Some(name), _) => service.dispose_root_dir(&key, &name.parse()?, how).await?,
                (None, Some(creator)) => {
                    let creator: CreatorId = creator.parse()?;
                    service.dispose_by_creator(&key, &creator, how).await?
                }
                (None, None) => return Err(missing("DIRNAME or --creator")),
            };
            disposed(&key, &report)
        }
    }
}

fn missing(what: &'static str) -> CliError {
    let reason = "it is missing".to_owned();
    CliError::Service(Error::InvalidArgument { what, reason })
}

/// The Descriptor with the RootDir's path on this host, where it is in use.
pub(super) async fn shown(
    service: &Service,
    key: &ProjectKey,
    descriptor: &Descriptor,
) -> Result<Reply, CliError> {
    let path = match service.root_dir_path(key, &descriptor.dir_name).await {
        Ok(path) => Some(path),
        Err(Error::RootDirNotReady { .. }) => None,
        Err(error) => return Err(error.into()),
    };
    let mut value = serde_json::to_value(descriptor)?;
    if let (Value::Object(fields), Some(path)) = (&mut value, &path) {
        fields.insert("path".to_owned(), json!(path.to_string_lossy()));
    }
    Reply::new(&value, text::root_dir(descriptor, path.as_deref()))
}

fn spec(create: &Create) -> Result<CreateRootDir, CliError> {
    let mut spec = CreateRootDir::new(create.handler_type.parse()?, create.creator.parse()?);
    spec.label.clone_from(&create.label);
    spec.engine.clone_from(&create.engine);
    spec.session.clone_from(&create.session);
    spec.delete_on_close = create.delete_on_close;
    let options = [
        ("repoUrl", &create.repo),
        ("branch", &create.branch),
        ("credentialAlias", &create.credential),
    ];
    let named = options
        .into_iter()
        .filter_map(|(key, value)| Some((key.to_owned(), Value::from(value.clone()?))));
    let mut map = Map::new();
    for entry in named
        .map(Ok)
        .chain(create.meta.iter().map(|text| meta(text)))
    {
        let (key, value) = entry?;
        if map.contains_key(&key) {
            return Err(bad_meta(format!("`{key}` is given twice")));
        }
        map.insert(key, value);
    }
    spec.metadata = Metadata::new(map).map_err(Error::from)?;
    Ok(spec)
}

/// `KEY=TEXT` or `KEY:=JSON`.
fn meta(text: &str) -> Result<(String, Value), CliError> {
    let Some((key, value)) = text.split_once('=') else {
        return Err(bad_meta(format!("`{text}` is not KEY=TEXT or KEY:=JSON")));
    };
    let (key, value) = match key.strip_suffix(':') {
        Some(key) => {
            let parsed = serde_json::from_str(value)
                .map_err(|error| bad_meta(format!("`{key}` is no JSON: {error}")))?;
            (key, parsed)
        }
        None => (key, Value::from(value)),
    };
    if key.is_empty() {
        return Err(bad_meta(format!("`{text}` has no key")));
    }
    Ok((key.to_owned(), value))
}

fn bad_meta(reason: String) -> CliError {
    CliError::Service(Error::InvalidArgument {
        what: "--meta",
        reason,
    })
}

#[cfg(test)]
mod tests {
    use clap::Parser;
    use serde_json::json;

    use super::{CliError, spec};
    use crate::cli::args::{Cli, Command, RootDir};

    fn metadata(words: &[&str]) -> Result<serde_json::Value, CliError> {
        let start = [
            "warren",
            "rootdir",
            "create",
            "p",
            "--type",
            "git",
            "--creator",
            "c",
        ];
        let cli = Cli::try_parse_from(start.iter().chain(words)).unwrap();
        let Command::Rootdir(RootDir::Create(create)) = &cli.command else {
            panic!("another command");
        };
        spec(create).map(|spec| json!(spec.metadata.as_map()))
    }

    #[test]
    fn options_become_metadata() {
        let found = metadata(&[
            "--repo",
            "https://h.example/r",
            "--branch",
            "main",
            "--credential",
            "acme",
            "--meta",
            "commitOnClose:=true",
            "--meta",
            "version=3",
            "--meta",
            "a=b:=c",
        ]);
        assert_eq!(
            found.unwrap(),
            json!({
                "repoUrl": "https://h.example/r", "branch": "main", "credentialAlias": "acme",
                "commitOnClose": true, "version": "3", "a": "b:=c",
            })
        );
    }

    #[test]
    fn broken_metadata_is_refused() {
        for words in [
            &["--meta", "novalue"][..],
            &["--meta", "=x"],
            &["--meta", ":=1"],
            &["--meta", "a:=tru"],
            &["--meta", "a=1", "--meta", "a=2"],
            &["--branch", "x", "--meta", "branch=y"],
        ] {
            let error = metadata(words).unwrap_err();
            assert_eq!(error.code(), "InvalidArgument", "{words:?}");
        }
    }

    #[test]
    fn dispose_takes_one_rootdir_or_one_creator() {
        let parses = |words: &[&str]| {
            Cli::try_parse_from(["warren", "rootdir", "dispose", "p"].iter().chain(words)).is_ok()
        };
        assert!(parses(&["d"]));
        assert!(parses(&["--creator", "c", "--dry-run"]));
        assert!(!parses(&[]));
        assert!(!parses(&["d", "--creator", "c"]));
    }
}
