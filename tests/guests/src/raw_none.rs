//! There is no WASI here.

use serde_json::Value;

pub(crate) fn random() -> usize {
    0
}

pub(crate) fn random_list() -> usize {
    0
}

pub(crate) fn play(name: &str) -> Value {
    Value::String(name.to_owned())
}
