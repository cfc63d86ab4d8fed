//! Asking the log.

use std::collections::VecDeque;
use std::ops::ControlFlow;

use jiff::Timestamp;
use warren_disk::Dir;

use crate::entry::{Outcome, Record};
use crate::error::AuditError;
use crate::scan::{Line, Scan};

/// Which records; nothing set: all.
#[derive(Debug, Clone, Default)]
pub struct Filter {
    /// Written at this time or later.
    pub from: Option<Timestamp>,
    /// Written before this time.
    pub until: Option<Timestamp>,
    /// Of this tenant.
    pub tenant: Option<String>,
    /// Of this Project.
    pub project: Option<String>,
    /// Of this RootDir.
    pub dir_name: Option<String>,
    /// Of handlers of this type.
    pub handler: Option<String>,
    /// Of the component with this digest, or whose digest starts so.
    pub plugin: Option<String>,
    /// Of this call.
    pub call: Option<String>,
    /// Of this capability.
    pub capability: Option<String>,
    /// With this outcome.
    pub outcome: Option<Outcome>,
    /// With this text in verb, target, code or detail, in any case.
    pub text: Option<String>,
}

impl Filter {
    /// Whether a record is one of those.
    pub fn matches(&self, record: &Record) -> bool {
        let is = |wanted: &Option<String>, found: Option<&str>| match wanted {
            Some(wanted) => found == Some(wanted),
            None => true,
        };
        let plugin = record.plugin.as_deref().unwrap_or_default();
        self.from.is_none_or(|from| record.at >= from)
            && self.until.is_none_or(|until| record.at < until)
            && is(&self.tenant, record.tenant.as_deref())
            && is(&self.project, record.project.as_deref())
            && is(&self.dir_name, record.dir_name.as_deref())
            && is(&self.handler, record.handler.as_deref())
            && is(&self.call, record.call.as_deref())
            && is(&self.capability, Some(&record.capability))
            && self
                .plugin
                .as_ref()
                .is_none_or(|start| plugin.starts_with(start.as_str()))
            && self.outcome.is_none_or(|outcome| record.outcome == outcome)
            && self.text.as_ref().is_none_or(|text| contains(record, text))
    }
}

fn contains(record: &Record, text: &str) -> bool {
    let text = text.to_lowercase();
    let texts = [&record.target, &record.code, &record.detail];
    let mut all = texts.into_iter().flatten().chain([&record.verb]);
    all.any(|found| found.to_lowercase().contains(&text))
}

/// Some records, in the order in which they were written.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct Page {
    /// The records.
    pub records: Vec<Record>,
    /// Number of the last record when there are more; the next page comes after it.
    pub next: Option<u64>,
    /// Lines that are no records; [`crate::verify()`] says which, and why.
    pub unreadable: u64,
}

/// The records that match and come after number `after`, at most `limit`.
///
/// # Errors
/// When the log cannot be read. One that is not there is empty.
pub fn read(state: &Dir, filter: &Filter, after: u64, limit: usize) -> Result<Page, AuditError> {
    let mut page = Page::default();
    let Some(mut scan) = Scan::begin(state)? else {
        return Ok(page);
    };
    scan.skip_to(after.saturating_add(1))?;
    page.unreadable = each(scan, |record| {
        if record.seq <= after || !filter.matches(&record) {
            return ControlFlow::Continue(());
        }
        if page.records.len() == limit {
            page.next = page.records.last().map(|last| last.seq);
            return ControlFlow::Break(());
        }
        page.records.push(record);
        ControlFlow::Continue(())
    })?;
    Ok(page)
}

/// The last records that match, at most `limit`.
///
/// # Errors
/// When the log cannot be read.
pub fn last(state: &Dir, filter: &Filter, limit: usize) -> Result<Page, AuditError> {
    let mut kept = VecDeque::with_capacity(limit.min(1024));
    let Some(mut scan) = Scan::begin(state)? else {
        return Ok(Page::default());
    };
    if filter.is_all() {
        scan.skip_to_last(limit as u64)?;
    }
    let unreadable = each(scan, |record| {
        if limit > 0 && filter.matches(&record) {
            if kept.len() == limit {
                kept.pop_front();
            }
            kept.push_back(record);
        }
        ControlFlow::Continue(())
    })?;
    Ok(Page {
        records: kept.into(),
        next: None,
        unreadable,
    })
}

impl Filter {
    fn is_all(&self) -> bool {
        let Self {
            from: None,
            until: None,
            tenant: None,
            project: None,
            dir_name: None,
            handler: None,
            plugin: None,
            call: None,
            capability: None,
            outcome: None,
            text: None,
        } = self
        else {
            return false;
        };
        true
    }
}

/// Shows every record that matches to `see`; returns how many lines are no records.
///
/// # Errors
/// When the log cannot be read.
pub fn visit(state: &Dir, filter: &Filter, mut see: impl FnMut(Record)) -> Result<u64, AuditError> {
    let Some(scan) = Scan::begin(state)? else {
        return Ok(0);
    };
    each(scan, |record| {
        if filter.matches(&record) {
            see(record);
        }
        ControlFlow::Continue(())
    })
}

fn each(mut scan: Scan, mut see: impl FnMut(Record) -> ControlFlow<()>) -> Result<u64, AuditError> {
    let mut unreadable = 0;
    while let Some((_, line)) = scan.next()? {
        match line {
            Line::Record(record) => {
                if see(*record).is_break() {
                    break;
                }
            }
            Line::Other(_) => unreadable += 1,
        }
    }
    Ok(unreadable)
}
