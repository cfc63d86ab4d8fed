//! Hostile bytes made fit for logs and terminals.

use warren_disk::text;

/// Any bytes, as a server, a child or a file name gives them.
pub fn text(data: &[u8]) {
    let escaped = text::escape(data);
    assert!(!escaped.chars().any(char::is_control), "{escaped:?}");
    assert_eq!(text::unescape(&escaped).expect("we wrote it"), data);
    if let Ok(given) = std::str::from_utf8(data)
        && let Ok(back) = text::unescape(given)
    {
        assert_eq!(
            text::unescape(&text::escape(&back)).expect("we wrote it"),
            back
        );
    }
    for max in [0, 1, 3, 20, 200] {
        let excerpt = text::excerpt(data, max);
        assert!(excerpt.len() <= max, "{} of {max}", excerpt.len());
        assert!(!excerpt.chars().any(char::is_control), "{excerpt:?}");
        assert!(
            !excerpt.contains(['\u{202e}', '\u{200b}', '\u{2028}']),
            "{excerpt:?}"
        );
        // Nothing left that a second look would take for a terminal sequence.
        if excerpt.len() < max && !excerpt.ends_with('…') {
            assert_eq!(text::excerpt(excerpt.as_bytes(), max), excerpt);
        }
    }
}
