//! Repositories that are too big for memory, a quota or a disk.

use std::io::Write;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};
use std::time::{Duration, Instant};

use warren_disk::budget::{Budget, Quota};
use warren_disk::space::{self, Space};
use warren_mirror::{CredentialStore, Exclude, MirrorError, Mirrors, MirrorsSpec, UrlPolicy};
use warren_testkit::{GitRepo, git_command};

use crate::setup::{Host, code, limits, noise, spec};

/// Runs git in a repository with input.
fn git_with(repo: &GitRepo, args: &[&str], input: &[u8]) -> String {
    let mut child = git_command(repo.path())
        .args(args)
        .stdin(Stdio::piped())
        .stdout(Stdio::piped())
        .spawn()
        .unwrap();
    child.stdin.take().unwrap().write_all(input).unwrap();
    let output = child.wait_with_output().unwrap();
    assert!(output.status.success(), "git {args:?}");
    String::from_utf8(output.stdout).unwrap().trim().to_owned()
}

/// Puts a tree on a branch of its own.
fn publish(repo: &GitRepo, branch: &str, tree: &str) {
    let commit = repo.git(&["commit-tree", tree, "-m", branch]);
    repo.git(&["update-ref", &format!("refs/heads/{branch}"), &commit]);
}

/// A tree that stands for 10^`levels` files of one blob.
fn bomb(repo: &GitRepo, levels: usize) -> String {
    let blob = git_with(repo, &["hash-object", "-w", "--stdin"], b"x");
    let mut line = format!("100644 blob {blob}\tf");
    let mut tree = String::new();
    for _ in 0..levels {
        let entries: String = (0..10).map(|n| format!("{line}{n}\n")).collect();
        tree = git_with(repo, &["mktree"], entries.as_bytes());
        line = format!("040000 tree {tree}\td");
    }
    tree
}

#[test]
fn bombs_are_refused_and_the_mirror_serves_on() {
    let host = Host::new();
    let up = host.bare("up.git");
    up.seed("main", &[("a.txt", "1")]);
    let wide = bomb(&up, 9);
    publish(&up, "wide", &wide);
    let mut deep = wide;
    for _ in 0..600 {
        let entry = format!("040000 tree {deep}\tdddddddd\n");
        deep = git_with(&up, &["mktree"], entry.as_bytes());
    }
    publish(&up, "deep", &deep);
    // Nothing but zeros: a few hundred KB on the wire.
    let zeros = host.work.join("zeros");
    let file = std::fs::File::create(&zeros).unwrap();
    file.set_len(600 << 20).unwrap();
    let big = up.git(&["hash-object", "-w", zeros.to_str().unwrap()]);
    std::fs::remove_file(&zeros).unwrap();
    let entry = format!("100644 blob {big}\tzeros\n");
    let tree = git_with(&up, &["mktree"], entry.as_bytes());
    publish(&up, "zeros", &tree);
    for (branch, named) in [("wide", "entries"), ("deep", "path"), ("zeros", "zeros")] {
        let session = host.session(branch);
        let error = session
            .clone(&host.origin("up.git"), Some(branch))
            .unwrap_err();
        assert_eq!(error.code(), "GitTooLarge", "{branch}: {error}");
        assert!(error.to_string().contains(named), "{branch}: {error}");
        let root = host.root(branch);
        let files = std::fs::read_dir(root.path()).unwrap().count();
        assert!(files <= 1, "{branch}: only `.git` is there");
    }
    host.cloned("r");
}

#[test]
fn a_bomb_that_a_worker_planted_travels_as_the_few_objects_that_it_is() {
    let host = Host::new();
    host.bare("up.git").seed("main", &[("a.txt", "1")]);
    let root = host.cloned("r");
    let tree = bomb(&root, 9);
    publish(&root, "bomb", &tree);
    root.write("a.txt", "edited");
    let mut session = host.session("r");
    let origin = host.origin("up.git");
    let made = session.snapshot(&origin, &[]).unwrap();
    let name = "refs/heads/vance/suspend/r";
    session.push(&origin, &made.commit, name, None).unwrap();
    // With HEAD on it, nothing can be said of the tree, and that is said.
    root.git(&["symbolic-ref", "HEAD", "refs/heads/bomb"]);
    assert_eq!(code(session.status()), "GitTooLarge");
}

