//! A stand-in for the host, so that a handler can be tested without wasm.
//!
//! [`Host::new`] installs one for the current thread, with a fresh directory as the root. A
//! capability answers with the closure that the test gives; without one it is denied, as by a host
//! that does not grant it.

pub(crate) mod git;
mod host;
pub(crate) mod process;
mod repo;

pub use git::{GitCall, GitReply};
pub use host::{Host, LogLine, ProgressLine};
pub(crate) use host::{log, progress, root};
pub use repo::FakeRepo;

#[cfg(test)]
mod tests {
    use super::*;
    use crate::log::Level;
    use crate::process::{Command, Output, Program};
    use crate::{GitError, ProcessError};

    #[test]
    fn without_an_answer_a_capability_is_denied_and_the_call_is_kept() {
        let host = Host::new();
        assert_eq!(crate::git::head(), Err(GitError::Denied("git".into())));
        let command = Command::new(Program::Alias("python".into())).args(["-I"]);
        let error = crate::process::run(&command).unwrap_err();
        assert_eq!(error, ProcessError::Denied("process".into()));
        assert_eq!(crate::process::find(&command.program), Ok(None));
        assert_eq!(host.git_calls(), [GitCall::Head]);
        assert_eq!(host.runs(), [command]);
    }

    #[test]
    fn an_answer_may_work_on_the_root_and_ask_the_host() {
        let host = Host::new();
        host.on_run(|command, root| {
            crate::log::info("running");
            std::fs::write(root.join("made"), command.arguments.join(" ")).unwrap();
            Ok(Output {
                exit_code: 0,
                stdout: String::new(),
                stderr: String::new(),
                truncated: false,
            })
        });
        let command = Command::new(Program::InRoot("x".into())).args(["a", "b"]);
        for _ in 0..2 {
            crate::process::run(&command).unwrap();
        }
        let made = std::fs::read_to_string(crate::root().join("made")).unwrap();
        assert_eq!(made, "a b");
        assert_eq!(host.log(), vec![(Level::Info, "running".to_owned()); 2]);
    }

    #[test]
    fn a_host_goes_with_its_root_and_makes_room_for_another() {
        let host = Host::new();
        let root = host.root().to_owned();
        drop(host);
        assert!(!root.exists());
        let host = Host::new();
        crate::progress::report("x", 1, None);
        assert_eq!(host.progress(), [("x".to_owned(), 1, None)]);
    }
}
