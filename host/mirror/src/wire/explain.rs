//! What libgit2's errors mean to a caller.

use super::Wire;
use crate::MirrorError;

/// How libgit2 begins when it does not follow a redirect.
const REDIRECTS: [&str; 4] = [
    "cannot redirect",
    "unexpected redirect",
    "redirect without location",
    "too many redirect",
];

impl Wire {
    /// What an error of libgit2's network code means.
    pub(super) fn explain(&self, doing: &str, error: &git2::Error) -> MirrorError {
        let trouble = self.trouble.borrow_mut().take();
        if let Some(failure) = self.take_failure().or(trouble) {
            return failure;
        }
        let place = self.place();
        let said = self.excerpt(error.message().as_bytes());
        tracing::debug!(%place, doing, code = ?error.code(), class = ?error.class(), said, "remote failed");
        if REDIRECTS.iter().any(|start| said.starts_with(start)) {
            return MirrorError::Denied(format!("`{place}` redirects elsewhere"));
        }
        if let Some(status) = said.strip_prefix("unexpected http status code: ") {
            return match status {
                "401" | "403" => MirrorError::AuthenticationFailed(format!(
                    "`{place}` answered with status {status}"
                )),
                _ => MirrorError::Unreachable(format!("`{place}` answered with status {status}")),
            };
        }
        match (error.code(), error.class()) {
            (git2::ErrorCode::Auth, _) => {
                MirrorError::AuthenticationFailed(format!("`{place}` refused the credentials"))
            }
            (git2::ErrorCode::Timeout, _) => MirrorError::Timeout(format!("`{place}` is silent")),
            (_, git2::ErrorClass::Ssl) if said.contains("certificate") => {
                MirrorError::Unreachable(format!("the certificate of `{place}` is not trusted"))
            }
            (_, git2::ErrorClass::Ssh)
                if said.contains("timed out") || said.contains("Timed out") =>
            {
                MirrorError::Timeout(format!("`{place}` is silent"))
            }
            (_, class) if is_local(class) || warren_repo::is_too_much_memory(error) => {
                MirrorError::git(
                    format!("{doing} with `{place}`"),
                    git2::Error::new(error.code(), class, &said),
                )
            }
            _ => MirrorError::Unreachable(format!("cannot {doing} with `{place}`: {said}")),
        }
    }
}

/// Whether an error comes from the work on our own files.
fn is_local(class: git2::ErrorClass) -> bool {
    use git2::ErrorClass as Class;
    matches!(
        class,
        Class::NoMemory
            | Class::Os
            | Class::Reference
            | Class::Zlib
            | Class::Repository
            | Class::Config
            | Class::Odb
            | Class::Object
            | Class::Filesystem
    )
}
