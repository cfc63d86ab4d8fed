//! `warren temp …` and `warren workdir …`

use serde_json::Value;
use warren::service::Service;
use warren_model::CreatorId;

use super::super::args::{Temp, TempArgs, Who, Workdir};
use super::super::console::{Reply, safe};
use super::super::error::CliError;
use super::key;
use super::rootdir::shown;

pub(super) async fn run(service: &Service, command: &Temp) -> Result<Reply, CliError> {
    let (Temp::File(args) | Temp::Dir(args)) = command;
    let TempArgs {
        project,
        creator,
        prefix,
        suffix,
    } = args;
    let (key, creator): (_, CreatorId) = (key(project)?, creator.parse()?);
    let entry = match command {
        Temp::File(_) => {
            service
                .create_temp_file(&key, &creator, prefix, suffix)
                .await?
        }
        Temp::Dir(_) => {
            service
                .create_temp_directory(&key, &creator, prefix, suffix)
                .await?
        }
    };
    let said = format!("{}\n", safe(&entry.path.to_string_lossy()));
    Reply::new(&entry, said)
}

pub(super) async fn workdir(service: &Service, command: &Workdir) -> Result<Reply, CliError> {
    let (Workdir::Set { who, .. } | Workdir::Get(who) | Workdir::Clear(who)) = command;
    let Who { project, creator } = who;
    let (key, creator): (_, CreatorId) = (key(project)?, creator.parse()?);
    match command {
        Workdir::Set { dir_name, .. } => {
            let set = service
                .set_working_dir(&key, &creator, &dir_name.parse()?)
                .await?;
            shown(service, &key, &set).await
        }
        Workdir::Get(_) => match service.get_working_dir(&key, &creator).await? {
            Some(found) => shown(service, &key, &found).await,
            None => Reply::new(&Value::Null, "no working directory\n".to_owned()),
        },
        Workdir::Clear(_) => {
            service.clear_working_dir(&key, &creator).await?;
            Reply::new(&Value::Null, "no working directory\n".to_owned())
        }
    }
}
