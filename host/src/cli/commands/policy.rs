//! `warren policy …`

use serde_json::json;
use warren::config::read_policy;

use super::super::args::{Cli, Policy as Command};
use super::super::console::{Reply, safe};
use super::super::error::CliError;
use super::super::load_config;

pub(super) fn run(cli: &Cli, command: &Command) -> Result<Reply, CliError> {
    match command {
        Command::Show => {
            let config = load_config(&cli.global)?;
            let policy = config.policy()?;
            let text = policy.to_toml().map_err(|error| CliError::Unusable {
                file: "the policy".to_owned(),
                reason: error.to_string(),
            })?;
            let from = match &config.policy_file.value {
                Some(path) => format!("# {} over what is shipped\n", safe(&path.to_string_lossy())),
                None => "# as it is shipped\n".to_owned(),
            };
            let value = json!({ "file": config.policy_file.value, "policy": policy });
            Reply::new(&value, from + &text)
        }
        Command::Schema => {
            let schema = warren_policy::schema();
            let text = serde_json::to_string_pretty(&schema)? + "\n";
            Reply::new(&schema, text)
        }
        Command::Check { file } => {
            let policy = read_policy(file)?;
            let types: Vec<_> = policy.plugin.keys().collect();
            let value = json!({ "file": file, "types": types });
            Reply::new(
                &value,
                format!("{} is a policy\n", safe(&file.to_string_lossy())),
            )
        }
    }
}
