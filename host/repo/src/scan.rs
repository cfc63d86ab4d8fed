//! One walk over a working tree, held against the index.

use std::collections::BTreeMap;
use std::io;
use std::rc::Rc;

use git2::Oid;
use rustix::fs::FileType;
use warren_disk::text;
use warren_model::{Loss, LossKind};

use crate::checkout::{is_gitmodules, is_safe_name, is_safe_path};
use crate::files::{self, Entry, show};
use crate::ignores::Ignores;
use crate::index::{GITLINK, Index};
use crate::{Limits, Repo, RepoError};

/// What a scan looks for beside files.
pub(crate) struct ScanOptions<'a> {
    /// Paths to take although they are ignored.
    pub(crate) keep: &'a [Vec<u8>],
    /// Whether to count the bytes that are ignored.
    pub(crate) count_loss: bool,
    pub(crate) limits: Limits,
}

/// A file, link or empty submodule that belongs to the working tree.
pub(crate) struct Found {
    pub(crate) path: Vec<u8>,
    /// As in a tree.
    pub(crate) mode: u32,
    /// Its entry in the index.
    pub(crate) tracked: Option<usize>,
    /// Its blob, where the index proves it.
    pub(crate) known: Option<Oid>,
    pub(crate) size: u64,
}

/// What a working tree holds.
#[derive(Default)]
pub(crate) struct Scan {
    /// By path.
    pub(crate) files: Vec<Found>,
    pub(crate) loss: Vec<Loss>,
    pub(crate) modes: BTreeMap<String, u32>,
    pub(crate) empty_dirs: Vec<String>,
    /// A `.gitattributes` that is no plain file: git ignores it, libgit2 would open it.
    pub(crate) has_odd_attributes: bool,
}

/// Walks the working tree. Nothing is followed, nothing but ignore rules is read.
///
/// # Errors
///
/// `Nested` names every repository within; `UnsafePath`; `TooLarge`; `Io`.
pub(crate) fn scan(repo: &Repo, index: &Index, options: &ScanOptions) -> Result<Scan, RepoError> {
    let config = repo
        .git
        .config()
        .map_err(RepoError::git("read the config"))?;
    let mut walk = Walk {
        repo,
        index,
        options,
        trusts_modes: config.get_bool("core.filemode").unwrap_or(true),
        pending: vec![Folder {
            prefix: Vec::new(),
            depth: 0,
            ignored: false,
            kept: false,
            ignores: Ignores::base(),
        }],
        entries: 0,
        ignored_entries: 0,
        nested: Vec::new(),
        out: Scan::default(),
    };
    while let Some(folder) = walk.pending.pop() {
        walk.enter(folder)?;
    }
    let Walk {
        mut out,
        mut nested,
        ..
    } = walk;
    if !nested.is_empty() {
        nested.sort();
        return Err(RepoError::Nested(nested));
    }
    out.files.sort_by(|a, b| a.path.cmp(&b.path));
    out.empty_dirs.sort();
    Ok(out)
}

struct Folder {
    /// Path with a slash behind it; empty for the RootDir.
    prefix: Vec<u8>,
    depth: usize,
    /// An ignore rule hides it: only what is tracked or kept counts.
    ignored: bool,
    /// The caller keeps it whatever the rules say.
    kept: bool,
    ignores: Rc<Ignores>,
}

struct Walk<'a> {
    repo: &'a Repo,
    index: &'a Index,
    options: &'a ScanOptions<'a>,
    trusts_modes: bool,
    pending: Vec<Folder>,
    entries: usize,
    ignored_entries: usize,
    nested: Vec<String>,
    out: Scan,
}

