//! What one RootDir may take of the disk, shared by all that write into it.
//!
//! Used bytes are allocated blocks, an inode counts once however many names it has. What others
//! write meanwhile is seen by [`Budget::remeasure`] only, the state of the disk every few MiB.

use crate::Dir;
use crate::space::{self, Resource, Space, Verdict};
use crate::usage::{Usage, usage};
use crate::walk::WalkError;
use std::io;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

/// Most bytes that are taken before the disk is looked at again.
const LOOK_BYTES_MAX: u64 = 16 * 1024 * 1024;

/// As for bytes.
const LOOK_INODES_MAX: u64 = 1024;

/// What one RootDir may use; none: no limit.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct Quota {
    /// Allocated bytes.
    pub bytes: Option<u64>,
    /// Files, directories, links, sockets; the RootDir itself does not count.
    pub inodes: Option<u64>,
}

/// What is used of a [`Quota`].
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct Used {
    /// Allocated bytes.
    pub bytes: u64,
    /// Inodes.
    pub inodes: u64,
}

impl From<Usage> for Used {
    fn from(usage: Usage) -> Self {
        Self {
            bytes: usage.bytes,
            inodes: usage.files.saturating_add(usage.dirs),
        }
    }
}

/// Why nothing more can be taken.
#[derive(Debug, thiserror::Error)]
pub enum Short {
    /// The RootDir would pass its own limit.
    #[error("the rootdir may use {limit} {resource}, it uses {used} and wants {wanted} more")]
    Quota {
        /// What is short.
        resource: Resource,
        /// In use.
        used: u64,
        /// What was asked for.
        wanted: u64,
        /// The limit.
        limit: u64,
    },
    /// The disk is at its hard limit.
    #[error(
        "the disk has {used_percent} % of its {resource} in use, the limit is {limit_percent} %"
    )]
    Disk {
        /// What is short.
        resource: Resource,
        /// Percent in use.
        used_percent: u8,
        /// The limit.
        limit_percent: u8,
    },
    /// What the RootDir uses cannot be measured.
    #[error("the rootdir cannot be measured")]
    Walk(#[from] WalkError),
    /// The disk cannot be looked at.
    #[error("the disk cannot be looked at")]
    Space(#[source] io::Error),
}

impl Short {
    /// Stable code for machines.
    pub fn code(&self) -> &'static str {
        match self {
            Self::Quota { .. } | Self::Disk { .. } => "WorkspaceQuotaExceeded",
            Self::Walk(error) => error.code(),
            Self::Space(_) => "DiskIo",
        }
    }
}

impl From<Short> for io::Error {
    /// `QuotaExceeded` over the RootDir's limit, `StorageFull` over the disk's.
    fn from(short: Short) -> Self {
        let kind = match &short {
            Short::Quota { .. } => io::ErrorKind::QuotaExceeded,
            Short::Disk { .. } => io::ErrorKind::StorageFull,
            Short::Walk(_) | Short::Space(_) => io::ErrorKind::Other,
        };
        Self::new(kind, short)
    }
}

/// A limit that was met.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Met {
    /// The RootDir's own.
    Quota(Resource, u64),
    /// The disk's, in percent.
    Disk(Resource, u8),
    /// The disk has nothing left, or a quota of the file system was met.
    Full,
}

impl std::fmt::Display for Met {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        match self {
            Self::Quota(resource, limit) => write!(f, "the rootdir may use {limit} {resource}"),
            Self::Disk(resource, percent) => {
                write!(
                    f,
                    "the disk is at its limit of {percent} % of its {resource}"
                )
            }
            Self::Full => f.write_str("the disk is full"),
        }
    }
}

/// What was refused, for whoever has to say why a longer work failed.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct Refusals {
    /// How often the RootDir's own limit was met.
    pub quota: u64,
    /// How often the disk's limit was met.
    pub disk: u64,
    /// The limit that was met last.
    pub last: Option<Met>,
}

impl Refusals {
    fn note(&mut self, short: &Short) {
        match *short {
            Short::Quota {
                resource, limit, ..
            } => {
                self.quota += 1;
                self.last = Some(Met::Quota(resource, limit));
            }
            Short::Disk {
                resource,
                limit_percent,
                ..
            } => {
                self.disk += 1;
                self.last = Some(Met::Disk(resource, limit_percent));
            }
            Short::Walk(_) | Short::Space(_) => {}
        }
    }
}

/// A budget. Clones are one.
#[derive(Debug, Clone)]
pub struct Budget(Arc<Shared>);

#[derive(Debug)]
struct Shared {
    quota: Quota,
    disk: Option<space::Limits>,
    root: Option<Dir>,
    state: Mutex<State>,
    /// Held while the tree is walked, so that it is walked once.
    measuring: Mutex<()>,
}

#[derive(Debug, Default)]
struct State {
    /// What a walk has found.
    measured: Option<Used>,
    /// Taken less given back since that walk began.
    net: (i64, i64),
    /// Bytes that are held and not written yet: no walk finds them.
    reserved: u64,
    /// What may be taken before the next look at the disk; none: it was not looked at.
    unlooked: Option<Used>,
    refusals: Refusals,
}

