use std::fmt::Write as _;
use std::path::Path;

use warren::service::RootDirs;
use warren_model::Descriptor;

use super::reports::more;
use super::{lines, safe, table, word};

pub(crate) fn root_dir(descriptor: &Descriptor, path: Option<&Path>) -> String {
    let mut out = format!(
        "{} ({}, {}), made {} by {}\n",
        safe(descriptor.dir_name.as_str()),
        safe(descriptor.handler_type.as_str()),
        word(&descriptor.state),
        descriptor.created_at,
        safe(descriptor.creator_process_id.as_str()),
    );
    if let Some(path) = path {
        // Writing to a string can not fail.
        let _ = writeln!(out, "  path: {}", safe(&path.to_string_lossy()));
    }
    let texts = [
        ("label", &descriptor.label),
        ("engine", &descriptor.creator_engine),
        ("session", &descriptor.session_id),
    ];
    for (name, text) in texts {
        if let Some(text) = text {
            let _ = writeln!(out, "  {name}: {}", safe(text));
        }
    }
    if descriptor.delete_on_creator_close {
        out.push_str("  goes when its creator closes\n");
    }
    out + &metadata(descriptor)
}

/// The handler's metadata, one line a key.
pub(crate) fn metadata(descriptor: &Descriptor) -> String {
    let entries = descriptor.metadata.as_map().iter();
    entries
        .map(|(key, value)| format!("  {}: {}\n", safe(key), word(value)))
        .collect()
}

pub(crate) fn root_dirs(list: &RootDirs) -> String {
    let mut table = table(&["DIRNAME", "TYPE", "STATE", "CREATOR", "LABEL"]);
    for descriptor in &list.items {
        table.add_row([
            safe(descriptor.dir_name.as_str()),
            safe(descriptor.handler_type.as_str()),
            word(&descriptor.state),
            safe(descriptor.creator_process_id.as_str()),
            safe(descriptor.label.as_deref().unwrap_or_default()),
        ]);
    }
    let mut out = lines(&table);
    for damaged in &list.damaged {
        let reason = safe(&damaged.reason);
        let _ = writeln!(out, "damaged: {}: {reason}", safe(&damaged.file));
    }
    for orphan in &list.orphans {
        // Escaped where it is made.
        let _ = writeln!(out, "no Descriptor knows: {orphan}");
    }
    for handler_type in &list.missing_handlers {
        let _ = writeln!(out, "no handler for type: {}", safe(handler_type.as_str()));
    }
    out + &more(list.next.as_deref())
}
