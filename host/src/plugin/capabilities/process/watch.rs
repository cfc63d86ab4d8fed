//! The disk while a child runs: it asks nobody before it writes, so that it is looked at.

use std::sync::Arc;
use std::time::Duration;

use cap_std::fs::Dir;
use tokio::time::{Instant, sleep};
use warren_disk::budget::{Budget, Short};
use warren_process::ProcessError;

use super::home::Home;

/// Between two looks; longer when a look takes long.
const PAUSE: Duration = Duration::from_millis(500);

/// A look takes at most one part in so many of the time.
const SHARE: u32 = 10;

/// Looks that may fail one after the other: a tree that is in motion cannot always be walked.
const FAILURES_MAX: u32 = 5;

/// What is watched: a RootDir and the children's folder, against one budget.
pub(super) struct Watched {
    budget: Budget,
    root: Dir,
    home: Arc<Home>,
    /// Of the children's folder, as it was counted last.
    home_used: (u64, u64),
}

impl Watched {
    pub(super) fn new(budget: Budget, root: &Dir, home: &Arc<Home>) -> std::io::Result<Self> {
        Ok(Self {
            budget,
            root: root.try_clone()?,
            home: Arc::clone(home),
            home_used: (0, 0),
        })
    }

    /// Ends with an error as soon as too much is used.
    pub(super) async fn over(&mut self) -> ProcessError {
        let mut pause = PAUSE;
        let mut failures = 0;
        loop {
            sleep(pause).await;
            let start = Instant::now();
            match self.look().await {
                Ok(()) => failures = 0,
                Err(Short::Walk(_)) if failures < FAILURES_MAX => failures += 1,
                Err(short) => return error(short),
            }
            pause = PAUSE.max(start.elapsed() * SHARE);
        }
    }

    /// After the child's end: the budget counts what it has left, and that is not too much.
    pub(super) async fn settle(&mut self) -> Result<(), ProcessError> {
        self.look().await.map_err(error)
    }

    async fn look(&mut self) -> Result<(), Short> {
        if self.budget.is_unlimited() {
            return Ok(());
        }
        let (budget, home) = (self.budget.clone(), Arc::clone(&self.home));
        let root = self.root.try_clone().map_err(Short::Space)?;
        let before = self.home_used;
        let looked = tokio::task::spawn_blocking(move || {
            let used = home.used().map_err(Short::Walk)?;
            budget.charge(used.0, used.1);
            budget.give_back(before.0, before.1);
            let checked = budget.remeasure(&root).and_then(|_| budget.check());
            Ok::<_, Short>((used, checked))
        });
        let (used, checked) = looked
            .await
            .map_err(|error| Short::Space(std::io::Error::other(error)))??;
        self.home_used = used;
        checked
    }
}

impl Drop for Watched {
    fn drop(&mut self) {
        self.budget.give_back(self.home_used.0, self.home_used.1);
    }
}

fn error(short: Short) -> ProcessError {
    match short {
        Short::Quota { .. } | Short::Disk { .. } => ProcessError::Quota(short.to_string()),
        Short::Walk(_) | Short::Space(_) => ProcessError::Failed {
            what: "the disk that the program uses cannot be measured".to_owned(),
            source: Some(std::io::Error::other(short)),
        },
    }
}
