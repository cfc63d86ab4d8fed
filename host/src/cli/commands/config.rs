//! `warren config …`

use std::fmt::Write as _;

use serde_json::json;
use warren::config::{Config, Entry};

use super::super::args::Config as Command;
use super::super::console::{Reply, safe};
use super::super::error::CliError;

pub(super) fn run(config: &Config, command: &Command) -> Result<Reply, CliError> {
    let Command::Show { origin } = command;
    let entries = config.entries();
    let items: Vec<_> = entries
        .iter()
        .map(|entry| match origin {
            true => json!(entry),
            false => json!({ "key": entry.key, "value": entry.value }),
        })
        .collect();
    let value = json!({ "file": config.file, "settings": items });
    Reply::new(&value, text(&entries, *origin))
}

/// `key = value`, as TOML would have it.
fn text(entries: &[Entry], origin: bool) -> String {
    let mut out = String::new();
    for entry in entries {
        let key = safe(&entry.key);
        // Writing to a string can not fail.
        let _ = match &entry.value {
            serde_json::Value::Null => write!(out, "# {key} is not set"),
            value => write!(out, "{key} = {}", toml_value(value)),
        };
        if origin {
            let _ = write!(out, "  # {}", safe(&entry.origin));
        }
        out.push('\n');
    }
    out
}

fn toml_value(value: &serde_json::Value) -> String {
    match toml::Value::try_from(value) {
        Ok(value) => value.to_string(),
        Err(_) => value.to_string(),
    }
}
