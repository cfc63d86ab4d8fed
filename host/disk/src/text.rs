//! Hostile bytes made fit for people, logs and JSON.

use std::fmt::Write as _;

/// Characters that show nothing or change how their neighbours show: formatting characters (Cf),
/// line and paragraph separators, Hangul fillers, tags and supplementary variation selectors.
///
/// A fixed table: what `escape` gives is kept, so it must not move with a Unicode version.
const INVISIBLE: &[(u32, u32)] = &[
    (0x00AD, 0x00AD),
    (0x034F, 0x034F),
    (0x0600, 0x0605),
    (0x061C, 0x061C),
    (0x06DD, 0x06DD),
    (0x070F, 0x070F),
    (0x0890, 0x0891),
    (0x08E2, 0x08E2),
    (0x115F, 0x1160),
    (0x17B4, 0x17B5),
    (0x180B, 0x180F),
    (0x200B, 0x200F),
    (0x2028, 0x202E),
    (0x2060, 0x206F),
    (0x3164, 0x3164),
    (0xFEFF, 0xFEFF),
    (0xFFA0, 0xFFA0),
    (0xFFF0, 0xFFFB),
    (0x110BD, 0x110BD),
    (0x110CD, 0x110CD),
    (0x13430, 0x1343F),
    (0x1BCA0, 0x1BCA3),
    (0x1D173, 0x1D17A),
    (0xE0000, 0xE0FFF),
];

fn is_invisible(c: char) -> bool {
    let code = u32::from(c);
    c.is_control()
        || INVISIBLE
            .iter()
            .any(|&(first, last)| (first..=last).contains(&code))
}

/// Bytes as printable text, so that [`unescape`] gives them back.
///
/// Printable UTF-8 stays; `%`, control and invisible characters, and bytes that are not UTF-8
/// become `%XX` a byte.
///
/// ```
/// assert_eq!(warren_disk::text::escape(b"50%\n\xff"), "50%25%0A%FF");
/// ```
pub fn escape(bytes: &[u8]) -> String {
    let mut out = String::with_capacity(bytes.len());
    for chunk in bytes.utf8_chunks() {
        for c in chunk.valid().chars() {
            if c == '%' || is_invisible(c) {
                push_hex(&mut out, c.encode_utf8(&mut [0; 4]).as_bytes());
            } else {
                out.push(c);
            }
        }
        push_hex(&mut out, chunk.invalid());
    }
    out
}

fn push_hex(out: &mut String, bytes: &[u8]) {
    for byte in bytes {
        // Writing to a string can not fail.
        let _ = write!(out, "%{byte:02X}");
    }
}

/// A `%` that no two hex digits follow.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
#[error("`%` at byte {at} is not followed by two hex digits")]
pub struct UnescapeError {
    /// Offset of the `%` in bytes.
    pub at: usize,
}

/// The bytes that [`escape`] was given.
///
/// # Errors
/// [`UnescapeError`] for a broken escape.
pub fn unescape(text: &str) -> Result<Vec<u8>, UnescapeError> {
    let bytes = text.as_bytes();
    let mut out = Vec::with_capacity(bytes.len());
    let mut at = 0;
    while let Some(&byte) = bytes.get(at) {
        if byte != b'%' {
            out.push(byte);
            at += 1;
            continue;
        }
        let digit = |i: usize| bytes.get(i).and_then(|&b| char::from(b).to_digit(16));
        let (Some(high), Some(low)) = (digit(at + 1), digit(at + 2)) else {
            return Err(UnescapeError { at });
        };
        out.push((high * 16 + low) as u8);
        at += 3;
    }
    Ok(out)
}

/// What marks the place where [`excerpt`] cut.
const CUT: &str = "…";

/// One line of at most `bytes_max` bytes from what a child or a server said.
///
/// Terminal sequences, control and invisible characters go; runs of white space become one space;
/// bytes that are not UTF-8 become `\u{FFFD}`; a text that had to be cut ends with `…`.
pub fn excerpt(bytes: &[u8], bytes_max: usize) -> String {
    let mut out = String::new();
    let mut fits = 0;
    let mut gap = false;
    for c in Clean::new(bytes) {
        if c.is_whitespace() {
            gap = !out.is_empty();
            continue;
        }
        if std::mem::take(&mut gap) {
            out.push(' ');
        }
        out.push(c);
        if out.len() + CUT.len() <= bytes_max {
            fits = out.len();
        }
        if out.len() > bytes_max {
            out.truncate(fits);
            if CUT.len() <= bytes_max {
                out.push_str(CUT);
            }
            return out;
        }
    }
    out
}

/// Characters without terminal sequences and without what does not show.
struct Clean<'a> {
    chars: std::iter::Peekable<Lossy<'a>>,
}

/// Bytes as characters, a wrong byte sequence as `\u{FFFD}`; nothing is copied.
struct Lossy<'a> {
    chunks: std::str::Utf8Chunks<'a>,
    valid: std::str::Chars<'a>,
    broken: bool,
}

