//! The report as one page that needs nothing else: no script, no file beside it.

use std::fmt::Write as _;

use super::{Level, PluginReport, Report, Row, Uses};

const STYLE: &str = include_str!("report.css");

/// The report as a page. Writing to a string cannot fail.
pub fn html(report: &Report) -> String {
    let mut out = String::from(
        "<!doctype html>\n<html lang=\"en\">\n<head>\n<meta charset=\"utf-8\">\n\
         <meta name=\"viewport\" content=\"width=device-width, initial-scale=1\">\n\
         <meta http-equiv=\"Content-Security-Policy\" content=\"default-src 'none'; style-src 'unsafe-inline'\">\n\
         <title>Warren: what plugins can reach</title>\n",
    );
    let _ = writeln!(out, "<style>\n{STYLE}</style>\n</head>\n<body>\n<main>");
    let _ = writeln!(out, "<h1>What plugins can reach</h1>");
    let _ = write!(out, "<p class=\"about\">Made {:.0}", report.at);
    if let (Some(from), Some(until)) = (report.from, report.until) {
        let _ = write!(out, " from an audit log of {from:.0} to {until:.0}");
    }
    out.push_str(".</p>\n");
    if report.unreadable_lines > 0 {
        let lines = report.unreadable_lines;
        let _ = writeln!(
            out,
            "<p class=\"bad\">{lines} lines of the audit log are no records: run <code>warren audit verify</code>.</p>"
        );
    }
    overview(&mut out, report);
    for plugin in &report.plugins {
        section(&mut out, plugin);
    }
    out.push_str("</main>\n</body>\n</html>\n");
    out
}

fn overview(out: &mut String, report: &Report) {
    out.push_str("<div class=\"scroll\"><table>\n<thead><tr><th>Plugin<th>State<th>Approved by<th>Findings</tr></thead>\n<tbody>\n");
    for plugin in &report.plugins {
        let count = |level| {
            plugin
                .findings
                .iter()
                .filter(|one| one.level == level)
                .count()
        };
        let approved = plugin
            .approval
            .as_ref()
            .map_or("nobody", |approved| &approved.by);
        let _ = write!(
            out,
            "<tr><td><a href=\"#{}\">{}</a><td>{}<td>{}<td>",
            anchor(plugin),
            esc(&plugin.handler),
            state(plugin),
            esc(approved)
        );
        for level in [Level::Error, Level::Warning, Level::Note] {
            let (word, number) = (level.as_str(), count(level));
            if number > 0 {
                let _ = write!(
                    out,
                    "<span class=\"tag {word}\">{number} {word}{}</span> ",
                    plural(number)
                );
            }
        }
        out.push_str("</tr>\n");
    }
    out.push_str("</tbody></table></div>\n");
}

fn state(plugin: &PluginReport) -> &'static str {
    match (&plugin.refused, plugin.unconfined) {
        (Some(_), _) => "<span class=\"tag warning\">not loaded</span>",
        (None, true) => "<span class=\"tag error\">unconfined</span>",
        (None, false) => "loaded",
    }
}

fn section(out: &mut String, plugin: &PluginReport) {
    let name = esc(&plugin.handler);
    let version = esc(plugin.version.as_deref().unwrap_or_default());
    let id = anchor(plugin);
    let _ = writeln!(
        out,
        "<section id=\"{id}\">\n<h2>{name} <small>{version}</small> {}</h2>",
        state(plugin)
    );
    if plugin.unconfined {
        let runs = plugin.unconfined_runs;
        let _ = writeln!(
            out,
            "<p class=\"bad\">It may work <strong>unconfined</strong>; {runs} programs did.</p>"
        );
    }
    if let Some(refused) = &plugin.refused {
        let _ = writeln!(
            out,
            "<p class=\"bad\">Not loaded, {}: {}</p>",
            esc(&refused.code),
            esc(&refused.message)
        );
    }
    if plugin.refused.is_some() {
        out.push_str("<p class=\"about\">What is granted below is what it would get.</p>\n");
    }
    facts(out, plugin);
    if !plugin.findings.is_empty() {
        out.push_str("<ul class=\"findings\">\n");
        for finding in &plugin.findings {
            let word = finding.level.as_str();
            let _ = writeln!(
                out,
                "<li><span class=\"tag {word}\">{word}</span> {}",
                esc(&finding.message)
            );
        }
        out.push_str("</ul>\n");
    }
    if !plugin.changes.is_empty() {
        out.push_str("<h3>Since it was approved</h3>\n<ul>\n");
        for change in &plugin.changes {
            let _ = writeln!(
                out,
                "<li class=\"{}\">{}",
                change.direction,
                esc(&change.to_string())
            );
        }
        out.push_str("</ul>\n");
    }
    out.push_str("<div class=\"scroll\"><table class=\"matrix\">\n<thead><tr><th>What<th>Asked<th>Granted<th>Used<th>Denied</tr></thead>\n<tbody>\n");
    for row in &plugin.matrix {
        self::row(out, row);
    }
    out.push_str("</tbody></table></div>\n</section>\n");
}

