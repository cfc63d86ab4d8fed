//! The process that compiles: a component comes in, code goes out, nothing else can be reached.

use std::ffi::OsString;
use std::io::{self, Read, Write};
use std::process::ExitCode;

use rustix::process::{Resource, Rlimit, Signal, setrlimit};
use warren_confine::{PathRules, SeccompProgram, Sockets, restrict_thread};

use crate::plugin::component::chain;
use crate::plugin::engine::compiler;
use crate::plugin::inspect::COMPONENT_BYTES_MAX;

/// The first argument that makes the program `warren` a worker.
pub const COMPILE_WORKER: &str = "compile-worker";

/// Exit code: the component is at fault, and standard error says how.
pub(super) const REJECTED: u8 = 3;

/// Exit code: the worker is.
const BROKEN: u8 = 4;

/// Compiles the component on standard input; the arguments are seconds of CPU time and bytes of
/// memory. For the program `warren`, before it does anything else.
pub fn compile_worker(args: impl Iterator<Item = OsString>) -> ExitCode {
    let (code, words) = match work(args) {
        Ok(()) => return ExitCode::SUCCESS,
        Err(Problem::Rejected(words)) => (REJECTED, words),
        Err(Problem::Broken(words)) => (BROKEN, words),
    };
    // When nobody reads it, nobody waits for it.
    drop(writeln!(io::stderr(), "{words}"));
    ExitCode::from(code)
}

enum Problem {
    Rejected(String),
    Broken(String),
}

fn work(args: impl Iterator<Item = OsString>) -> Result<(), Problem> {
    let broken = |error: &dyn std::fmt::Display| Problem::Broken(error.to_string());
    let numbers: Vec<u64> = args
        .map(|arg| arg.to_str().and_then(|arg| arg.parse().ok()))
        .collect::<Option<_>>()
        .ok_or_else(|| broken(&"bad arguments"))?;
    let [cpu_seconds, memory_bytes] = numbers[..] else {
        return Err(broken(&"two arguments are needed"));
    };
    limit(cpu_seconds, memory_bytes).map_err(|error| broken(&error))?;
    let mut bytes = Vec::new();
    io::stdin()
        .take(COMPONENT_BYTES_MAX)
        .read_to_end(&mut bytes)
        .map_err(|error| broken(&error))?;
    let engine = compiler().map_err(|error| broken(&chain(&error)))?;
    let code = engine
        .precompile_component(&bytes)
        .map_err(|error| Problem::Rejected(chain(&error)))?;
    io::stdout()
        .write_all(&code)
        .map_err(|error| broken(&error))
}

/// Gives up all that a compiler does not need.
fn limit(cpu_seconds: u64, memory_bytes: u64) -> io::Result<()> {
    // With the host, also when that is killed.
    rustix::process::set_parent_process_death_signal(Some(Signal::KILL))?;
    let set = |resource, most: u64| {
        let limit = Rlimit {
            current: Some(most),
            maximum: Some(most),
        };
        setrlimit(resource, limit)
    };
    // What is reserved and never written does not count.
    set(Resource::Data, memory_bytes)?;
    set(Resource::As, memory_bytes.saturating_mul(4))?;
    set(Resource::Core, 0)?;
    set(Resource::Fsize, 0)?;
    let cpu = Rlimit {
        current: Some(cpu_seconds),
        // The first is told apart from other ends, the second always works.
        maximum: Some(cpu_seconds + 5),
    };
    setrlimit(Resource::Cpu, cpu)?;
    // No file, no network, as far as the kernel can do that. Without, it is as if the host itself
    // compiled: nothing here interprets the component but the compiler.
    let sockets = Sockets {
        unix: false,
        inet: false,
    };
    drop(restrict_thread(&PathRules::new(), &[]));
    drop(SeccompProgram::new(sockets).and_then(|program| program.apply()));
    Ok(())
}
