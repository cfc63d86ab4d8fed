//! The part of WASI 0.2 that a std guest needs: one interface at a time, never all of it.

use wasmtime::component::{HasData, Linker, ResourceTable};
use wasmtime_wasi::WasiView;
use wasmtime_wasi::cli::{WasiCli, WasiCliView};
use wasmtime_wasi::clocks::{WasiClocks, WasiClocksView};
use wasmtime_wasi::filesystem::{WasiFilesystem, WasiFilesystemView};
use wasmtime_wasi::p2::bindings::{cli, clocks, filesystem, random};
use wasmtime_wasi::random::{WasiRandom, WasiRandomView};
use wasmtime_wasi_io::bindings::wasi::io;

use super::files::HasFiles;
use super::inspect::Interface;
use super::state::CallState;

/// The version that wasmtime-wasi implements.
const VERSION: &str = "0.2.12";

/// Resources of `wasi:io` live in the table.
struct HasIo;

impl HasData for HasIo {
    type Data<'a> = &'a mut ResourceTable;
}

fn table(state: &mut CallState) -> &mut ResourceTable {
    state.ctx().table
}

/// Links one interface of WASI; says whether there is such a one.
///
/// # Errors
///
/// Fails when the interface is already linked.
pub(crate) fn link(
    linker: &mut Linker<CallState>,
    interface: &Interface<'_>,
) -> wasmtime::Result<bool> {
    if !interface.fits(VERSION) {
        return Ok(false);
    }
    let l = linker;
    match (interface.package, interface.name) {
        ("wasi:io", "error") => io::error::add_to_linker::<_, HasIo>(l, table)?,
        ("wasi:io", "poll") => io::poll::add_to_linker::<_, HasIo>(l, table)?,
        ("wasi:io", "streams") => io::streams::add_to_linker::<_, HasIo>(l, table)?,
        ("wasi:cli", name) => return link_cli(l, name),
        ("wasi:clocks", "wall-clock") => {
            clocks::wall_clock::add_to_linker::<_, WasiClocks>(l, CallState::clocks)?;
        }
        ("wasi:clocks", "monotonic-clock") => {
            clocks::monotonic_clock::add_to_linker::<_, WasiClocks>(l, CallState::clocks)?;
        }
        ("wasi:random", "random") => {
            random::random::add_to_linker::<_, WasiRandom>(l, CallState::random)?;
        }
        ("wasi:random", "insecure") => {
            random::insecure::add_to_linker::<_, WasiRandom>(l, CallState::random)?;
        }
        ("wasi:random", "insecure-seed") => {
            random::insecure_seed::add_to_linker::<_, WasiRandom>(l, CallState::random)?;
        }
        ("wasi:filesystem", "preopens") => {
            filesystem::preopens::add_to_linker::<_, WasiFilesystem>(l, CallState::filesystem)?;
        }
        ("wasi:filesystem", "types") => {
            filesystem::types::add_to_linker::<_, HasFiles>(l, CallState::files)?;
        }
        _ => return Ok(false),
    }
    Ok(true)
}

fn link_cli(l: &mut Linker<CallState>, name: &str) -> wasmtime::Result<bool> {
    let view = CallState::cli;
    match name {
        "exit" => cli::exit::add_to_linker::<_, WasiCli>(l, view)?,
        "environment" => cli::environment::add_to_linker::<_, WasiCli>(l, view)?,
        "stdin" => cli::stdin::add_to_linker::<_, WasiCli>(l, view)?,
        "stdout" => cli::stdout::add_to_linker::<_, WasiCli>(l, view)?,
        "stderr" => cli::stderr::add_to_linker::<_, WasiCli>(l, view)?,
        "terminal-input" => cli::terminal_input::add_to_linker::<_, WasiCli>(l, view)?,
        "terminal-output" => cli::terminal_output::add_to_linker::<_, WasiCli>(l, view)?,
        "terminal-stdin" => cli::terminal_stdin::add_to_linker::<_, WasiCli>(l, view)?,
        "terminal-stdout" => cli::terminal_stdout::add_to_linker::<_, WasiCli>(l, view)?,
        "terminal-stderr" => cli::terminal_stderr::add_to_linker::<_, WasiCli>(l, view)?,
        _ => return Ok(false),
    }
    Ok(true)
}
