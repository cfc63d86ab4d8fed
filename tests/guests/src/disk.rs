//! Everything that takes room, and links that point out.

#[cfg(target_os = "wasi")]
mod wasi;

use std::fs;

use serde_json::{Value, json};
use warren_sdk::Error;

pub(crate) fn play(name: &str, metadata: &str) -> Result<String, Error> {
    let metadata: Value = serde_json::from_str(metadata).unwrap_or_default();
    let how = metadata["how"].as_str().unwrap_or_default();
    match name {
        // As an honest handler would, and does not look at what went wrong.
        "disk-honest" => honest(metadata["bytes"].as_u64().unwrap_or(64 << 20)),
        "disk-panic" => {
            let written = honest(1 << 30);
            written.expect("room");
            Ok("{}".into())
        }
        #[cfg(target_os = "wasi")]
        _ => Ok(wasi::play(name, how).to_string()),
        #[cfg(not(target_os = "wasi"))]
        _ => Ok(json!({ "how": how }).to_string()),
    }
}

fn honest(bytes: u64) -> Result<String, Error> {
    let path = warren_sdk::root().join("big");
    let block = vec![7; 64 * 1024];
    let file = fs::File::create(&path).map_err(|error| warren_sdk::io(&path, error))?;
    let mut file = std::io::BufWriter::with_capacity(block.len(), file);
    let mut left = bytes;
    while left > 0 {
        let part = block
            .len()
            .min(usize::try_from(left).unwrap_or(block.len()));
        std::io::Write::write_all(&mut file, &block[..part])
            .map_err(|error| warren_sdk::io(&path, error))?;
        left -= part as u64;
    }
    let file = file
        .into_inner()
        .map_err(|error| warren_sdk::io(&path, error.into_error()))?;
    drop(file);
    Ok(json!({ "bytes": bytes }).to_string())
}
