//! What a component imports and exports, read from the binary: never from what it says.

use sha2::{Digest, Sha256};
use warren_policy::{Manifest, find_section};
use wasmparser::{Encoding, Parser, Payload};

use super::load_error::{LoadError, ManifestError};
use super::text::clean_line;

/// Package of the contract.
pub const PACKAGE: &str = "warren:handler";

/// Version of the contract that this host speaks.
pub const VERSION: &str = "0.1.0";

/// Most bytes of a component.
pub const COMPONENT_BYTES_MAX: u64 = 64 * 1024 * 1024;

/// Most imports or exports: far above any honest component.
const NAMES_MAX: usize = 1000;

/// What is known about a component without running or compiling it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Inspection {
    /// SHA-256 of the binary in hex.
    pub digest: String,
    /// Size of the binary in bytes.
    pub bytes: u64,
    /// Names of the interfaces it imports, `warren:handler/log@0.1.0` say, sorted.
    pub imports: Vec<String>,
    /// Names of what it exports, sorted.
    pub exports: Vec<String>,
    /// Version of `warren:handler` that it was built against, when it names one.
    pub wit_version: Option<String>,
    /// What it says that it is and wants.
    pub manifest: Result<Manifest, ManifestError>,
}

impl Inspection {
    /// The manifest, which a component must have to be loaded.
    ///
    /// # Errors
    ///
    /// Says why there is none that can be used.
    pub fn manifest(&self) -> Result<&Manifest, LoadError> {
        self.manifest
            .as_ref()
            .map_err(|error| LoadError::Manifest(error.clone()))
    }
}

/// Reads a component.
///
/// # Errors
///
/// Says what the bytes are when they are no component.
pub fn inspect(bytes: &[u8]) -> Result<Inspection, LoadError> {
    check_start(bytes)?;
    let (mut imports, mut exports) = names(bytes)?;
    for list in [&mut imports, &mut exports] {
        list.sort();
        list.dedup();
    }
    let wit_version = exports
        .iter()
        .chain(&imports)
        .filter_map(|name| Interface::parse(name))
        .find(|interface| interface.package == PACKAGE)
        .and_then(|interface| interface.version.map(str::to_owned));
    Ok(Inspection {
        digest: hex(&Sha256::digest(bytes)),
        bytes: bytes.len() as u64,
        imports,
        exports,
        wit_version,
        manifest: manifest(bytes),
    })
}

fn manifest(bytes: &[u8]) -> Result<Manifest, ManifestError> {
    let section = find_section(bytes).map_err(ManifestError::Section)?;
    Manifest::parse(section).map_err(ManifestError::Document)
}

fn check_start(bytes: &[u8]) -> Result<(), LoadError> {
    if bytes.is_empty() {
        return Err(LoadError::Empty);
    }
    if bytes.len() as u64 > COMPONENT_BYTES_MAX {
        return Err(LoadError::TooLarge {
            bytes: bytes.len() as u64,
            bytes_max: COMPONENT_BYTES_MAX,
        });
    }
    if !bytes.starts_with(b"\0asm") {
        let start = String::from_utf8_lossy(&bytes[..bytes.len().min(16)]);
        return Err(LoadError::NotWasm {
            start: clean_line(&start, 64),
        });
    }
    Ok(())
}

/// Imports and exports of the outermost component; nested ones are an inner matter.
fn names(bytes: &[u8]) -> Result<(Vec<String>, Vec<String>), LoadError> {
    let malformed = |error: wasmparser::BinaryReaderError| LoadError::Malformed(error.to_string());
    let (mut imports, mut exports) = (Vec::new(), Vec::new());
    let mut depth = 0_usize;
    for payload in Parser::new(0).parse_all(bytes) {
        match payload.map_err(malformed)? {
            Payload::Version { encoding, .. } => {
                if depth == 0 && encoding == Encoding::Module {
                    return Err(LoadError::CoreModule);
                }
                depth += 1;
            }
            Payload::End(_) => depth = depth.saturating_sub(1),
            Payload::ComponentImportSection(section) if depth == 1 => {
                for import in section {
                    imports.push(import.map_err(malformed)?.name.name.to_owned());
                }
            }
            Payload::ComponentExportSection(section) if depth == 1 => {
                for export in section {
                    exports.push(export.map_err(malformed)?.name.name.to_owned());
                }
            }
            _ => {}
        }
        if imports.len() > NAMES_MAX || exports.len() > NAMES_MAX {
            return Err(LoadError::Malformed(
                "it has too many imports or exports".into(),
            ));
        }
    }
    Ok((imports, exports))
}

/// The parts of `namespace:package/interface@version`.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Interface<'a> {
    /// `namespace:package`.
    pub(crate) package: &'a str,
    /// `interface`.
    pub(crate) name: &'a str,
    /// `version`.
    pub(crate) version: Option<&'a str>,
}

impl<'a> Interface<'a> {
    pub(crate) fn parse(text: &'a str) -> Option<Self> {
        let (path, version) = match text.split_once('@') {
            Some((path, version)) => (path, Some(version)),
            None => (text, None),
        };
        let (package, name) = path.split_once('/')?;
        Some(Self {
            package,
            name,
            version,
        })
    }

    /// Whether a host with `ours` can serve it: the same track, `0.1` of `0.1.3` say. What differs
    /// inside a track is found by the type check.
    pub(crate) fn fits(&self, ours: &str) -> bool {
        self.version
            .is_some_and(|version| track(version) == track(ours))
    }
}

