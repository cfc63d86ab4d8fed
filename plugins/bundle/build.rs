//! Builds the shipped handlers for `wasm32-wasip2`.

use std::env;
use std::error::Error;
use std::path::{Path, PathBuf};
use std::process::{Command, ExitCode};

const TARGET: &str = "wasm32-wasip2";
const PACKAGES: [&str; 3] = ["warren-temp", "warren-git", "warren-python"];

/// What the guests are made of, from the root of the repository.
const SOURCES: [&str; 8] = [
    "Cargo.toml",
    "Cargo.lock",
    "rust-toolchain.toml",
    "wit",
    "sdk",
    "plugins/temp",
    "plugins/git",
    "plugins/python",
];

fn main() -> ExitCode {
    match build() {
        Ok(()) => ExitCode::SUCCESS,
        Err(error) => {
            // Cargo shows this line for a build script that failed.
            println!("cargo::error={error}");
            ExitCode::FAILURE
        }
    }
}

fn build() -> Result<(), Box<dyn Error>> {
    let out = PathBuf::from(env::var_os("OUT_DIR").ok_or("OUT_DIR is not set")?);
    let manifest = PathBuf::from(env::var_os("CARGO_MANIFEST_DIR").ok_or("no manifest dir")?);
    let repository = manifest.ancestors().nth(2).ok_or("no repository")?;
    println!("cargo::rerun-if-changed=build.rs");
    for source in SOURCES {
        println!(
            "cargo::rerun-if-changed={}",
            repository.join(source).display()
        );
    }
    check_target()?;
    // A target directory of its own: the one of the cargo that runs this script is locked.
    let target = out.join("guests");
    run_cargo(repository, &target)?;
    for package in PACKAGES {
        let file = format!("{}.wasm", package.replace('-', "_"));
        let built = target.join(TARGET).join("guest").join(&file);
        std::fs::copy(&built, out.join(&file))
            .map_err(|error| format!("{}: {error}", built.display()))?;
    }
    Ok(())
}

fn run_cargo(repository: &Path, target: &Path) -> Result<(), Box<dyn Error>> {
    let cargo = env::var_os("CARGO").ok_or("CARGO is not set")?;
    let mut command = Command::new(cargo);
    command
        .args([
            "build",
            "--locked",
            "--profile",
            "guest",
            "--target",
            TARGET,
        ])
        .args(PACKAGES.iter().flat_map(|package| ["-p", package]))
        .arg("--manifest-path")
        .arg(repository.join("Cargo.toml"))
        .arg("--target-dir")
        .arg(target)
        .current_dir(repository)
        // Flags and wrappers meant for the host (clippy's, coverage's) do not fit the guests.
        .env_remove("CARGO_ENCODED_RUSTFLAGS")
        .env_remove("RUSTFLAGS")
        .env_remove("RUSTC_WRAPPER")
        .env_remove("RUSTC_WORKSPACE_WRAPPER")
        .env_remove("CARGO_BUILD_TARGET")
        .env_remove("CARGO_TARGET_DIR");
    let output = command.output()?;
    if output.status.success() {
        return Ok(());
    }
    eprintln!("{}", String::from_utf8_lossy(&output.stderr));
    Err(format!(
        "building the handlers for {TARGET} failed: {}",
        output.status
    )
    .into())
}

/// Without this, a missing target shows as "can't find crate for `core`".
fn check_target() -> Result<(), Box<dyn Error>> {
    let rustc = env::var_os("RUSTC").unwrap_or_else(|| "rustc".into());
    let output = Command::new(rustc)
        .args(["--print", "target-libdir", "--target", TARGET])
        .output()?;
    let libdir = String::from_utf8(output.stdout)?;
    if output.status.success() && Path::new(libdir.trim()).is_dir() {
        return Ok(());
    }
    Err(format!("the Rust target {TARGET} is missing: run `rustup target add {TARGET}`").into())
}
