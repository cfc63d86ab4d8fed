//! What a reviewer should look at first.

use serde::Serialize;

use super::{PluginReport, Row};

/// How bad it is.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Serialize)]
#[serde(rename_all = "lowercase")]
pub enum Level {
    /// Good to know.
    Note,
    /// It should be looked at.
    Warning,
    /// It should not stay so.
    Error,
}

impl Level {
    /// As SARIF has it.
    pub fn as_str(self) -> &'static str {
        match self {
            Self::Note => "note",
            Self::Warning => "warning",
            Self::Error => "error",
        }
    }
}

/// Something that is looked for.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Rule {
    /// Its stable name.
    pub id: &'static str,
    /// How bad it is.
    pub level: Level,
    /// What it looks for.
    pub summary: &'static str,
    /// What to do.
    pub help: &'static str,
}

macro_rules! rules {
    ($($name:ident $id:literal $level:ident $summary:literal $help:literal;)+) => {
        $(const $name: Rule = Rule {
            id: $id,
            level: Level::$level,
            summary: $summary,
            help: $help,
        };)+

        /// Every rule.
        pub const RULES: &[Rule] = &[$($name),+];
    };
}

rules! {
    UNCONFINED "unconfined" Error
        "programs or git work of this plugin may run unconfined"
        "take `unconfined = true` out of the policy; `warren doctor` says what this machine can enforce";
    NOT_LOADED "not-loaded" Warning
        "the plugin was not loaded"
        "approve it with `warren plugin approve`, or remove it";
    NOT_APPROVED "not-approved" Warning
        "nobody has approved what the plugin may reach"
        "look at `warren plugin inspect`, then approve it with `warren plugin approve`";
    CHANGED "changed" Warning
        "the plugin, or what it may reach, is not what was approved"
        "look at the changes, then approve it again or revoke it";
    WILDCARD "wildcard" Note
        "a grant holds whatever the plugin asks for"
        "`warren plugin suggest` proposes what it really used";
    UNGRANTED "ungranted-wish" Note
        "the plugin asks for something that it is not granted"
        "grant it in the policy if it is needed";
    UNUSED "unused-grant" Note
        "something is granted that was never used in the time that the audit log covers"
        "`warren plugin suggest` proposes a policy without it";
    DENIED "denied" Warning
        "the plugin tried to use something that it was refused"
        "`warren audit search --outcome denied` has each";
    LIMIT "limit" Note
        "calls of the plugin ran into a limit"
        "raise the limit in the policy if the work is honest";
}

/// One thing to look at.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct Finding {
    /// Which rule.
    pub rule: &'static str,
    /// How bad it is.
    pub level: Level,
    /// What was found.
    pub message: String,
}

pub(super) fn of(plugin: &PluginReport) -> Vec<Finding> {
    let mut all = Vec::new();
    let mut add = |rule: &Rule, message: String| {
        all.push(Finding {
            rule: rule.id,
            level: rule.level,
            message,
        });
    };
    let name = &plugin.handler;
    if plugin.unconfined {
        let runs = plugin.unconfined_runs;
        add(
            &UNCONFINED,
            format!("`{name}` may work unconfined; {runs} programs did"),
        );
    }
    if let Some(refused) = &plugin.refused {
        add(
            &NOT_LOADED,
            format!("`{name}` was not loaded: {}", refused.message),
        );
    }
    if plugin.approval.is_none() {
        add(&NOT_APPROVED, format!("nobody has approved `{name}`"));
    } else if !plugin.changes.is_empty() {
        let count = plugin.changes.len();
        add(
            &CHANGED,
            format!("`{name}` differs from what was approved in {count} points"),
        );
    }
    let keys = |wanted: &dyn Fn(&Row) -> bool| -> Option<String> {
        let rows = plugin.matrix.iter().filter(|row| wanted(row));
        let keys: Vec<String> = rows.map(|row| format!("`{}`", row.key)).collect();
        (!keys.is_empty()).then(|| keys.join(", "))
    };
    if let Some(keys) = keys(&|row| row.granted.iter().any(|item| is_wild(item))) {
        add(
            &WILDCARD,
            format!("`{name}` is granted all there is of {keys}"),
        );
    }
    if let Some(keys) = keys(&|row| !row.asked.is_empty() && row.granted.is_empty()) {
        add(
            &UNGRANTED,
            format!("`{name}` asks for {keys} and is not granted it"),
        );
    }
    if let Some(keys) = keys(&|row| !row.granted.is_empty() && !row.uses.is_used()) {
        add(&UNUSED, format!("`{name}` has not used {keys}"));
    }
    for row in &plugin.matrix {
        for denied in row.targets.iter().filter(|one| one.uses.denied > 0) {
            let (key, target, times) = (row.key, &denied.target, times(denied.uses.denied));
            add(
                &DENIED,
                format!("`{name}` was refused `{key}` on `{target}` {times}"),
            );
        }
    }
    for (limit, uses) in &plugin.limits_hit {
        let times = times(uses.denied);
        add(
            &LIMIT,
            format!("`{name}` ran into its limit of {limit} {times}"),
        );
    }
    all.sort_by_key(|finding| std::cmp::Reverse(finding.level));
    all
}

fn times(count: u64) -> String {
    match count {
        1 => "once".to_owned(),
        count => format!("{count} times"),
    }
}

fn is_wild(item: &str) -> bool {
    matches!(item, "**" | "*" | "@all" | "@allow") || item.ends_with("://**")
}
