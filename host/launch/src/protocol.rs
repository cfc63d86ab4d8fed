use std::net::{Ipv4Addr, SocketAddrV4};
use std::path::PathBuf;

use serde::{Deserialize, Serialize};
use warren_confine::{Layer, LayerSet, LimitsHit};

/// Most bytes of a [`Spec`] as JSON.
pub const SPEC_BYTES_MAX: usize = 1024 * 1024;
/// Most bytes of a child's standard input.
pub const STDIN_BYTES_MAX: usize = 1024 * 1024;
/// Most bytes that are kept of one output stream.
pub const TAIL_BYTES_MAX: usize = 16 * 1024 * 1024;
/// Most bytes in one live frame.
pub const LIVE_BYTES_MAX: usize = 64 * 1024;
/// Most folders that a child may write besides its working directory.
pub const WRITABLE_MAX: usize = 4;
/// Where a child finds the proxy, in its own network.
pub const PROXY_ADDRESS: SocketAddrV4 = SocketAddrV4::new(Ipv4Addr::LOCALHOST, 3128);
/// Bytes of a [`Header`].
pub const HEADER_BYTES: usize = 8;
/// Bytes in front of the payload of a frame: kind and length.
pub const FRAME_HEADER_BYTES: usize = 5;

/// What precedes a [`Spec`]: lengths, in bytes. It carries the file descriptors.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Header {
    /// Of the JSON that follows.
    pub spec_bytes: u32,
    /// Of the child's standard input, which follows the JSON; 0 without.
    pub stdin_bytes: u32,
}

impl Header {
    /// The header as sent.
    pub fn to_bytes(self) -> [u8; HEADER_BYTES] {
        let mut bytes = [0; HEADER_BYTES];
        bytes[..4].copy_from_slice(&self.spec_bytes.to_le_bytes());
        bytes[4..].copy_from_slice(&self.stdin_bytes.to_le_bytes());
        bytes
    }

    /// Reads a header; none when a length is beyond its limit.
    pub fn from_bytes([a, b, c, d, e, f, g, h]: [u8; HEADER_BYTES]) -> Option<Self> {
        let header = Self {
            spec_bytes: u32::from_le_bytes([a, b, c, d]),
            stdin_bytes: u32::from_le_bytes([e, f, g, h]),
        };
        let fits = header.spec_bytes as usize <= SPEC_BYTES_MAX
            && header.stdin_bytes as usize <= STDIN_BYTES_MAX;
        fits.then_some(header)
    }
}

/// What to start, and within which limits.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Spec {
    /// Program to execute: absolute, or with `./` in front relative to the working directory.
    pub program: String,
    /// Whether the second file descriptor is the program: it is then what is executed, whatever has
    /// become of the path.
    pub pinned: bool,
    /// All arguments, the zeroth included.
    pub arguments: Vec<String>,
    /// The complete environment.
    pub environment: Vec<(String, String)>,
    /// Whether the child reads the bytes behind the spec; otherwise it reads `/dev/null`.
    pub stdin: bool,
    /// Time limit in milliseconds.
    pub deadline_ms: u64,
    /// Bytes kept of standard output: the tail.
    pub stdout_bytes_max: u32,
    /// Bytes kept of standard error: the tail.
    pub stderr_bytes_max: u32,
    /// Whether to send output as it comes, too.
    pub live: bool,
    /// Whether to use namespaces where the kernel allows.
    pub namespaces: bool,
    /// Resource limits.
    pub limits: ChildLimits,
    /// How the child is kept from the rest of the machine; without, it may do all that the host may.
    pub confinement: Option<Confinement>,
}

/// How a child is confined. Each layer is in force or nothing is started, but for namespaces that
/// the kernel does not let us have: [`Done::isolation`] tells of those.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Confinement {
    /// Whom it runs as. Required when the launcher is root.
    pub identity: Option<Identity>,
    /// How many of the descriptors that follow, at most [`WRITABLE_MAX`], are folders that it may
    /// write besides its working directory. Each has the path that it has for the host.
    pub writable: u8,
    /// Folders and files outside of the system's own that it may read and execute, by absolute path.
    pub readable: Vec<PathBuf>,
    /// Whether its network has a proxy at [`PROXY_ADDRESS`]: its listening socket comes with
    /// [`Frame::Proxy`]. Without, there is no network at all.
    pub proxy: bool,
    /// Size of its `/tmp`, and of its `/dev/shm`, in bytes. Both are in memory.
    pub temporary_bytes: u64,
}

