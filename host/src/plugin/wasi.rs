//! The part of WASI 0.2 that a std guest needs: one interface at a time, never all of it.

use wasmtime::StoreContextMut;
use wasmtime::component::{HasData, Linker, Resource, ResourceTable};
use wasmtime_wasi::WasiView;
use wasmtime_wasi::cli::{WasiCli, WasiCliView};
use wasmtime_wasi::clocks::{WasiClocks, WasiClocksView};
use wasmtime_wasi::filesystem::{Descriptor, WasiFilesystem, WasiFilesystemView};
use wasmtime_wasi::p2::bindings::filesystem::types::{
    DescriptorFlags, DescriptorType, ErrorCode, HostDescriptor, OpenFlags, PathFlags,
};
use wasmtime_wasi::p2::bindings::{cli, clocks, filesystem, random};
use wasmtime_wasi::random::{WasiRandom, WasiRandomView};
use wasmtime_wasi_io::bindings::wasi::io;

use super::inspect::Interface;
use super::state::CallState;
use super::text::clean_line;

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
            filesystem::types::add_to_linker::<_, WasiFilesystem>(l, CallState::filesystem)?;
            guard_open(l)?;
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

type OpenParams = (
    Resource<Descriptor>,
    PathFlags,
    String,
    OpenFlags,
    DescriptorFlags,
);

type Opened = Result<Resource<Descriptor>, ErrorCode>;

/// Puts a check before `open-at`.
fn guard_open(linker: &mut Linker<CallState>) -> wasmtime::Result<()> {
    linker.allow_shadowing(true);
    let mut types = linker.instance(&format!("wasi:filesystem/types@{VERSION}"))?;
    types.func_wrap_async(
        "[method]descriptor.open-at",
        |mut store: StoreContextMut<'_, CallState>, params: OpenParams| {
            Box::new(async move { Ok((open(store.data_mut(), params).await?,)) })
        },
    )?;
    linker.allow_shadowing(false);
    Ok(())
}

/// Opens what is a file or a directory only: opening a FIFO waits for its other end, which no
/// deadline could interrupt, and a device is no content.
async fn open(state: &mut CallState, params: OpenParams) -> wasmtime::Result<Opened> {
    let (dir, path_flags, path, open_flags, flags) = params;
    let same_dir = Resource::new_borrow(dir.rep());
    let mut files = state.filesystem();
    let found = HostDescriptor::stat_at(&mut files, same_dir, path_flags, path.clone()).await;
    let plain = match &found {
        Ok(stat) => matches!(
            stat.type_,
            DescriptorType::RegularFile | DescriptorType::Directory | DescriptorType::SymbolicLink
        ),
        // Whatever is wrong is better said by opening it.
        Err(_) => true,
    };
    let opened = if plain {
        let path = path.clone();
        HostDescriptor::open_at(&mut files, dir, path_flags, path, open_flags, flags).await
    } else {
        Err(ErrorCode::Unsupported.into())
    };
    match opened {
        Ok(descriptor) => Ok(Ok(descriptor)),
        Err(error) => {
            let code = error.downcast()?;
            if matches!(code, ErrorCode::NotPermitted | ErrorCode::Unsupported) {
                state.report_refused_path(&clean_line(&path, 200));
            }
            Ok(Err(code))
        }
    }
}
