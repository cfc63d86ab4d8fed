//! `warren plugin report` and `warren plugin suggest`

use std::path::Path;

use jiff::Timestamp;
use serde_json::{Value, json};
use warren::config::{Config, Opened};
use warren::review::{self, Usage};
use warren_audit::Filter;
use warren_model::HandlerType;

use super::super::super::args::ReportFormat;
use super::super::super::args::audit::Period;
use super::super::super::console::{Reply, safe};
use super::super::super::error::CliError;
use super::super::audit::period;
use super::approval::of_type;

pub(super) fn report(
    config: &Config,
    opened: &Opened,
    format: ReportFormat,
    out: Option<&Path>,
    when: &Period,
) -> Result<Reply, CliError> {
    let usage = usage(config, when)?;
    let subjects = review::gather(opened.service.runtime(), &opened.failures, &config.words());
    let report = review::report(&subjects, &usage, Timestamp::now());
    let document = |value: Value| {
        let text = format!("{value:#}\n");
        (value, text)
    };
    let (value, text) = match format {
        ReportFormat::Text => (serde_json::to_value(&report)?, review::text(&report)),
        ReportFormat::Json => document(serde_json::to_value(&report)?),
        ReportFormat::Sarif => document(review::sarif(&report)),
        ReportFormat::Html => {
            let page = review::html(&report);
            (json!({ "html": page }), page)
        }
    };
    let Some(path) = out else {
        return Reply::new(&value, text);
    };
    let shown = safe(&path.to_string_lossy());
    std::fs::write(path, text).map_err(CliError::io(format!("write `{shown}`")))?;
    Reply::new(&json!({ "written": path }), format!("wrote {shown}\n"))
}

pub(super) fn suggest(
    config: &Config,
    opened: &Opened,
    handler: &HandlerType,
    when: &Period,
) -> Result<Reply, CliError> {
    let usage = usage(config, when)?;
    let found = of_type(opened, handler)?;
    let found = found.ok_or_else(|| warren::Error::UnknownHandler(handler.clone()))?;
    let policy = config.policy()?;
    let current = policy.plugin.get(handler);
    let text = review::to_file(handler, current, &found.inspection.imports, &usage)
        .map_err(|error| CliError::io("write a policy")(std::io::Error::other(error)))?;
    let value = json!({
        "type": handler,
        "policy": text,
        "from": usage.period.map(|(from, _)| from),
        "until": usage.period.map(|(_, until)| until),
    });
    Reply::new(&value, text)
}

fn usage(config: &Config, when: &Period) -> Result<Usage, CliError> {
    let (from, until) = period(when)?;
    let filter = Filter {
        from,
        until,
        ..Filter::default()
    };
    let path = &config.state_dir.value;
    let state =
        warren_disk::open_root(path).map_err(CliError::io(format!("open `{}`", path.display())))?;
    Ok(Usage::collect(&state, &filter)?)
}
