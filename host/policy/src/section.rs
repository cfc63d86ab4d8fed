//! The custom section that carries a component's manifest.

use wasmparser::{Parser, Payload};

/// Name of the section.
pub const SECTION: &str = "warren:manifest";

/// Why a binary's section cannot be had.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum SectionError {
    /// There is none.
    #[error("the component carries no manifest")]
    Missing,
    /// There is more than one: nobody could say which one counts.
    #[error("the component carries more than one manifest")]
    Several,
    /// The binary is damaged.
    #[error("the component is damaged: {0}")]
    Malformed(String),
}

/// Bytes of the one section named [`SECTION`], wherever in the binary it is.
///
/// # Errors
///
/// When there is none or more than one, or the binary is damaged.
pub fn find_section(component: &[u8]) -> Result<&[u8], SectionError> {
    let mut found = None;
    for payload in Parser::new(0).parse_all(component) {
        let payload = payload.map_err(|error| SectionError::Malformed(error.to_string()))?;
        if let Payload::CustomSection(section) = payload
            && section.name() == SECTION
            && found.replace(section.data()).is_some()
        {
            return Err(SectionError::Several);
        }
    }
    found.ok_or(SectionError::Missing)
}

/// The component with a manifest at its end.
pub fn append_section(component: &[u8], manifest: &[u8]) -> Vec<u8> {
    let name = SECTION.as_bytes();
    let mut body = leb128(name.len());
    body.extend(name);
    body.extend(manifest);
    let mut bytes = component.to_vec();
    // Id 0 is a custom section.
    bytes.push(0);
    bytes.extend(leb128(body.len()));
    bytes.extend(body);
    bytes
}

/// A length as the binary format writes it: seven bits a byte, the lowest first.
fn leb128(mut value: usize) -> Vec<u8> {
    let mut bytes = Vec::new();
    loop {
        let low = (value & 0x7f) as u8;
        value >>= 7;
        if value == 0 {
            bytes.push(low);
            return bytes;
        }
        bytes.push(low | 0x80);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const EMPTY: &[u8] = b"\0asm\x0d\0\x01\0";

    #[test]
    fn what_is_appended_is_found() {
        for length in [0, 1, 111, 112, 5000, 40_000] {
            let manifest = vec![b'x'; length];
            let stamped = append_section(EMPTY, &manifest);
            assert_eq!(find_section(&stamped).unwrap(), manifest, "{length}");
        }
    }

    #[test]
    fn none_two_and_damage_are_told_apart() {
        assert_eq!(find_section(EMPTY), Err(SectionError::Missing));
        let twice = append_section(&append_section(EMPTY, b"a"), b"a");
        assert_eq!(find_section(&twice), Err(SectionError::Several));
        let mut cut = append_section(EMPTY, b"manifest");
        cut.truncate(cut.len() - 3);
        assert!(matches!(
            find_section(&cut),
            Err(SectionError::Malformed(_))
        ));
    }

    #[test]
    fn one_inside_counts_too() {
        // A component around a core module (section id 1) that carries it.
        let module = append_section(b"\0asm\x01\0\0\0", b"inner");
        let mut outer = EMPTY.to_vec();
        outer.push(1);
        outer.extend(leb128(module.len()));
        outer.extend(&module);
        assert_eq!(find_section(&outer).unwrap(), b"inner");
        let both = append_section(&outer, b"outer");
        assert_eq!(find_section(&both), Err(SectionError::Several));
    }
}
