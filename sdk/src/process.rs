//! Programs run on the Pod, with the RootDir as working directory and nothing else to write.

use crate::ProcessError;
pub use crate::bindings::warren::handler::process::{Command, Output, Program};

#[cfg(target_arch = "wasm32")]
use crate::bindings::warren::handler::process as host;
#[cfg(not(target_arch = "wasm32"))]
use crate::testing::process as host;

/// The absolute path of a program; none: it is not on this Pod or not granted.
pub fn find(program: &Program) -> Result<Option<String>, ProcessError> {
    host::find(program)
}

/// Runs a program to its end. An exit code other than 0 is not an error here.
pub fn run(command: &Command) -> Result<Output, ProcessError> {
    host::run(command)
}

impl Command {
    /// A program without arguments, with the host's environment and time limit.
    pub fn new(program: Program) -> Self {
        Self {
            program,
            arguments: Vec::new(),
            environment: Vec::new(),
            timeout_ms: None,
        }
    }

    /// Adds arguments, passed as they are: no shell.
    pub fn args<A: AsRef<str>>(mut self, arguments: impl IntoIterator<Item = A>) -> Self {
        let arguments = arguments.into_iter().map(|a| a.as_ref().to_owned());
        self.arguments.extend(arguments);
        self
    }

    /// Sets a variable. The policy says which may be set.
    pub fn env(mut self, name: &str, value: &str) -> Self {
        self.environment.push((name.to_owned(), value.to_owned()));
        self
    }

    /// Sets a time limit in milliseconds; the policy's holds when it is shorter.
    pub fn timeout_ms(mut self, timeout_ms: u64) -> Self {
        self.timeout_ms = Some(timeout_ms);
        self
    }
}