/// A user and its only group.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Identity {
    /// User.
    pub uid: u32,
    /// Group.
    pub gid: u32,
}

/// Resource limits of a child and of what it starts. `open_files` and `file_bytes` count for each
/// process. Core dumps are always off.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct ChildLimits {
    /// Most open files.
    pub open_files: Option<u64>,
    /// Largest file that it may write, in bytes.
    pub file_bytes: Option<u64>,
    /// Most processes and threads of the whole tree; without a cgroup, of its user, to which the
    /// kernel does not hold root.
    pub processes: Option<u64>,
    /// Most memory of the whole tree, in bytes; without a cgroup, most data of each process.
    pub memory_bytes: Option<u64>,
}

/// The step at which a child could not be started.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Stage {
    /// The request was not valid.
    Spec,
    /// Pipes, processes or namespaces could not be made.
    Setup,
    /// The working directory could not be entered.
    Directory,
    /// A resource limit or protection could not be set.
    Limits,
    /// A layer of the confinement could not be put in force.
    Confinement(Layer),
    /// The program could not be executed.
    Execute,
}

/// How a child ended.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Outcome {
    /// It ended by itself, with this exit code.
    Exited(i32),
    /// This signal killed it.
    Signalled(i32),
    /// It was killed at the deadline.
    TimedOut,
    /// It never ran.
    NotStarted {
        /// The step that failed.
        stage: Stage,
        /// The error of the operating system, or 0.
        errno: i32,
    },
}

/// Bytes that a child wrote, kept or not.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Totals {
    /// To standard output.
    pub stdout_bytes: u64,
    /// To standard error.
    pub stderr_bytes: u64,
}

/// The last frame.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
pub struct Done {
    /// How the child ended.
    pub outcome: Outcome,
    /// What it wrote.
    pub totals: Totals,
    /// What kept it apart.
    pub isolation: LayerSet,
    /// Limits of the whole tree that were reached.
    pub limits_hit: LimitsHit,
    /// Whether some descendant could not be killed in time.
    pub survivors: bool,
}

/// Kinds of frame from the launcher: one byte, then the payload's length, then the payload.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Frame {
    /// Some standard output as it came. Frames are left out when there is too much.
    LiveStdout = 1,
    /// Some standard error as it came.
    LiveStderr = 2,
    /// The tail of standard output.
    Stdout = 3,
    /// The tail of standard error.
    Stderr = 4,
    /// A [`Done`] as JSON; nothing follows.
    Done = 5,
    /// Before the child starts: no payload, but a descriptor, the listening socket of the proxy.
    Proxy = 6,
}

impl Frame {
    /// What precedes a payload of this length.
    pub fn header(self, payload_bytes: u32) -> [u8; FRAME_HEADER_BYTES] {
        let [a, b, c, d] = payload_bytes.to_le_bytes();
        [self as u8, a, b, c, d]
    }

    /// Reads a frame's header: its kind and the length of the payload; none when it is not one.
    pub fn from_header([kind, a, b, c, d]: [u8; FRAME_HEADER_BYTES]) -> Option<(Self, usize)> {
        let (kind, bytes_max) = match kind {
            1 => (Self::LiveStdout, LIVE_BYTES_MAX),
            2 => (Self::LiveStderr, LIVE_BYTES_MAX),
            3 => (Self::Stdout, TAIL_BYTES_MAX),
            4 => (Self::Stderr, TAIL_BYTES_MAX),
            5 => (Self::Done, SPEC_BYTES_MAX),
            6 => (Self::Proxy, 0),
            _ => return None,
        };
        let bytes = u32::from_le_bytes([a, b, c, d]) as usize;
        (bytes <= bytes_max).then_some((kind, bytes))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn headers_round_trip_and_are_bounded() {
        let header = Header {
            spec_bytes: 70_000,
            stdin_bytes: 3,
        };
        assert_eq!(Header::from_bytes(header.to_bytes()), Some(header));
        let big = Header {
            spec_bytes: SPEC_BYTES_MAX as u32 + 1,
            stdin_bytes: 0,
        };
        assert_eq!(Header::from_bytes(big.to_bytes()), None);

        let frame = Frame::Stderr.header(65_536);
        assert_eq!(Frame::from_header(frame), Some((Frame::Stderr, 65_536)));
        let big = Frame::LiveStdout.header(LIVE_BYTES_MAX as u32 + 1);
        assert_eq!(Frame::from_header(big), None);
        assert_eq!(Frame::from_header([9, 0, 0, 0, 0]), None);
        assert_eq!(Frame::from_header([6, 1, 0, 0, 0]), None);
    }
}
