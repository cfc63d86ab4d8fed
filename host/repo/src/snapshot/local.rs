//! Refs, tags and stashes that live in a RootDir only.

use std::collections::{BTreeMap, BTreeSet};

use git2::{ErrorCode, ObjectType, Oid, Reference, ReferenceType};
use warren_model::{Loss, LossKind};

use super::SnapshotOptions;
use crate::files::{self, show};
use crate::objects::{Outbox, check, missing};
use crate::{Manifest, Repo, RepoError, StashEntry, Upstream, layout, layout_config};

/// Most tags that point at one another.
const TAG_CHAIN_MAX: usize = 16;

/// Most refs of one repository.
const REFS_MAX: usize = 1_000_000;

/// What a RootDir has beside HEAD, index and files.
#[derive(Default)]
pub(super) struct Local {
    /// `refs`, `remoteRefs`, `upstream` and `stash` of the manifest.
    pub(super) manifest: Manifest,
    /// Commits that a snapshot must reach, HEAD's own left out.
    pub(super) tips: BTreeSet<Oid>,
    /// Raw annotated tags that the mirror does not have, by id.
    pub(super) tags: BTreeMap<String, Vec<u8>>,
    pub(super) loss: Vec<Loss>,
    branches: BTreeSet<Vec<u8>>,
    /// A tag that the remote does not have, a note or a stash.
    has_other: bool,
}

/// Where a ref ends.
enum End {
    Commit(Oid),
    /// A tree or blob that the mirror has.
    Known,
    /// A tree or blob of the RootDir's own, or an object that is gone.
    Lost,
}

impl Local {
    pub(super) fn read(
        repo: &Repo,
        outbox: &Outbox<'_>,
        options: &SnapshotOptions,
    ) -> Result<Self, RepoError> {
        let mut local = Self::default();
        let fail = RepoError::git("list the refs");
        for (count, reference) in repo.git.references().map_err(&fail)?.enumerate() {
            if count >= REFS_MAX {
                return Err(RepoError::TooLarge(format!("more than {REFS_MAX} refs")));
            }
            repo.bounds.check()?;
            let reference = reference.map_err(&fail)?;
            local.take(repo, outbox, options, &reference)?;
        }
        local.read_stash(repo)?;
        local.read_config(repo)?;
        local.read_modules(repo)?;
        let (_, head) = repo.head_raw()?;
        if let Some(head) = head {
            local.tips.remove(&head);
        }
        Ok(local)
    }

    /// Whether something beside the branch `head` lives here only.
    pub(super) fn has_own(&self, head: Option<&[u8]>) -> bool {
        let mut branches = self.branches.iter();
        self.has_other
            || branches.any(|branch| head != Some(branch.as_slice()))
            || self.loss.iter().any(|loss| loss.kind == LossKind::Ref)
    }

    fn take(
        &mut self,
        repo: &Repo,
        outbox: &Outbox<'_>,
        options: &SnapshotOptions,
        reference: &Reference<'_>,
    ) -> Result<(), RepoError> {
        let name = reference.name_bytes();
        let is_remote = name.starts_with(b"refs/remotes/");
        let target = reference
            .target()
            .filter(|_| reference.kind() == Some(ReferenceType::Direct));
        let Some(id) = target else {
            // `refs/remotes/origin/HEAD` is made anew with its remote.
            if !is_remote {
                self.lose(name);
            }
            return Ok(());
        };
        if is_remote {
            self.manifest.remote_refs.insert(show(name), id.to_string());
            return Ok(());
        }
        if name == b"refs/stash" {
            return Ok(());
        }
        let branch = name.strip_prefix(b"refs/heads/");
        let is_tag = name.starts_with(b"refs/tags/");
        if branch.is_none() && !is_tag && !name.starts_with(b"refs/notes/") {
            self.lose(name);
            return Ok(());
        }
        let is_on_remote = is_tag
            && std::str::from_utf8(name)
                .is_ok_and(|name| options.remote_tags.get(name) == Some(&id))
            && outbox.has(id);
        match if is_on_remote {
            End::Known
        } else {
            self.peel(repo, outbox, id)?
        } {
            End::Commit(commit) => {
                self.tips.insert(commit);
            }
            End::Known => {}
            End::Lost => {
                self.lose(name);
                return Ok(());
            }
        }
        self.has_other |= branch.is_none() && !is_on_remote;
        self.branches.extend(branch.map(<[u8]>::to_vec));
        self.manifest.refs.insert(show(name), id.to_string());
        Ok(())
    }

