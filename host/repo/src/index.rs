//! The index of a RootDir: entries checked as hostile input, by path.

use git2::{IndexEntry, IndexEntryExtendedFlag, IndexEntryFlag, Oid};
use rustix::fs::Stat;
use warren_disk::beneath;

use crate::checkout::is_safe_path;
use crate::files::{as_path, show};
use crate::{Flags, Repo, RepoError};

/// Mode of a submodule's entry.
pub(crate) const GITLINK: u32 = 0o160_000;

/// One entry of the index.
pub(crate) struct Tracked {
    pub(crate) path: Vec<u8>,
    pub(crate) id: Oid,
    pub(crate) mode: u32,
    /// `git add -N`: the path is known, its content is not.
    pub(crate) intent_to_add: bool,
    pub(crate) assume_unchanged: bool,
    pub(crate) skip_worktree: bool,
    stamp: Option<Stamp>,
}

/// What `lstat` said when the content was last read.
struct Stamp {
    size: u32,
    ino: u32,
    mtime: (i32, u32),
    ctime: (i32, u32),
}

impl Tracked {
    /// Whether `stat` proves that the content is the entry's. Any doubt is a no.
    pub(crate) fn is_same(&self, stat: &Stat) -> bool {
        let Some(stamp) = &self.stamp else {
            return false;
        };
        // Times and sizes are kept cut to 32 bits; a part that was not recorded is zero.
        let time = |kept: (i32, u32), seconds: i64, nanos: u64| {
            kept.0 == seconds as i32 && (kept.1 == 0 || u64::from(kept.1) == nanos)
        };
        stamp.size == stat.st_size as u32
            && time(stamp.mtime, stat.st_mtime, stat.st_mtime_nsec)
            && (stamp.ctime == (0, 0) || time(stamp.ctime, stat.st_ctime, stat.st_ctime_nsec))
            && (stamp.ino == 0 || stamp.ino == stat.st_ino as u32)
    }
}

/// The index, sorted by path.
#[derive(Default)]
pub(crate) struct Index {
    pub(crate) entries: Vec<Tracked>,
}

impl Index {
    /// Reads the index of a repository.
    ///
    /// # Errors
    ///
    /// `OperationInProgress` when conflicts are unresolved; `UnsafePath`; `UnsupportedFormat` for a
    /// split or sparse index and for one whose paths clash; `Git`.
    pub(crate) fn load(repo: &Repo) -> Result<Self, RepoError> {
        // Asked before the index is read, so that a newer one only makes more entries doubtful.
        let written = match beneath::stat(&repo.git_dir, as_path(b"index")) {
            Ok(stat) => (stat.mtime.seconds, stat.mtime.nanos),
            Err(error) if error.kind() == std::io::ErrorKind::NotFound => (0, 0),
            Err(error) => return Err(RepoError::io("look at `.git/index`", error)),
        };
        let index = repo.git.index().map_err(RepoError::git("read the index"))?;
        let mut entries = Vec::with_capacity(index.len());
        for entry in index.iter() {
            if (entry.flags >> 12) & 3 != 0 {
                return Err(RepoError::OperationInProgress(
                    "unresolved conflicts".to_owned(),
                ));
            }
            if !is_safe_path(&entry.path) {
                return Err(RepoError::UnsafePath(show(&entry.path)));
            }
            entries.push(tracked(entry, written)?);
        }
        // libgit2 folds case when a hostile config says so.
        entries.sort_by(|a, b| a.path.cmp(&b.path));
        let index = Self { entries };
        index.check_clashes()?;
        Ok(index)
    }

    /// No path twice, none both a file and a folder.
    fn check_clashes(&self) -> Result<(), RepoError> {
        for pair in self.entries.windows(2) {
            // What starts with a path comes straight behind it: hardly ever more to look at.
            let Some(rest) = pair[1].path.strip_prefix(pair[0].path.as_slice()) else {
                continue;
            };
            let below = [pair[0].path.as_slice(), b"/"].concat();
            if rest.is_empty() || self.has_below(&below) {
                return Err(clash(&pair[0].path));
            }
        }
        Ok(())
    }

    pub(crate) fn position(&self, path: &[u8]) -> Option<usize> {
        self.entries
            .binary_search_by(|entry| entry.path.as_slice().cmp(path))
            .ok()
    }

    /// Whether anything below `prefix`, which ends with a slash, is tracked.
    pub(crate) fn has_below(&self, prefix: &[u8]) -> bool {
        let at = self
            .entries
            .partition_point(|entry| entry.path.as_slice() < prefix);
        self.entries
            .get(at)
            .is_some_and(|entry| entry.path.starts_with(prefix))
    }

    /// What the next commit would hold.
    pub(crate) fn staged(&self) -> impl Iterator<Item = (&[u8], u32, Oid)> {
        self.entries
            .iter()
            .filter(|entry| !entry.intent_to_add)
            .map(|entry| (entry.path.as_slice(), entry.mode, entry.id))
    }

    /// Flags that a tree does not carry.
    pub(crate) fn flags(&self) -> Flags {
        let list = |is: fn(&Tracked) -> bool| {
            let marked = self.entries.iter().filter(|entry| is(entry));
            marked.map(|entry| show(&entry.path)).collect()
        };
        Flags {
            intent_to_add: list(|entry| entry.intent_to_add),
            assume_unchanged: list(|entry| entry.assume_unchanged),
            skip_worktree: list(|entry| entry.skip_worktree),
        }
    }
}

fn clash(path: &[u8]) -> RepoError {
    RepoError::UnsupportedFormat(format!("the index holds `{}` twice", show(path)))
}

fn tracked(entry: IndexEntry, written: (i64, u32)) -> Result<Tracked, RepoError> {
    let flags = IndexEntryFlag::from_bits_truncate(entry.flags);
    let extended = IndexEntryExtendedFlag::from_bits_truncate(entry.flags_extended);
    let mtime = (entry.mtime.seconds(), entry.mtime.nanoseconds());
    // Changed again within the tick in which the index was written, a file looks unchanged.
    let is_racy = (i64::from(mtime.0), mtime.1) >= written;
    let mode = match entry.mode {
        0o040_000 => {
            return Err(RepoError::UnsupportedFormat("sparse index".to_owned()));
        }
        0o120_000 | GITLINK => entry.mode,
        mode if mode & 0o100 != 0 => 0o100_755,
        _ => 0o100_644,
    };
    let intent_to_add = extended.is_intent_to_add();
    let stamp = Stamp {
        size: entry.file_size,
        ino: entry.ino,
        mtime,
        ctime: (entry.ctime.seconds(), entry.ctime.nanoseconds()),
    };
    Ok(Tracked {
        path: entry.path,
        id: entry.id,
        mode,
        intent_to_add,
        assume_unchanged: flags.is_valid(),
        skip_worktree: extended.is_skip_worktree(),
        stamp: Some(stamp).filter(|_| !is_racy && !intent_to_add),
    })
}
