//! Names that are one component.

use std::io;

/// Checks that `name` is one component and none of `.` and `..`.
pub(crate) fn check(name: &str) -> io::Result<()> {
    let bad = matches!(name, "" | "." | "..") || name.bytes().any(|b| b == b'/' || b == 0);
    if bad {
        let why = format!(
            "`{}` is not the name of a file",
            crate::text::escape(name.as_bytes())
        );
        return Err(io::Error::new(io::ErrorKind::InvalidInput, why));
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::check;

    #[test]
    fn one_component_only() {
        for bad in ["", ".", "..", "a/b", "/", "a\0", "../x"] {
            assert!(check(bad).is_err(), "{bad:?}");
        }
        for good in ["a", "...", ".x", "a b", "\n"] {
            assert!(check(good).is_ok(), "{good:?}");
        }
    }
}
