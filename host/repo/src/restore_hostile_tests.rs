use std::path::{Path, PathBuf};

use git2::{Oid, Repository};

use crate::fork_testing::{Lab, files, git, git_with, id, write};
use crate::restore_testing::fork;
use crate::{Manifest, RepoError, Snapshot, StashEntry};

/// The snapshot with another manifest, as somebody who may push could make it.
fn forge(
    lab: &Lab,
    inbox: &Path,
    of: &Snapshot,
    name: &str,
    change: impl FnOnce(&mut Manifest),
) -> Result<PathBuf, RepoError> {
    let mut manifest = of.manifest.clone();
    change(&mut manifest);
    let json = serde_json::to_vec(&manifest).unwrap();
    forge_json(lab, inbox, of, name, &json)
}

fn forge_json(
    lab: &Lab,
    inbox: &Path,
    of: &Snapshot,
    name: &str,
    json: &[u8],
) -> Result<PathBuf, RepoError> {
    let repo = Repository::open_bare(inbox).unwrap();
    let snapshot = repo.find_commit(of.commit).unwrap();
    let parents: Vec<_> = snapshot.parents().collect();
    let (meta, others) = parents.split_last().unwrap();
    let mut builder = repo.treebuilder(Some(&meta.tree().unwrap())).unwrap();
    builder
        .insert("manifest.json", repo.blob(json).unwrap(), 0o100_644)
        .unwrap();
    let tree = repo.find_tree(builder.write().unwrap()).unwrap();
    let by = meta.author();
    let meta = repo.commit(None, &by, &by, "m", &tree, &[]).unwrap();
    let meta = repo.find_commit(meta).unwrap();
    let parents: Vec<_> = others.iter().chain([&meta]).collect();
    let commit = repo
        .commit(None, &by, &by, "s", &snapshot.tree().unwrap(), &parents)
        .unwrap();
    lab.restore(inbox, commit, name, None).map(|(path, _)| path)
}

#[test]
fn a_hostile_manifest_is_refused() {
    let lab = Lab::new();
    let dir = fork(&lab);
    write(&dir, b"README", b"dirty\n");
    let (snapshot, inbox) = lab.suspend(&dir, "s");
    let commit = lab.head().to_string();
    let gone = "1".repeat(40);
    type Change = Box<dyn Fn(&mut Manifest)>;
    let reference = |name: &str, id: &str| -> Change {
        let (name, id) = (name.to_owned(), id.to_owned());
        Box::new(move |m| drop(m.refs.insert(name.clone(), id.clone())))
    };
    let blob = id(&lab.upstream(), "main:README").to_string();
    let set = |m: &mut Manifest, path: &str, mode| {
        m.modes.insert(path.into(), mode);
    };
    let cases: Vec<(Change, &str)> = vec![
        (Box::new(|m| m.format = 2), "BadSnapshot"),
        (Box::new(|m| m.head.commit = None), "BadSnapshot"),
        (
            Box::new(|m| m.head.branch = Some("elsewhere".into())),
            "BadSnapshot",
        ),
        (
            Box::new(|m| m.head.branch = Some("../../config".into())),
            "InvalidArgument",
        ),
        (
            Box::new(|m| m.head.branch = Some("x%0A[core]".into())),
            "InvalidArgument",
        ),
        (
            reference("refs/heads/../../config", &commit),
            "InvalidArgument",
        ),
        (reference("refs/heads/x%0Ay", &commit), "InvalidArgument"),
        (
            reference("refs/remotes/origin/x", &commit),
            "InvalidArgument",
        ),
        (reference("HEAD", &commit), "InvalidArgument"),
        (
            reference("refs/heads/main/below", &commit),
            "InvalidArgument",
        ),
        (reference("refs/heads/%zz", &commit), "BadSnapshot"),
        (reference("refs/heads/x", "nothex"), "BadSnapshot"),
        (reference("refs/heads/x", &gone), "MissingObject"),
        (reference("refs/heads/x", &blob), "InvalidArgument"),
        (
            Box::new(move |m| {
                m.stash.push(StashEntry {
                    commit: gone.clone(),
                    message: String::new(),
                })
            }),
            "MissingObject",
        ),
        (
            Box::new(move |m| set(m, "../../etc/passwd", 0o777)),
            "UnsafePath",
        ),
        (
            Box::new(move |m| set(m, ".git/config", 0o777)),
            "UnsafePath",
        ),
        (
            Box::new(move |m| set(m, "README", 0o100_777)),
            "BadSnapshot",
        ),
        (
            Box::new(|m| m.empty_dirs.push("../outside".into())),
            "UnsafePath",
        ),
        (Box::new(|m| m.empty_dirs.push("/abs".into())), "UnsafePath"),
        (
            Box::new(|m| m.empty_dirs.push(".git/hooks".into())),
            "UnsafePath",
        ),
        (
            Box::new(|m| m.empty_dirs.push("a%00b".into())),
            "UnsafePath",
        ),
        (
            Box::new(|m| m.empty_dirs.push("README".into())),
            "UnsafePath",
        ),
        (
            Box::new(|m| m.empty_dirs.push("link/x".into())),
            "UnsafePath",
        ),
        (
            Box::new(|m| m.flags.intent_to_add.push(".git/config".into())),
            "UnsafePath",
        ),
        (
            Box::new(|m| m.flags.skip_worktree.push("../x".into())),
            "UnsafePath",
        ),
    ];
    for (n, (change, code)) in cases.into_iter().enumerate() {
        let error = forge(&lab, &inbox, &snapshot, &format!("bad{n}"), change).unwrap_err();
        assert_eq!(error.code(), code, "case {n}: {error}");
    }
    assert!(!lab.path().join("outside").exists());
    for (n, json) in [&b"{}"[..], b"null", b"{\"format\":1", b"\xff"]
        .iter()
        .enumerate()
    {
        let error = forge_json(&lab, &inbox, &snapshot, &format!("json{n}"), json).unwrap_err();
        assert_eq!(error.code(), "BadSnapshot", "{error}");
    }
    let error = lab.restore(&inbox, lab.head(), "plain", None).unwrap_err();
    assert_eq!(error.code(), "BadSnapshot");
    let gone = Oid::from_bytes(&[1; 20]).unwrap();
    assert_eq!(
        lab.restore(&inbox, gone, "gone", None).unwrap_err().code(),
        "MissingObject"
    );
}

