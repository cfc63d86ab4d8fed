//! Time, memory, output, handles.

use std::fs::File;
use std::hint::black_box;
use std::io::Write;
use std::sync::Mutex;
use std::time::Duration;

use serde_json::{Value, json};
use warren_sdk::git::Remote;
use warren_sdk::process::{Command, Program};
use warren_sdk::{Error, log, progress};

/// A handle that is meant to outlive its call.
static KEPT: Mutex<Option<File>> = Mutex::new(None);

pub(crate) fn spin() -> ! {
    let mut n = 0_u64;
    loop {
        n = black_box(n.wrapping_add(1));
    }
}

pub(crate) fn sleep() -> ! {
    loop {
        std::thread::sleep(Duration::from_secs(3600));
    }
}

/// Takes no space in linear memory: only the engine's own stack can end it.
pub(crate) fn recurse(depth: u64) -> u64 {
    if depth == u64::MAX {
        return 0;
    }
    recurse(depth + 1).wrapping_mul(31) ^ depth
}

pub(crate) fn allocate() -> usize {
    let mut blocks = Vec::new();
    loop {
        blocks.push(black_box(vec![1_u8; 1 << 20]));
        if blocks.len() > 1 << 16 {
            return blocks.len();
        }
    }
}

/// Opens the root again and again.
pub(crate) fn handles() -> usize {
    let mut open = Vec::new();
    while open.len() < 100_000 {
        match File::open(warren_sdk::root()) {
            Ok(file) => open.push(file),
            Err(_) => break,
        }
    }
    open.len()
}

pub(crate) fn flood_stdio() {
    let line = "\x1b[2Jlevel=error forged\n".repeat(2000);
    for _ in 0..200 {
        let _ = std::io::stdout().write_all(line.as_bytes());
        let _ = std::io::stderr().write_all(line.as_bytes());
    }
}

pub(crate) fn flood_log() {
    for n in 0..20_000 {
        log::info(&format!(
            "line {n}\n{{\"level\":\"ERROR\"}} forged {}",
            "x".repeat(5000)
        ));
    }
}

pub(crate) fn flood_progress() {
    for n in 0..50_000 {
        progress::report(&format!("stage {n}\x1b[2J"), n, None);
    }
}

pub(crate) fn huge_url() -> Result<String, Error> {
    let origin = Remote {
        url: "x".repeat(32 << 20),
        credential_alias: None,
    };
    warren_sdk::git::clone(&origin, None)?;
    Ok("{}".into())
}

/// Runs what the metadata lists under `argv`: an alias, then arguments.
pub(crate) fn process(metadata: &str) -> Result<String, Error> {
    let metadata: Value = serde_json::from_str(metadata).unwrap_or_default();
    let argv = metadata["argv"].as_array().cloned().unwrap_or_default();
    let words: Vec<_> = argv.iter().filter_map(Value::as_str).collect();
    let alias = words.first().copied().unwrap_or_default();
    let mut command = Command::new(Program::Alias(alias.into())).args(words.iter().skip(1));
    if let Some(name) = metadata["env"].as_str() {
        command = command.env(name, "/x");
    }
    let output = warren_sdk::process::run(&command)?;
    Ok(json!({ "code": output.exit_code, "stdout": output.stdout }).to_string())
}

pub(crate) fn git() -> Result<String, Error> {
    let head = warren_sdk::git::head()?;
    Ok(json!({ "commit": head.commit }).to_string())
}

/// Says whether an earlier call's handle is still here, and leaves one.
pub(crate) fn keep_handle() -> bool {
    let mut kept = KEPT.lock().unwrap_or_else(|poisoned| poisoned.into_inner());
    let was_there = kept.is_some();
    *kept = File::open(warren_sdk::root()).ok();
    was_there
}

/// What a guest can see of its host.
pub(crate) fn surroundings() -> Value {
    json!({
        "env": std::env::vars().count(),
        "args": std::env::args().count(),
        "stdin": std::io::read_to_string(std::io::stdin()).unwrap_or_default(),
    })
}
