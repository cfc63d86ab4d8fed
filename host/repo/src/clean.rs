//! What git does to a file on its way into a blob, by attributes and config alone: line ends and
//! `ident`. After convert.c of git. Filters that are programs are never run.

use crate::text_stats::Stats;
use git2::{AttrCheckFlags, AttrValue, ObjectType, Oid};

use crate::content::WHOLE_BYTES_MAX;
use crate::files::{as_path, show};
use crate::objects::missing;
use crate::{Repo, RepoError};

/// How line ends become `\n`.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Lines {
    Keep,
    /// When it is text and the index has no `\r\n` in it.
    Auto,
    Text,
}

/// How to convert one file.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Clean {
    lines: Lines,
    ident: bool,
    /// Why the blob that git would make cannot be made here.
    pub(crate) beyond: Option<String>,
}

/// Reads attributes of one repository's files.
pub(crate) struct Cleaner<'a> {
    repo: &'a Repo,
    /// What `core.autocrlf` says of files without attributes.
    default: Lines,
    reads_attributes: bool,
}

impl<'a> Cleaner<'a> {
    /// Without `reads_attributes` only the config counts.
    pub(crate) fn new(repo: &'a Repo, reads_attributes: bool) -> Result<Self, RepoError> {
        let fail = RepoError::git("read the config");
        let config = repo.git.config().map_err(&fail)?;
        let converts = match config.get_string("core.autocrlf") {
            Ok(value) if value.eq_ignore_ascii_case("input") => true,
            Ok(_) => config.get_bool("core.autocrlf").map_err(&fail)?,
            Err(error) if error.code() == git2::ErrorCode::NotFound => false,
            Err(error) => return Err(fail(error)),
        };
        Ok(Self {
            repo,
            default: if converts { Lines::Auto } else { Lines::Keep },
            reads_attributes,
        })
    }

    /// How to convert a file; none: not at all.
    pub(crate) fn rules(&self, path: &[u8]) -> Result<Option<Clean>, RepoError> {
        let mut clean = Clean {
            lines: self.default,
            ident: false,
            beyond: None,
        };
        if self.reads_attributes {
            self.read(path, &mut clean)?;
        }
        let is_none = clean.lines == Lines::Keep && !clean.ident && clean.beyond.is_none();
        Ok(Some(clean).filter(|_| !is_none))
    }

    fn read(&self, path: &[u8], clean: &mut Clean) -> Result<(), RepoError> {
        let flags = AttrCheckFlags::FILE_THEN_INDEX | AttrCheckFlags::NO_SYSTEM;
        let get = |name| {
            let value = self.repo.git.get_attr_bytes(as_path(path), name, flags);
            value
                .map(AttrValue::always_bytes)
                .map_err(RepoError::git("read the attributes"))
        };
        let lines = match text(get("text")?) {
            Some(lines) => Some(lines),
            // The older name of the same attribute.
            None => text(get("crlf")?),
        };
        let eol = get("eol")?;
        let has_eol = matches!(eol, AttrValue::Bytes(b"lf" | b"crlf"));
        clean.lines = match lines {
            Some(lines) => lines,
            None if has_eol => Lines::Text,
            None => self.default,
        };
        clean.ident = get("ident")? == AttrValue::True;
        for name in ["filter", "working-tree-encoding"] {
            if let AttrValue::Bytes(value) = get(name)? {
                clean.beyond = Some(format!("{name}={} on `{}`", show(value), show(path)));
            }
        }
        Ok(())
    }

    /// The content that git would store. `staged` is the blob that the index has.
    pub(crate) fn apply(
        &self,
        clean: &Clean,
        data: &[u8],
        staged: Option<Oid>,
    ) -> Result<Vec<u8>, RepoError> {
        let converts = match clean.lines {
            Lines::Keep => false,
            Lines::Text => true,
            Lines::Auto => {
                let stats = Stats::of(data);
                !stats.is_binary() && stats.crlf > 0 && !self.has_crlf(staged)?
            }
        };
        let mut out = if converts {
            strip_cr(data)
        } else {
            data.to_vec()
        };
        if clean.ident {
            out = shrink_ident(&out);
        }
        Ok(out)
    }

    /// A file that went in with `\r\n` keeps them.
    fn has_crlf(&self, staged: Option<Oid>) -> Result<bool, RepoError> {
        let Some(id) = staged else {
            return Ok(false);
        };
        let odb = self.repo.odb()?;
        match odb.read_header(id) {
            Ok((size, ObjectType::Blob)) if size as u64 <= WHOLE_BYTES_MAX => {}
            Ok(_) => return Ok(false),
            Err(error) if error.code() == git2::ErrorCode::NotFound => return Ok(false),
            Err(error) => return Err(RepoError::git("read a blob")(error)),
        }
        let object = odb.read(id).map_err(missing(id))?;
        let stats = Stats::of(object.data());
        Ok(stats.crlf > 0 && !stats.is_binary())
    }
}

fn text(value: AttrValue<'_>) -> Option<Lines> {
    match value {
        AttrValue::True | AttrValue::Bytes(b"input") => Some(Lines::Text),
        AttrValue::False => Some(Lines::Keep),
        AttrValue::Bytes(b"auto") => Some(Lines::Auto),
        _ => None,
    }
}

fn strip_cr(data: &[u8]) -> Vec<u8> {
    let mut out = Vec::with_capacity(data.len());
    for (at, &byte) in data.iter().enumerate() {
        if byte != b'\r' || data.get(at + 1) != Some(&b'\n') {
            out.push(byte);
        }
    }
    out
}

/// `$Id: …$` becomes `$Id$`.
fn shrink_ident(data: &[u8]) -> Vec<u8> {
    const OPEN: &[u8] = b"$Id:";
    let mut out = Vec::with_capacity(data.len());
    let mut rest = data;
    while let Some(at) = rest.windows(OPEN.len()).position(|part| part == OPEN) {
        let value = &rest[at + OPEN.len()..];
        let end = value.iter().position(|b| matches!(b, b'$' | b'\n'));
        out.extend_from_slice(&rest[..at]);
        match end {
            Some(end) if value[end] == b'$' => {
                out.extend_from_slice(b"$Id$");
                rest = &value[end + 1..];
            }
            _ => {
                out.extend_from_slice(OPEN);
                rest = value;
            }
        }
    }
    out.extend_from_slice(rest);
    out
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn line_ends_and_ids_become_what_git_stores() {
        assert_eq!(strip_cr(b"a\r\nb\rc\r\r\n\r"), b"a\nb\rc\r\n\r");
        for (from, to) in [
            (&b"x $Id: 12 $ y"[..], &b"x $Id$ y"[..]),
            (b"$Id: open\n$", b"$Id: open\n$"),
            (b"$Id$ $Id:$", b"$Id$ $Id$"),
            (b"$Id: $Id: a $", b"$Id$Id: a $"),
        ] {
            assert_eq!(shrink_ident(from), to);
        }
    }

    #[test]
    fn text_is_told_from_binaries() {
        assert!(!Stats::of(b"plain\r\ntext\n").is_binary());
        assert!(Stats::of(b"a\0b").is_binary());
        assert!(Stats::of(b"lone\rcr").is_binary());
        assert!(!Stats::of(b"text\x1a").is_binary());
    }
}
