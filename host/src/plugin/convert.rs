//! Between the contract's types and the host's.

use warren_model::{Loss, LossKind};

use super::bindings::exports::warren::handler::handler as guest;
use super::bindings::warren::handler::types as wit;
use super::error::{GitFailure, PluginError, ProcessFailure};
use super::text::{clean, clean_line};

/// Longest name, URL or other one-line text that a guest's error may hold, in bytes.
const LINE_BYTES: usize = 1000;

/// Most paths of one error.
const PATHS_MAX: usize = 1000;

fn line(text: &str) -> String {
    clean_line(text, LINE_BYTES)
}

/// What a handler said, case by case; text is made safe to print.
pub(crate) fn error(error: wit::Error) -> PluginError {
    match error {
        wit::Error::InvalidMetadata(invalid) => PluginError::InvalidMetadata {
            key: line(&invalid.key),
            reason: line(&invalid.reason),
        },
        wit::Error::SuspendNotConfigured(text) => PluginError::SuspendNotConfigured(line(&text)),
        wit::Error::MissingProgram(text) => PluginError::ProgramMissing(line(&text)),
        wit::Error::ProgramFailed(text) => PluginError::ProgramFailed(clean(&text)),
        wit::Error::BrokenEnvironment(text) => PluginError::EnvironmentBroken(line(&text)),
        wit::Error::Git(error) => PluginError::Git(git(error)),
        wit::Error::Process(error) => PluginError::Process(process(error)),
        wit::Error::Io(text) => PluginError::Io(line(&text)),
        wit::Error::UnsupportedAction(text) => PluginError::UnsupportedAction(line(&text)),
        wit::Error::Failed(text) => PluginError::Failed(clean(&text)),
    }
}

fn git(error: wit::GitError) -> GitFailure {
    use wit::GitError as E;
    match error {
        E::Denied(text) => GitFailure::Denied(line(&text)),
        E::InvalidArgument(text) => GitFailure::InvalidArgument(line(&text)),
        E::NotARepository => GitFailure::NotARepository,
        E::UnsafeRepository(text) => GitFailure::UnsafeRepository(line(&text)),
        E::UnsupportedFormat(text) => GitFailure::UnsupportedFormat(line(&text)),
        E::OperationInProgress(text) => GitFailure::OperationInProgress(line(&text)),
        E::NestedRepository(paths) => {
            GitFailure::NestedRepository(paths.iter().take(PATHS_MAX).map(|p| line(p)).collect())
        }
        E::Locked(text) => GitFailure::Locked(line(&text)),
        E::AuthenticationFailed(text) => GitFailure::AuthenticationFailed(line(&text)),
        E::HostKeyUnknown(text) => GitFailure::HostKeyUnknown(line(&text)),
        E::HostKeyChanged(text) => GitFailure::HostKeyChanged(line(&text)),
        E::Unreachable(text) => GitFailure::Unreachable(line(&text)),
        E::Timeout(text) => GitFailure::Timeout(line(&text)),
        E::Rejected(rejection) => GitFailure::Rejected {
            ref_name: line(&rejection.ref_name),
            message: clean(&rejection.message),
        },
        E::Missing(text) => GitFailure::Missing(line(&text)),
        E::Conflict(conflict) => GitFailure::Conflict {
            ref_name: line(&conflict.ref_name),
            expected: conflict.expected.as_deref().map(line),
            found: conflict.found.as_deref().map(line),
        },
        E::TooLarge(text) => GitFailure::TooLarge(line(&text)),
        E::NoSpace(text) => GitFailure::NoSpace(line(&text)),
        E::Io(text) => GitFailure::Io(line(&text)),
    }
}

fn process(error: wit::ProcessError) -> ProcessFailure {
    use wit::ProcessError as E;
    match error {
        E::Denied(text) => ProcessFailure::Denied(line(&text)),
        E::InvalidArgument(text) => ProcessFailure::InvalidArgument(line(&text)),
        E::NotFound(text) => ProcessFailure::NotFound(line(&text)),
        E::Timeout(text) => ProcessFailure::Timeout(clean(&text)),
        E::Killed(signal) => ProcessFailure::Killed(signal),
        E::Failed(text) => ProcessFailure::Failed(line(&text)),
    }
}

pub(crate) fn losses(losses: Vec<guest::Loss>) -> Vec<Loss> {
    let loss = |loss: guest::Loss| Loss {
        kind: match loss.kind {
            wit::LossKind::Ignored => LossKind::Ignored,
            wit::LossKind::EmptyDirectory => LossKind::EmptyDirectory,
            wit::LossKind::SpecialFile => LossKind::SpecialFile,
            wit::LossKind::Ref => LossKind::Ref,
            wit::LossKind::Ephemeral => LossKind::Ephemeral,
            wit::LossKind::Rebuilt => LossKind::Rebuilt,
        },
        path: clean_line(&loss.path, 8 * 1024),
        bytes: loss.bytes,
    };
    losses.into_iter().map(loss).collect()
}

/// The host's kinds of loss as the contract has them.
pub(crate) fn loss_kind(kind: LossKind) -> wit::LossKind {
    match kind {
        LossKind::Ignored => wit::LossKind::Ignored,
        LossKind::EmptyDirectory => wit::LossKind::EmptyDirectory,
        LossKind::SpecialFile => wit::LossKind::SpecialFile,
        LossKind::Ref => wit::LossKind::Ref,
        LossKind::Ephemeral => wit::LossKind::Ephemeral,
        LossKind::Rebuilt => wit::LossKind::Rebuilt,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn structure_survives_and_text_is_made_safe() {
        let rejected = error(wit::Error::Git(wit::GitError::Rejected(wit::Rejection {
            ref_name: "refs/heads/x\x1b[2J".into(),
            message: "hook\ndeclined".into(),
        })));
        assert_eq!(rejected.code(), "GitRejected");
        let PluginError::Git(GitFailure::Rejected { ref_name, message }) = rejected else {
            panic!("{rejected:?}");
        };
        assert_eq!(ref_name, "refs/heads/x\\u{1b}[2J");
        assert_eq!(message, "hook\ndeclined");
    }

    #[test]
    fn codes_are_those_that_callers_know() {
        let code = |e| error(e).code();
        assert_eq!(
            code(wit::Error::SuspendNotConfigured("x".into())),
            "WorkspaceSuspendNotConfigured"
        );
        assert_eq!(
            code(wit::Error::Process(wit::ProcessError::NotFound(
                "uv".into()
            ))),
            "ProgramMissing"
        );
        assert_eq!(
            code(wit::Error::Git(wit::GitError::NotARepository)),
            "GitNotARepository"
        );
        assert_eq!(code(wit::Error::Failed("x".into())), "HandlerFailed");
    }
}
