//! `warren demo`: the whole life of a Workspace on a real repository, with proof at the end.

mod report;
mod repository;
mod scene;

use serde_json::json;
use warren::service::Service;
use warren::{Error, ProjectKey};

use super::args::{Demo, Global};
use super::console::{Console, Reply};
use super::error::CliError;
use super::text;
use report::Report;
use repository::Fingerprint;
use scene::{Root, Scene};

/// Runs it, prints each step, and fails when anything comes back other than it was.
pub(super) async fn run(
    global: &Global,
    args: &Demo,
    console: &Console,
) -> Result<Reply, CliError> {
    let mut report = Report::new(console.is_json());
    let scene = Scene::new(global, args)?;
    report.note(&format!("working in {}", scene.base().display()));
    let outcome = live(&scene, console, &mut report).await;
    let kept = scene.end(args.keep)?;
    outcome?;
    match kept {
        Some(path) => report.note(&format!("everything is kept in {}", path.display())),
        None => report.done("cleaned up; nothing of the demo is left on this machine"),
    }
    let value = json!({ "steps": report.steps(), "equal": true });
    Reply::new(
        &value,
        "Equal in every point: the work is back in another place.\n".to_owned(),
    )
}

async fn live(scene: &Scene, console: &Console, report: &mut Report) -> Result<(), CliError> {
    if let Some(files) = scene.made() {
        report.done(&format!(
            "made a repository: {files} files, one executable, one link"
        ));
    }
    let key = ProjectKey {
        tenant: warren_model::DEFAULT_TENANT.parse()?,
        project: "demo".parse()?,
    };
    let service = scene.open(scene.first(), console).await?;
    report.done("started the host; temp, git and python are wasm components");
    service.init(&key).await?;
    let roots = create(&service, &key, scene, report).await?;
    let before = work(&roots, report)?;
    let plan = service.suspend_all(&key, true).await?;
    report.done("asked what suspend would do:");
    report.quote(&text::suspended(&key, &plan));
    let suspended = service.suspend_all(&key, false).await?;
    report.done(&format!("suspended {} RootDirs", suspended.roots.len()));
    if scene.made().is_none() {
        for receipt in suspended.roots.iter().flat_map(|root| &root.receipts) {
            if let Some(name) = &receipt.ref_name {
                report.note(&format!(
                    "the remote now has `{name}`; nobody deletes it but you"
                ));
            }
        }
    }
    // Another host is to bring it back: nothing of this one may help.
    drop(service);
    let left = scene::entries(scene.first())?;
    if !left.is_empty() {
        return Err(failed(&format!(
            "the workspace root still holds {}",
            left.join(", ")
        )));
    }
    report.done(&format!(
        "the folder is gone: {} is empty",
        scene.first().display()
    ));
    let service = scene.open(scene.second(), console).await?;
    let back = service.init(&key).await?;
    if let Some(failure) = back.failed.first() {
        return Err(failed(&format!(
            "`{}` did not come back: {}",
            failure.dir_name, failure.message
        )));
    }
    let place = scene.second().display();
    report.done(&format!(
        "recovered {} RootDirs into {place}",
        back.recovered.len()
    ));
    compare(&service, &key, &roots, &before, report).await?;
    if !scene.keeps() {
        service
            .dispose(&key, warren::service::DisposeOptions::default())
            .await?;
        report.done("disposed of the Workspace");
    }
    Ok(())
}

async fn create(
    service: &Service,
    key: &ProjectKey,
    scene: &Scene,
    report: &mut Report,
) -> Result<Vec<Root>, CliError> {
    let mut roots = Vec::new();
    for kind in ["temp", "git", "python"] {
        match service.create_root_dir(key, scene.spec(kind)?).await {
            Ok(made) => {
                let path = service.root_dir_path(key, &made.dir_name).await?;
                report.done(&format!("made RootDir `{}` of type {kind}", made.dir_name));
                roots.push(Root::new(kind, made.dir_name, path));
            }
            // A Pod without a Python can show all the rest.
            Err(error) if kind == "python" && error.code() == "ProgramMissing" => {
                report.note(&format!(
                    "no python RootDir: {}",
                    warren::error::chain(&error)
                ));
            }
            Err(error) => return Err(error.into()),
        }
    }
    Ok(roots)
}

/// Leaves work of every kind in the RootDirs; what they look like then.
fn work(roots: &[Root], report: &mut Report) -> Result<Vec<Option<Fingerprint>>, CliError> {
    let mut prints = Vec::new();
    for root in roots {
        if !root.has_git() {
            let file = root.path().join("scratch.txt");
            std::fs::write(&file, "gone tomorrow\n").map_err(CliError::io("write a temp file"))?;
            report.done(&format!("wrote a file into `{}`", root.name()));
            prints.push(None);
            continue;
        }
        repository::work(root.path()).map_err(|error| broken(root, &error))?;
        let print = Fingerprint::of(root.path())?;
        report.done(&format!(
            "worked in `{}`: a commit, a branch, staged and unstaged edits, untracked files, a link",
            root.name()
        ));
        report.quote(&print.status());
        prints.push(Some(print));
    }
    Ok(prints)
}

async fn compare(
    service: &Service,
    key: &ProjectKey,
    roots: &[Root],
    before: &[Option<Fingerprint>],
    report: &mut Report,
) -> Result<(), CliError> {
    for (root, before) in roots.iter().zip(before) {
        let path = match service.root_dir_path(key, root.name()).await {
            Ok(path) => path,
            Err(Error::RootDirNotFound(name)) => {
                return Err(failed(&format!("`{name}` is missing")));
            }
            Err(error) => return Err(error.into()),
        };
        let Some(before) = before else {
            let left = scene::entries(&path)?;
            if !left.is_empty() {
                return Err(failed(&format!("`{}` is not empty", root.name())));
            }
            report.done(&format!(
                "`{}` is back and empty: temp keeps nothing, by design",
                root.name()
            ));
            continue;
        };
        let after = Fingerprint::of(&path)?;
        if let Some(difference) = before.difference(&after) {
            return Err(failed(&format!("`{}` differs: {difference}", root.name())));
        }
        report.done(&format!(
            "`{}` is equal: HEAD, branches, status of every path, {}",
            root.name(),
            after.digest()
        ));
        if root.is_python() {
            if std::fs::metadata(path.join(".venv/bin/python")).is_err() {
                return Err(failed(&format!("`{}` has no environment", root.name())));
            }
            report.done(&format!("`{}` has a new virtual environment", root.name()));
        }
    }
    Ok(())
}

fn broken(root: &Root, error: &git2::Error) -> CliError {
    failed(&format!(
        "cannot work in `{}`: {}",
        root.name(),
        error.message()
    ))
}

fn failed(reason: &str) -> CliError {
    CliError::Demo(reason.to_owned())
}
