//! Text that a guest made, before a person or a log sees it.

/// Most bytes of a guest's error text; the start and the end are kept.
const TEXT_BYTES_MAX: usize = 8 * 1024;

/// Makes text safe for a terminal and for messages: control characters except line breaks and tabs
/// are escaped, and what is too long loses its middle.
pub(crate) fn clean(text: &str) -> String {
    let mut out = String::with_capacity(text.len().min(TEXT_BYTES_MAX));
    let mut push = |part: &str| {
        for c in part.chars() {
            if (c.is_control() && !matches!(c, '\n' | '\t')) || is_bidi(c) {
                out.extend(c.escape_unicode());
            } else {
                out.push(c);
            }
        }
    };
    if text.len() <= TEXT_BYTES_MAX {
        push(text);
    } else {
        push(head(text, TEXT_BYTES_MAX / 4));
        push("\n…\n");
        push(tail(text, TEXT_BYTES_MAX / 4 * 3));
    }
    out
}

/// The same in one line of at most `bytes` bytes: line breaks are escaped too.
pub(crate) fn clean_line(text: &str, bytes: usize) -> String {
    let mut out = String::new();
    for c in text.trim_end().chars() {
        let mark = out.len();
        if c.is_control() || is_bidi(c) || matches!(c, '\u{2028}' | '\u{2029}') {
            out.extend(c.escape_default());
        } else {
            out.push(c);
        }
        if out.len() > bytes {
            out.truncate(mark);
            out.push('…');
            break;
        }
    }
    out
}

/// Characters that reorder what follows them.
fn is_bidi(c: char) -> bool {
    matches!(c, '\u{200e}' | '\u{200f}' | '\u{202a}'..='\u{202e}' | '\u{2066}'..='\u{2069}')
}

fn head(text: &str, bytes: usize) -> &str {
    let mut end = bytes.min(text.len());
    while !text.is_char_boundary(end) {
        end -= 1;
    }
    &text[..end]
}

fn tail(text: &str, bytes: usize) -> &str {
    let mut start = text.len().saturating_sub(bytes);
    while !text.is_char_boundary(start) {
        start += 1;
    }
    &text[start..]
}

/// The guest's own words for a crash, in one line: the text of a Rust panic, else the last line
/// that it wrote to stderr.
pub(crate) fn panic_text(stderr: &str) -> Option<String> {
    const LINE_BYTES: usize = 500;
    let text = match stderr.rfind("panicked at ") {
        Some(at) => {
            let report = &stderr[at..];
            let end = report.find("\nnote: ").unwrap_or(report.len());
            let (place, message) = report[..end]
                .split_once('\n')
                .unwrap_or((&report[..end], ""));
            if message.trim().is_empty() {
                place
            } else {
                message
            }
            .trim()
        }
        None => stderr
            .lines()
            .rev()
            .find(|line| !line.trim().is_empty())?
            .trim(),
    };
    Some(clean_line(text, LINE_BYTES))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn terminals_are_not_steered() {
        assert_eq!(clean("a\x1b[2Jb\nc\u{202e}d"), "a\\u{1b}[2Jb\nc\\u{202e}d");
        assert_eq!(
            clean_line("x\nlevel=error forged\r\n", 100),
            "x\\nlevel=error forged"
        );
    }

    #[test]
    fn long_text_keeps_start_and_end() {
        let text = format!("start{}end", "ü".repeat(50_000));
        let cut = clean(&text);
        assert!(cut.len() <= TEXT_BYTES_MAX + 8);
        assert!(cut.starts_with("start") && cut.ends_with("end"));
        let line = clean_line(&text, 100);
        assert!(line.len() <= 104 && line.ends_with('…'), "{line}");
    }

    #[test]
    fn the_reason_of_a_panic_is_found() {
        let stderr = "noise\n\nthread 'main' (1) panicked at src/lib.rs:9:5:\n\
                      disk layout unsupported\nnote: run with `RUST_BACKTRACE=1`\n";
        assert_eq!(panic_text(stderr).unwrap(), "disk layout unsupported");
        assert_eq!(
            panic_text("first\nfatal: last words\n\n").unwrap(),
            "fatal: last words"
        );
        assert_eq!(
            panic_text("panicked at src/x.rs:1:1").unwrap(),
            "panicked at src/x.rs:1:1"
        );
        assert_eq!(panic_text("  \n"), None);
    }
}
