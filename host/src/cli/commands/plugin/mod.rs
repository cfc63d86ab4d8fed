//! `warren plugin …`

mod approval;
mod decided;
mod files;
mod report;

use serde_json::{Value, json};
use warren::plugin::{Examination, LoadError, LoadFailure, Plugin, check_exports};

use super::super::args::{Cli, Plugin as Command};
use super::super::console::{Console, Reply};
use super::super::error::CliError;
use super::super::{load_config, text};

pub(super) async fn run(
    cli: &Cli,
    console: &Console,
    command: &Command,
) -> Result<Reply, CliError> {
    let config = load_config(&cli.global)?;
    if let Command::Stamp {
        file,
        manifest,
        out,
    } = command
    {
        return files::stamp(file, manifest, out);
    }
    let opened = super::open(cli, console).await?;
    match command {
        Command::List => {
            let plugins: Vec<_> = opened.service.runtime().registry().iter().collect();
            let value = json!({
                "items": plugins.iter().map(|plugin| described(plugin)).collect::<Vec<_>>(),
                "failed": opened.failures.iter().map(failed).collect::<Vec<_>>(),
            });
            // What did not load is a part of the answer, not a failure to answer.
            Reply::new(&value, text::plugins(&plugins, &opened.failures))
        }
        Command::Inspect { subject } => {
            let found = approval::subject(&opened, subject)?;
            check_exports(&found.inspection).map_err(|source| CliError::Inspect {
                subject: subject.clone(),
                source,
            })?;
            let digest = &found.inspection.digest;
            let mut all = opened.service.runtime().registry().iter();
            let loaded = all.find(|plugin| plugin.inspection().digest == *digest);
            let mut value = examined(&found);
            if let (Some(plugin), Value::Object(fields)) = (loaded, &mut value) {
                fields.extend(description(plugin));
            }
            let head = loaded
                .map(|plugin| text::description(plugin))
                .unwrap_or_default();
            Reply::new(&value, head + &text::examination(&found))
        }
        Command::Add { file } => files::add(&config, &opened, file),
        Command::Remove { handler, force } => {
            files::remove(&config, &opened, &handler.parse()?, *force).await
        }
        Command::Diff { old, new } => approval::compare(&opened, old, new),
        Command::Approve { handler, yes, by } => {
            let handler = handler.parse()?;
            approval::approve(&config, &opened, console, &handler, *yes, by.as_deref())
        }
        Command::Revoke { handler, by } => {
            approval::revoke(&config, &handler.parse()?, by.as_deref())
        }
        Command::Report { format, out, when } => {
            report::report(&config, &opened, *format, out.as_deref(), when)
        }
        Command::Suggest { handler, when } => {
            report::suggest(&config, &opened, &handler.parse()?, when)
        }
        Command::Stamp { .. } => unreachable!("answered above"),
    }
}

fn description(plugin: &Plugin) -> Vec<(String, Value)> {
    let description = plugin.description();
    let actions: Vec<_> = description
        .actions
        .iter()
        .map(|action| json!({ "name": action.name, "summary": action.summary }))
        .collect();
    let fields = [
        ("type", json!(description.handler_type)),
        ("version", json!(description.version)),
        ("summary", json!(description.summary)),
        ("ephemeral", json!(description.ephemeral)),
        ("actions", json!(actions)),
        ("origin", json!(plugin.origin().to_string())),
        ("grantId", json!(plugin.grants().id)),
    ];
    fields.map(|(key, value)| (key.to_owned(), value)).into()
}

fn described(plugin: &Plugin) -> Value {
    let inspection = plugin.inspection();
    let mut value = json!({
        "digest": inspection.digest,
        "bytes": inspection.bytes,
        "witVersion": inspection.wit_version,
        "imports": inspection.imports,
        "exports": inspection.exports,
    });
    if let Value::Object(fields) = &mut value {
        fields.extend(description(plugin));
    }
    value
}

/// What is known of a component without running it.
fn examined(found: &Examination) -> Value {
    let inspection = &found.inspection;
    let approval = |review: &warren::plugin::Review| {
        review.approval.as_ref().map(|approval| {
            json!({
                "digest": approval.digest,
                "version": approval.version,
                "grantId": approval.grant_id,
                "by": approval.approved_by,
                "at": approval.approved_at,
            })
        })
    };
    json!({
        "digest": inspection.digest,
        "bytes": inspection.bytes,
        "witVersion": inspection.wit_version,
        "imports": inspection.imports,
        "exports": inspection.exports,
        "manifest": inspection.manifest.as_ref().ok(),
        "origin": found.origin.to_string(),
        "grant": found.review.as_ref().map(|review| &review.grant),
        "grantId": found.review.as_ref().map(|review| &review.id),
        "approval": found.review.as_ref().and_then(approval),
        "wouldLoad": found.problem.is_none(),
        "problem": found.problem.as_ref().map(problem),
    })
}

fn failed(failure: &LoadFailure) -> Value {
    let mut value = problem(&failure.error);
    if let Value::Object(fields) = &mut value {
        fields.insert("origin".to_owned(), json!(failure.origin.to_string()));
        fields.insert("type".to_owned(), json!(failure.handler));
        fields.insert("digest".to_owned(), json!(failure.digest));
    }
    value
}

fn problem(error: &LoadError) -> Value {
    json!({
        "code": error.code(),
        "message": warren::error::chain(error),
        "hint": error.hint(),
    })
}
