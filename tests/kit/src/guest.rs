//! The guests of the tests (`tests/guests`), each built for wasm once a run.

use std::path::Path;
use std::process::Command;
use std::sync::LazyLock;

static HOSTILE: LazyLock<Vec<u8>> = LazyLock::new(|| build("warren-hostile", "hostile-guest"));
static WEB: LazyLock<Vec<u8>> = LazyLock::new(|| build("warren-web", "web-guest"));

fn build(package: &str, target: &str) -> Vec<u8> {
    let guests = Path::new(env!("CARGO_MANIFEST_DIR")).join("../guests");
    let exe = std::env::current_exe().expect("the path of this program");
    let target = exe
        .ancestors()
        .nth(2)
        .expect("a target directory")
        .join(target);
    let output = Command::new(std::env::var_os("CARGO").unwrap_or_else(|| "cargo".into()))
        .args(["build", "--locked", "--profile", "guest", "-p", package])
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
    let file = format!("wasm32-wasip2/guest/{}.wasm", package.replace('-', "_"));
    std::fs::read(target.join(file)).expect("a component")
}

/// The component of type `hostile`; `scenario` in the metadata picks what it does.
///
/// # Panics
///
/// When it does not build.
pub fn hostile() -> &'static [u8] {
    &HOSTILE
}

/// The component of type `web`, which sends the requests that its metadata lists.
///
/// # Panics
///
/// When it does not build.
pub fn web() -> &'static [u8] {
    &WEB
}