impl State {
    fn used(&self) -> Option<Used> {
        let add = |base: u64, net: i64| base.saturating_add_signed(net);
        self.measured.map(|base| Used {
            bytes: add(base.bytes, self.net.0).saturating_add(self.reserved),
            inodes: add(base.inodes, self.net.1),
        })
    }

    fn add(&mut self, bytes: u64, inodes: u64) {
        self.net.0 = self.net.0.saturating_add_unsigned(bytes);
        self.net.1 = self.net.1.saturating_add_unsigned(inodes);
    }
}

impl Budget {
    /// Of the RootDir `root`, which is measured at the first take.
    ///
    /// With no limit in `quota` it is never measured; without `disk` the disk is not looked at.
    pub fn new(root: Dir, quota: Quota, disk: Option<space::Limits>) -> Self {
        Self::of(Some(root), quota, disk)
    }

    /// One that gives all that is asked for.
    pub fn unlimited() -> Self {
        Self::of(None, Quota::default(), None)
    }

    fn of(root: Option<Dir>, quota: Quota, disk: Option<space::Limits>) -> Self {
        Self(Arc::new(Shared {
            quota,
            disk,
            root,
            state: Mutex::default(),
            measuring: Mutex::default(),
        }))
    }

    /// The limits of the RootDir.
    pub fn quota(&self) -> Quota {
        self.0.quota
    }

    /// Whether nothing is limited: who writes need not count.
    pub fn is_unlimited(&self) -> bool {
        self.0.root.is_none() || (self.0.quota == Quota::default() && self.0.disk.is_none())
    }

    /// Whether the next take walks the tree, which may take a while.
    pub fn needs_walk(&self) -> bool {
        self.0.root.is_some() && self.0.quota != Quota::default() && self.state().measured.is_none()
    }

    /// What is in use; none as long as it was not measured.
    pub fn used(&self) -> Option<Used> {
        self.state().used()
    }

    /// How often something was refused.
    pub fn refusals(&self) -> Refusals {
        self.state().refusals
    }

    /// Takes all or nothing, before it is written.
    ///
    /// # Errors
    /// [`Short`]; nothing is taken then.
    pub fn take(&self, bytes: u64, inodes: u64) -> Result<(), Short> {
        let taken = self.take_as(bytes, inodes, |state| state.add(bytes, inodes));
        taken.inspect_err(|short| self.note(short))
    }

    fn take_as(&self, bytes: u64, inodes: u64, add: impl FnOnce(&mut State)) -> Result<(), Short> {
        if self.is_unlimited() {
            add(&mut self.state());
            return Ok(());
        }
        self.measure()?;
        let mut state = self.state();
        let taken = self
            .fits(&state, bytes, inodes)
            .and_then(|()| self.look(&mut state, bytes, inodes));
        if taken.is_ok() {
            add(&mut state);
        }
        taken
    }

    /// Counts a refusal.
    pub fn note(&self, short: &Short) {
        self.state().refusals.note(short);
    }

    /// Counts a write that found the disk full.
    pub fn note_full(&self) {
        let mut state = self.state();
        state.refusals.disk += 1;
        state.refusals.last = Some(Met::Full);
    }

    /// Takes bytes that will be written bit by bit. A refusal is for the caller to [`Self::note`]:
    /// it may ask for less.
    ///
    /// # Errors
    /// As [`Self::take`].
    pub fn reserve(&self, bytes: u64) -> Result<Reserve, Short> {
        let mut reserve = Reserve {
            budget: self.clone(),
            left: 0,
        };
        reserve.more(bytes)?;
        Ok(reserve)
    }

    /// Counts what is there already, be it over the limit.
    pub fn charge(&self, bytes: u64, inodes: u64) {
        self.state().add(bytes, inodes);
    }

    /// Gives back what was taken and not used, or is gone.
    pub fn give_back(&self, bytes: u64, inodes: u64) {
        let mut state = self.state();
        state.net.0 = state.net.0.saturating_sub_unsigned(bytes);
        state.net.1 = state.net.1.saturating_sub_unsigned(inodes);
    }

    /// Measures `root` anew: others have written into it. What is taken during the walk may count
    /// twice until the next one, never not at all.
    ///
    /// # Errors
    /// What stops a walk; what was known stays.
    pub fn remeasure(&self, root: &Dir) -> Result<Used, Short> {
        let _one = lock(&self.0.measuring);
        self.walk(root)
    }

    /// Says whether what is in use is within the limits now; for one who watches a writer that
    /// cannot ask.
    ///
    /// # Errors
    /// [`Short`].
    pub fn check(&self) -> Result<(), Short> {
        self.measure()?;
        let mut state = self.state();
        state.unlooked = None;
        // Who is over it is refused one more.
        let over =
            |used: u64, limit: Option<u64>| u64::from(limit.is_some_and(|limit| used > limit));
        let used = state.used().unwrap_or_default();
        let bytes = over(used.bytes, self.0.quota.bytes);
        let inodes = over(used.inodes, self.0.quota.inodes);
        let checked = self
            .fits(&state, bytes, inodes)
            .and_then(|()| self.look(&mut state, 0, 0));
        checked.inspect_err(|short| state.refusals.note(short))
    }

