//! Refs, stash, branch config and HEAD of a snapshot.

use git2::{ObjectType, Odb, Oid, Repository};
use warren_disk::text::escape;

use super::RestoreSpec;
use super::snapshot::{Saved, bad, bytes, parse_id};
use crate::fork::{Layout, check_object};
use crate::{Head, RepoError, StashEntry, refs};

const ORIGIN: &[u8] = b"refs/remotes/origin/";

/// Everything but HEAD.
pub(super) fn fill(
    layout: &mut Layout,
    repo: &Repository,
    odb: &Odb<'_>,
    saved: &Saved,
    spec: &RestoreSpec<'_>,
) -> Result<(), RepoError> {
    let default = spec.default_branch.as_deref();
    if spec.as_branch.is_some() {
        layout.add_remote(odb, &spec.remote_refs, default)?;
        layout.add_tags(odb, &spec.tags)?;
    } else {
        add_remote_as_it_was(layout, odb, saved, spec)?;
    }
    for (name, id) in &saved.manifest.refs {
        let (name, id) = (bytes(name)?, parse_id(id)?);
        let prefix = ["refs/heads/", "refs/tags/", "refs/notes/"]
            .into_iter()
            .find(|prefix| name.starts_with(prefix.as_bytes()))
            .ok_or_else(|| refs::invalid("ref name", &name))?;
        refs::check(&name, prefix)?;
        if prefix != "refs/tags/" {
            check_object(odb, &escape(&name), id, Some(ObjectType::Commit))?;
        } else if !odb.exists(id) {
            // A tag of ours came with the snapshot; this one the remote had, and has no more.
            tracing::warn!(name = escape(&name), "a tag is gone from the remote");
            continue;
        }
        layout.refs.set(name, id);
    }
    add_upstreams(layout, saved)?;
    add_stash(layout, repo, &saved.manifest.stash)
}

/// Remote-tracking refs as recorded, or as they are today where their objects are gone.
fn add_remote_as_it_was(
    layout: &mut Layout,
    odb: &Odb<'_>,
    saved: &Saved,
    spec: &RestoreSpec<'_>,
) -> Result<(), RepoError> {
    for (name, id) in &saved.manifest.remote_refs {
        let (name, id) = (bytes(name)?, parse_id(id)?);
        refs::check(&name, "refs/remotes/")?;
        let is_here = |id: &Oid| {
            odb.read_header(*id)
                .is_ok_and(|(_, kind)| kind == ObjectType::Commit)
        };
        let today = || {
            let branch = name.strip_prefix(ORIGIN)?;
            let full = [b"refs/heads/", branch].concat();
            let found = spec
                .remote_refs
                .iter()
                .find(|(name, _)| name.as_bytes() == full)?;
            Some(found.1)
        };
        match Some(id).filter(is_here).or_else(|| today().filter(is_here)) {
            Some(id) => layout.refs.set(name, id),
            None => tracing::warn!(name = escape(&name), "a remote-tracking ref is gone"),
        }
    }
    // It names a branch, which a recorded id can not say.
    layout.set_origin_head(spec.default_branch.as_deref())
}

/// What branches track. What is no plain name (a URL, say) git could be made to run: left out.
fn add_upstreams(layout: &mut Layout, saved: &Saved) -> Result<(), RepoError> {
    for (branch, upstream) in &saved.manifest.upstream {
        let branch = bytes(branch)?;
        refs::check(&[b"refs/heads/", branch.as_slice()].concat(), "refs/heads/")?;
        let (remote, merge) = (bytes(&upstream.remote)?, bytes(&upstream.merge)?);
        let remote = String::from_utf8(remote).unwrap_or_default();
        let plain = remote == "." || refs::check_remote(&remote).is_ok();
        if plain && refs::check(&merge, "refs/").is_ok() {
            layout.config.upstreams.push((branch, remote, merge));
        } else {
            tracing::warn!(
                branch = escape(&branch),
                "what the branch tracks is left out"
            );
        }
    }
    Ok(())
}

/// The stash is a ref with a reflog, oldest first.
fn add_stash(
    layout: &mut Layout,
    repo: &Repository,
    stash: &[StashEntry],
) -> Result<(), RepoError> {
    let mut old = "0".repeat(40);
    for entry in stash.iter().rev() {
        let id = parse_id(&entry.commit)?;
        let commit = repo.find_commit(id);
        let commit = commit.map_err(|_| RepoError::Missing(format!("refs/stash at {id}")))?;
        let by = commit.committer();
        let (when, offset) = (by.when().seconds(), by.when().offset_minutes());
        let sign = if offset < 0 { '-' } else { '+' };
        let zone = (offset / 60).abs() * 100 + (offset % 60).abs();
        let (ids, time) = (
            format!("{old} {id} "),
            format!("> {when} {sign}{zone:04}\t"),
        );
        let mut line = ids.into_bytes();
        line.extend_from_slice(by.name_bytes());
        line.extend_from_slice(b" <");
        line.extend_from_slice(by.email_bytes());
        line.extend_from_slice(time.as_bytes());
        line.extend(bytes(&entry.message)?);
        // One entry is one line.
        layout
            .stash_log
            .extend(line.into_iter().map(|b| if b == b'\n' { b' ' } else { b }));
        layout.stash_log.push(b'\n');
        layout.refs.set("refs/stash", id);
        old = id.to_string();
    }
    Ok(())
}

/// HEAD where it was.
pub(super) fn set_head(layout: &mut Layout, saved: &Saved) -> Result<Head, RepoError> {
    let head = &saved.manifest.head;
    layout.head = match (&head.branch, saved.head) {
        (Some(branch), commit) => {
            let name = [b"refs/heads/", bytes(branch)?.as_slice()].concat();
            refs::check(&name, "refs/heads/")?;
            if layout.refs.get(&name) != commit {
                return Err(bad("HEAD's branch is not at HEAD's commit"));
            }
            [b"ref: ", name.as_slice(), b"\n"].concat()
        }
        (None, Some(commit)) => format!("{commit}\n").into_bytes(),
        (None, None) => return Err(bad("HEAD has neither branch nor commit")),
    };
    Ok(head.clone())
}

/// HEAD on a local branch at the snapshot itself.
pub(super) fn set_head_on(
    layout: &mut Layout,
    repo: &Repository,
    saved: &Saved,
    branch: &str,
) -> Result<Head, RepoError> {
    let name = refs::branch(branch)?;
    if let Some(old) = layout.refs.get(name.as_bytes()) {
        // A branch of that name moves only forward.
        let follows = old == saved.id || repo.graph_descendant_of(saved.id, old).unwrap_or(false);
        if !follows {
            return Err(refs::invalid("branch (it is taken)", branch.as_bytes()));
        }
    }
    if layout.refs.clashes(name.as_bytes()) {
        return Err(refs::invalid("branch (it is taken)", branch.as_bytes()));
    }
    layout.head = format!("ref: {name}\n").into_bytes();
    layout.refs.set(name, saved.id);
    Ok(Head {
        commit: Some(saved.id.to_string()),
        branch: Some(escape(branch.as_bytes())),
    })
}
