//! A handler that sends requests, for tests of `wasi:http`: the metadata lists them under `requests`,
//! and what came of each comes back under `answers`.

mod hoard;
mod send;

use serde::Deserialize;
use serde_json::{Value, json};
use warren_sdk::bindings::exports::warren::handler::handler::{Guest, Suspended};
use warren_sdk::{Description, Error, Root};

use send::Spec;

/// The component.
pub struct Web;

/// What the metadata asks for.
#[derive(Deserialize, Default)]
#[serde(default, rename_all = "kebab-case")]
struct Play {
    requests: Vec<Spec>,
    /// All are sent before the first answer is looked at.
    at_once: bool,
    /// What is done when they are sent: `leave` and `panic` do not wait for an answer.
    then: String,
}

impl Guest for Web {
    fn describe() -> Description {
        Description::new("web", "0.0.1", "Sends requests")
    }

    fn init(_: Root, spec: String) -> Result<String, Error> {
        let play: Play =
            serde_json::from_str(&spec).map_err(|error| Error::Failed(error.to_string()))?;
        run(&play).map(|value| value.to_string())
    }

    fn suspend(_: Root, metadata: String) -> Result<Suspended, Error> {
        Ok(Suspended {
            metadata,
            loss: Vec::new(),
        })
    }

    fn recover(_: Root, saved: String) -> Result<String, Error> {
        Ok(saved)
    }

    fn close(_: Root, _: String) -> Result<(), Error> {
        Ok(())
    }

    fn perform(_: Root, action: String, _: String, _: String) -> Result<String, Error> {
        Err(Error::UnsupportedAction(action))
    }
}

fn run(play: &Play) -> Result<Value, Error> {
    match play.then.as_str() {
        "hoard-texts" => return Ok(hoard::texts()),
        "hoard-bodies" => return Ok(hoard::bodies()),
        "hoard-fields" => return Ok(hoard::fields()),
        _ => {}
    }
    let mut answers = Vec::new();
    if play.at_once {
        let sent: Vec<_> = play.requests.iter().map(send::start).collect();
        if play.then == "leave" {
            return Ok(json!({ "sent": sent.iter().filter(|sent| sent.is_ok()).count() }));
        }
        assert!(play.then != "panic", "with requests under way");
        // Every answer is held until all are there.
        let sent = sent.into_iter().map(|sent| sent.and_then(send::wait));
        let held: Vec<_> = sent.collect();
        for (answer, spec) in held.into_iter().zip(&play.requests) {
            answers.push(send::report(answer, spec));
        }
    } else {
        for spec in &play.requests {
            let answer = send::start(spec).and_then(send::wait);
            answers.push(send::report(answer, spec));
        }
    }
    Ok(json!({ "answers": answers }))
}

warren_sdk::embed_manifest!("manifest.toml");

#[cfg(target_arch = "wasm32")]
#[allow(unsafe_code, missing_docs, unreachable_pub, clippy::use_self)]
const _: () = {
    warren_sdk::bindings::export_component!(Web with_types_in warren_sdk::bindings);
};
