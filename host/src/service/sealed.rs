//! Descriptors and `workspace.json` carry a seal: they stand beside content that anybody may have
//! written, and decide what is deleted, pushed and run.
//!
//! The seal is the last field, over every byte before it, so that no two ways to print a document
//! matter.

use crate::seal::Seal;

/// What is before the seal in hex.
const START: &str = ",\n  \"seal\": \"v1:";

/// What is behind it.
const END: &str = "\"\n}\n";

/// A document as it stands on disk.
pub(super) struct Document {
    /// The JSON without its seal.
    pub(super) json: Vec<u8>,
    /// Whether its seal is ours.
    pub(super) ours: bool,
}

/// Prints a document with its seal. `purpose` is what it is, `name` its file.
pub(super) fn write(
    seal: &Seal,
    purpose: &str,
    name: &str,
    value: &impl serde::Serialize,
) -> Vec<u8> {
    // Plain data with string keys: there is no value that fails.
    let mut bytes = serde_json::to_vec_pretty(value).expect("a document is JSON");
    // The closing brace comes back behind the seal.
    bytes.truncate(bytes.len() - "\n}".len());
    let mac = seal.mac(purpose, name, &bytes);
    bytes.extend(START.bytes());
    bytes.extend(crate::plugin::hex(&mac).bytes());
    bytes.extend(END.bytes());
    bytes
}

/// Takes a document apart.
pub(super) fn read(seal: &Seal, purpose: &str, name: &str, bytes: &[u8]) -> Document {
    match split(bytes) {
        Some((body, mac)) => Document {
            json: [body, b"\n}\n"].concat(),
            ours: seal.verify(purpose, name, body, &mac),
        },
        None => Document {
            json: bytes.to_vec(),
            ours: false,
        },
    }
}

/// The sealed bytes and the seal.
fn split(bytes: &[u8]) -> Option<(&[u8], Vec<u8>)> {
    let rest = bytes.strip_suffix(END.as_bytes())?;
    let (rest, hex) = rest.split_at_checked(rest.len().checked_sub(crate::seal::MAC_BYTES * 2)?)?;
    let body = rest.strip_suffix(START.as_bytes())?;
    Some((body, crate::plugin::from_hex(hex)?))
}

#[cfg(test)]
mod tests {
    use serde_json::{Value, json};

    use super::*;

    fn seal() -> (tempfile::TempDir, Seal) {
        let dir = tempfile::tempdir().unwrap();
        let seal = Seal::open(dir.path()).unwrap();
        (dir, seal)
    }

    #[test]
    fn a_document_is_json_with_its_seal_and_comes_back_without() {
        let (_dir, seal) = seal();
        let value = json!({"a": 1.1, "b": {"seal": "v1:x"}});
        let bytes = write(&seal, "descriptor", "t/p/d", &value);
        let read_as_json: Value = serde_json::from_slice(&bytes).unwrap();
        assert!(read_as_json["seal"].as_str().unwrap().starts_with("v1:"));
        let back = read(&seal, "descriptor", "t/p/d", &bytes);
        assert!(back.ours);
        assert_eq!(serde_json::from_slice::<Value>(&back.json).unwrap(), value);
    }

    #[test]
    fn any_other_byte_purpose_or_owner_breaks_the_seal() {
        let (_dir, seal) = seal();
        let bytes = write(&seal, "descriptor", "t/p/d", &json!({"a": 1}));
        for at in 0..bytes.len() {
            let mut other = bytes.clone();
            other[at] ^= 1;
            assert!(
                !read(&seal, "descriptor", "t/p/d", &other).ours,
                "byte {at}"
            );
        }
        assert!(!read(&seal, "workspace", "t/p/d", &bytes).ours);
        assert!(!read(&seal, "descriptor", "t/p2/d", &bytes).ours);
        for other in [&b""[..], b"{}", b"\"\n}\n", b"{\n  \"a\": 1\n}\n"] {
            let found = read(&seal, "descriptor", "t/p/d", other);
            assert!(!found.ours && found.json == other);
        }
    }
}