/// The anchor of a plugin is a number: its name could be anything.
fn anchor(plugin: &PluginReport) -> String {
    plugin
        .handler
        .bytes()
        .map(|byte| format!("{byte:02x}"))
        .collect()
}

fn facts(out: &mut String, plugin: &PluginReport) {
    out.push_str("<dl>\n");
    let mut fact = |name: &str, value: &str| {
        if !value.is_empty() {
            let _ = writeln!(out, "<dt>{name}<dd>{}", esc(value));
        }
    };
    fact("From", &plugin.origin);
    fact("Digest", plugin.digest.as_deref().unwrap_or_default());
    fact("Grant", plugin.grant_id.as_deref().unwrap_or_default());
    let approved = match &plugin.approval {
        Some(approved) => match approved.at {
            Some(at) => format!("by {} at {at:.0}", approved.by),
            None => format!("by {}", approved.by),
        },
        None => "by nobody".to_owned(),
    };
    fact("Approved", &approved);
    let calls: Vec<String> = plugin
        .calls
        .iter()
        .map(|(verb, uses)| format!("{verb} {}", uses.ok + uses.failed))
        .collect();
    fact("Calls", &calls.join(", "));
    out.push_str("</dl>\n");
    if !plugin.imports.is_empty() {
        let imports = esc(&plugin.imports.join(", "));
        let count = plugin.imports.len();
        let _ = writeln!(
            out,
            "<details class=\"imports\"><summary>{count} import{}</summary><p>{imports}</p></details>",
            plural(count)
        );
    }
}

fn row(out: &mut String, row: &Row) {
    let class = if row.granted.is_empty() {
        " class=\"none\""
    } else {
        ""
    };
    let _ = write!(
        out,
        "<tr{class}><th scope=\"row\">{}<td data-label=\"Asked\">",
        esc(row.key)
    );
    items(out, &row.asked);
    if let Some(reason) = &row.reason {
        let _ = write!(out, "<p class=\"reason\">{}</p>", esc(reason));
    }
    out.push_str("<td data-label=\"Granted\">");
    items(out, &row.granted);
    if !row.stands_for.is_empty() {
        let _ = write!(
            out,
            "<p class=\"reason\">here: {}</p>",
            esc(&row.stands_for.join(", "))
        );
    }
    let _ = write!(out, "<td data-label=\"Used\">{}", used(&row.uses));
    targets(out, row, |uses| uses.ok + uses.failed);
    let denied = row.uses.denied;
    let class = if denied > 0 { " class=\"denied\"" } else { "" };
    let _ = write!(out, "<td data-label=\"Denied\"{class}>{denied}");
    if let Some(last) = row.uses.last_denied {
        let _ = write!(out, "<br><small>last {last:.0}</small>");
    }
    targets(out, row, |uses| uses.denied);
    out.push_str("</tr>\n");
}

fn used(uses: &Uses) -> String {
    match uses.last_used {
        Some(last) => format!("{}<br><small>last {last:.0}</small>", uses.ok + uses.failed),
        None => "0".to_owned(),
    }
}

fn targets(out: &mut String, row: &Row, count: impl Fn(&Uses) -> u64) {
    let seen: Vec<_> = row
        .targets
        .iter()
        .filter(|one| count(&one.uses) > 0)
        .collect();
    if seen.is_empty() {
        return;
    }
    let _ = write!(
        out,
        "<details><summary>{} target{}</summary><ul>",
        seen.len(),
        plural(seen.len())
    );
    for one in seen {
        let _ = write!(
            out,
            "<li><code>{}</code> {}",
            esc(&one.target),
            count(&one.uses)
        );
    }
    out.push_str("</ul></details>");
}

fn items(out: &mut String, items: &[String]) {
    if items.is_empty() {
        out.push('–');
    }
    for item in items {
        let _ = write!(out, "<code>{}</code> ", esc(item));
    }
}

fn plural(count: usize) -> &'static str {
    if count == 1 { "" } else { "s" }
}

/// Text in HTML; what is invisible or moves its neighbours is spelled out.
fn esc(text: &str) -> String {
    let mut out = String::with_capacity(text.len());
    for c in warren_disk::text::escape(text.as_bytes()).chars() {
        match c {
            '&' => out.push_str("&amp;"),
            '<' => out.push_str("&lt;"),
            '>' => out.push_str("&gt;"),
            '"' => out.push_str("&quot;"),
            '\'' => out.push_str("&#39;"),
            c => out.push(c),
        }
    }
    out
}