impl Iterator for Lossy<'_> {
    type Item = char;

    fn next(&mut self) -> Option<char> {
        loop {
            if let Some(c) = self.valid.next() {
                return Some(c);
            }
            if std::mem::take(&mut self.broken) {
                return Some(char::REPLACEMENT_CHARACTER);
            }
            let chunk = self.chunks.next()?;
            self.valid = chunk.valid().chars();
            self.broken = !chunk.invalid().is_empty();
        }
    }
}

impl<'a> Clean<'a> {
    fn new(bytes: &'a [u8]) -> Self {
        let chars = Lossy {
            chunks: bytes.utf8_chunks(),
            valid: "".chars(),
            broken: false,
        };
        Self {
            chars: chars.peekable(),
        }
    }

    /// Skips what belongs to the escape character just read.
    fn skip_sequence(&mut self) {
        match self.chars.next_if(|c| ('\u{20}'..='\u{7e}').contains(c)) {
            Some('[') => self.skip_control(),
            Some(']' | 'P' | 'X' | '^' | '_') => self.skip_string(),
            // `ESC ( B` and its like: intermediates, then one final character.
            Some(' '..='/') => {
                while self.chars.next_if(|c| (' '..='/').contains(c)).is_some() {}
                self.chars.next_if(|c| ('0'..='~').contains(c));
            }
            _ => {}
        }
    }

    /// `CSI`: parameters up to a final character.
    fn skip_control(&mut self) {
        while self.chars.next_if(|c| (' '..='?').contains(c)).is_some() {}
        self.chars.next_if(|c| ('@'..='~').contains(c));
    }

    /// `OSC` and its like: up to BEL or ST. A line end stops it, so that an unfinished one can not
    /// hide the rest of the text.
    fn skip_string(&mut self) {
        while let Some(c) = self.chars.next_if(|&c| c != '\n') {
            match c {
                '\u{7}' | '\u{9c}' => return,
                '\u{1b}' => {
                    self.chars.next_if_eq(&'\\');
                    return;
                }
                _ => {}
            }
        }
    }
}

impl Iterator for Clean<'_> {
    type Item = char;

    fn next(&mut self) -> Option<char> {
        loop {
            match self.chars.next()? {
                '\u{1b}' => self.skip_sequence(),
                '\u{9b}' => self.skip_control(),
                '\u{90}' | '\u{9d}' => self.skip_string(),
                c if c.is_whitespace() => return Some(' '),
                c if is_invisible(c) => {}
                c => return Some(c),
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    #[test]
    fn escape_keeps_what_prints() {
        for (bytes, text) in [
            (&b"a b/\xc3\xa9.txt"[..], "a b/é.txt"),
            (b"100%", "100%25"),
            (b"a\tb\x7f", "a%09b%7F"),
            (b"\xff\xfe", "%FF%FE"),
            ("x\u{202e}y".as_bytes(), "x%E2%80%AEy"),
            (
                "\u{85}\u{ad}\u{e0041}".as_bytes(),
                "%C2%85%C2%AD%F3%A0%81%81",
            ),
            (
                "日本 e\u{301} ❤\u{fe0f}".as_bytes(),
                "日本 e\u{301} ❤\u{fe0f}",
            ),
        ] {
            assert_eq!(escape(bytes), text);
            assert_eq!(unescape(text).unwrap(), bytes);
        }
    }

    #[test]
    fn unescape_refuses_broken_escapes() {
        for (text, at) in [("%", 0), ("a%2", 1), ("%zz", 0), ("%25%é0", 3)] {
            assert_eq!(unescape(text), Err(UnescapeError { at }));
        }
    }

    #[test]
    fn excerpt_is_one_clean_line() {
        for (bytes, text) in [
            (&b"  one\r\n\ttwo \n"[..], "one two"),
            (b"\x1b[1;31merror\x1b[0m: \x1b]0;title\x07no", "error: no"),
            (b"\x1b]8;;http://x\x1b\\link\x1b]8;;\x1b\\", "link"),
            (b"\x1b]never ended\nseen", "seen"),
            (b"\x1b(Bplain\x1b[", "plain"),
            (b"a\x00b\xffc\x08", "ab\u{fffd}c"),
            ("r\u{202e}l\u{200b}".as_bytes(), "rl"),
            (b"", ""),
        ] {
            assert_eq!(excerpt(bytes, 100), text);
        }
    }

    #[test]
    fn excerpt_cuts_between_characters() {
        assert_eq!(excerpt(b"abcdef", 6), "abcdef");
        assert_eq!(excerpt(b"abcdefg", 6), "abc…");
        assert_eq!(excerpt("éééé".as_bytes(), 7), "éé…");
        assert_eq!(excerpt(b"abcdef", 2), "");
        assert_eq!(excerpt(b"ab   ", 2), "ab");
    }

    proptest! {
        #[test]
        fn escape_round_trips(bytes in proptest::collection::vec(any::<u8>(), 0..64)) {
            let text = escape(&bytes);
            prop_assert_eq!(unescape(&text).unwrap(), bytes);
            prop_assert!(!text.chars().any(is_invisible));
        }

        #[test]
        fn excerpt_is_bounded(bytes in proptest::collection::vec(any::<u8>(), 0..64), max in 0usize..40) {
            let text = excerpt(&bytes, max);
            prop_assert!(text.len() <= max);
            prop_assert!(!text.chars().any(is_invisible));
        }
    }
}
