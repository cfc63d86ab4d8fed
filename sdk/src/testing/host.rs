//! The stand-in itself: one a thread.

use std::cell::RefCell;
use std::path::{Path, PathBuf};
use std::rc::Rc;

use tempfile::TempDir;

use super::git::{GitCall, GitReply};
use crate::log::Level;
use crate::process::{Command, Output, Program};
use crate::{GitError, ProcessError, Root};

type OnGit = Box<dyn FnMut(&GitCall, &Path) -> Result<GitReply, GitError>>;
type OnRun = Box<dyn FnMut(&Command, &Path) -> Result<Output, ProcessError>>;

/// A line written to the log: how much it matters, and its text.
pub type LogLine = (Level, String);

/// A report of progress: stage, done, total.
pub type ProgressLine = (String, u64, Option<u64>);

#[derive(Default)]
pub(super) struct State {
    root: PathBuf,
    pub(super) on_git: Option<OnGit>,
    pub(super) on_run: Option<OnRun>,
    pub(super) programs: Vec<(Program, String)>,
    pub(super) git_calls: Vec<GitCall>,
    pub(super) runs: Vec<Command>,
    log: Vec<LogLine>,
    progress: Vec<ProgressLine>,
}

thread_local! {
    static INSTALLED: RefCell<Option<Rc<RefCell<State>>>> = const { RefCell::new(None) };
}

/// A host for the current thread, until it is dropped.
pub struct Host {
    state: Rc<RefCell<State>>,
    directory: TempDir,
}

impl Host {
    /// Installs a host with an empty root.
    ///
    /// Panics when the thread has one already, or no directory can be made.
    #[expect(clippy::new_without_default, reason = "it installs itself")]
    pub fn new() -> Self {
        let directory = if Path::new("/dev/shm").is_dir() {
            TempDir::new_in("/dev/shm")
        } else {
            TempDir::new()
        };
        let directory = directory.expect("a temporary directory");
        let state = Rc::new(RefCell::new(State {
            root: directory.path().to_owned(),
            ..State::default()
        }));
        INSTALLED.with_borrow_mut(|installed| {
            assert!(installed.is_none(), "this thread has a test host already");
            *installed = Some(Rc::clone(&state));
        });
        Self { state, directory }
    }

    /// The RootDir on disk.
    pub fn root(&self) -> &Path {
        self.directory.path()
    }

    /// A RootDir to call a handler with, named `dir_name`.
    pub fn root_named(&self, dir_name: &str) -> Root {
        Root {
            tenant: "tenant".to_owned(),
            project_id: "project".to_owned(),
            dir_name: dir_name.to_owned(),
            label: None,
        }
    }

    /// Grants `git`: `answer` gets each call and the root, and does what the host would do.
    pub fn on_git(
        &self,
        answer: impl FnMut(&GitCall, &Path) -> Result<GitReply, GitError> + 'static,
    ) {
        self.state.borrow_mut().on_git = Some(Box::new(answer));
    }

    /// Grants `process`: `answer` gets each command and the root.
    pub fn on_run(
        &self,
        answer: impl FnMut(&Command, &Path) -> Result<Output, ProcessError> + 'static,
    ) {
        self.state.borrow_mut().on_run = Some(Box::new(answer));
    }

    /// Puts a program on the Pod, for [`crate::process::find`]. The last one of a name holds.
    pub fn add_program(&self, program: Program, path: &str) {
        let mut state = self.state.borrow_mut();
        state.programs.insert(0, (program, path.to_owned()));
    }

    /// Calls of `git` so far, also those that failed.
    pub fn git_calls(&self) -> Vec<GitCall> {
        self.state.borrow().git_calls.clone()
    }

    /// Commands so far, also those that failed.
    pub fn runs(&self) -> Vec<Command> {
        self.state.borrow().runs.clone()
    }

    /// Lines of the log so far.
    pub fn log(&self) -> Vec<LogLine> {
        self.state.borrow().log.clone()
    }

    /// Reports of progress so far.
    pub fn progress(&self) -> Vec<ProgressLine> {
        self.state.borrow().progress.clone()
    }
}

impl Drop for Host {
    fn drop(&mut self) {
        INSTALLED.with_borrow_mut(|installed| *installed = None);
    }
}

/// The host of this thread.
pub(super) fn installed() -> Rc<RefCell<State>> {
    INSTALLED
        .with_borrow(Clone::clone)
        .expect("no test host: call warren_sdk::testing::Host::new() first")
}

pub(crate) fn root() -> PathBuf {
    installed().borrow().root.clone()
}

pub(crate) fn log(level: Level, message: &str) {
    let line = (level, message.to_owned());
    installed().borrow_mut().log.push(line);
}

pub(crate) fn progress(stage: &str, done: u64, total: Option<u64>) {
    let line = (stage.to_owned(), done, total);
    installed().borrow_mut().progress.push(line);
}
