//! How errors become those of the contract.

use std::path::Path;

use crate::{Error, GitError, InvalidMetadata, ProcessError};

/// Names the path at which file work failed.
pub fn io(path: &Path, error: std::io::Error) -> Error {
    Error::Io(format!("`{}`: {error}", path.display()))
}

impl Error {
    /// A metadata key that cannot be used, and why, as a lowercase fragment.
    pub fn invalid_metadata(key: &str, reason: impl Into<String>) -> Self {
        Self::InvalidMetadata(InvalidMetadata {
            key: key.to_owned(),
            reason: reason.into(),
        })
    }
}

impl From<GitError> for Error {
    fn from(error: GitError) -> Self {
        Self::Git(error)
    }
}

impl From<ProcessError> for Error {
    fn from(error: ProcessError) -> Self {
        Self::Process(error)
    }
}

/// For file work where the path does not help; otherwise see [`io`].
impl From<std::io::Error> for Error {
    fn from(error: std::io::Error) -> Self {
        Self::Io(error.to_string())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn errors_map_to_their_variants() {
        let denied = GitError::Denied("push".into());
        assert_eq!(Error::from(denied.clone()), Error::Git(denied));
        let missing = ProcessError::NotFound("python".into());
        assert_eq!(Error::from(missing.clone()), Error::Process(missing));
        let error = std::fs::read("/no/such/file").unwrap_err();
        let Error::Io(text) = io(Path::new("/no/such/file"), error) else {
            panic!("not an io error");
        };
        assert!(text.starts_with("`/no/such/file`: No such file"), "{text}");
    }
}
