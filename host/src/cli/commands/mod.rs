//! One module a noun.

mod audit;
mod config;
mod plugin;
mod policy;
mod rootdir;
mod temp;
mod workspace;

use clap::CommandFactory;
use warren::ProjectKey;
use warren::config::Opened;

use super::args::{Cli, Command, Project, Python};
use super::console::{Console, Reply, safe};
use super::error::CliError;
use super::{demo, exit, load_config, progress, text};

/// Runs the command that was asked for.
pub(super) async fn run(cli: &Cli, console: &Console) -> Result<Reply, CliError> {
    let open = || open(cli, console);
    match &cli.command {
        Command::Workspace(command) => workspace::run(&open().await?.service, command).await,
        Command::Rootdir(command) => rootdir::run(&open().await?.service, command).await,
        Command::Temp(command) => temp::run(&open().await?.service, command).await,
        Command::Workdir(command) => temp::workdir(&open().await?.service, command).await,
        Command::Python(Python::Rebuild {
            project,
            dir_name,
            python,
        }) => {
            let service = open().await?.service;
            let (key, dir_name) = (key(project)?, dir_name.parse()?);
            let made = service
                .rebuild_venv(&key, &dir_name, python.as_deref())
                .await?;
            let said = format!("rebuilt the environment of {}\n", safe(dir_name.as_str()));
            Reply::new(&made, said + &text::metadata(&made))
        }
        Command::Plugin(command) => plugin::run(cli, console, command).await,
        Command::Audit(command) => audit::run(&cli.global, console, command).await,
        Command::Policy(command) => policy::run(cli, command),
        Command::Quota => {
            let report = open().await?.service.quota()?;
            Reply::new(&report, text::quota(&report))
        }
        Command::Doctor => {
            let report = warren::doctor::examine(&load_config(&cli.global)?).await;
            let reply = Reply::new(&report, text::doctor(&report))?;
            Ok(match report.fit {
                true => reply,
                false => reply.with_exit(exit::HANDLER),
            })
        }
        Command::Config(command) => config::run(&load_config(&cli.global)?, command),
        Command::Demo(command) => demo::run(&cli.global, command, console).await,
        Command::Completions { shell } => {
            let mut script = Vec::new();
            clap_complete::generate(*shell, &mut Cli::command(), "warren", &mut script);
            let script = String::from_utf8_lossy(&script).into_owned();
            Reply::new(&script.clone(), script)
        }
    }
}

async fn open(cli: &Cli, console: &Console) -> Result<Opened, CliError> {
    let mut opened = load_config(&cli.global)?.open().await?;
    if let Some(sink) = progress::sink(console) {
        opened.service = opened.service.with_progress(sink);
    }
    Ok(opened)
}

fn key(project: &Project) -> Result<ProjectKey, CliError> {
    Ok(ProjectKey {
        tenant: project.tenant.parse()?,
        project: project.project.parse()?,
    })
}
