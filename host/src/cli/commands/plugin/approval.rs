//! What a person says yes or no to.

use std::io::{self, BufRead, IsTerminal, Write};
use std::path::Path;

use jiff::Timestamp;
use serde_json::json;
use warren::config::{Config, Opened};
use warren::plugin::audit::Decision;
use warren::plugin::{Examination, LoadError, Origin, read};
use warren_model::HandlerType;
use warren_policy::{Change, Verdict, diff, diff_imports, diff_wants};

use super::super::super::console::{Console, Reply, safe};
use super::super::super::error::CliError;
use super::super::super::text;
use super::decided::decided;

/// Most bytes of the name that somebody gives themselves.
const NAME_BYTES_MAX: usize = 100;

/// The one component of a type, loaded or not; none: there is none.
pub(super) fn of_type(
    opened: &Opened,
    handler: &HandlerType,
) -> Result<Option<Examination>, CliError> {
    let runtime = opened.service.runtime();
    let mut all = Vec::new();
    for (origin, bytes) in runtime.found() {
        let Ok(bytes) = bytes else { continue };
        let Ok(found) = runtime.examine(origin, &bytes) else {
            continue;
        };
        let names_it = |found: &Examination| {
            let manifest = found.inspection.manifest.as_ref();
            manifest.is_ok_and(|manifest| manifest.handler_type == *handler)
        };
        // A file that claims a type which is shipped is no choice.
        let reserved = matches!(found.problem, Some(LoadError::ReservedHandlerType(_)));
        if names_it(&found) && !reserved {
            all.push(found);
        }
    }
    if let [first, second, ..] = &all[..] {
        return Err(CliError::Inspect {
            subject: second.origin.to_string(),
            source: LoadError::DuplicateHandlerType {
                handler: handler.clone(),
                first: first.origin.clone(),
            },
        });
    }
    Ok(all.pop())
}

/// A component by its type, or in a file: a type has neither `/` nor `.` in its name.
pub(super) fn subject(opened: &Opened, subject: &str) -> Result<Examination, CliError> {
    if subject.contains(['/', '.']) {
        let path = Path::new(subject);
        let examined = read(path).and_then(|bytes| {
            let runtime = opened.service.runtime();
            runtime.examine(Origin::File(path.to_owned()), &bytes)
        });
        return examined.map_err(|source| CliError::Inspect {
            subject: subject.to_owned(),
            source,
        });
    }
    let handler: HandlerType = subject.parse()?;
    match of_type(opened, &handler)? {
        Some(found) => Ok(found),
        None => Err(warren::Error::UnknownHandler(handler).into()),
    }
}

pub(super) fn approve(
    config: &Config,
    opened: &Opened,
    console: &Console,
    handler: &HandlerType,
    yes: bool,
    by: Option<&str>,
) -> Result<Reply, CliError> {
    let found = of_type(opened, handler)?;
    let mut found = found.ok_or_else(|| warren::Error::UnknownHandler(handler.clone()))?;
    let waits = matches!(found.problem, None | Some(LoadError::NotApproved(_)));
    if let Some(source) = found.problem.take_if(|_| !waits) {
        return Err(CliError::Inspect {
            subject: handler.to_string(),
            source,
        });
    }
    let changes = found.changes();
    let value = |approved: bool, id: Option<String>| {
        json!({
            "type": handler,
            "digest": found.inspection.digest,
            "changes": changes,
            "approved": approved,
            "grantId": id,
        })
    };
    if is_approved(&found) {
        let id = found.review.as_ref().map(|review| review.id.to_string());
        return Reply::new(
            &value(true, id),
            format!("{handler} is approved as it is\n"),
        );
    }
    let shown = text::changes(&changes);
    if !yes {
        ask(console, handler, &found, &shown)?;
    }
    let by = who(by);
    let approvals = config.approvals(&config.state_dir.value)?;
    let grant = found.review.as_ref().map(|review| review.id.to_string());
    let decision = Decision {
        verb: "approve",
        handler: handler.as_str(),
        digest: Some(&found.inspection.digest),
        grant: grant.as_deref(),
        by: &by,
    };
    let id = decided(config, decision, || {
        found
            .approve(&approvals, &by)
            .map_err(|source| CliError::Inspect {
                subject: handler.to_string(),
                source,
            })
    })?;
    let said = format!("{shown}approved {handler} for {}: grant {id}\n", safe(&by));
    Reply::new(&value(true, Some(id.to_string())), said)
}

