//! How much of everything: of one call, and of one child.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use crate::document::DocumentError;

/// The limits of a call, once: key in TOML, default and most, and what it counts.
macro_rules! limits {
    ($($(#[doc = $doc:literal])+ $name:ident $key:literal $default:expr, $max:expr;)+) => {
        /// Limits of one call of a plugin. None: only what the host itself has.
        #[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
        #[serde(rename_all = "kebab-case", deny_unknown_fields)]
        pub struct Limits {
            $($(#[doc = $doc])+
            #[serde(default, skip_serializing_if = "Option::is_none")]
            pub $name: Option<u64>,)+
        }

        impl Default for Limits {
            fn default() -> Self {
                Self { $($name: $default,)+ }
            }
        }

        /// What an operator says about the limits of a plugin's calls; what is not said is the
        /// default.
        #[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
        #[serde(rename_all = "kebab-case", deny_unknown_fields)]
        pub struct LimitsPolicy {
            $($(#[doc = $doc])+
            #[serde(default, skip_serializing_if = "Option::is_none")]
            #[schemars(range(min = 1))]
            pub $name: Option<u64>,)+
        }

        /// What a plugin wants more of than the default.
        #[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
        #[serde(rename_all = "kebab-case", deny_unknown_fields)]
        pub struct WantLimits {
            /// Why, in a line.
            pub reason: String,
            $($(#[doc = $doc])+
            #[serde(default, skip_serializing_if = "Option::is_none")]
            #[schemars(range(min = 1))]
            pub $name: Option<u64>,)+
        }

        impl Limits {
            /// What the operator says, and no more than the plugin wants or everybody has.
            pub(crate) fn effective(policy: &LimitsPolicy, wants: Option<&WantLimits>) -> Self {
                let default = Self::default();
                Self {
                    $($name: least(
                        policy.$name,
                        default.$name,
                        wants.and_then(|wants| wants.$name),
                    ),)+
                }
            }

            /// Every limit under its key.
            pub fn entries(&self) -> Vec<(&'static str, Option<u64>)> {
                vec![$(($key, self.$name),)+]
            }
        }

        impl LimitsPolicy {
            pub(crate) fn check(&self, at: &str) -> Result<(), DocumentError> {
                $(in_range(at, $key, self.$name, $max)?;)+
                Ok(())
            }

            pub(crate) fn is_empty(&self) -> bool {
                *self == Self::default()
            }
        }

        impl WantLimits {
            pub(crate) fn check(&self, at: &str) -> Result<(), DocumentError> {
                $(in_range(at, $key, self.$name, $max)?;)+
                Ok(())
            }

            pub(crate) fn entries(&self) -> Vec<(&'static str, Option<u64>)> {
                vec![$(($key, self.$name),)+]
            }
        }
    };
}

const MIB: u64 = 1 << 20;
const WEEK: u64 = 7 * 24 * 3600;
/// What TOML can write.
const ANY: u64 = i64::MAX as u64;

limits! {
    /// Bytes of all linear memories together.
    memory_bytes "memory-bytes" Some(256 * MIB), 4096 * MIB;
    /// Elements of all tables together.
    table_elements "table-elements" Some(20_000), 10_000_000;
    /// Core instances.
    instances "instances" Some(16), 1000;
    /// Seconds from start to end, host calls included.
    wall_seconds "wall-seconds" Some(900), WEEK;
    /// Seconds in guest code.
    cpu_seconds "cpu-seconds" Some(60), WEEK;
    /// Bytes of log lines; what is more is dropped and counted.
    log_bytes "log-bytes" Some(64 << 10), 1024 * MIB;
    /// Bytes of one log line; longer ones are cut.
    log_line_bytes "log-line-bytes" Some(4 << 10), MIB;
    /// Bytes kept of stdout and of stderr.
    stdio_bytes "stdio-bytes" Some(16 << 10), 64 * MIB;
    /// Bytes that one host call may copy out of the guest.
    hostcall_bytes "hostcall-bytes" Some(4 * MIB), 1024 * MIB;
    /// Open handles: files, directories, streams, pollables.
    handles "handles" Some(1024), 1_000_000;
    /// Bytes of one request for random data.
    random_bytes "random-bytes" Some(64 << 10), 16 * MIB;
    /// Bytes that the RootDir may take on disk.
    disk_bytes "disk-bytes" None, ANY;
    /// Files and directories that the RootDir may have.
    inodes "inodes" None, ANY;
}

/// The operator's number, else the default; a number above the default only for who wants it.
fn least(policy: Option<u64>, default: Option<u64>, wants: Option<u64>) -> Option<u64> {
    let granted = policy.or(default)?;
    match default {
        None => Some(granted),
        Some(default) => Some(granted.min(default.max(wants.unwrap_or(default)))),
    }
}

pub(crate) fn in_range(
    at: &str,
    key: &str,
    value: Option<u64>,
    max: u64,
) -> Result<(), DocumentError> {
    match value {
        Some(value) if !(1..=max).contains(&value) => Err(DocumentError::invalid(
            format!("{at}.{key}"),
            format!("{value} is not from 1 to {max}"),
        )),
        _ => Ok(()),
    }
}

/// Limits of one child of `process`. None: only what the host itself has.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case", deny_unknown_fields)]
pub struct ChildLimits {
    /// Longest run in seconds.
    pub wall_seconds: u64,
    /// Bytes of memory.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub memory_bytes: Option<u64>,
    /// Processes and threads at a time.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub processes: Option<u64>,
    /// Open files of one process.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub open_files: Option<u64>,
    /// Bytes of one file.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub file_bytes: Option<u64>,
}

impl ChildLimits {
    /// Longest run of a child when nothing is said.
    pub const WALL_SECONDS: u64 = 600;

    /// Bytes of memory when nothing is said: what a build of packages needs, as for the rest.
    pub const MEMORY_BYTES: Option<u64> = Some(4 << 30);

    /// Processes and threads when nothing is said.
    pub const PROCESSES: Option<u64> = Some(512);

    /// Open files when nothing is said.
    pub const OPEN_FILES: Option<u64> = Some(4096);

    /// Bytes of one file when nothing is said.
    pub const FILE_BYTES: Option<u64> = Some(8 << 30);

    /// Longest run of a child that can be granted.
    pub const WALL_SECONDS_MAX: u64 = WEEK;
}

/// Limits of the requests of one call over `http`.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case", deny_unknown_fields)]
pub struct HttpLimits {
    /// Requests.
    pub requests: u64,
    /// Connections at a time.
    pub connections: u64,
    /// Bytes of the headers of a request, and of an answer.
    pub header_bytes: u64,
    /// Bytes sent by all requests together.
    pub sent_bytes: u64,
    /// Bytes received by all requests together.
    pub received_bytes: u64,
    /// Longest time, in seconds, in which nothing moves on a connection.
    pub silence_seconds: u64,
}

impl HttpLimits {
    /// The most that can be granted of each.
    pub const MAX: Self = Self {
        requests: 1_000_000,
        connections: 64,
        header_bytes: 256 * 1024,
        sent_bytes: i64::MAX as u64,
        received_bytes: i64::MAX as u64,
        silence_seconds: WEEK,
    };
}

impl Default for HttpLimits {
    fn default() -> Self {
        Self {
            requests: 1000,
            connections: 8,
            header_bytes: 32 * 1024,
            sent_bytes: 256 * 1024 * 1024,
            received_bytes: 256 * 1024 * 1024,
            silence_seconds: 60,
        }
    }
}
