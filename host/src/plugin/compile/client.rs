//! The host's side of a compilation in a process of its own.

use std::os::unix::process::ExitStatusExt;
use std::path::Path;
use std::process::{ExitStatus, Stdio};

use tokio::io::{AsyncRead, AsyncReadExt, AsyncWriteExt};
use tokio::process::{Child, Command};
use tokio::time::timeout;
use wasmtime::Engine;
use wasmtime::component::Component;

use super::worker::{COMPILE_WORKER, REJECTED};
use super::{CompileLimits, Failed, too_long};
use crate::plugin::component::chain;
use crate::plugin::text::clean_line;

/// Most bytes of code.
const CODE_BYTES_MAX: u64 = 512 * 1024 * 1024;

/// Most bytes that are kept of what the worker says.
const WORDS_BYTES_MAX: u64 = 4096;

const SIGXCPU: i32 = 24;

/// Hands a component to a worker and loads what it made of it. The worker ends with the future.
pub(super) async fn compile(
    worker: &Path,
    limits: &CompileLimits,
    engine: &Engine,
    bytes: &[u8],
) -> Result<Component, Failed> {
    let host = |error: std::io::Error| Failed::Host(format!("the compiler: {error}"));
    let mut child = Command::new(worker)
        .arg(COMPILE_WORKER)
        .arg(limits.cpu.as_secs().max(1).to_string())
        .arg(limits.memory_bytes.to_string())
        .env_clear()
        .current_dir("/")
        .stdin(Stdio::piped())
        .stdout(Stdio::piped())
        .stderr(Stdio::piped())
        .kill_on_drop(true)
        .spawn()
        .map_err(host)?;
    let Ok(ended) = timeout(limits.wall, talk(&mut child, bytes)).await else {
        return Err(too_long(limits.wall));
    };
    let (status, code, words) = ended.map_err(host)?;
    judge(status, &words, limits)?;
    if code.len() as u64 > CODE_BYTES_MAX {
        return Err(Failed::Limit("its code is too big".into()));
    }
    // SAFETY: these bytes come from a worker that runs this very program, over a pipe that nobody
    // else has, and are what its compiler returned.
    #[expect(
        unsafe_code,
        reason = "loads native code that the host itself has compiled"
    )]
    let component = unsafe { Component::deserialize(engine, &code) };
    component.map_err(|error| Failed::Host(chain(&error)))
}

async fn talk(child: &mut Child, bytes: &[u8]) -> std::io::Result<(ExitStatus, Vec<u8>, String)> {
    let (stdin, stdout, stderr) = (child.stdin.take(), child.stdout.take(), child.stderr.take());
    let give = async {
        if let Some(mut stdin) = stdin {
            // One that rejects it may not read it all: its status says why.
            match stdin.write_all(bytes).await {
                Err(error) if error.kind() != std::io::ErrorKind::BrokenPipe => return Err(error),
                _ => {}
            }
        }
        Ok(())
    };
    let (given, code, words) = tokio::join!(
        give,
        read(stdout, CODE_BYTES_MAX + 1),
        read(stderr, WORDS_BYTES_MAX)
    );
    given?;
    let words = String::from_utf8_lossy(&words?).into_owned();
    Ok((child.wait().await?, code?, words))
}

async fn read(from: Option<impl AsyncRead + Unpin>, most: u64) -> std::io::Result<Vec<u8>> {
    let mut bytes = Vec::new();
    if let Some(from) = from {
        from.take(most).read_to_end(&mut bytes).await?;
    }
    Ok(bytes)
}

fn judge(status: ExitStatus, words: &str, limits: &CompileLimits) -> Result<(), Failed> {
    let words = clean_line(words.trim(), 1000);
    match (status.code(), status.signal()) {
        (Some(0), _) => Ok(()),
        (Some(code), _) if code == i32::from(REJECTED) => Err(Failed::Component(words)),
        (Some(code), _) => Err(Failed::Host(format!(
            "the compiler ended with {code}: {words}"
        ))),
        (None, Some(SIGXCPU)) => Err(Failed::Limit(format!(
            "it took more than {} s of CPU time",
            limits.cpu.as_secs().max(1)
        ))),
        _ if words.contains("memory allocation") => Err(Failed::Limit(format!(
            "it took more than {} bytes of memory",
            limits.memory_bytes
        ))),
        _ => Err(Failed::Limit("the compiler crashed".into())),
    }
}
