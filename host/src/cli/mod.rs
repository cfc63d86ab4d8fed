//! The program `warren`: reads the command line, runs one operation, prints what came of it.

mod args;
mod commands;
mod console;
mod demo;
mod error;
mod exit;
mod progress;
mod text;

use std::process::ExitCode;
use std::time::Duration;

use clap::Parser;
use tokio::signal::unix::{SignalKind, signal};
use warren::config::{Config, Overrides, Surroundings};

use args::{Cli, Global};
use console::{Console, Reply};
use error::CliError;

/// How long work in the background may go on after the command has ended.
const STOP_GRACE: Duration = Duration::from_secs(2);

/// Runs one command.
pub(crate) fn main() -> ExitCode {
    let cli = match Cli::try_parse() {
        Ok(cli) => cli,
        Err(error) => return console::usage(&error).into(),
    };
    let console = Console::new(&cli.global);
    console.start_logging(&cli.global);
    let runtime = tokio::runtime::Builder::new_multi_thread()
        .enable_all()
        .build();
    let outcome = match runtime {
        Ok(runtime) => {
            let outcome = runtime.block_on(run(&cli, &console));
            runtime.shutdown_timeout(STOP_GRACE);
            outcome
        }
        Err(error) => Err(CliError::io("start the async runtime")(error)),
    };
    console.finish(outcome).into()
}

async fn run(cli: &Cli, console: &Console) -> Result<Reply, CliError> {
    let listen = |kind| signal(kind).map_err(CliError::io("listen for signals"));
    let (mut interrupt, mut terminate) = (
        listen(SignalKind::interrupt())?,
        listen(SignalKind::terminate())?,
    );
    // Dropping the command stops it where it is: what it left is what a crash leaves, and less.
    tokio::select! {
        outcome = commands::run(cli, console) => outcome,
        _ = interrupt.recv() => Err(CliError::Stopped(exit::INTERRUPTED)),
        _ = terminate.recv() => Err(CliError::Stopped(exit::TERMINATED)),
    }
}

fn load_config(global: &Global) -> Result<Config, CliError> {
    let overrides = Overrides {
        workspace_root: global.workspace_root.clone(),
        state_dir: global.state_dir.clone(),
        config: global.config.clone(),
        policy: global.policy.clone(),
    };
    let env = |name: &str| std::env::var_os(name);
    Ok(Config::load(&overrides, &Surroundings::of_platform(&env))?)
}
