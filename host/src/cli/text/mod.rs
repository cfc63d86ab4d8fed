//! Reports as text for people. Everything from outside is escaped.

mod audit;
mod doctor;
mod plugins;
mod reports;
mod roots;

pub(crate) use audit::{record, records, verified};
pub(crate) use doctor::doctor;
pub(crate) use plugins::{changes, description, examination, plugins};
pub(crate) use reports::{brought_up, disposed, quota, resealed, suspended, workspace, workspaces};
pub(crate) use roots::{metadata, root_dir, root_dirs};

use comfy_table::{Table, presets};
use serde::Serialize;
use warren::service::RootFailure;
use warren_disk::text::excerpt;

use super::console::safe;

/// Most bytes of a failure's message.
const MESSAGE_BYTES_MAX: usize = 4 * 1024;

/// How a value is written in JSON, without the quotes.
fn word(value: &impl Serialize) -> String {
    match serde_json::to_value(value) {
        Ok(serde_json::Value::String(text)) => safe(&text),
        Ok(value) => value.to_string(),
        Err(_) => String::new(),
    }
}

fn table(header: &[&str]) -> Table {
    let mut table = Table::new();
    table.load_style(presets::NOTHING).set_header(header);
    table
}

fn lines(table: &Table) -> String {
    let lines = table.lines().map(|line| line.trim_end().to_owned() + "\n");
    lines
        .map(|line| line.strip_prefix(' ').map(str::to_owned).unwrap_or(line))
        .collect()
}

/// One line a failure, and what to do about it.
fn failures(failed: &[RootFailure]) -> String {
    failed
        .iter()
        .map(|failure| {
            let message = excerpt(failure.message.as_bytes(), MESSAGE_BYTES_MAX);
            let hint = failure.hint.as_ref().map(|hint| {
                format!(
                    "    hint: {}\n",
                    excerpt(hint.as_bytes(), MESSAGE_BYTES_MAX)
                )
            });
            let name = safe(failure.dir_name.as_str());
            format!(
                "  {name} FAILED ({}): {message}\n{}",
                failure.code,
                hint.unwrap_or_default()
            )
        })
        .collect()
}

/// `1 RootDir`, `2 RootDirs`.
fn count(n: usize, what: &str) -> String {
    format!("{n} {what}{}", if n == 1 { "" } else { "s" })
}
