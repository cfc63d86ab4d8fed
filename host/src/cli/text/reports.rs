use std::fmt::Write as _;

use indicatif::HumanBytes;
use warren::ProjectKey;
use warren::service::{
    DisposeReport, InitReport, LostRoot, QuotaReport, SuspendReport, SuspendedRoot, WorkspaceView,
};
use warren::store::Page;
use warren_model::{Loss, LossKind};

use super::{count, failures, lines, safe, table, word};

/// How many lost entries of one RootDir are named.
const LOSSES_SHOWN: usize = 20;

pub(crate) fn workspace(view: &WorkspaceView) -> String {
    let mut out = format!(
        "{}/{}: {} (generation {}), {} on disk, {} in the store, made {}\n",
        safe(&view.tenant),
        safe(&view.project_id),
        word(&view.status),
        view.generation,
        count(view.root_dirs, "RootDir"),
        count(view.snapshots, "Snapshot"),
        safe(&view.created_at),
    );
    if let Some(suspend) = &view.suspend {
        let _ = writeln!(
            out,
            "  suspend {} is {}",
            suspend.generation,
            word(&suspend.state)
        );
    }
    out
}

pub(crate) fn workspaces(page: &Page<WorkspaceView>) -> String {
    let mut table = table(&["PROJECT", "STATUS", "ROOTDIRS", "SNAPSHOTS", "CREATED"]);
    for view in &page.items {
        table.add_row([
            safe(&view.project_id),
            word(&view.status),
            view.root_dirs.to_string(),
            view.snapshots.to_string(),
            safe(&view.created_at),
        ]);
    }
    lines(&table) + &more(page.next.as_deref())
}

/// Where the next page starts.
pub(super) fn more(next: Option<&str>) -> String {
    next.map_or_else(String::new, |next| {
        format!("more: --after {}\n", safe(next))
    })
}

pub(crate) fn brought_up(report: &InitReport) -> String {
    let mut out = workspace(&report.workspace);
    for descriptor in &report.recovered {
        let (name, kind) = (
            descriptor.dir_name.as_str(),
            descriptor.handler_type.as_str(),
        );
        let _ = writeln!(out, "  {} ({}) is back", safe(name), safe(kind));
    }
    out + &failures(&report.failed)
}

pub(crate) fn suspended(key: &ProjectKey, report: &SuspendReport) -> String {
    let project = safe(&key.to_string());
    let mut out = match report.dry_run {
        true => format!("suspending {project} would do this; nothing was changed\n"),
        false => format!("{project} is suspended\n"),
    };
    for root in &report.roots {
        out += &suspended_root(root);
    }
    out += &failures(&report.failed);
    for name in &report.left {
        let _ = writeln!(out, "  left in place: {}", safe(name));
    }
    out
}

fn suspended_root(root: &SuspendedRoot) -> String {
    let mut out = format!(
        "  {} ({})\n",
        safe(root.dir_name.as_str()),
        safe(root.handler_type.as_str())
    );
    for receipt in &root.receipts {
        let place = receipt
            .ref_name
            .as_deref()
            .unwrap_or("what is there already");
        let _ = writeln!(
            out,
            "    kept: {} {} at {}",
            safe(&receipt.url),
            safe(place),
            safe(&receipt.commit)
        );
    }
    if root.receipts.is_empty() {
        out.push_str("    kept: the Descriptor only\n");
    }
    if root.loss.is_empty() {
        out.push_str("    lost: nothing\n");
    }
    for loss in root.loss.iter().take(LOSSES_SHOWN) {
        let _ = writeln!(out, "    {}", lost(loss));
    }
    let hidden = root.loss.len().saturating_sub(LOSSES_SHOWN);
    if hidden > 0 {
        let _ = writeln!(out, "    lost: {hidden} more; `--output json` names them");
    }
    out
}

fn lost(loss: &Loss) -> String {
    let (verb, why) = match loss.kind {
        LossKind::Ignored => ("lost", "ignored"),
        LossKind::EmptyDirectory => ("lost", "an empty directory"),
        LossKind::SpecialFile => ("lost", "no regular file"),
        LossKind::Ref => ("lost", "a ref that is not carried"),
        LossKind::Ephemeral => ("lost", "kept by nobody, by design"),
        LossKind::Rebuilt => ("made again", "on recover"),
    };
    // The path of a loss is escaped where it is made, so that it can be given back.
    let path = warren_disk::text::excerpt(loss.path.as_bytes(), 4096);
    let path = if path.is_empty() {
        ".".to_owned()
    } else {
        path
    };
    match loss.bytes {
        0 => format!("{verb}: {path} ({why})"),
        bytes => format!("{verb}: {path} ({why}, {})", HumanBytes(bytes)),
    }
}