/// The part of a version in which releases are compatible: `0.1` of `0.1.2`, `1` of `1.2.3`; a
/// pre-release is only compatible with itself.
fn track(version: &str) -> &str {
    if version.contains(['-', '+']) {
        return version;
    }
    let kept = if version.starts_with("0.") { 2 } else { 1 };
    match version.match_indices('.').nth(kept - 1) {
        Some((at, _)) => &version[..at],
        None => version,
    }
}

/// Checks that the component exports the handler interface in a version of this host.
///
/// # Errors
///
/// Names the interface, what is expected and what was found.
pub fn check_exports(inspection: &Inspection) -> Result<(), LoadError> {
    let found = inspection
        .exports
        .iter()
        .filter_map(|name| Interface::parse(name))
        .find(|interface| interface.package == PACKAGE && interface.name == "handler");
    match found {
        Some(interface) if interface.fits(VERSION) => Ok(()),
        Some(interface) => Err(wrong_version(&interface)),
        None => Err(LoadError::MissingExport {
            expected: format!("{PACKAGE}/handler@{VERSION}"),
            found: inspection.exports.clone(),
        }),
    }
}

pub(crate) fn wrong_version(interface: &Interface<'_>) -> LoadError {
    LoadError::WrongVersion {
        interface: format!("{}/{}", interface.package, interface.name),
        expected: VERSION.to_owned(),
        found: interface.version.unwrap_or("none").to_owned(),
    }
}

pub(crate) fn hex(bytes: &[u8]) -> String {
    bytes.iter().map(|byte| format!("{byte:02x}")).collect()
}

/// The bytes of what [`hex`] wrote.
pub(crate) fn from_hex(digits: &[u8]) -> Option<Vec<u8>> {
    let digit = |byte: u8| (byte as char).to_digit(16);
    digits
        .chunks(2)
        .map(|pair| match pair {
            [high, low] => u8::try_from(digit(*high)? * 16 + digit(*low)?).ok(),
            _ => None,
        })
        .collect()
}

#[cfg(test)]
mod tests {
    use warren_policy::SectionError;

    use super::*;

    /// A component whose only content is the given section.
    fn component(section: u8, items: &[&[u8]]) -> Vec<u8> {
        let mut body = vec![u8::try_from(items.len()).unwrap()];
        body.extend(items.concat());
        let mut bytes = b"\0asm\x0d\0\x01\0".to_vec();
        bytes.extend([section, u8::try_from(body.len()).unwrap()]);
        bytes.extend(body);
        bytes
    }

    /// An import of an instance of type 0; only its name matters here.
    fn import(name: &str) -> Vec<u8> {
        let mut item = vec![0, u8::try_from(name.len()).unwrap()];
        item.extend(name.as_bytes());
        item.extend([5, 0]);
        item
    }

    #[test]
    fn what_is_no_component_is_named() {
        let code = |bytes: &[u8]| inspect(bytes).unwrap_err();
        assert!(matches!(code(b""), LoadError::Empty));
        let text = code(b"#!/bin/sh\nexec x");
        assert_eq!(
            text.to_string(),
            r"this is no WebAssembly: the file starts with `#!/bin/sh\nexec x`"
        );
        assert!(matches!(code(b"\0asm\x01\0\0\0"), LoadError::CoreModule));
        assert!(matches!(
            code(b"\0asm\x0d\0\x01\0\x0b\xff"),
            LoadError::Malformed(_)
        ));
        assert!(matches!(code(b"\0asm"), LoadError::Malformed(_)));
    }

    #[test]
    fn imports_are_read_from_the_binary() {
        let names = ["warren:handler/log@0.1.0", "wasi:http/types@0.2.0"].map(import);
        let bytes = component(10, &[&names[1], &names[0]]);
        let found = inspect(&bytes).unwrap();
        assert_eq!(
            found.imports,
            ["warren:handler/log@0.1.0", "wasi:http/types@0.2.0"]
        );
        assert_eq!(found.wit_version.as_deref(), Some("0.1.0"));
        assert_eq!(found.digest.len(), 64);
    }

    #[test]
    fn a_missing_or_newer_export_says_what_is_expected() {
        let inspection = |export: &str| Inspection {
            digest: String::new(),
            bytes: 0,
            imports: Vec::new(),
            exports: vec![export.to_owned()],
            wit_version: None,
            manifest: Err(ManifestError::Section(SectionError::Missing)),
        };
        assert!(check_exports(&inspection("warren:handler/handler@0.1.0")).is_ok());
        assert!(check_exports(&inspection("warren:handler/handler@0.1.7")).is_ok());
        assert_eq!(
            check_exports(&inspection("warren:handler/handler@0.2.0"))
                .unwrap_err()
                .to_string(),
            "the component needs `warren:handler/handler` at version 0.2.0; this host has 0.1.0"
        );
        assert_eq!(
            check_exports(&inspection("wasi:cli/run@0.2.0"))
                .unwrap_err()
                .to_string(),
            "the component exports no `warren:handler/handler@0.1.0`; it exports `wasi:cli/run@0.2.0`"
        );
    }

    #[test]
    fn tracks_are_what_semver_calls_compatible() {
        for (version, expected) in [
            ("0.1.0", "0.1"),
            ("0.2.12", "0.2"),
            ("1.2.3", "1"),
            ("0.2.0-rc1", "0.2.0-rc1"),
            ("7", "7"),
        ] {
            assert_eq!(track(version), expected);
        }
    }
}
