//! `warren plugin …`

use std::path::Path;

use serde_json::{Value, json};
use warren::plugin::{Inspection, LoadFailure, Plugin, check_exports, inspect, read};
use warren_model::HandlerType;

use super::super::args::{Cli, Plugin as Command};
use super::super::console::{Console, Reply};
use super::super::error::CliError;
use super::super::text;

pub(super) async fn run(
    cli: &Cli,
    console: &Console,
    command: &Command,
) -> Result<Reply, CliError> {
    match command {
        Command::List => {
            let opened = super::open(cli, console).await?;
            let plugins: Vec<_> = opened.service.runtime().registry().iter().collect();
            let value = json!({
                "items": plugins.iter().map(|plugin| described(plugin)).collect::<Vec<_>>(),
                "failed": opened.failures.iter().map(failed).collect::<Vec<_>>(),
            });
            // What did not load is a part of the answer, not a failure to answer.
            Reply::new(&value, text::plugins(&plugins, &opened.failures))
        }
        // No type has a `/` or a `.` in its name.
        Command::Inspect { subject } if subject.contains(['/', '.']) => {
            let failed = |source| CliError::Inspect {
                subject: subject.clone(),
                source,
            };
            let inspection = read(Path::new(subject))
                .and_then(|bytes| inspect(&bytes))
                .map_err(failed)?;
            let fits = check_exports(&inspection).map_err(failed);
            let value = inspected(&inspection);
            let reply = Reply::new(&value, text::inspection(None, &inspection))?;
            fits.map(|()| reply)
        }
        Command::Inspect { subject } => {
            let handler: HandlerType = subject.parse()?;
            let opened = super::open(cli, console).await?;
            let Some(plugin) = opened.service.runtime().plugin(&handler) else {
                return Err(warren::Error::UnknownHandler(handler).into());
            };
            let text = text::inspection(Some(&plugin), plugin.inspection());
            Reply::new(&described(&plugin), text)
        }
    }
}

fn described(plugin: &Plugin) -> Value {
    let description = plugin.description();
    let mut value = inspected(plugin.inspection());
    if let Value::Object(fields) = &mut value {
        let actions: Vec<_> = description
            .actions
            .iter()
            .map(|action| json!({ "name": action.name, "summary": action.summary }))
            .collect();
        let more = [
            ("type", json!(description.handler_type)),
            ("version", json!(description.version)),
            ("summary", json!(description.summary)),
            ("ephemeral", json!(description.ephemeral)),
            ("actions", json!(actions)),
            ("origin", json!(plugin.origin().to_string())),
        ];
        fields.extend(more.map(|(key, value)| (key.to_owned(), value)));
    }
    value
}

fn inspected(inspection: &Inspection) -> Value {
    json!({
        "digest": inspection.digest,
        "bytes": inspection.bytes,
        "witVersion": inspection.wit_version,
        "imports": inspection.imports,
        "exports": inspection.exports,
    })
}

fn failed(failure: &LoadFailure) -> Value {
    json!({
        "origin": failure.origin.to_string(),
        "code": failure.error.code(),
        "message": warren::error::chain(&failure.error),
        "hint": failure.error.hint(),
    })
}
