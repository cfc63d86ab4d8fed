//! Builds the shipped handlers for `wasm32-wasip2`.

use std::env;
use std::error::Error;
use std::ffi::OsString;
use std::path::{Path, PathBuf};
use std::process::{Command, ExitCode, Stdio};

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
        .args(["build", "--locked", "--profile", "guest"])
        .args(["--target", TARGET])
        .args(PACKAGES.iter().flat_map(|package| ["-p", package]))
        .arg("--manifest-path")
        .arg(repository.join("Cargo.toml"))
        .arg("--target-dir")
        .arg(target)
        .current_dir(repository)
        // Flags and wrappers meant for the host (clippy's, coverage's) do not fit the guests.
        .env_remove("RUSTC_WRAPPER")
        .env_remove("RUSTC_WORKSPACE_WRAPPER")
        .env_remove("CARGO_BUILD_TARGET")
        .env("CARGO_ENCODED_RUSTFLAGS", remapped_paths(repository)?)
        // Standard output is for cargo's directives; errors show when this script fails.
        .stdout(Stdio::null());
    let status = command.status()?;
    if status.success() {
        return Ok(());
    }
    Err(format!("building the handlers for {TARGET} failed ({status})").into())
}

/// The paths of this machine stay out of the components, so that their digest is the same on each.
fn remapped_paths(repository: &Path) -> Result<OsString, Box<dyn Error>> {
    let cargo_home = env::var_os("CARGO_HOME").map(PathBuf::from);
    let cargo_home = cargo_home.or_else(|| Some(env::home_dir()?.join(".cargo")));
    let cargo_home = cargo_home.ok_or("there is no home directory")?;
    let mut flags = OsString::from("--remap-path-prefix=");
    flags.push(repository);
    // Flags are separated by this character.
    flags.push("=warren\x1f--remap-path-prefix=");
    flags.push(cargo_home);
    flags.push("=cargo");
    Ok(flags)
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
