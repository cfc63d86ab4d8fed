//! What each component may ask of its host, read from its bytes: the audit that can not lie.

use wasmparser::{Parser, Payload, Validator, WasmFeatures};

/// Names of a component's own imports and exports, without those of the parts inside it.
fn interfaces(component: &[u8]) -> (Vec<String>, Vec<String>) {
    let (mut imports, mut exports) = (Vec::new(), Vec::new());
    let mut depth = 0_usize;
    for payload in Parser::new(0).parse_all(component) {
        match payload.unwrap() {
            Payload::ModuleSection { .. } | Payload::ComponentSection { .. } => depth += 1,
            Payload::End(_) => depth = depth.saturating_sub(1),
            Payload::ComponentImportSection(section) if depth == 0 => {
                imports.extend(section.into_iter().map(|i| i.unwrap().name.name.to_owned()));
            }
            Payload::ComponentExportSection(section) if depth == 0 => {
                exports.extend(section.into_iter().map(|e| e.unwrap().name.name.to_owned()));
            }
            _ => {}
        }
    }
    imports.sort();
    (imports, exports)
}

fn ours(component: &[u8]) -> Vec<String> {
    let (imports, _) = interfaces(component);
    let ours = imports
        .into_iter()
        .filter(|name| name.starts_with("warren:"));
    ours.collect()
}

#[test]
fn a_component_imports_only_the_capabilities_that_it_uses() {
    let with = |names: &[&str]| -> Vec<String> {
        let full = |name: &&str| format!("warren:handler/{name}@0.1.0");
        names.iter().map(full).collect()
    };
    assert_eq!(ours(warren_plugins::TEMP), with(&["log", "types"]));
    assert_eq!(ours(warren_plugins::GIT), with(&["git", "log", "types"]));
    assert_eq!(
        ours(warren_plugins::PYTHON),
        with(&["git", "log", "process", "progress", "types"])
    );
}

#[test]
fn the_rest_of_the_imports_is_what_std_needs() {
    for (name, component) in warren_plugins::all() {
        let (imports, exports) = interfaces(component);
        for import in imports.iter().filter(|i| !i.starts_with("warren:")) {
            let std = ["wasi:cli/", "wasi:clocks/", "wasi:filesystem/", "wasi:io/"];
            assert!(
                std.iter().any(|p| import.starts_with(p)),
                "{name}: {import}"
            );
        }
        assert_eq!(exports, ["warren:handler/handler@0.1.0"], "{name}");
    }
}

#[test]
fn components_are_valid_and_small() {
    for (name, component) in warren_plugins::all() {
        Validator::new_with_features(WasmFeatures::default())
            .validate_all(component)
            .unwrap_or_else(|error| panic!("{name}: {error}"));
        assert!(component.len() < 400_000, "{name}: {}", component.len());
    }
}

#[test]
fn components_hold_no_path_of_the_machine_that_built_them() {
    let repository = concat!(env!("CARGO_MANIFEST_DIR"), "/").as_bytes();
    let repository = &repository[..repository.len() - "plugins/bundle/".len()];
    for (name, component) in warren_plugins::all() {
        let mut windows = component.windows(repository.len());
        assert!(!windows.any(|bytes| bytes == repository), "{name}");
    }
}

/// Each asks for what it imports and for nothing else, and its version is the crate's.
#[test]
fn manifests_say_what_the_components_are() {
    use warren_policy::{Capability, Manifest, capabilities, find_section};
    for (name, component) in warren_plugins::all() {
        let section = find_section(component).unwrap_or_else(|error| panic!("{name}: {error}"));
        let manifest = Manifest::parse(section).unwrap_or_else(|error| panic!("{name}: {error}"));
        assert_eq!(manifest.handler_type.as_str(), name);
        assert_eq!(manifest.version, env!("CARGO_PKG_VERSION"), "{name}");
        let imported = capabilities(&ours(component));
        for capability in [
            Capability::Git,
            Capability::Process,
            Capability::Http,
            Capability::Log,
            Capability::Progress,
        ] {
            let wanted = capability.is_wanted(&manifest.wants);
            assert_eq!(
                wanted,
                imported.contains(&capability),
                "{name}: {capability}"
            );
        }
    }
}