/// Whether an approval would change nothing.
fn is_approved(found: &Examination) -> bool {
    found.review.as_ref().is_some_and(|review| {
        let same = review.approval.as_ref().is_none_or(|approval| {
            approval.digest == found.inspection.digest && approval.grant == review.grant
        });
        review.verdict == Verdict::Approved && same
    })
}

fn ask(
    console: &Console,
    handler: &HandlerType,
    found: &Examination,
    shown: &str,
) -> Result<(), CliError> {
    if console.is_json() || !io::stdin().is_terminal() || !io::stderr().is_terminal() {
        return Err(CliError::ConfirmationNeeded {
            what: format!("warren plugin approve {handler}"),
        });
    }
    let told = text::examination(found) + shown + &format!("Approve {handler}? [y/N] ");
    let mut answer = String::new();
    let mut out = io::stderr().lock();
    out.write_all(told.as_bytes())
        .and_then(|()| out.flush())
        .and_then(|()| io::stdin().lock().read_line(&mut answer))
        .map_err(CliError::io("ask"))?;
    match answer.trim().to_lowercase().as_str() {
        "y" | "yes" => Ok(()),
        _ => Err(CliError::Declined),
    }
}

pub(super) fn revoke(
    config: &Config,
    handler: &HandlerType,
    by: Option<&str>,
) -> Result<Reply, CliError> {
    let by = who(by);
    let approvals = config.approvals(&config.state_dir.value)?;
    let name = handler.as_str();
    let is_shipped = warren_plugins::all()
        .iter()
        .any(|(shipped, _)| *shipped == name);
    // A broken lock is not asked: to take something back must always be possible.
    let is_approved = approvals
        .read()
        .map_or(true, |lock| lock.plugin.contains_key(handler));
    let file = config.plugins_dir.value.join(format!("{name}.wasm"));
    if !is_shipped && !is_approved && !file.exists() {
        return Err(CliError::PluginNotFound(name.to_owned()));
    }
    let decision = Decision {
        verb: "revoke",
        handler: handler.as_str(),
        digest: None,
        grant: None,
        by: &by,
    };
    decided(config, decision, || {
        Ok(approvals.change(|lock| lock.revoke(handler, &by, Timestamp::now()))?)
    })?;
    let value = json!({ "type": handler, "revokedBy": by });
    Reply::new(&value, format!("{handler} does not load any more\n"))
}

/// Who gives the command: what they call themselves, and the user that the kernel knows.
pub(super) fn who(by: Option<&str>) -> String {
    let uid = rustix::process::getuid().as_raw();
    let name = by.map(str::to_owned).or_else(|| std::env::var("USER").ok());
    match name.filter(|name| !name.trim().is_empty()) {
        Some(name) => {
            let name = warren_disk::text::excerpt(name.trim().as_bytes(), NAME_BYTES_MAX);
            format!("{name} (uid {uid})")
        }
        None => format!("uid {uid}"),
    }
}

pub(super) fn compare(opened: &Opened, old: &str, new: &str) -> Result<Reply, CliError> {
    let (before, after) = (subject(opened, old)?, subject(opened, new)?);
    let mut changes: Vec<Change> = Vec::new();
    let (one, two) = (&before.inspection, &after.inspection);
    if one.digest != two.digest {
        changes.push(Change {
            path: "digest".to_owned(),
            direction: warren_policy::Direction::Changed,
            before: Some(one.digest.clone()),
            after: Some(two.digest.clone()),
        });
    }
    changes.extend(diff_imports(&one.imports, &two.imports));
    if let (Ok(one), Ok(two)) = (&one.manifest, &two.manifest) {
        for (path, before, after) in [
            ("name", one.name.as_str(), two.name.as_str()),
            ("version", &one.version, &two.version),
            ("type", one.handler_type.as_str(), two.handler_type.as_str()),
        ] {
            if before != after {
                changes.push(Change {
                    path: path.to_owned(),
                    direction: warren_policy::Direction::Changed,
                    before: Some(before.to_owned()),
                    after: Some(after.to_owned()),
                });
            }
        }
        changes.extend(diff_wants(&one.wants, &two.wants));
    }
    if let (Some(one), Some(two)) = (&before.review, &after.review) {
        changes.extend(diff(&one.grant, &two.grant));
    }
    let text = match changes.is_empty() {
        true => "they are the same\n".to_owned(),
        false => text::changes(&changes),
    };
    Reply::new(&json!({ "changes": changes }), text)
}