#[test]
fn what_could_run_or_reach_further_is_left_out() {
    let lab = Lab::new();
    let dir = fork(&lab);
    write(&dir, b"README", b"dirty\n");
    let (snapshot, inbox) = lab.suspend(&dir, "s");
    let top = lab.head().to_string();
    let path = forge(&lab, &inbox, &snapshot, "forged", |m| {
        let upstream = m.upstream.get_mut("main").unwrap();
        upstream.remote = "ext::sh -c id".into();
        m.modes.insert("run.sh".into(), 0o6755);
        m.modes.insert("link/x".into(), 0o777);
        m.stash.push(StashEntry {
            commit: top,
            message: "one%0A0000000000000000000000000000000000000000 second".into(),
        });
    })
    .unwrap();
    let config = std::fs::read_to_string(path.join(".git/config")).unwrap();
    assert!(!config.contains("ext::"), "{config}");
    assert!(files(&path, &mut vec![]).contains(&"run.sh 755 #!/bin/sh%0A".to_owned()));
    assert_eq!(git(&path, &["stash", "list"]).lines().count(), 1);
}

#[test]
fn a_tag_object_must_have_its_id() {
    let lab = Lab::new();
    let dir = fork(&lab);
    git(&dir, &["tag", "-a", "mine", "-m", "mine"]);
    let (snapshot, inbox) = lab.suspend(&dir, "s");
    let repo = Repository::open_bare(&inbox).unwrap();
    let commit = repo.find_commit(snapshot.commit).unwrap();
    let parents: Vec<_> = commit.parents().collect();
    let (meta, others) = parents.split_last().unwrap();
    let tag = id(&dir, "mine").to_string();
    let text = String::from_utf8(git_with(&dir, &["cat-file", "tag", &tag], &[], b"")).unwrap();
    let text = text.replace("mine", "evil");
    let mut objects = repo.treebuilder(None).unwrap();
    objects
        .insert(&tag, repo.blob(text.as_bytes()).unwrap(), 0o100_644)
        .unwrap();
    let mut builder = repo.treebuilder(Some(&meta.tree().unwrap())).unwrap();
    builder
        .insert("objects", objects.write().unwrap(), 0o040_000)
        .unwrap();
    let tree = repo.find_tree(builder.write().unwrap()).unwrap();
    let by = meta.author();
    let meta = repo.commit(None, &by, &by, "m", &tree, &[]).unwrap();
    let meta = repo.find_commit(meta).unwrap();
    let parents: Vec<_> = others.iter().chain([&meta]).collect();
    let forged = repo
        .commit(None, &by, &by, "s", &commit.tree().unwrap(), &parents)
        .unwrap();
    let error = lab.restore(&inbox, forged, "bad", None).unwrap_err();
    assert_eq!(error.code(), "BadSnapshot", "{error}");
}
