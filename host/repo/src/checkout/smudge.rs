//! What git does to a blob on its way into the working tree, by attributes alone: `ident`, line
//! ends, encoding. After convert.c of git; external filters are never run.

use crate::text_stats::Stats;
use git2::Oid;

/// How to convert one blob; the default is not at all.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub(crate) struct Smudge {
    pub(crate) ident: bool,
    pub(crate) crlf: Crlf,
    pub(crate) encoding: Option<Encoding>,
}

/// Whether line feeds become CR LF.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub(crate) enum Crlf {
    #[default]
    Never,
    /// `text=auto eol=crlf`: when it is text and has no CR yet.
    Auto,
    /// `text eol=crlf`.
    Always,
}

/// `working-tree-encoding`: the family that UTF-8 converts to without loss.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Encoding {
    wide: bool,
    big: bool,
    mark: bool,
}

impl Encoding {
    /// The name as iconv and git take it; none: one we do not know.
    pub(crate) fn named(name: &[u8]) -> Option<Self> {
        let name = std::str::from_utf8(name).ok()?.to_ascii_uppercase();
        let name = name.strip_prefix("UTF")?.trim_start_matches('-');
        let (wide, order) = match name.split_at_checked(2)? {
            ("16", order) => (false, order),
            ("32", order) => (true, order),
            _ => return None,
        };
        let (big, mark) = match order {
            "" | "LE-BOM" => (false, true),
            "BE-BOM" => (true, true),
            "LE" => (false, false),
            "BE" => (true, false),
            _ => return None,
        };
        Some(Self { wide, big, mark })
    }

    fn encode(self, text: &str) -> Vec<u8> {
        let mut out = Vec::with_capacity(text.len() * 2 + 2);
        let mark = self.mark.then_some('\u{feff}');
        for c in mark.into_iter().chain(text.chars()) {
            if self.wide {
                let unit = u32::from(c);
                out.extend(if self.big {
                    unit.to_be_bytes()
                } else {
                    unit.to_le_bytes()
                });
                continue;
            }
            for unit in c.encode_utf16(&mut [0; 2]) {
                out.extend(if self.big {
                    unit.to_be_bytes()
                } else {
                    unit.to_le_bytes()
                });
            }
        }
        out
    }
}

impl Smudge {
    pub(crate) fn is_none(&self) -> bool {
        *self == Self::default()
    }

    /// The content for the working tree of the blob `id`.
    pub(crate) fn apply(&self, blob: &[u8], id: Oid) -> Vec<u8> {
        let mut out = blob.to_vec();
        if self.ident {
            out = expand_ident(&out, id);
        }
        if wants_crlf(self.crlf, &out) {
            out = add_cr(&out);
        }
        match (self.encoding, std::str::from_utf8(&out)) {
            (Some(encoding), Ok(text)) if !text.is_empty() => encoding.encode(text),
            // Git keeps what is not UTF-8, too.
            _ => out,
        }
    }
}

fn wants_crlf(crlf: Crlf, data: &[u8]) -> bool {
    let stats = Stats::of(data);
    match crlf {
        Crlf::Never => false,
        Crlf::Always => stats.lone_lf > 0,
        Crlf::Auto => {
            stats.lone_lf > 0 && stats.lone_cr == 0 && stats.crlf == 0 && !stats.is_binary()
        }
    }
}

fn add_cr(data: &[u8]) -> Vec<u8> {
    let mut out = Vec::with_capacity(data.len() + data.len() / 16);
    let mut last = 0;
    for byte in data {
        if *byte == b'\n' && last != b'\r' {
            out.push(b'\r');
        }
        out.push(*byte);
        last = *byte;
    }
    out
}

/// `$Id$` and `$Id: …$` become `$Id: <id> $`; what another system expanded stays.
fn expand_ident(data: &[u8], id: Oid) -> Vec<u8> {
    let mut out = Vec::with_capacity(data.len() + 64);
    let mut rest = data;
    while let Some(dollar) = find(rest, b'$') {
        out.extend_from_slice(&rest[..=dollar]);
        rest = &rest[dollar + 1..];
        let Some(skip) = ident_length(rest) else {
            continue;
        };
        out.extend_from_slice(format!("Id: {id} $").as_bytes());
        rest = &rest[skip..];
    }
    out.extend_from_slice(rest);
    out
}

/// Length of `Id$` or of a git-like `Id: …$` at the start.
fn ident_length(text: &[u8]) -> Option<usize> {
    let value = match text.strip_prefix(b"Id")? {
        [b'$', ..] => return Some(3),
        [b':', value @ ..] => value,
        _ => return None,
    };
    let end = find(value, b'$')?;
    let inner = &value[..end];
    // Spaces inside, or a line end: somebody else's keyword.
    let space = inner.get(1..).and_then(|inner| find(inner, b' '));
    if inner.contains(&b'\n') || space.is_some_and(|at| at + 2 < end) {
        return None;
    }
    Some(3 + end + 1)
}

fn find(text: &[u8], byte: u8) -> Option<usize> {
    text.iter().position(|b| *b == byte)
}