/// What disposing of one RootDir would cost.
fn would_go(lost: &LostRoot) -> String {
    let files = count(usize::try_from(lost.files).unwrap_or(usize::MAX), "file");
    let bytes = HumanBytes(lost.bytes);
    if lost.saved {
        return format!("{files} would go, {bytes}; a remote has all that suspend would save");
    }
    let reason = lost.reason.as_deref().map(safe);
    let reason = reason.map_or_else(String::new, |reason| format!(": {reason}"));
    format!("{files} would be lost, {bytes}{reason}")
}

pub(crate) fn disposed(key: &ProjectKey, report: &DisposeReport) -> String {
    let project = safe(&key.to_string());
    let mut out = match report.dry_run {
        true => format!("disposing in {project} would do this; nothing was changed\n"),
        false => format!(
            "disposed in {project}: {}\n",
            count(report.disposed.len(), "RootDir")
        ),
    };
    for name in &report.disposed {
        let lost = report.lost.iter().find(|lost| lost.dir_name == *name);
        let name = safe(name.as_str());
        let _ = match (report.dry_run, lost) {
            (true, Some(lost)) => writeln!(out, "  {name}: {}", would_go(lost)),
            (true, None) => writeln!(out, "  {name} would go; nothing in it would be lost"),
            (false, _) => writeln!(out, "  {name} is gone"),
        };
    }
    for name in &report.kept {
        let _ = writeln!(out, "  {} is kept", safe(name.as_str()));
    }
    out + &failures(&report.failed)
}

pub(crate) fn quota(report: &QuotaReport) -> String {
    format!(
        "{} of {} used ({} %), {} available; inodes {} % used\n\
         warnings from {} %, creates refused from {} %: {}\n",
        HumanBytes(report.bytes_used),
        HumanBytes(report.bytes_total),
        report.bytes_used_percent,
        HumanBytes(report.bytes_available),
        report.inodes_used_percent,
        report.soft_limit_percent,
        report.hard_limit_percent,
        report.verdict,
    )
}

/// Files whose content was accepted.
pub(crate) fn resealed(files: &[String]) -> String {
    match files {
        [] => "every file has the host's seal already\n".to_owned(),
        files => files
            .iter()
            .map(|file| format!("sealed {}\n", safe(file)))
            .collect(),
    }
}

#[cfg(test)]
mod tests {
    use warren::service::{SuspendReport, SuspendedRoot};
    use warren_model::{Loss, LossKind, Receipt};

    use super::*;

    fn key() -> ProjectKey {
        ProjectKey {
            tenant: "default".parse().unwrap(),
            project: "p".parse().unwrap(),
        }
    }

    #[test]
    fn a_dry_run_names_what_is_kept_and_what_is_lost() {
        let root = |name: &str, receipts, loss| SuspendedRoot {
            dir_name: name.parse().unwrap(),
            handler_type: "git".parse().unwrap(),
            receipts,
            loss,
        };
        let receipt = Receipt {
            url: "https://h.example/r".into(),
            ref_name: Some("refs/heads/vance/suspend/a".into()),
            commit: "abc".into(),
        };
        let loss = |n: u64| Loss {
            kind: LossKind::Ignored,
            path: format!("target/%1B{n}"),
            bytes: 2048,
        };
        let report = SuspendReport {
            dry_run: true,
            generation: None,
            roots: vec![
                root("a", vec![receipt], Vec::new()),
                root("b", Vec::new(), (0..22).map(loss).collect()),
            ],
            failed: Vec::new(),
            left: Vec::new(),
        };
        let text = suspended(&key(), &report);
        assert!(
            text.starts_with(
                "suspending default/p would do this; nothing was changed\n  a (git)\n    \
             kept: https://h.example/r refs/heads/vance/suspend/a at abc\n    lost: nothing\n  \
             b (git)\n    kept: the Descriptor only\n    \
             lost: target/%1B0 (ignored, 2.00 KiB)\n"
            ),
            "{text}"
        );
        assert!(
            text.ends_with("    lost: 2 more; `--output json` names them\n"),
            "{text}"
        );
    }

    #[test]
    fn a_dispose_says_what_would_go_and_what_stays() {
        let report = DisposeReport {
            dry_run: true,
            disposed: vec!["a".parse().unwrap()],
            kept: vec!["b".parse().unwrap()],
            ..DisposeReport::default()
        };
        assert_eq!(
            disposed(&key(), &report),
            "disposing in default/p would do this; nothing was changed\n  \
             a would go; nothing in it would be lost\n  b is kept\n"
        );
    }
}
