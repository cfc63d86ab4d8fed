//! `warren audit …`: it reads the state directory and starts nothing.

use std::io;
use std::time::Duration;

use jiff::{SignedDuration, Timestamp};
use serde_json::json;
use warren_audit::{Filter, Page, Verdict, last, read, verify};
use warren_disk::Dir;

use super::super::args::Global;
use super::super::args::audit::{Audit as Command, Period, Which};
use super::super::console::{Console, Reply};
use super::super::error::CliError;
use super::super::{exit, load_config, text};

/// How often the log is looked at for more.
const FOLLOW_PAUSE: Duration = Duration::from_millis(250);

/// Records that are shown at a time while following.
const FOLLOW_PAGE: usize = 1000;

pub(super) async fn run(
    global: &Global,
    console: &Console,
    command: &Command,
) -> Result<Reply, CliError> {
    let path = load_config(global)?.state_dir.value;
    let state = match warren_disk::open_root(&path) {
        Ok(state) => state,
        Err(error) => {
            return Err(CliError::io(format!(
                "open the state directory `{}`",
                path.display()
            ))(error));
        }
    };
    match command {
        Command::Tail {
            lines,
            follow,
            which,
        } => {
            let filter = filter(which)?;
            let page = last(&state, &filter, *lines)?;
            if *follow {
                return follow_log(&state, &filter, console, page).await;
            }
            reply(&page)
        }
        Command::Search {
            which,
            limit,
            after,
        } => reply(&read(&state, &filter(which)?, *after, (*limit).into())?),
        Command::Verify { pin } => {
            let found = verify(&state, pin.as_ref())?;
            let verdict = found.verdict();
            let mut value = json!(found);
            value["verdict"] = json!(verdict);
            let reply = Reply::new(&value, text::verified(&found, pin.as_ref()))?;
            Ok(match verdict {
                Verdict::Intact => reply,
                Verdict::Broken => reply.with_exit(exit::INTERNAL),
            })
        }
    }
}

fn reply(page: &Page) -> Result<Reply, CliError> {
    let value = json!({
        "items": page.records,
        "next": page.next,
        "unreadable": page.unreadable,
    });
    Reply::new(&value, text::records(page))
}

/// Prints records as they come, in JSON one a line. A signal ends it.
async fn follow_log(
    state: &Dir,
    filter: &Filter,
    console: &Console,
    first: Page,
) -> Result<Reply, CliError> {
    // What is filtered out must not be read again and again.
    let newest = last(state, &Filter::default(), 1)?.records.pop();
    let mut after = newest.map_or(0, |record| record.seq);
    let mut page = first;
    loop {
        for record in &page.records {
            let line = match console.is_json() {
                true => serde_json::to_string(record)? + "\n",
                false => text::record(record),
            };
            match console.stream(&line) {
                Ok(()) => {}
                Err(error) if error.kind() == io::ErrorKind::BrokenPipe => {
                    return Reply::new(&(), String::new());
                }
                Err(error) => return Err(CliError::io("write to stdout")(error)),
            }
        }
        if page.records.len() < FOLLOW_PAGE {
            tokio::time::sleep(FOLLOW_PAUSE).await;
        }
        let shown = page.records.last().map_or(0, |record| record.seq);
        after = after.max(shown);
        page = read(state, filter, after, FOLLOW_PAGE)?;
    }
}

fn filter(which: &Which) -> Result<Filter, CliError> {
    let (from, until) = period(&which.when)?;
    Ok(Filter {
        from,
        until,
        tenant: which.tenant.clone(),
        project: which.project.clone(),
        dir_name: which.dir_name.clone(),
        handler: which.handler.clone(),
        plugin: which.plugin.clone(),
        call: which.call.clone(),
        capability: which.capability.clone(),
        outcome: which.outcome.map(Into::into),
        text: which.text.clone(),
    })
}

/// From when, and until when.
pub(super) fn period(when: &Period) -> Result<(Option<Timestamp>, Option<Timestamp>), CliError> {
    let now = Timestamp::now();
    let time = |flag, text: &Option<String>| {
        text.as_deref()
            .map(|text| time(text, now).ok_or_else(|| bad_time(flag, text)))
            .transpose()
    };
    Ok((time("--since", &when.since)?, time("--until", &when.until)?))
}

fn bad_time(flag: &str, text: &str) -> CliError {
    let shown = warren_disk::text::excerpt(text.as_bytes(), 100);
    CliError::Argument(format!("`{flag} {shown}` is no time"))
}

/// A moment, a day of UTC, or so long before `now`.
fn time(text: &str, now: Timestamp) -> Option<Timestamp> {
    let start = |day: Timestamp| {
        format!("{}T00:00:00Z", day.strftime("%Y-%m-%d"))
            .parse()
            .ok()
    };
    let before = |hours: i64| now.checked_sub(SignedDuration::from_hours(hours)).ok();
    match text {
        "now" => return Some(now),
        "today" => return start(now),
        "yesterday" => return start(before(24)?),
        _ => {}
    }
    if let Ok(moment) = text.parse() {
        return Some(moment);
    }
    if let Ok(moment) = format!("{text}T00:00:00Z").parse() {
        return Some(moment);
    }
    let unit = text.chars().last()?;
    let number: u32 = text.strip_suffix(unit)?.parse().ok()?;
    match unit {
        'm' => now
            .checked_sub(SignedDuration::from_mins(number.into()))
            .ok(),
        'h' => before(number.into()),
        'd' => before(i64::from(number) * 24),
        _ => None,
    }
}

#[cfg(test)]
mod tests {
    use super::time;

    #[test]
    fn times_are_moments_days_or_so_long_ago() {
        let now = "2026-03-01T10:20:30Z".parse().unwrap();
        for (text, want) in [
            ("2026-01-31T12:00:00Z", "2026-01-31T12:00:00Z"),
            ("2026-01-31", "2026-01-31T00:00:00Z"),
            ("today", "2026-03-01T00:00:00Z"),
            ("yesterday", "2026-02-28T00:00:00Z"),
            ("now", "2026-03-01T10:20:30Z"),
            ("90m", "2026-03-01T08:50:30Z"),
            ("12h", "2026-02-28T22:20:30Z"),
            ("7d", "2026-02-22T10:20:30Z"),
        ] {
            assert_eq!(time(text, now), Some(want.parse().unwrap()), "{text}");
        }
        for bad in ["", "x", "7", "d", "-1d", "2026-13-01", "7y", "\u{e9}"] {
            assert_eq!(time(bad, now), None, "{bad}");
        }
    }
}