#[test]
fn a_quota_stops_a_clone_while_bytes_come_in() {
    let host = Host::new();
    let up = host.bare("up.git");
    up.seed("main", &[("a.txt", "1")]);
    let hex: String = noise(2 << 20).iter().map(|b| format!("{b:02x}")).collect();
    up.seed("main", &[("big.txt", &hex)]);
    let clone = |name: &str, bytes| {
        let mut spec = spec(&host.work, name);
        let quota = Quota {
            bytes: Some(bytes),
            inodes: None,
        };
        spec.budget = Budget::new(spec.root.try_clone().unwrap(), quota, None);
        let budget = spec.budget.clone();
        let origin = host.origin("up.git");
        let done = host.mirrors.session(spec).clone(&origin, None);
        (done, budget.used().unwrap().bytes)
    };
    let (done, _) = clone("small", 1 << 20);
    let error = done.unwrap_err();
    assert_eq!(error.code(), "GitNoSpace", "{error}");
    assert!(error.to_string().contains("1048576"), "{error}");
    assert!(!host.root("small").path().join(".git").exists());
    // Room for the pack, and not for the file.
    let (done, used) = clone("middle", 4 << 20);
    assert_eq!(code(done), "GitNoSpace");
    assert!(used <= 4 << 20, "{used}");
    assert!(!host.root("middle").path().join("big.txt").exists());
    // What was held while it came in is not counted twice.
    let (done, used) = clone("large", 10 << 20);
    done.unwrap();
    assert!((6 << 20..10 << 20).contains(&used), "{used}");
}

/// A small file system; unmounted when dropped.
struct Disk(PathBuf);

impl Disk {
    fn tmpfs(at: &Path, size: &str) -> Option<Self> {
        let mut mount = Command::new("mount");
        mount.args(["-t", "tmpfs", "-o", size, "none"]).arg(at);
        if mount.output().is_ok_and(|output| output.status.success()) {
            return Some(Self(at.to_owned()));
        }
        let mut stderr = std::io::stderr();
        writeln!(stderr, "SKIPPED: no right to mount").unwrap();
        None
    }
}

impl Drop for Disk {
    fn drop(&mut self) {
        let gone = Command::new("umount").arg("-l").arg(&self.0).status();
        assert!(gone.is_ok_and(|status| status.success()));
    }
}

fn mirrors_on(
    host: &Host,
    state: PathBuf,
    disk: Option<space::Limits>,
    exclude: Exclude,
) -> Mirrors {
    Mirrors::open(MirrorsSpec {
        state: warren_disk::open_root(&state).unwrap(),
        state_path: state,
        policy: UrlPolicy::new(&["http://127.0.0.1:*/**"]).unwrap(),
        credentials: CredentialStore::default(),
        known_hosts: host.work.join("known_hosts"),
        ca_file: None,
        limits: limits(),
        repo_limits: warren_repo::Limits::default(),
        exclude,
        disk,
    })
    .unwrap()
}

