//! The guest that misbehaves (`tests/guests`), built for wasm once a run.

use std::path::Path;
use std::process::Command;
use std::sync::LazyLock;

static HOSTILE: LazyLock<Vec<u8>> = LazyLock::new(|| {
    let guests = Path::new(env!("CARGO_MANIFEST_DIR")).join("../guests");
    let exe = std::env::current_exe().expect("the path of this program");
    let target = exe
        .ancestors()
        .nth(2)
        .expect("a target directory")
        .join("hostile-guest");
    let output = Command::new(std::env::var_os("CARGO").unwrap_or_else(|| "cargo".into()))
        .args(["build", "--locked", "--profile", "guest"])
        .args(["--target", "wasm32-wasip2", "--target-dir"])
        .arg(&target)
        .current_dir(guests)
        .env_remove("CARGO_ENCODED_RUSTFLAGS")
        .env_remove("RUSTFLAGS")
        .env_remove("RUSTC_WRAPPER")
        .env_remove("RUSTC_WORKSPACE_WRAPPER")
        .env_remove("CARGO_BUILD_TARGET")
        .env_remove("CARGO_TARGET_DIR")
        .output()
        .expect("cargo runs");
    let stderr = String::from_utf8_lossy(&output.stderr);
    assert!(output.status.success(), "{stderr}");
    std::fs::read(target.join("wasm32-wasip2/guest/warren_hostile.wasm")).expect("a component")
});

/// The component of type `hostile`; `scenario` in the metadata picks what it does.
///
/// # Panics
///
/// When it does not build.
pub fn hostile() -> &'static [u8] {
    &HOSTILE
}
