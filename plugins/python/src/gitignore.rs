//! The rules that keep an environment out of git.

use std::fs::{self, OpenOptions};
use std::io::{ErrorKind, Write};
use std::path::Path;

use warren_sdk::{Error, io};

/// `.venv` without a slash also matches a link of that name.
const RULES: [&str; 3] = [".venv", "__pycache__/", "*.pyc"];

/// Largest `.gitignore` that is read, in bytes.
const BYTES_MAX: u64 = 1024 * 1024;

/// Adds the rules that the root's `.gitignore` lacks, behind what it says, in its own style of
/// lines. A file that has them all is not written. A link is not followed but an error.
pub(crate) fn merge(root: &Path) -> Result<(), Error> {
    let path = root.join(".gitignore");
    let content = match fs::symlink_metadata(&path) {
        Ok(metadata) if !metadata.is_file() => {
            let message = "`.gitignore` is not a regular file, so no rules can be added to it";
            return Err(Error::Failed(message.to_owned()));
        }
        Ok(metadata) if metadata.len() > BYTES_MAX => {
            return Err(Error::Failed(
                "`.gitignore` is larger than 1 MiB".to_owned(),
            ));
        }
        Ok(_) => fs::read(&path).map_err(|error| io(&path, error))?,
        Err(error) if error.kind() == ErrorKind::NotFound => Vec::new(),
        Err(error) => return Err(io(&path, error)),
    };
    let added = missing(&content);
    if added.is_empty() {
        return Ok(());
    }
    OpenOptions::new()
        .append(true)
        .create(true)
        .open(&path)
        .and_then(|mut file| file.write_all(added.as_bytes()))
        .map_err(|error| io(&path, error))
}

/// The text to append.
fn missing(content: &[u8]) -> String {
    let lines = || content.split(|&byte| byte == b'\n');
    let crlf = lines().count() > 1 && lines().next().is_some_and(|line| line.ends_with(b"\r"));
    let newline = if crlf { "\r\n" } else { "\n" };
    let has = |rule: &str| {
        lines().any(|line| line.strip_suffix(b"\r").unwrap_or(line) == rule.as_bytes())
    };
    let mut added = String::new();
    for rule in RULES.iter().filter(|rule| !has(rule)) {
        if added.is_empty() && !content.is_empty() && !content.ends_with(b"\n") {
            added.push_str(newline);
        }
        added.push_str(rule);
        added.push_str(newline);
    }
    added
}

#[cfg(test)]
mod tests {
    use super::*;
    use warren_sdk::testing::Host;

    fn merged(before: Option<&str>) -> String {
        let host = Host::new();
        let path = host.root().join(".gitignore");
        if let Some(before) = before {
            fs::write(&path, before).unwrap();
        }
        for _ in 0..2 {
            merge(host.root()).unwrap();
        }
        fs::read_to_string(path).unwrap()
    }

    #[test]
    fn rules_are_added_once_on_lines_of_their_own() {
        for (before, after) in [
            (None, ".venv\n__pycache__/\n*.pyc\n"),
            (Some(""), ".venv\n__pycache__/\n*.pyc\n"),
            (
                Some("node_modules"),
                "node_modules\n.venv\n__pycache__/\n*.pyc\n",
            ),
            (
                Some("a\r\nb\r\n"),
                "a\r\nb\r\n.venv\r\n__pycache__/\r\n*.pyc\r\n",
            ),
            (
                Some("a\r\n*.pyc"),
                "a\r\n*.pyc\r\n.venv\r\n__pycache__/\r\n",
            ),
            // A line that only looks like the rule does not do what it does.
            (
                Some(".venv/\n# *.pyc\n__pycache__/\n"),
                ".venv/\n# *.pyc\n__pycache__/\n.venv\n*.pyc\n",
            ),
        ] {
            assert_eq!(merged(before), after, "{before:?}");
        }
    }

    #[test]
    fn a_file_with_all_rules_is_not_written() {
        let host = Host::new();
        let path = host.root().join(".gitignore");
        fs::write(&path, "*.pyc\n__pycache__/\r\n.venv").unwrap();
        // Even opening it to append would fail.
        let mut permissions = fs::metadata(&path).unwrap().permissions();
        permissions.set_readonly(true);
        fs::set_permissions(&path, permissions).unwrap();
        let before = fs::metadata(&path).unwrap().modified().unwrap();
        merge(host.root()).unwrap();
        assert_eq!(fs::metadata(&path).unwrap().modified().unwrap(), before);
        assert_eq!(
            fs::read_to_string(&path).unwrap(),
            "*.pyc\n__pycache__/\r\n.venv"
        );
    }

    #[test]
    fn bytes_that_are_not_text_stay() {
        let host = Host::new();
        let path = host.root().join(".gitignore");
        fs::write(&path, b"\xff\xfe\n").unwrap();
        merge(host.root()).unwrap();
        assert_eq!(
            fs::read(&path).unwrap(),
            b"\xff\xfe\n.venv\n__pycache__/\n*.pyc\n"
        );
    }

    #[test]
    fn a_link_is_refused_and_its_target_untouched() {
        let host = Host::new();
        let victim = host.root().join("victim");
        fs::write(&victim, "mine").unwrap();
        std::os::unix::fs::symlink("victim", host.root().join(".gitignore")).unwrap();
        let error = merge(host.root()).unwrap_err();
        assert!(matches!(error, Error::Failed(text) if text.contains(".gitignore")));
        assert_eq!(fs::read_to_string(victim).unwrap(), "mine");
    }
}
