//! A handler that misbehaves, for tests of the host: `scenario` in the metadata picks how.

mod abuse;
mod disk;
mod files;
mod fuzz;
#[cfg_attr(not(target_os = "wasi"), path = "raw_none.rs")]
mod raw;

use serde_json::{Value, json};
use warren_sdk::bindings::exports::warren::handler::handler::{Guest, Suspended};
use warren_sdk::{Description, Error, Loss, LossKind, Root};

/// The component.
pub struct Hostile;

impl Guest for Hostile {
    fn describe() -> Description {
        Description::new("hostile", "0.0.1", "Misbehaves\x1b[2J").action("act", "Acts")
    }

    fn init(_: Root, spec: String) -> Result<String, Error> {
        play(&spec)
    }

    fn suspend(_: Root, current: String) -> Result<Suspended, Error> {
        let loss = match scenario(&current).as_str() {
            "many-losses" => vec![lost(); 500_000],
            "most-losses" => vec![lost(); 4_000_000],
            "empty-root" => {
                files::empty(&warren_sdk::root());
                Vec::new()
            }
            _ => Vec::new(),
        };
        let metadata = play(&current)?;
        Ok(Suspended { metadata, loss })
    }

    fn recover(_: Root, saved: String) -> Result<String, Error> {
        play(&saved)
    }

    fn close(_: Root, current: String) -> Result<(), Error> {
        play(&current).map(drop)
    }

    fn perform(_: Root, action: String, _: String, current: String) -> Result<String, Error> {
        if !scenario(&current).is_empty() {
            return play(&current);
        }
        Ok(json!({ "action": action }).to_string())
    }
}

fn lost() -> Loss {
    Loss {
        kind: LossKind::Ignored,
        path: "p".into(),
        bytes: 1,
    }
}

fn scenario(metadata: &str) -> String {
    serde_json::from_str::<Value>(metadata)
        .ok()
        .and_then(|value| Some(value.get("scenario")?.as_str()?.to_owned()))
        .unwrap_or_default()
}

/// Does what the scenario says; without one, returns the metadata as it came.
fn play(metadata: &str) -> Result<String, Error> {
    let report = |value: Value| Ok(value.to_string());
    match scenario(metadata).as_str() {
        "panic" => panic!("disk layout\nunsupported"),
        #[expect(clippy::exit, reason = "what a handler must not do is what is tested")]
        "exit" => std::process::exit(7),
        "spin" => abuse::spin(),
        "sleep" => abuse::sleep(),
        "recurse" => report(json!({ "depth": abuse::recurse(1) })),
        "allocate" => report(json!({ "bytes": abuse::allocate() })),
        "handles" => report(json!({ "handles": abuse::handles() })),
        "flood-stdio" => {
            abuse::flood_stdio();
            panic!("the last words");
        }
        "flood-log" => {
            abuse::flood_log();
            Ok(metadata.to_owned())
        }
        "flood-progress" => {
            abuse::flood_progress();
            Ok(metadata.to_owned())
        }
        "huge-log" => {
            warren_sdk::log::info(&"x".repeat(32 << 20));
            Ok(metadata.to_owned())
        }
        "random" => report(json!({ "bytes": raw::random() })),
        "random-list" => report(json!({ "bytes": raw::random_list() })),
        name if name.starts_with("raw-") => report(raw::play(name)),
        "huge-url" => abuse::huge_url(),
        "process" => abuse::process(metadata),
        "git" => abuse::git(),
        "huge-result" => Ok("x".repeat(32 << 20)),
        "bad-json" => Ok("{not json".into()),
        "lie" => Ok(json!({ "dirName": "../x", "tenant": "other" }).to_string()),
        "typed" => Err(Error::SuspendNotConfigured("no\x1b[31m remote".into())),
        "keep-handle" => report(json!({ "kept": abuse::keep_handle() })),
        "escape" => report(files::escape()),
        "write" => report(files::write()),
        "small-file" => {
            files::small(&warren_sdk::root())?;
            Ok(metadata.to_owned())
        }
        "open" => report(files::open()),
        name if name.starts_with("disk-") => disk::play(name, metadata),
        "fuzz" => report(fuzz::all()),
        "surroundings" => report(abuse::surroundings()),
        _ => Ok(metadata.to_owned()),
    }
}

warren_sdk::embed_manifest!("manifest.toml");

#[cfg(target_arch = "wasm32")]
#[allow(unsafe_code, missing_docs, unreachable_pub, clippy::use_self)]
const _: () = {
    warren_sdk::bindings::export_component!(Hostile with_types_in warren_sdk::bindings);
};

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn without_a_scenario_metadata_comes_back() {
        assert_eq!(play(r#"{"a":1}"#).unwrap(), r#"{"a":1}"#);
        assert_eq!(scenario(r#"{"scenario":"spin"}"#), "spin");
    }
}