#[test]
fn the_hard_limit_of_the_disk_stops_a_fetch_and_not_a_snapshot() {
    let host = Host::new();
    let state = host.work.dir("small");
    let Some(_disk) = Disk::tmpfs(&state, "size=20m") else {
        return;
    };
    let up = host.bare("up.git");
    up.seed("main", &[("a.txt", "1")]);
    let disk = space::Limits {
        soft_percent: 50,
        hard_percent: 60,
    };
    let mirrors = mirrors_on(&host, state.clone(), Some(disk), Exclude::default());
    let origin = host.origin("up.git");
    let mut session = mirrors.session(spec(&host.work, "r"));
    session.clone(&origin, None).unwrap();

    let big = host.bare("big.git");
    let hex: String = noise(15 << 20).iter().map(|b| format!("{b:02x}")).collect();
    big.seed("main", &[("big.txt", &hex)]);
    let clone = mirrors.session(spec(&host.work, "s"));
    let error = clone.clone(&host.origin("big.git"), None).unwrap_err();
    assert_eq!(error.code(), "GitNoSpace", "{error}");
    let space = Space::of(&warren_disk::open_root(&state).unwrap()).unwrap();
    assert!(space.percent_used() <= 70, "{space:?}");

    // Past the limit work is saved all the same: that is what makes room.
    std::fs::write(state.join("fill"), vec![1; 13 << 20]).unwrap();
    let other = mirrors.session(spec(&host.work, "t"));
    up.seed("main", &[("b.txt", "2")]);
    assert_eq!(code(other.clone(&origin, None)), "GitNoSpace");
    host.root("r").write("work.txt", "hours of work");
    let made = session.snapshot(&origin, &[]).unwrap();
    let name = "refs/heads/vance/suspend/r";
    session.push(&origin, &made.commit, name, None).unwrap();
}

#[test]
fn local_work_ends_with_its_time_too() {
    let host = Host::new();
    host.bare("up.git").seed("main", &[("a.txt", "1")]);
    host.cloned("r");
    let mut late = spec(&host.work, "r");
    late.deadline = Instant::now() - Duration::from_millis(1);
    let session = host.mirrors.session(late);
    assert_eq!(code(session.status()), "GitTimeout");
    assert_eq!(code(session.head()), "GitTimeout");
    let given_up = spec(&host.work, "r");
    given_up
        .cancel
        .store(true, std::sync::atomic::Ordering::Relaxed);
    let session = host.mirrors.session(given_up);
    assert_eq!(code(session.status()), "GitCancelled");
}

/// Refuses what hosting services refuse, in their way.
const RULES: &str = "while read old new ref; do
  for line in $(git ls-tree -r --format='%(path):%(objectsize)' $new); do
    path=${line%%:*}; size=${line##*:}
    case $path in *.env) echo \"error: GH013: push protection: a secret in $path\" >&2; bad=1;; esac
    if [ $size -gt 1000000 ]; then echo \"error: GH001: $path is $size bytes\" >&2; bad=1; fi
  done
done
test -z \"$bad\"";

#[test]
fn secrets_and_caches_are_named_when_refused_and_can_be_kept_out() {
    let host = Host::new();
    let up = host.bare("up.git");
    up.seed("main", &[("a.txt", "1")]);
    let root = host.cloned("r");
    root.write(".env", "TOKEN=ghp_0123456789\n");
    root.write("cache/big.bin", vec![7; 1_200_000]);
    root.write("work.txt", "hours of work\n");
    up.hook("pre-receive", RULES);
    let origin = host.origin("up.git");
    let name = "refs/heads/vance/suspend/r";
    let mut session = host.session("r");
    let made = session.snapshot(&origin, &[]).unwrap();
    let error = session.push(&origin, &made.commit, name, None).unwrap_err();
    assert!(matches!(error, MirrorError::Rejected { .. }), "{error:?}");
    let said = error.to_string();
    for part in [".env", "cache/big.bin", "GH001", "GH013"] {
        assert!(said.contains(part), "{part}: {said}");
    }
    assert!(!said.contains("ghp_"), "{said}");

    let exclude = Exclude::new(&[".env", "/cache/"]).unwrap();
    let careful = mirrors_on(&host, host.work.dir("state"), None, exclude);
    let mut session = careful.session(spec(&host.work, "r"));
    let made = session.snapshot(&origin, &[".env".into()]).unwrap();
    let lost: Vec<_> = made.loss.iter().map(|loss| loss.path.as_str()).collect();
    assert_eq!(lost, [".env", "cache/"]);
    session.push(&origin, &made.commit, name, None).unwrap();
    let objects = up.git(&["rev-list", "--objects", "--all"]);
    assert!(
        objects.contains("work.txt") && !objects.contains(".env"),
        "{objects}"
    );
}
