//! The blobs of a scanned working tree.

use std::fs::File;
use std::io::{self, Read, Write};
use std::os::fd::AsRawFd;
use std::os::unix::ffi::OsStrExt;

use git2::{ObjectType, Oid};
use warren_disk::beneath;

use crate::clean::Cleaner;
use crate::files::{self, as_path, show};
use crate::index::{Index, Tracked};
use crate::objects::Outbox;
use crate::scan::{Found, Scan};
use crate::{Bounds, Repo, RepoError};

/// Longest file read as a whole. Longer ones are streamed and never converted, as git does with
/// what passes `core.bigFileThreshold`.
pub(crate) const WHOLE_BYTES_MAX: u64 = 64 << 20;

/// What becomes of content that differs from the index.
#[derive(Clone, Copy)]
pub(crate) enum Keep<'a> {
    /// Nothing: it is only compared.
    Nothing,
    /// Stored as it is.
    Raw(&'a Outbox<'a>),
    /// Stored as git would store it.
    Cleaned(&'a Outbox<'a>),
}

/// One file of a working tree with its blob.
pub(crate) struct Settled {
    pub(crate) id: Oid,
    /// Whether content or mode differ from the index, or it is not there.
    pub(crate) is_changed: bool,
}

/// Finds the blob of every scanned file, in their order. Only what the index cannot vouch for is
/// read; what git calls unchanged gets the id that the index has. A file that went away since the
/// scan leaves it.
///
/// # Errors
///
/// `UnsupportedFormat` when git would need a filter to store a file as [`Keep::Cleaned`]; `TooLarge`
/// when a file has grown; `Io`; `Git`.
pub(crate) fn settle(
    repo: &Repo,
    index: &Index,
    scan: &mut Scan,
    keep: Keep<'_>,
) -> Result<Vec<Settled>, RepoError> {
    if scan.has_odd_attributes {
        tracing::warn!("a `.gitattributes` that is no plain file: attributes are not read");
    }
    let cleaner = Cleaner::new(repo, !scan.has_odd_attributes)?;
    let reader = Reader {
        repo,
        cleaner,
        keep,
    };
    let mut settled = Vec::with_capacity(scan.files.len());
    let mut files = Vec::with_capacity(scan.files.len());
    for found in std::mem::take(&mut scan.files) {
        repo.bounds.check()?;
        let tracked = found.tracked.map(|at| &index.entries[at]);
        let staged = tracked.filter(|tracked| !tracked.intent_to_add);
        let id = match found.known.map_or_else(|| reader.read(&found, staged), Ok) {
            Ok(id) => id,
            Err(RepoError::Io { source, .. }) if source.kind() == io::ErrorKind::NotFound => {
                continue;
            }
            Err(error) => return Err(error),
        };
        let is_changed = staged.is_none_or(|staged| (staged.id, staged.mode) != (id, found.mode));
        settled.push(Settled { id, is_changed });
        files.push(found);
    }
    scan.files = files;
    Ok(settled)
}

struct Reader<'a> {
    repo: &'a Repo,
    cleaner: Cleaner<'a>,
    keep: Keep<'a>,
}

impl Reader<'_> {
    fn read(&self, found: &Found, staged: Option<&Tracked>) -> Result<Oid, RepoError> {
        let fail = |error| unreadable(&found.path, error);
        if found.mode == 0o120_000 {
            let target = beneath::read_link(&self.repo.root, as_path(&found.path)).map_err(fail)?;
            return self.store(target.as_os_str().as_bytes());
        }
        let (mut file, size) = files::open_file(&self.repo.root, &found.path).map_err(fail)?;
        if size > found.size.max(WHOLE_BYTES_MAX) {
            return Err(RepoError::TooLarge(format!(
                "`{}` grows while it is read",
                show(&found.path)
            )));
        }
        if size > WHOLE_BYTES_MAX {
            return self.stream(&found.path, file, size, staged);
        }
        let mut data = Vec::with_capacity(size as usize);
        Read::by_ref(&mut file)
            .take(WHOLE_BYTES_MAX)
            .read_to_end(&mut data)
            .map_err(fail)?;
        self.whole(found, &data, staged)
    }

    fn whole(
        &self,
        found: &Found,
        data: &[u8],
        staged: Option<&Tracked>,
    ) -> Result<Oid, RepoError> {
        let hash = |data: &[u8]| {
            Oid::hash_object(ObjectType::Blob, data).map_err(RepoError::git("hash a file"))
        };
        let staged = staged.map(|staged| staged.id);
        let raw = hash(data)?;
        if staged == Some(raw) {
            return Ok(raw);
        }
        let Some(rules) = self.cleaner.rules(&found.path)? else {
            return self.store(data);
        };
        let cleaned = self.cleaner.apply(&rules, data, staged)?;
        let id = hash(&cleaned)?;
        if staged == Some(id) {
            return Ok(id);
        }
        match (self.keep, rules.beyond) {
            (Keep::Cleaned(_), Some(what)) => Err(RepoError::UnsupportedFormat(what)),
            (Keep::Cleaned(_), None) => self.store(&cleaned),
            _ => self.store(data),
        }
    }

    fn store(&self, data: &[u8]) -> Result<Oid, RepoError> {
        match self.keep {
            Keep::Nothing => {
                Oid::hash_object(ObjectType::Blob, data).map_err(RepoError::git("hash a file"))
            }
            Keep::Raw(outbox) | Keep::Cleaned(outbox) => outbox.put(ObjectType::Blob, data),
        }
    }

    /// A big file is read twice, so that one that is there already is not written again.
    fn stream(
        &self,
        path: &[u8],
        file: File,
        size: u64,
        staged: Option<&Tracked>,
    ) -> Result<Oid, RepoError> {
        let handle = format!("/proc/self/fd/{}", file.as_raw_fd());
        let id = Oid::hash_file(ObjectType::Blob, handle).map_err(RepoError::git("hash a file"))?;
        let (Keep::Raw(outbox) | Keep::Cleaned(outbox)) = self.keep else {
            return Ok(id);
        };
        if staged.is_some_and(|staged| staged.id == id) || outbox.has(id) {
            return Ok(id);
        }
        let bounds = &self.repo.bounds;
        outbox.put_stream(size, |out| copy(bounds, path, file, size, out))
    }
}

/// Copies exactly `size` bytes, which the blob's header has promised.
fn copy(
    bounds: &Bounds,
    path: &[u8],
    file: File,
    size: u64,
    out: &mut dyn Write,
) -> Result<(), RepoError> {
    let mut file = file.take(size);
    let mut buffer = vec![0; 1 << 20];
    let mut left = size;
    while left > 0 {
        bounds.check()?;
        let count = file
            .read(&mut buffer)
            .map_err(|error| unreadable(path, error))?;
        if count == 0 {
            let error = io::Error::new(io::ErrorKind::UnexpectedEof, "it shrinks");
            return Err(unreadable(path, error));
        }
        out.write_all(&buffer[..count])
            .map_err(|error| RepoError::io("write an object", error))?;
        left -= count as u64;
    }
    Ok(())
}

fn unreadable(path: &[u8], error: io::Error) -> RepoError {
    RepoError::io(format!("read `{}`", show(path)), error)
}
