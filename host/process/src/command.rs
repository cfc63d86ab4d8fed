use std::io;
use std::time::Duration;

use cap_std::fs::Dir;
use warren_disk::owner::own_tree;
use warren_disk::walk::WalkError;
use warren_launch::{ChildLimits, Identity, LayerSet, LimitsHit, STDIN_BYTES_MAX, TAIL_BYTES_MAX};

use crate::{Confinement, Environment, ProcessError, Program};

/// Most bytes of all arguments together. The kernel takes no more in a single one.
const ARGUMENTS_BYTES_MAX: usize = 128 * 1024;
/// Bytes of output in an error.
const TAIL_IN_ERROR_BYTES_MAX: usize = 4096;

/// One program run: what, where, and within which limits.
#[derive(Debug)]
pub struct Command<'a> {
    /// The program, as the policy resolved it.
    pub program: &'a Program,
    /// Arguments behind the program's name, passed as they are: no shell.
    pub arguments: Vec<String>,
    /// The complete environment.
    pub environment: Environment,
    /// Working directory.
    pub directory: &'a Dir,
    /// What the program reads; `/dev/null` without.
    pub stdin: Option<Vec<u8>>,
    /// Time limit.
    pub deadline: Duration,
    /// How much output is kept.
    pub output_caps: OutputCaps,
    /// Resource limits.
    pub limits: ChildLimits,
    /// What the program may reach.
    pub confinement: Confinement<'a>,
}

impl Command<'_> {
    /// The folders that a confined program may write, and whom they have to belong to.
    pub(crate) fn owned(&self) -> Result<Option<Owned>, ProcessError> {
        let Some(identity) = self.confinement.identity() else {
            return Ok(None);
        };
        let folders = std::iter::once(self.directory).chain(self.confinement.writable());
        let folders: Result<Vec<_>, _> = folders.map(Dir::try_clone).collect();
        let folders = folders.map_err(not_given)?;
        Ok(Some(Owned { folders, identity }))
    }

    /// Refuses what could not be passed on whole.
    pub(crate) fn check(&self) -> Result<(), ProcessError> {
        let refuse = |what: &str| Err(ProcessError::InvalidArgument(what.to_owned()));
        if self
            .arguments
            .iter()
            .any(|argument| argument.contains('\0'))
        {
            return refuse("an argument holds a NUL byte");
        }
        if self.arguments.iter().map(String::len).sum::<usize>() > ARGUMENTS_BYTES_MAX {
            return refuse("the arguments are longer than 128 KiB");
        }
        if self
            .stdin
            .as_ref()
            .is_some_and(|bytes| bytes.len() > STDIN_BYTES_MAX)
        {
            return refuse("the input is longer than 1 MiB");
        }
        if self.deadline.as_millis() == 0 {
            return refuse("the time limit is zero");
        }
        self.confinement.check()?;
        let caps = self.output_caps;
        if caps.stdout_bytes.max(caps.stderr_bytes) as usize > TAIL_BYTES_MAX {
            return refuse("more than 16 MiB of output can not be kept");
        }
        Ok(())
    }
}

/// Folders of a project's user.
pub(crate) struct Owned {
    folders: Vec<Dir>,
    identity: Identity,
}

impl Owned {
    /// Makes them, and all in them, that user's.
    pub(crate) async fn give(self) -> Result<(), ProcessError> {
        let Identity { uid, gid } = self.identity;
        let give = move || -> Result<(), WalkError> {
            let mut folders = self.folders.iter();
            folders.try_for_each(|folder| own_tree(folder, uid, gid).map(drop))
        };
        match tokio::task::spawn_blocking(give).await {
            Ok(given) => given.map_err(|error| not_given(io::Error::other(error))),
            Err(error) => Err(not_given(error.into())),
        }
    }
}

fn not_given(source: io::Error) -> ProcessError {
    ProcessError::Failed {
        what: "the Project's files could not be given to its user".to_owned(),
        source: Some(source),
    }
}

/// How much of each output stream is kept, in bytes: the tail.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct OutputCaps {
    /// Of standard output.
    pub stdout_bytes: u32,
    /// Of standard error.
    pub stderr_bytes: u32,
}

impl Default for OutputCaps {
    /// 1 MiB each.
    fn default() -> Self {
        Self {
            stdout_bytes: 1024 * 1024,
            stderr_bytes: 1024 * 1024,
        }
    }
}

/// Which stream some output is from.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum OutputStream {
    /// Standard output.
    Stdout,
    /// Standard error.
    Stderr,
}

/// Told of output as it comes, in pieces of any length. Of a flood, pieces are left out.
pub type OutputSink<'a> = dyn FnMut(OutputStream, &[u8]) + Send + 'a;

/// What came of a program that ran to its end.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Output {
    /// Exit code.
    pub exit_code: i32,
    /// Standard output.
    pub stdout: Captured,
    /// Standard error.
    pub stderr: Captured,
    /// What kept the program apart.
    pub isolation: LayerSet,
    /// Limits of the whole tree that were reached on the way.
    pub limits_hit: LimitsHit,
}

/// One output stream.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Captured {
    /// The tail.
    pub bytes: Vec<u8>,
    /// Bytes that were written, kept or not.
    pub total_bytes: u64,
}

impl Captured {
    /// Whether the start was cut.
    pub fn truncated(&self) -> bool {
        self.total_bytes > self.bytes.len() as u64
    }

    /// The tail as text, invalid bytes replaced.
    pub fn text(&self) -> String {
        self.last(self.bytes.len())
    }

    fn last(&self, bytes_max: usize) -> String {
        let start = self.bytes.len().saturating_sub(bytes_max);
        let mut tail = &self.bytes[start..];
        if start > 0 || self.truncated() {
            // What is left of a character that was cut says nothing.
            let rest = tail.iter().take(3).take_while(|&&byte| byte & 0xC0 == 0x80);
            tail = &tail[rest.count()..];
        }
        String::from_utf8_lossy(tail).into_owned()
    }
}

/// The end of what a program wrote, for an error.
pub(crate) fn tail_of(stdout: &Captured, stderr: &Captured) -> String {
    let stream = if stderr.bytes.is_empty() {
        stdout
    } else {
        stderr
    };
    stream.last(TAIL_IN_ERROR_BYTES_MAX)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_cut_character_is_left_out_and_a_wrong_one_is_not() {
        let captured = |bytes: &[u8], total_bytes| Captured {
            bytes: bytes.to_vec(),
            total_bytes,
        };
        assert_eq!(captured(b"\x82\xACx", 10).text(), "x");
        assert_eq!(captured(b"\x82x", 2).text(), "\u{FFFD}x");
        assert_eq!(tail_of(&captured(b"out", 3), &captured(b"", 0)), "out");
        assert_eq!(tail_of(&captured(b"out", 3), &captured(b"err", 3)), "err");
    }
}
