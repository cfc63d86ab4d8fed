//! `warren workspace …`

use serde_json::json;
use warren::service::{DisposeOptions, InitReport, Service};
use warren_model::TenantId;

use super::super::args::{Disposal, Workspace};
use super::super::console::Reply;
use super::super::error::CliError;
use super::super::{exit, text};
use super::key;

pub(super) async fn run(service: &Service, command: &Workspace) -> Result<Reply, CliError> {
    match command {
        Workspace::Init { project, take_over } => {
            let key = key(project)?;
            if *take_over {
                service.take_over(&key).await?;
            }
            brought_up(&service.init(&key).await?)
        }
        Workspace::Recover(project) => brought_up(&service.recover_all(&key(project)?).await?),
        Workspace::Get(project) => {
            let view = service.get(&key(project)?).await?;
            Reply::new(&view, text::workspace(&view))
        }
        Workspace::List { tenant, page } => {
            let tenant: TenantId = tenant.parse()?;
            let limit = usize::from(page.limit);
            let list = service
                .list(tenant.as_str(), page.after.clone(), limit)
                .await?;
            let value = json!({ "items": list.items, "next": list.next });
            Reply::new(&value, text::workspaces(&list))
        }
        Workspace::Suspend { project, dry_run } => {
            let key = key(project)?;
            let report = service.suspend_all(&key, *dry_run).await?;
            let refused = report.failed.first().map(|failure| exit::of(failure.code));
            let reply = Reply::new(&report, text::suspended(&key, &report))?;
            Ok(reply.with_exit(refused.unwrap_or(exit::OK)))
        }
        Workspace::Reseal(project) => {
            let resealed = service.reseal(&key(project)?).await?;
            let text = text::resealed(&resealed);
            Reply::new(&json!({ "resealed": resealed }), text)
        }
        Workspace::Dispose { project, how } => {
            let key = key(project)?;
            let report = service.dispose(&key, options(how)).await?;
            disposed(&key, &report)
        }
    }
}

fn brought_up(report: &InitReport) -> Result<Reply, CliError> {
    let exit = if report.failed.is_empty() {
        exit::OK
    } else {
        exit::PARTIAL
    };
    Ok(Reply::new(report, text::brought_up(report))?.with_exit(exit))
}

pub(super) fn options(how: &Disposal) -> DisposeOptions {
    DisposeOptions {
        dry_run: how.dry_run,
        force: how.force,
    }
}

pub(super) fn disposed(
    key: &warren::ProjectKey,
    report: &warren::service::DisposeReport,
) -> Result<Reply, CliError> {
    let exit = if report.failed.is_empty() {
        exit::OK
    } else {
        exit::PARTIAL
    };
    Ok(Reply::new(report, text::disposed(key, report))?.with_exit(exit))
}
