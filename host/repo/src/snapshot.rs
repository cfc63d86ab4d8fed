//! Everything a person would miss, as one commit in an outbox.

mod local;

use std::collections::{BTreeMap, BTreeSet};

use git2::{ObjectType, Oid, Repository};
use warren_model::Loss;

use crate::content::{Keep, settle};
use crate::objects::{Outbox, Transfer};
use crate::scan::{ScanOptions, parse_keep, scan};
use crate::trees::Trees;
use crate::{Head, IDENTITY, Manifest, Repo, RepoError, manifest};
use local::Local;

/// The last second of 2099: times beyond it are somebody's joke and some servers refuse them.
const TIME_MAX: i64 = 4_102_444_799;

/// Longest blob in bytes: libgit2 holds one in memory as a whole, and so do we when it is written.
pub(crate) const BLOB_BYTES_MAX: u64 = 512 << 20;

/// How much one RootDir may hold.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Limits {
    /// Most entries; those in ignored folders are not among them, and are counted as far as this.
    pub entries_max: usize,
    /// Longest file in bytes, asked before it is read.
    pub blob_bytes_max: u64,
    /// Most folders in one another.
    pub depth_max: usize,
}

impl Default for Limits {
    fn default() -> Self {
        Self {
            entries_max: 1_000_000,
            blob_bytes_max: BLOB_BYTES_MAX,
            depth_max: 512,
        }
    }
}

/// What a snapshot is made for.
#[derive(Debug, Clone, Default)]
pub struct SnapshotOptions {
    /// Paths to save although they are ignored, written as in a loss manifest.
    pub keep: Vec<String>,
    /// Commits that the remote's refs point at now. The mirror has them.
    pub remote_tips: Vec<Oid>,
    /// The remote's tags by full name, with what they point at, unpeeled. A tag that is not among
    /// them counts as local.
    pub remote_tags: BTreeMap<String, Oid>,
    /// Name of the RootDir, for the commit's message.
    pub dir_name: String,
    /// How much it may hold.
    pub limits: Limits,
}

/// A snapshot in an outbox.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Snapshot {
    /// The commit that carries everything; HEAD's own when `saved`.
    pub commit: Oid,
    /// Where HEAD was.
    pub head: Head,
    /// Whether index or working tree hold something that HEAD's commit does not.
    pub dirty: bool,
    /// Whether a local ref holds commits that no ref of the remote reaches.
    pub unpushed: bool,
    /// Whether the remote has all of it, so that nothing was made.
    pub saved: bool,
    /// What the snapshot leaves out, by path.
    pub loss: Vec<Loss>,
    /// What it carries beside its trees.
    pub manifest: Manifest,
}

impl Repo {
    /// Makes a snapshot in `outbox`, a bare repository whose alternates name the mirror.
    ///
    /// The same content gives the same commit. HEAD, index, refs, config and working tree of the
    /// RootDir stay as they are. With a failure, only unreachable objects are left in the outbox.
    ///
    /// # Errors
    ///
    /// `OperationInProgress`, `Nested`, `UnsafePath`, `TooLarge`, `UnsupportedFormat`: it cannot be
    /// saved whole. `Missing`: the repository lacks an object. `InvalidArgument`: a path to keep.
    /// `NoSpace`, `Io`, `Git`.
    pub fn snapshot(
        &self,
        outbox: &Repository,
        options: &SnapshotOptions,
    ) -> Result<Snapshot, RepoError> {
        self.check_idle()?;
        let outbox = Outbox::new(outbox, &self.bounds)?;
        let keep = parse_keep(&options.keep)?;
        let (branch, head) = self.head_raw()?;
        let index = self.staged_index(head)?;
        let scan_options = ScanOptions {
            keep: &keep,
            count_loss: true,
            limits: options.limits,
        };
        let mut scan = scan(self, &index, &scan_options)?;
        let settled = settle(self, &index, &mut scan, Keep::Raw(&outbox))?;
        let local = Local::read(self, &outbox, options)?;

        let staged = Trees::plan(index.staged())?;
        let files = scan.files.iter().zip(&settled);
        let working =
            Trees::plan(files.map(|(found, settled)| (&found.path[..], found.mode, settled.id)))?;
        let flags = index.flags();
        let dirty = staged.root != working.root
            || staged.root != self.head_tree(head)?
            || !flags.intent_to_add.is_empty();
        let unpushed = self.is_unpushed(&outbox, head, &local, &options.remote_tips)?;
        let saved = head.is_some()
            && !dirty
            && !unpushed
            && !local.has_own(branch.as_deref())
            && flags == manifest::Flags::default()
            && scan.modes.is_empty()
            && scan.empty_dirs.is_empty();

        let manifest = Manifest {
            format: manifest::FORMAT,
            head: self.head()?,
            flags,
            modes: scan.modes,
            empty_dirs: scan.empty_dirs,
            ..local.manifest
        };
        let mut loss = scan.loss;
        loss.extend(local.loss);
        loss.sort_by(|a, b| (&a.path, a.kind).cmp(&(&b.path, b.kind)));
        let commit = match head.filter(|_| saved) {
            Some(head) => head,
            None => {
                let parts = Parts {
                    head,
                    tips: &local.tips,
                    tags: &local.tags,
                    staged: &staged,
                    working: &working,
                    manifest: &manifest,
                    dir_name: &options.dir_name,
                    blob_bytes_max: options.limits.blob_bytes_max,
                };
                self.write(&outbox, &parts)?
            }
        };
        Ok(Snapshot {
            commit,
            head: manifest.head.clone(),
            dirty,
            unpushed,
            saved,
            loss,
            manifest,
        })
    }