impl Walk<'_> {
    fn enter(&mut self, folder: Folder) -> Result<(), RepoError> {
        let is_root = folder.prefix.is_empty();
        let path = folder.prefix.strip_suffix(b"/").unwrap_or_default();
        let fail = |error| RepoError::io(format!("list `{}`", show(path)), error);
        let entries = match files::open_dir(&self.repo.root, path) {
            Ok(dir) => files::entries(&dir).map_err(fail)?,
            // Gone since its parent was listed.
            Err(error) if error.kind() == io::ErrorKind::NotFound && !is_root => return Ok(()),
            Err(error) if error.kind() == io::ErrorKind::InvalidFilename => {
                return Err(too_deep(path));
            }
            Err(error) => return Err(fail(error)),
        };
        if !is_root && entries.iter().any(|entry| entry.name == b".git") {
            self.nested.push(show(path));
            return Ok(());
        }
        if entries.is_empty() && !is_root && (!folder.ignored || folder.kept) {
            self.out.empty_dirs.push(show(path));
        }
        let has_rules = entries
            .iter()
            .any(|e| e.name == b".gitignore" && e.kind() == FileType::RegularFile);
        let folder = Folder {
            ignores: Ignores::below(&folder.ignores, &folder.prefix, has_rules),
            ..folder
        };
        for entry in entries {
            if is_root && entry.name == b".git" {
                continue;
            }
            self.count()?;
            let path = [folder.prefix.as_slice(), &entry.name].concat();
            match entry.kind() {
                FileType::Directory => self.folder(&folder, &entry, path)?,
                FileType::RegularFile | FileType::Symlink => self.file(&folder, &entry, path)?,
                _ => self.special(&folder, &entry, &path)?,
            }
        }
        Ok(())
    }

    fn count(&mut self) -> Result<(), RepoError> {
        self.repo.bounds.check()?;
        self.entries += 1;
        let max = self.options.limits.entries_max;
        if self.entries > max {
            return Err(RepoError::TooLarge(format!("more than {max} entries")));
        }
        Ok(())
    }

    fn folder(&mut self, parent: &Folder, entry: &Entry, path: Vec<u8>) -> Result<(), RepoError> {
        let submodule = self.index.position(&path);
        if let Some(at) = submodule.filter(|&at| self.index.entries[at].mode == GITLINK) {
            return self.submodule(path, at);
        }
        let prefix = [path.as_slice(), b"/"].concat();
        let kept = parent.kept || self.keeps(&path);
        let ignored = parent.ignored || parent.ignores.hide(&self.repo.root, &path, true)?;
        let is_wanted = kept || self.index.has_below(&prefix) || self.keeps_below(&prefix);
        let is_tracked = self.index.has_below(&prefix);
        let is_out = !is_tracked && self.repo.exclude.hides(&path, true);
        if is_out || (ignored && !is_wanted) {
            self.lose_folder(&prefix);
            return Ok(());
        }
        check_name(&entry.name, &path)?;
        if parent.depth >= self.options.limits.depth_max {
            return Err(too_deep(&path));
        }
        self.note_mode(entry, &path, 0o755);
        self.pending.push(Folder {
            prefix,
            depth: parent.depth + 1,
            ignored,
            kept,
            ignores: Rc::clone(&parent.ignores),
        });
        Ok(())
    }

    /// A submodule's folder counts as long as it is empty; content in it belongs to another
    /// repository.
    fn submodule(&mut self, path: Vec<u8>, at: usize) -> Result<(), RepoError> {
        let names = files::open_dir(&self.repo.root, &path).and_then(|dir| files::names(&dir));
        let names =
            names.map_err(|error| RepoError::io(format!("list `{}`", show(&path)), error))?;
        if !names.is_empty() {
            self.nested.push(show(&path));
            return Ok(());
        }
        self.out.files.push(Found {
            path,
            mode: GITLINK,
            tracked: Some(at),
            known: Some(self.index.entries[at].id),
            size: 0,
        });
        Ok(())
    }

    fn file(&mut self, parent: &Folder, entry: &Entry, path: Vec<u8>) -> Result<(), RepoError> {
        let is_link = entry.kind() == FileType::Symlink;
        if entry.name == b".gitattributes" && is_link {
            self.out.has_odd_attributes = true;
        }
        let at = self
            .index
            .position(&path)
            .filter(|&at| self.index.entries[at].mode != GITLINK);
        let size = entry.stat.st_size as u64;
        let is_out = at.is_none() && self.repo.exclude.hides(&path, false);
        if is_out || (at.is_none() && self.is_ignored(parent, &path)?) {
            self.lose(LossKind::Ignored, &path, size);
            return Ok(());
        }
        check_name(&entry.name, &path)?;
        if is_link && is_gitmodules(&entry.name) {
            return Err(RepoError::UnsafePath(show(&path)));
        }
        let tracked = at.map(|at| &self.index.entries[at]);
        let is_executable = entry.stat.st_mode & 0o100 != 0;
        let mode = match tracked {
            _ if is_link => 0o120_000,
            Some(tracked) if !self.trusts_modes && tracked.mode != 0o120_000 => tracked.mode,
            None if !self.trusts_modes => 0o100_644,
            _ if is_executable => 0o100_755,
            _ => 0o100_644,
        };
        if !is_link {
            self.note_mode(entry, &path, mode & 0o777);
        }
        let same_kind = |mode: u32, other: u32| mode & 0o170_000 == other & 0o170_000;
        let known = tracked
            .filter(|tracked| same_kind(tracked.mode, mode) && tracked.is_same(&entry.stat))
            .map(|tracked| tracked.id);
        let max = self.options.limits.blob_bytes_max;
        if known.is_none() && size > max {
            return Err(RepoError::TooLarge(format!(
                "`{}` has {size} bytes, more than {max}",
                show(&path)
            )));
        }
        self.out.files.push(Found {
            path,
            mode,
            tracked: at,
            known,
            size,
        });
        Ok(())
    }

    fn special(&mut self, parent: &Folder, entry: &Entry, path: &[u8]) -> Result<(), RepoError> {
        if entry.name == b".gitattributes" {
            self.out.has_odd_attributes = true;
        }
        let kind = if self.is_ignored(parent, path)? {
            LossKind::Ignored
        } else {
            LossKind::SpecialFile
        };
        self.lose(kind, path, 0);
        Ok(())
    }

    fn is_ignored(&self, parent: &Folder, path: &[u8]) -> Result<bool, RepoError> {
        if parent.kept || self.keeps(path) {
            return Ok(false);
        }
        Ok(parent.ignored || parent.ignores.hide(&self.repo.root, path, false)?)
    }

    fn keeps(&self, path: &[u8]) -> bool {
        self.options.keep.iter().any(|keep| keep == path)
    }

    fn keeps_below(&self, prefix: &[u8]) -> bool {
        let mut keep = self.options.keep.iter();
        keep.any(|keep| keep.starts_with(prefix))
    }

    fn note_mode(&mut self, entry: &Entry, path: &[u8], usual: u32) {
        let mode = entry.stat.st_mode & 0o777;
        if mode != usual {
            self.out.modes.insert(show(path), mode);
        }
    }

    fn lose(&mut self, kind: LossKind, path: &[u8], bytes: u64) {
        self.out.loss.push(Loss {
            kind,
            path: show(path),
            bytes,
        });
    }

    /// Lists an ignored folder with what is in it.
    fn lose_folder(&mut self, prefix: &[u8]) {
        let bytes = if self.options.count_loss {
            self.count_bytes(prefix)
        } else {
            0
        };
        self.lose(LossKind::Ignored, prefix, bytes);
    }

    /// Bytes in a folder, only for the report: what cannot be looked into, or is too much to count,
    /// does not keep the rest from being saved.
    fn count_bytes(&mut self, prefix: &[u8]) -> u64 {
        let mut bytes = 0_u64;
        let mut pending = vec![prefix.to_vec()];
        while let Some(prefix) = pending.pop() {
            // Time that is up is told by whoever looks next.
            if self.repo.bounds.check().is_err() {
                return bytes;
            }
            let entries = files::open_dir(&self.repo.root, &prefix)
                .and_then(|dir| files::entries(&dir))
                .unwrap_or_else(|error| {
                    tracing::debug!(path = %show(&prefix), %error, "ignored folder not counted");
                    Vec::new()
                });
            self.ignored_entries += entries.len();
            if self.ignored_entries > self.options.limits.entries_max {
                tracing::debug!(path = %show(&prefix), "too many ignored entries to count");
                return bytes;
            }
            for entry in entries {
                match entry.kind() {
                    FileType::Directory => {
                        pending.push([prefix.as_slice(), &entry.name, b"/"].concat());
                    }
                    FileType::RegularFile => {
                        bytes = bytes.saturating_add(entry.stat.st_size as u64);
                    }
                    _ => {}
                }
            }
        }
        bytes
    }
}

fn check_name(name: &[u8], path: &[u8]) -> Result<(), RepoError> {
    if is_safe_name(name) {
        Ok(())
    } else {
        Err(RepoError::UnsafePath(show(path)))
    }
}

fn too_deep(path: &[u8]) -> RepoError {
    let start = &path[..path.len().min(100)];
    RepoError::TooLarge(format!("too deep: `{}…`", show(start)))
}

/// The paths that a caller wants to keep, written as in a loss manifest.
pub(crate) fn parse_keep(keep: &[String]) -> Result<Vec<Vec<u8>>, RepoError> {
    let parse = |text: &String| {
        let path = text::unescape(text.trim_end_matches('/')).ok();
        path.filter(|path| is_safe_path(path))
            .ok_or_else(|| RepoError::InvalidArgument {
                what: "path to keep",
                value: show(text.as_bytes()),
            })
    };
    keep.iter().map(parse).collect()
}