    /// Follows tags to what they name, and takes those that the mirror does not have.
    fn peel(&mut self, repo: &Repo, outbox: &Outbox<'_>, id: Oid) -> Result<End, RepoError> {
        let odb = repo.odb()?;
        let mut tags = Vec::new();
        let mut id = id;
        for _ in 0..TAG_CHAIN_MAX {
            let (_, kind) = match odb.read_header(id) {
                Ok(header) => header,
                Err(error) if error.code() == ErrorCode::NotFound => return Ok(End::Lost),
                Err(error) => return Err(RepoError::git("read an object")(error)),
            };
            let end = match kind {
                ObjectType::Commit => End::Commit(id),
                ObjectType::Tag => {
                    check(&odb, id, ObjectType::Tag)?;
                    let target = repo.git.find_tag(id).map_err(missing(id))?.target_id();
                    if !outbox.has(id) {
                        let object = odb.read(id).map_err(missing(id))?;
                        tags.push((id.to_string(), object.data().to_vec()));
                    }
                    id = target;
                    continue;
                }
                _ if outbox.has(id) => End::Known,
                _ => End::Lost,
            };
            if !matches!(end, End::Lost) {
                self.tags.extend(tags);
            }
            return Ok(end);
        }
        Ok(End::Lost)
    }

    fn lose(&mut self, name: &[u8]) {
        self.loss.push(Loss {
            kind: LossKind::Ref,
            path: show(name),
            bytes: 0,
        });
    }

    /// The stash is a ref whose reflog is the list.
    fn read_stash(&mut self, repo: &Repo) -> Result<(), RepoError> {
        let fail = RepoError::git("read the stash");
        let top = match repo.git.find_reference("refs/stash") {
            Ok(reference) => reference.target(),
            Err(error) if error.code() == ErrorCode::NotFound => None,
            Err(error) => return Err(fail(error)),
        };
        let Some(top) = top else {
            return Ok(());
        };
        let mut entries: Vec<(Oid, String)> = Vec::new();
        let log = repo.git.reflog("refs/stash").map_err(fail)?;
        for entry in log.iter() {
            let message = show(entry.message_bytes().unwrap_or_default());
            entries.push((entry.id_new(), message));
        }
        if entries.first().is_none_or(|(id, _)| *id != top) {
            entries.insert(0, (top, String::new()));
        }
        self.has_other = true;
        for (at, (id, message)) in entries.into_iter().enumerate() {
            repo.bounds.check()?;
            match repo.commit(id) {
                Ok(_) => {
                    self.tips.insert(id);
                    let commit = id.to_string();
                    self.manifest.stash.push(StashEntry { commit, message });
                }
                Err(RepoError::Missing(_)) => {
                    self.lose(format!("stash@{{{at}}}").as_bytes());
                }
                Err(error) => return Err(error),
            }
        }
        Ok(())
    }

    fn read_config(&mut self, repo: &Repo) -> Result<(), RepoError> {
        let mut branches: BTreeMap<Vec<u8>, (Option<String>, Option<String>)> = BTreeMap::new();
        let bytes = files::read_small(&repo.git_dir, b"config", layout::CONFIG_BYTES_MAX)?;
        for setting in layout_config::parse(".git/config", &bytes.unwrap_or_default())? {
            let (Some(branch), Some(value)) = (setting.subsection, setting.value) else {
                continue;
            };
            if setting.section != "branch" {
                continue;
            }
            let upstream = branches.entry(branch).or_default();
            match setting.key.as_str() {
                "remote" => upstream.0 = Some(show(&value)),
                "merge" => upstream.1 = Some(show(&value)),
                _ => {}
            }
        }
        for (branch, upstream) in branches {
            if let (Some(remote), Some(merge)) = upstream {
                let upstream = Upstream { remote, merge };
                self.manifest.upstream.insert(show(&branch), upstream);
            }
        }
        Ok(())
    }

    /// Repositories of submodules that are not checked out now.
    fn read_modules(&mut self, repo: &Repo) -> Result<(), RepoError> {
        let fail = |error| RepoError::io("list `.git/modules`", error);
        if !layout::exists(&repo.git_dir, "modules")? {
            return Ok(());
        }
        let dir = files::open_dir(&repo.git_dir, b"modules").map_err(fail)?;
        let mut names = files::names(&dir).map_err(fail)?;
        names.sort_by(|a, b| a.0.cmp(&b.0));
        for (name, _) in names {
            self.lose(&[b".git/modules/", name.as_slice()].concat());
        }
        Ok(())
    }
}
