//! The `git` handler: a fork of a git remote, saved there by suspend.

use warren_sdk::worktree::{self, Settings};
use warren_sdk::{Description, Error, Handler, Metadata, Root, Suspended};

/// Keeps a fork of a git remote.
pub struct Git;

impl Handler for Git {
    type Settings = Settings;

    fn describe() -> Description {
        Description::new(
            "git",
            env!("CARGO_PKG_VERSION"),
            "A fork of a git remote, saved on a branch of that remote",
        )
    }

    fn init(_: &Root, mut spec: Metadata<Settings>) -> Result<Metadata<Settings>, Error> {
        worktree::init(&mut spec)?;
        Ok(spec)
    }

    fn suspend(root: &Root, mut current: Metadata<Settings>) -> Result<Suspended<Settings>, Error> {
        let loss = worktree::suspend(root, &mut current)?;
        Ok(Suspended {
            metadata: current,
            loss,
        })
    }

    fn recover(_: &Root, mut saved: Metadata<Settings>) -> Result<Metadata<Settings>, Error> {
        worktree::recover(&mut saved)?;
        Ok(saved)
    }

    fn close(root: &Root, current: Metadata<Settings>) -> Result<(), Error> {
        worktree::close(root, &current)
    }
}

warren_sdk::export_handler!(Git, manifest = "manifest.toml");

#[cfg(test)]
mod tests {
    use super::*;
    use warren_sdk::testing::{FakeRepo, Host};

    #[test]
    fn a_life_from_init_to_close() {
        let host = Host::new();
        let root = host.root_named("docs");
        let repo = FakeRepo::new().install(&host);
        let spec = r#"{"repoUrl":"https://h/r","commitOnClose":true,"team":"x"}"#;
        let made = Git::init(&root, Metadata::from_json(spec).unwrap()).unwrap();
        assert_eq!(made.commit.as_deref(), Some("base"));
        let suspended = Git::suspend(&root, made).unwrap();
        let text = suspended.metadata.to_json().unwrap();
        let expected = serde_json::json!({
            "repoUrl": "https://h/r", "branch": "main", "commit": "base",
            "suspendBranch": "vance/suspend/docs", "suspendCommit": "snap",
            "commitOnClose": true, "team": "x"
        });
        assert_eq!(text.parse::<serde_json::Value>().unwrap(), expected);
        let back = Git::recover(&root, Metadata::from_json(&text).unwrap()).unwrap();
        assert_eq!(back.suspend_commit.as_deref(), Some("snap"));
        repo.borrow_mut().status.unpushed = 1;
        repo.borrow_mut().status.head.commit = Some("local".to_owned());
        Git::close(&root, back).unwrap();
        assert_eq!(repo.borrow().refs["refs/heads/main"], "local");
    }

    #[test]
    fn without_a_remote_it_refuses() {
        let host = Host::new();
        let error = Git::init(&host.root_named("docs"), Metadata::default()).unwrap_err();
        assert_eq!(error, Error::invalid_metadata("repoUrl", "missing"));
    }

    #[test]
    fn an_option_that_does_not_exist_names_its_key() {
        let error = Metadata::<Settings>::from_json(r#"{"repoUrl":"u","recoverAs":"magic"}"#);
        assert!(matches!(error, Err(Error::InvalidMetadata(i)) if i.key == "recoverAs"));
    }
}