    /// Tree of HEAD's commit; the empty one when there is none.
    pub(crate) fn head_tree(&self, head: Option<Oid>) -> Result<Oid, RepoError> {
        match head {
            Some(id) => Ok(self.commit(id)?.tree_id()),
            None => Oid::hash_object(ObjectType::Tree, b"").map_err(RepoError::git("hash a tree")),
        }
    }

    /// Seconds that a commit on top of HEAD gets: HEAD's own, so that content alone decides on ids.
    pub(crate) fn head_time(&self, head: Option<Oid>) -> Result<i64, RepoError> {
        let Some(id) = head else {
            return Ok(0);
        };
        let commit = self.commit(id)?;
        Ok(commit.time().seconds().clamp(0, TIME_MAX))
    }

    /// Whether a local tip is not reachable from the remote's.
    fn is_unpushed(
        &self,
        outbox: &Outbox<'_>,
        head: Option<Oid>,
        local: &Local,
        remote_tips: &[Oid],
    ) -> Result<bool, RepoError> {
        let remote: BTreeSet<Oid> = remote_tips.iter().copied().collect();
        let tips = local.tips.iter().copied().chain(head);
        let tips: Vec<Oid> = tips.filter(|tip| !remote.contains(tip)).collect();
        if tips.iter().any(|&tip| !outbox.has(tip)) {
            return Ok(true);
        }
        if tips.is_empty() {
            return Ok(false);
        }
        let fail = RepoError::git("walk the commits");
        let mut walk = outbox.repo().revwalk().map_err(&fail)?;
        for tip in tips {
            self.bounds.check()?;
            walk.push(tip).map_err(&fail)?;
        }
        for tip in remote {
            // Refs may point at trees and blobs.
            if outbox.repo().find_commit(tip).is_ok() {
                walk.hide(tip).map_err(&fail)?;
            }
        }
        Ok(walk.next().transpose().map_err(fail)?.is_some())
    }

    fn write(&self, outbox: &Outbox<'_>, parts: &Parts<'_>) -> Result<Oid, RepoError> {
        let mut transfer = Transfer::new(&self.git, outbox, parts.blob_bytes_max)?;
        for &tip in parts.head.iter().chain(parts.tips) {
            transfer.commit(tip)?;
        }
        parts.staged.want(&mut transfer, outbox)?;
        parts.working.want(&mut transfer, outbox)?;
        transfer.run()?;
        parts.staged.write(outbox)?;
        parts.working.write(outbox)?;

        let time = self.head_time(parts.head)?;
        let state = commit(
            outbox,
            parts.state(outbox)?,
            parts.tips.iter().copied(),
            time,
            &format!("State of `{}`\n", parts.dir_name),
        )?;
        commit(
            outbox,
            parts.working.root,
            parts.head.into_iter().chain([state]),
            time,
            &format!("Snapshot of `{}`\n", parts.dir_name),
        )
    }
}

/// What a snapshot is made of.
struct Parts<'a> {
    head: Option<Oid>,
    tips: &'a BTreeSet<Oid>,
    tags: &'a BTreeMap<String, Vec<u8>>,
    staged: &'a Trees,
    working: &'a Trees,
    manifest: &'a Manifest,
    dir_name: &'a str,
    blob_bytes_max: u64,
}

impl Parts<'_> {
    /// Tree of the commit that carries what a tree of files cannot.
    fn state(&self, outbox: &Outbox<'_>) -> Result<Oid, RepoError> {
        let json = serde_json::to_vec(self.manifest)
            .map_err(|error| RepoError::io("write the manifest", error))?;
        let json = outbox.put(ObjectType::Blob, &json)?;
        let mut objects = Vec::new();
        for (name, bytes) in self.tags {
            let blob = outbox.put(ObjectType::Blob, bytes)?;
            objects.push((name.as_str(), blob));
        }
        let mut entries = vec![("index", 0o040_000, self.staged.root)];
        entries.push(("manifest.json", 0o100_644, json));
        if !objects.is_empty() {
            let files = objects.iter().map(|&(name, blob)| (name, 0o100_644, blob));
            entries.push(("objects", 0o040_000, tree(outbox, files)?));
        }
        tree(outbox, entries.into_iter())
    }
}

/// Writes one tree of entries that come in order.
fn tree<'a>(
    outbox: &Outbox<'_>,
    entries: impl Iterator<Item = (&'a str, u32, Oid)>,
) -> Result<Oid, RepoError> {
    let mut data = Vec::new();
    for (name, mode, id) in entries {
        data.extend_from_slice(format!("{mode:o} {name}\0").as_bytes());
        data.extend_from_slice(id.as_bytes());
    }
    outbox.put(ObjectType::Tree, &data)
}

/// Writes a commit of the host's at `time`, in UTC.
pub(crate) fn commit(
    outbox: &Outbox<'_>,
    tree: Oid,
    parents: impl Iterator<Item = Oid>,
    time: i64,
    message: &str,
) -> Result<Oid, RepoError> {
    let (name, email) = IDENTITY;
    let mut text = format!("tree {tree}\n");
    for parent in parents {
        text.push_str(&format!("parent {parent}\n"));
    }
    for role in ["author", "committer"] {
        text.push_str(&format!("{role} {name} <{email}> {time} +0000\n"));
    }
    text.push('\n');
    text.push_str(message);
    outbox.put(ObjectType::Commit, text.as_bytes())
}

#[cfg(test)]
mod hostile_tests;
#[cfg(test)]
mod tests;
