//! What loads, what does not, and what is said about it.

use super::*;

async fn only_failure(config: RuntimeConfig) -> Arc<LoadError> {
    let (_, mut failures) = Runtime::start(config).await.unwrap();
    assert_eq!(failures.len(), 1, "{failures:?}");
    failures.remove(0).error
}

fn from_dir(files: &[(&str, &[u8])]) -> (TempDir, RuntimeConfig) {
    let dir = scratch();
    for (name, bytes) in files {
        std::fs::write(dir.path().join(name), bytes).unwrap();
    }
    let mut config = config(&[], grants());
    config.sources.dir = Some(dir.path().to_owned());
    (dir, config)
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn an_ungranted_import_refuses_the_load_and_is_named() {
    let error = only_failure(config(&[hostile()], Grants::default())).await;
    let LoadError::UngrantedImport(imports) = &*error else {
        panic!("{error:?}");
    };
    assert_eq!(
        imports,
        &["warren:handler/git@0.1.0", "warren:handler/process@0.1.0"]
    );
    assert_eq!(error.code(), "UngrantedImport");
    let quiet = Grants {
        log: false,
        ..grants()
    };
    let error = only_failure(config(&[hostile()], quiet)).await;
    assert!(
        error.to_string().contains("`warren:handler/log@0.1.0`"),
        "{error}"
    );
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn bad_files_are_reported_and_the_others_load() {
    let core = b"\0asm\x01\0\0\0";
    let files: &[(&str, &[u8])] = &[
        ("core.wasm", core),
        ("empty.wasm", b""),
        ("text.wasm", b"hello"),
        ("readme.txt", b"not looked at"),
        ("zz.wasm", warren_plugins::TEMP),
    ];
    let (_dir, config) = from_dir(files);
    let (runtime, failures) = Runtime::start(config).await.unwrap();
    let codes: Vec<_> = failures
        .iter()
        .map(|failure| failure.error.code())
        .collect();
    assert_eq!(
        codes,
        ["PluginCoreModule", "PluginMalformed", "PluginMalformed"]
    );
    let temp = runtime.plugin(&"temp".parse().unwrap()).unwrap();
    assert!(matches!(temp.origin(), Origin::File(_)));
    assert_eq!(temp.inspection().wit_version.as_deref(), Some(VERSION));
    let ours = temp
        .inspection()
        .imports
        .iter()
        .filter(|name| name.starts_with(PACKAGE));
    assert!(
        ours.clone()
            .all(|name| !name.contains("/git@") && !name.contains("/process@"))
    );
    assert!(
        !temp
            .inspection()
            .imports
            .iter()
            .any(|name| name.starts_with("wasi:sockets"))
    );
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn one_type_has_one_handler_and_shipped_types_are_reserved() {
    let twice: &[(&str, &[u8])] = &[
        ("a.wasm", warren_plugins::TEMP),
        ("b.wasm", warren_plugins::TEMP),
    ];
    let (_dir, config) = from_dir(twice);
    let error = only_failure(config).await;
    assert_eq!(error.code(), "DuplicateHandlerType");
    assert!(error.to_string().contains("a.wasm"), "{error}");

    // The shipped component is broken: its type stays reserved all the same.
    let (_dir, mut config) = from_dir(&twice[..1]);
    config.sources.shipped = vec![("temp", b"broken")];
    let (runtime, failures) = Runtime::start(config).await.unwrap();
    let codes: Vec<_> = failures
        .iter()
        .map(|failure| failure.error.code())
        .collect();
    assert_eq!(codes, ["PluginMalformed", "ReservedHandlerType"]);
    assert!(runtime.registry().iter().next().is_none());

    // Left out, it makes room.
    let (_dir, mut config) = from_dir(&twice[..1]);
    config.sources.shipped = vec![("temp", warren_plugins::TEMP)];
    config.sources.omit = ["temp".parse().unwrap()].into();
    let (runtime, failures) = Runtime::start(config).await.unwrap();
    assert!(failures.is_empty(), "{failures:?}");
    assert_eq!(runtime.registry().iter().count(), 1);
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_shipped_component_has_its_own_type() {
    let error = only_failure(config(&[("git", warren_plugins::TEMP)], grants())).await;
    assert_eq!(
        error.to_string(),
        "`describe` returned a bad `type-name`: it is `temp`, shipped as `git`"
    );
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_description_is_safe_to_print() {
    let world = World::with(hostile(), grants()).await;
    assert_eq!(world.plugin.description().summary, "Misbehaves\\u{1b}[2J");
    assert_eq!(world.plugin.inspection().digest.len(), 64);
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn another_version_or_interface_is_named() {
    let patched = |from: &str, to: &str| {
        let mut bytes = warren_testkit::hostile().to_vec();
        let mut found = false;
        for at in 0..bytes.len() - from.len() {
            if bytes[at..].starts_with(from.as_bytes()) {
                bytes[at..at + to.len()].copy_from_slice(to.as_bytes());
                found = true;
            }
        }
        assert!(found);
        bytes
    };
    let load = async |bytes: Vec<u8>| {
        let (_dir, mut config) = from_dir(&[("hostile.wasm", &bytes)]);
        let mut table = GrantTable::default();
        table.set("hostile", grants());
        config.sources.trust = Trust::Given(table.into());
        only_failure(config).await
    };
    let error = load(patched(
        "warren:handler/log@0.1.0",
        "warren:handler/log@0.9.0",
    ))
    .await;
    let words = "the component needs `warren:handler/log` at version 0.9.0; this host has 0.1.0";
    assert_eq!(error.to_string(), words);
    let error = load(patched("wasi:cli/environment@", "wasi:cli/environmenx@")).await;
    assert_eq!(error.code(), "UnknownImport");
    assert!(
        error.to_string().contains("`wasi:cli/environmenx@"),
        "{error}"
    );
}