    fn walk(&self, root: &Dir) -> Result<Used, Short> {
        let before = self.state().net;
        let found = Used::from(usage(root)?);
        let mut state = self.state();
        state.net = (state.net.0 - before.0, state.net.1 - before.1);
        state.measured = Some(found);
        Ok(found)
    }

    /// Measures the RootDir if it must be and was not.
    ///
    /// # Errors
    /// As [`Self::remeasure`].
    pub fn measure(&self) -> Result<(), Short> {
        let Some(root) = self.0.root.as_ref().filter(|_| self.needs_walk()) else {
            return Ok(());
        };
        let _one = lock(&self.0.measuring);
        if self.needs_walk() {
            self.walk(root)?;
        }
        Ok(())
    }

    fn fits(&self, state: &State, bytes: u64, inodes: u64) -> Result<(), Short> {
        let Some(used) = state.used() else {
            return Ok(());
        };
        let check = |resource, used: u64, wanted: u64, limit: Option<u64>| match limit {
            // Who wants none of it may be over it.
            Some(limit) if wanted > 0 && used.saturating_add(wanted) > limit => Err(Short::Quota {
                resource,
                used,
                wanted,
                limit,
            }),
            _ => Ok(()),
        };
        check(Resource::Bytes, used.bytes, bytes, self.0.quota.bytes)?;
        check(Resource::Inodes, used.inodes, inodes, self.0.quota.inodes)
    }

    /// Looks at the disk when enough was taken since the last time.
    fn look(&self, state: &mut State, bytes: u64, inodes: u64) -> Result<(), Short> {
        let (Some(limits), Some(root)) = (&self.0.disk, &self.0.root) else {
            return Ok(());
        };
        if let Some(left) = &mut state.unlooked
            && left.bytes >= bytes
            && left.inodes >= inodes
        {
            left.bytes -= bytes;
            left.inodes -= inodes;
            return Ok(());
        }
        state.unlooked = None;
        let space = Space::of(root).map_err(Short::Space)?;
        let then = after(&space, bytes, inodes);
        if let Verdict::Hard {
            resource,
            used_percent,
            limit_percent,
        } = limits.judge(&then)
        {
            return Err(Short::Disk {
                resource,
                used_percent,
                limit_percent,
            });
        }
        // Of a small disk less, so that the limit is not passed by much.
        state.unlooked = Some(Used {
            bytes: (space.bytes_total / 1024).min(LOOK_BYTES_MAX),
            inodes: match space.inodes_total {
                0 => LOOK_INODES_MAX,
                all => (all / 1024).min(LOOK_INODES_MAX),
            },
        });
        Ok(())
    }

    fn state(&self) -> MutexGuard<'_, State> {
        lock(&self.0.state)
    }
}

/// Bytes that are held for a writer. What is left goes back when it is dropped.
#[derive(Debug)]
pub struct Reserve {
    budget: Budget,
    left: u64,
}

impl Reserve {
    /// Bytes that are held.
    pub fn left(&self) -> u64 {
        self.left
    }

    /// Holds more.
    ///
    /// # Errors
    /// As [`Budget::reserve`]; what was held still is.
    pub fn more(&mut self, bytes: u64) -> Result<(), Short> {
        if bytes == 0 {
            return Ok(());
        }
        self.budget.take_as(bytes, 0, |state| {
            state.reserved = state.reserved.saturating_add(bytes);
        })?;
        self.left = self.left.saturating_add(bytes);
        Ok(())
    }

    /// So many are written now: they count as used. What was not held is counted all the same.
    pub fn written(&mut self, bytes: u64) {
        let held = bytes.min(self.left);
        self.left -= held;
        let mut state = self.budget.state();
        state.reserved = state.reserved.saturating_sub(held);
        state.add(bytes, 0);
    }

    /// Gives so many back.
    pub fn release(&mut self, bytes: u64) {
        let bytes = bytes.min(self.left);
        self.left -= bytes;
        let mut state = self.budget.state();
        state.reserved = state.reserved.saturating_sub(bytes);
    }
}

impl Drop for Reserve {
    fn drop(&mut self) {
        self.release(self.left);
    }
}

fn lock<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}

/// The disk once that much more is in use.
fn after(space: &Space, bytes: u64, inodes: u64) -> Space {
    Space {
        bytes_used: space
            .bytes_used
            .saturating_add(bytes.min(space.bytes_available)),
        bytes_available: space.bytes_available.saturating_sub(bytes),
        inodes_used: space
            .inodes_used
            .saturating_add(inodes.min(space.inodes_available)),
        inodes_available: space.inodes_available.saturating_sub(inodes),
        ..*space
    }
}

#[cfg(test)]
mod tests;
