//! Snapshots sent on and restored, for tests.

use std::os::unix::fs::symlink;
use std::path::{Path, PathBuf};

use git2::{Oid, Repository};

use crate::fork_testing::{Lab, chmod, git};
use crate::{Bounds, Head, Repo, RepoError, RestoreSpec, Snapshot, SnapshotOptions, restore};

impl Lab {
    /// A bare repository on top of the upstream.
    fn scratch(&self, name: &str) -> PathBuf {
        let path = self.path().join(name);
        git(self.path(), &["init", "-q", "--bare", "--template=", name]);
        let objects = self.upstream().join("objects");
        let line = format!("{}\n", objects.display());
        std::fs::write(path.join("objects/info/alternates"), line).unwrap();
        path
    }

    /// Snapshots a RootDir and sends the result on: a new inbox gets what is reachable only.
    pub(crate) fn suspend(&self, dir: &Path, name: &str) -> (Snapshot, PathBuf) {
        let outbox = self.scratch(&format!("{name}.out.git"));
        let options = SnapshotOptions {
            remote_tips: self
                .refs("refs/heads/")
                .into_iter()
                .map(|(_, id)| id)
                .collect(),
            remote_tags: self.refs("refs/tags/").into_iter().collect(),
            dir_name: "docs".into(),
            ..SnapshotOptions::default()
        };
        let root = warren_disk::open_root(dir).unwrap();
        let repo = Repo::open(&root, dir, Bounds::default()).unwrap();
        let snapshot = repo
            .snapshot(&Repository::open_bare(&outbox).unwrap(), &options)
            .unwrap();
        let commit = snapshot.commit.to_string();
        git(&outbox, &["update-ref", "refs/warren/s", &commit]);
        let inbox = self.scratch(&format!("{name}.in.git"));
        let from = outbox.to_str().unwrap();
        git(
            &inbox,
            &["fetch", "-q", from, "refs/warren/s:refs/warren/s"],
        );
        (snapshot, inbox)
    }

    pub(crate) fn restore(
        &self,
        inbox: &Path,
        snapshot: Oid,
        name: &str,
        as_branch: Option<&str>,
    ) -> Result<(PathBuf, Head), RepoError> {
        let path = self.path().join(name);
        std::fs::create_dir(&path).unwrap();
        let root = warren_disk::open_root(&path).unwrap();
        let spec = RestoreSpec {
            inbox,
            snapshot,
            upstream: &self.upstream(),
            root: &root,
            root_path: &path,
            origin_url: "https://example.org/up.git",
            remote_refs: self.refs("refs/heads/"),
            tags: self.refs("refs/tags/"),
            default_branch: Some("main".into()),
            as_branch: as_branch.map(str::to_owned),
            bounds: Bounds::default(),
        };
        let head = restore(spec, &mut |_, _| {})?;
        Ok((path, head))
    }
}

/// A fork with a history, on branch `main`.
pub(crate) fn fork(lab: &Lab) -> PathBuf {
    lab.write(&[
        ("README", "hello\n"),
        ("src/a/b.txt", "deep\n"),
        ("src/gone", "gone\n"),
        ("run.sh", "#!/bin/sh\n"),
        ("both", "1\n2\n3\n"),
    ]);
    chmod(&lab.work().join("run.sh"), 0o755);
    symlink("README", lab.work().join("link")).unwrap();
    lab.commit_and_push("one");
    git(&lab.work(), &["tag", "-a", "v1", "-m", "first"]);
    git(&lab.work(), &["branch", "other"]);
    lab.write(&[("README", "hello again\n")]);
    lab.commit_and_push("two");
    lab.fork_main("fork").unwrap().0
}
