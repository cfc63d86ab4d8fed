//! How full a file system is, as `df` counts, and whether that is too full.

use crate::Dir;
use std::io;

/// Room of one file system.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Space {
    /// Size in bytes, what is reserved included.
    pub bytes_total: u64,
    /// Bytes in use.
    pub bytes_used: u64,
    /// Bytes that we can still use.
    pub bytes_available: u64,
    /// Number of inodes; 0 where the file system has no fixed number.
    pub inodes_total: u64,
    /// Inodes in use.
    pub inodes_used: u64,
    /// Inodes left.
    pub inodes_available: u64,
}

impl Space {
    /// Of the file system that holds `dir`.
    ///
    /// # Errors
    /// What `fstatvfs` says.
    pub fn of(dir: &Dir) -> io::Result<Self> {
        let raw = rustix::fs::fstatvfs(dir)?;
        let bytes = |blocks: u64| blocks.saturating_mul(raw.f_frsize);
        // Some file systems tell a negative number when the reserve is being eaten.
        let available = if raw.f_bavail > i64::MAX as u64 {
            0
        } else {
            raw.f_bavail
        };
        Ok(Self {
            bytes_total: bytes(raw.f_blocks),
            bytes_used: bytes(raw.f_blocks.saturating_sub(raw.f_bfree)),
            bytes_available: bytes(available),
            inodes_total: raw.f_files,
            inodes_used: raw.f_files.saturating_sub(raw.f_ffree),
            inodes_available: raw.f_ffree.min(raw.f_files),
        })
    }

    /// Percent of the bytes in use, rounded up: what `df` prints as `Use%`.
    pub fn percent_used(&self) -> u8 {
        percent(self.bytes_used, self.bytes_available)
    }

    /// Percent of the inodes in use, rounded up: what `df -i` prints as `IUse%`.
    ///
    /// 0 where the file system has no fixed number of them.
    pub fn inodes_percent_used(&self) -> u8 {
        percent(self.inodes_used, self.inodes_available)
    }
}

/// Used against used and available, not against the size: the reserve is not ours.
fn percent(used: u64, available: u64) -> u8 {
    let all = u128::from(used) + u128::from(available);
    if all == 0 {
        return 0;
    }
    // At most 100, as used <= all.
    (u128::from(used) * 100).div_ceil(all) as u8
}

/// What a file system can run out of.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Resource {
    /// Bytes.
    Bytes,
    /// Inodes: files and directories, whatever their size.
    Inodes,
}

impl std::fmt::Display for Resource {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str(match self {
            Self::Bytes => "bytes",
            Self::Inodes => "inodes",
        })
    }
}

/// From which percentages on a file system is too full.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Limits {
    /// From here on there is a warning.
    pub soft_percent: u8,
    /// From here on nothing new is made.
    pub hard_percent: u8,
}

/// How a [`Space`] stands against [`Limits`].
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Verdict {
    /// Below both limits.
    Fine,
    /// At or over the soft limit.
    Soft {
        /// What is short.
        resource: Resource,
        /// Percent in use.
        used_percent: u8,
        /// The limit that was reached.
        limit_percent: u8,
    },
    /// At or over the hard limit.
    Hard {
        /// What is short.
        resource: Resource,
        /// Percent in use.
        used_percent: u8,
        /// The limit that was reached.
        limit_percent: u8,
    },
}

impl Limits {
    /// Judges bytes and inodes; the worse one counts, bytes when both are alike.
    pub fn judge(&self, space: &Space) -> Verdict {
        let bytes = (Resource::Bytes, space.percent_used());
        let inodes = (Resource::Inodes, space.inodes_percent_used());
        let (resource, used_percent) = if inodes.1 > bytes.1 { inodes } else { bytes };
        if used_percent >= self.hard_percent {
            Verdict::Hard {
                resource,
                used_percent,
                limit_percent: self.hard_percent,
            }
        } else if used_percent >= self.soft_percent {
            Verdict::Soft {
                resource,
                used_percent,
                limit_percent: self.soft_percent,
            }
        } else {
            Verdict::Fine
        }
    }
}

#[cfg(test)]
mod tests;
