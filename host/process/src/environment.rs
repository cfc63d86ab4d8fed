use std::collections::BTreeMap;
use std::path::Path;

use crate::ProcessError;

/// Where children look for programs.
pub const PATH: &str = "/usr/local/bin:/usr/bin:/bin:/usr/local/sbin:/usr/sbin:/sbin";

/// Most bytes of all variables together.
const BYTES_MAX: usize = 64 * 1024;

/// The complete environment of a child: `PATH`, `HOME`, `LANG`, `TMPDIR`, and what the policy lets
/// through. Nothing of the host's.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Environment {
    variables: BTreeMap<String, String>,
}

impl Environment {
    /// The fixed set, with these directories as `HOME` and `TMPDIR`.
    ///
    /// # Errors
    /// `InvalidArgument`: a path that is not absolute or not UTF-8.
    pub fn new(home: &Path, temporary: &Path) -> Result<Self, ProcessError> {
        let text = |path: &Path| match path.to_str() {
            Some(text) if path.is_absolute() && !text.contains('\0') => Ok(text.to_owned()),
            _ => Err(ProcessError::InvalidArgument(format!(
                "directory `{}` is not absolute or not UTF-8",
                path.display()
            ))),
        };
        let variables = BTreeMap::from([
            ("HOME".to_owned(), text(home)?),
            ("LANG".to_owned(), "C.UTF-8".to_owned()),
            ("PATH".to_owned(), PATH.to_owned()),
            ("TMPDIR".to_owned(), text(temporary)?),
        ]);
        Ok(Self { variables })
    }

    /// Adds what the host itself says to every child, in place of what is there.
    #[must_use]
    pub fn with_own(mut self, own: impl IntoIterator<Item = (String, String)>) -> Self {
        self.variables.extend(own);
        self
    }

    /// Adds variables. `allowed` lists names; one that ends with `*` stands for all that start so.
    ///
    /// Variables of the fixed set, and those with which a loader, a shell or git would run
    /// something else, are never allowed. `PYTHON…` needs the full name on the list.
    ///
    /// # Errors
    /// `Denied`: a name that is not allowed. `InvalidArgument`: no name, a NUL byte, too long.
    pub fn with(
        mut self,
        extra: impl IntoIterator<Item = (String, String)>,
        allowed: &[impl AsRef<str>],
    ) -> Result<Self, ProcessError> {
        for (name, value) in extra {
            if !is_name(&name) || value.contains('\0') {
                return Err(ProcessError::InvalidArgument(format!(
                    "variable `{}` is not valid",
                    name.escape_debug()
                )));
            }
            let listed = allowed.iter().any(|rule| allows(rule.as_ref(), &name));
            if !listed || never(&name) {
                return Err(ProcessError::Denied(format!("variable `{name}`")));
            }
            self.variables.insert(name, value);
        }
        let bytes = |(name, value): (&str, &str)| name.len() + value.len() + 2;
        if self.iter().map(bytes).sum::<usize>() > BYTES_MAX {
            return Err(ProcessError::InvalidArgument(
                "the environment is longer than 64 KiB".to_owned(),
            ));
        }
        Ok(self)
    }

    /// All variables, by name.
    pub fn iter(&self) -> impl Iterator<Item = (&str, &str)> {
        let variables = self.variables.iter();
        variables.map(|(name, value)| (name.as_str(), value.as_str()))
    }
}

fn is_name(name: &str) -> bool {
    !name.starts_with(|c: char| c.is_ascii_digit())
        && !name.is_empty()
        && name.chars().all(|c| c.is_ascii_alphanumeric() || c == '_')
}

fn allows(rule: &str, name: &str) -> bool {
    match rule.strip_suffix('*') {
        Some(prefix) => name.starts_with(prefix) && !name.starts_with("PYTHON"),
        None => name == rule,
    }
}

/// Variables that no list can allow.
fn never(name: &str) -> bool {
    const NAMES: [&str; 12] = [
        "PATH",
        "HOME",
        "LANG",
        "TMPDIR",
        "BASH_ENV",
        "ENV",
        "SHELLOPTS",
        "BASHOPTS",
        "IFS",
        "GCONV_PATH",
        "LOCPATH",
        "NLSPATH",
    ];
    NAMES.contains(&name)
        || ["LD_", "DYLD_", "GIT_", "BASH_FUNC_", "GLIBC_", "MALLOC_"]
            .iter()
            .any(|prefix| name.starts_with(prefix))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn with(name: &str, allowed: &[&str]) -> Result<Environment, ProcessError> {
        let environment = Environment::new(Path::new("/h"), Path::new("/t")).unwrap();
        environment.with([(name.to_owned(), "v".to_owned())], allowed)
    }

    #[test]
    fn only_listed_names_pass() {
        let environment = with("PIP_INDEX_URL", &["PIP_*"]).unwrap();
        let all: Vec<_> = environment.iter().collect();
        assert_eq!(
            all,
            [
                ("HOME", "/h"),
                ("LANG", "C.UTF-8"),
                ("PATH", PATH),
                ("PIP_INDEX_URL", "v"),
                ("TMPDIR", "/t"),
            ]
        );
        assert!(matches!(
            with("FOO", &["PIP_*"]),
            Err(ProcessError::Denied(_))
        ));
        assert!(with("PYTHONUNBUFFERED", &["PYTHONUNBUFFERED"]).is_ok());
    }

    #[test]
    fn some_names_never_pass() {
        let all = ["*", "LD_PRELOAD", "GIT_SSH_COMMAND", "PATH", "BASH_ENV"];
        for name in [
            "LD_PRELOAD",
            "GIT_SSH_COMMAND",
            "PATH",
            "BASH_ENV",
            "PYTHONPATH",
        ] {
            let denied = with(name, &all);
            assert!(matches!(denied, Err(ProcessError::Denied(_))), "{name}");
        }
        for name in ["", "A=B", "A\0", "1A", "A B", "Ä"] {
            let invalid = with(name, &["*"]);
            assert!(
                matches!(invalid, Err(ProcessError::InvalidArgument(_))),
                "{name}"
            );
        }
        assert!(Environment::new(Path::new("rel"), Path::new("/t")).is_err());
    }
}
