//! Ignore rules as git reads them: `.gitignore` of every folder, `.git/info/exclude` last.
//!
//! libgit2 is not asked: it follows links on the way, and takes a link to a directory for a
//! directory, so that `.venv/` would hide a link that git shows. `core.excludesFile` is not read, as
//! it may lie outside of the RootDir: what it hides is saved.

use std::cell::OnceCell;
use std::rc::Rc;

use ignore::Match;
use ignore::gitignore::{Gitignore, GitignoreBuilder};
use warren_disk::Dir;

use crate::RepoError;
use crate::files::{self, as_path, show};

/// Longest file of rules.
const RULES_BYTES_MAX: u64 = 1 << 20;

/// The rules of one folder, on top of its parent's. Read at the first question.
pub(crate) struct Ignores {
    parent: Option<Rc<Self>>,
    /// The folder with a slash behind it; empty for the RootDir.
    prefix: Vec<u8>,
    file: &'static str,
    rules: OnceCell<Option<Gitignore>>,
}

impl Ignores {
    /// `.git/info/exclude`.
    pub(crate) fn base() -> Rc<Self> {
        Rc::new(Self {
            parent: None,
            prefix: Vec::new(),
            file: ".git/info/exclude",
            rules: OnceCell::new(),
        })
    }

    /// Rules of the folder `prefix`, which has a `.gitignore` that is a plain file or has none. A
    /// link does not count, as for git.
    pub(crate) fn below(parent: &Rc<Self>, prefix: &[u8], has_file: bool) -> Rc<Self> {
        if !has_file {
            return Rc::clone(parent);
        }
        Rc::new(Self {
            parent: Some(Rc::clone(parent)),
            prefix: prefix.to_vec(),
            file: ".gitignore",
            rules: OnceCell::new(),
        })
    }

    /// Whether the rules hide `path`. Its folders are not asked: who walks has done that.
    pub(crate) fn hide(&self, root: &Dir, path: &[u8], is_dir: bool) -> Result<bool, RepoError> {
        let mut level = Some(self);
        while let Some(ignores) = level {
            if let Some(rules) = ignores.rules(root)? {
                let name = &path[ignores.prefix.len()..];
                match rules.matched(as_path(name), is_dir) {
                    Match::Ignore(_) => return Ok(true),
                    Match::Whitelist(_) => return Ok(false),
                    Match::None => {}
                }
            }
            level = ignores.parent.as_deref();
        }
        Ok(false)
    }

    fn rules(&self, root: &Dir) -> Result<Option<&Gitignore>, RepoError> {
        if let Some(rules) = self.rules.get() {
            return Ok(rules.as_ref());
        }
        let path = [&self.prefix, self.file.as_bytes()].concat();
        let rules = files::read_small(root, &path, RULES_BYTES_MAX)?
            .map(|bytes| parse(&path, &bytes))
            .transpose()?;
        Ok(self.rules.get_or_init(|| rules).as_ref())
    }
}

fn parse(path: &[u8], bytes: &[u8]) -> Result<Gitignore, RepoError> {
    let bytes = bytes.strip_prefix(b"\xef\xbb\xbf").unwrap_or(bytes);
    let mut builder = GitignoreBuilder::new("");
    builder.allow_unclosed_class(false);
    for line in bytes.split(|&b| b == b'\n') {
        let line = line.strip_suffix(b"\r").unwrap_or(line);
        let Ok(line) = std::str::from_utf8(line) else {
            // No rule of ours can match such a name: it is saved.
            tracing::debug!(file = %show(path), "an ignore rule that is not UTF-8 is left out");
            continue;
        };
        if let Err(error) = builder.add_line(None, line) {
            tracing::debug!(file = %show(path), %error, "an ignore rule is no pattern");
        }
    }
    builder
        .build()
        .map_err(|error| RepoError::TooLarge(format!("the rules of `{}`: {error}", show(path))))
}
