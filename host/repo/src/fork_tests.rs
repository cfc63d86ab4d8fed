use std::path::Path;

use git2::Oid;

use crate::fork::HeadSpec;
use crate::fork_testing::{Lab, files, fsck, git, git_with, id, observe};
use crate::{Bounds, Head, RepoError, init};

fn sample() -> Lab {
    let lab = Lab::new();
    lab.write(&[
        ("README", "hello\n"),
        ("src/a/b/c.txt", "deep\n"),
        ("src/a.txt", "beside\n"),
        ("src-2/x", ""),
        ("run.sh", "#!/bin/sh\n"),
        ("new\nline\"q", "odd\n"),
        ("sub\r", "carriage\n"),
    ]);
    crate::fork_testing::write(&lab.work(), b"\xff\xfe.txt", b"bytes");
    crate::fork_testing::write(&lab.work(), &[b'n'; 255], b"long");
    crate::fork_testing::chmod(&lab.work().join("run.sh"), 0o755);
    std::os::unix::fs::symlink("src/a.txt", lab.work().join("link")).unwrap();
    std::os::unix::fs::symlink(".git", lab.work().join("s")).unwrap();
    lab.commit_and_push("one");
    git(&lab.work(), &["tag", "-a", "v1", "-m", "first"]);
    git(&lab.work(), &["tag", "light"]);
    git(&lab.work(), &["branch", "feature/x/y"]);
    lab.write(&[("README", "hello again\n")]);
    lab.commit_and_push("two");
    lab
}

/// What a clone by git itself looks like.
fn clone(lab: &Lab, name: &str) -> std::path::PathBuf {
    let path = lab.path().join(name);
    git(lab.path(), &["clone", "-q", "--template=", "up.git", name]);
    git(
        &path,
        &["remote", "set-url", "origin", "https://example.org/up.git"],
    );
    path
}

#[test]
fn a_fork_is_what_a_clone_is() {
    let lab = sample();
    for pack in [false, true] {
        if pack {
            git(&lab.upstream(), &["gc", "-q"]);
        }
        let (path, head) = lab.fork_main(&format!("fork{pack}")).unwrap();
        assert_eq!(head.branch.as_deref(), Some("main"));
        assert_eq!(head.commit, Some(lab.head().to_string()));
        assert_eq!(
            observe(&path),
            observe(&clone(&lab, &format!("clone{pack}")))
        );
        fsck(&path);
        let branch = git(&path, &["config", "--list", "--local"]);
        assert!(
            branch.contains("branch.main.merge=refs/heads/main"),
            "{branch}"
        );
        assert!(!path.join(".git/hooks").exists());
        crate::layout::check(&warren_disk::open_root(&path).unwrap(), &Bounds::default()).unwrap();
    }
}

#[test]
#[expect(
    unsafe_code,
    reason = "gives this thread, and those it starts, a umask of its own"
)]
fn permissions_do_not_depend_on_the_umask() {
    use rustix::thread::{UnshareFlags, unshare_unsafe};
    let lab = sample();
    let (usual, _) = lab.fork_main("usual").unwrap();
    std::thread::scope(|scope| {
        scope.spawn(|| {
            // SAFETY: nothing here relies on sharing the umask or working directory.
            unsafe { unshare_unsafe(UnshareFlags::FS) }.unwrap();
            rustix::process::umask(rustix::fs::Mode::from_raw_mode(0o077));
            lab.fork_main("strict").unwrap();
        });
    });
    let strict = lab.path().join("strict");
    assert_eq!(files(&strict, &mut vec![]), files(&usual, &mut vec![]));
    assert_eq!(git(&strict, &["status", "--porcelain"]), "");
}

#[test]
fn a_blob_that_is_not_its_id_is_not_written() {
    let lab = sample();
    let blob = id(&lab.upstream(), "main:README").to_string();
    let other = id(&lab.upstream(), "main:run.sh").to_string();
    let object = |id: &str| lab.upstream().join("objects").join(&id[..2]).join(&id[2..]);
    std::fs::remove_file(object(&blob)).unwrap();
    std::fs::copy(object(&other), object(&blob)).unwrap();
    assert!(lab.fork_main("fork").is_err());
    std::fs::remove_file(object(&blob)).unwrap();
    std::fs::remove_dir_all(lab.path().join("fork")).unwrap();
    assert_eq!(lab.fork_main("fork").unwrap_err().code(), "MissingObject");
}

#[test]
fn nothing_is_shared_with_the_mirror() {
    use std::os::unix::fs::MetadataExt as _;
    let lab = sample();
    git(&lab.upstream(), &["gc", "-q"]);
    let (path, _) = lab.fork_main("fork").unwrap();
    let packs = path.join(".git/objects/pack");
    for entry in std::fs::read_dir(packs).unwrap() {
        assert_eq!(entry.unwrap().metadata().unwrap().nlink(), 1);
    }
    assert!(!path.join(".git/objects/info/alternates").exists());
    std::fs::remove_dir_all(lab.upstream()).unwrap();
    fsck(&path);
}

#[test]
fn the_first_status_reads_no_file() {
    let lab = sample();
    let (path, _) = lab.fork_main("fork").unwrap();
    // Content that differs under stat data that does not: only a status that reads would see it.
    let readme = path.join("README");
    let before = std::fs::metadata(&readme).unwrap();
    git(&path, &["config", "core.trustctime", "false"]);
    std::fs::write(&readme, "HELLO AGAIN\n").unwrap();
    let file = std::fs::File::options().write(true).open(&readme).unwrap();
    file.set_modified(before.modified().unwrap()).unwrap();
    assert_eq!(git(&path, &["status", "--porcelain"]), "");
    // While a change as a program would make it is seen at once, at the same length, too.
    std::fs::write(&readme, "HELLO AGAIN\n").unwrap();
    assert_eq!(git(&path, &["status", "--porcelain"]), " M README\n");
}

#[test]
fn head_may_be_detached_or_unborn() {
    let lab = sample();
    let old = id(&lab.upstream(), "light");
    let (path, head) = lab.fork("detached", HeadSpec::Detached(old)).unwrap();
    assert_eq!(
        head,
        Head {
            commit: Some(old.to_string()),
            branch: None
        }
    );
    assert_eq!(
        git(&path, &["status", "--porcelain", "--branch"]),
        "## HEAD (no branch)\n"
    );
    assert_eq!(id(&path, "HEAD"), old);
    let (path, _) = lab
        .fork("unborn", HeadSpec::Unborn("new/one".into()))
        .unwrap();
    assert_eq!(
        git(&path, &["status", "--porcelain", "--branch"]),
        "## No commits yet on new/one\n"
    );
    assert_eq!(files(&path, &mut vec![]), Vec::<String>::new());
}

#[test]
fn a_remote_branch_called_head_hides_nothing() {
    let lab = sample();
    let old = id(&lab.upstream(), "light").to_string();
    git(&lab.upstream(), &["update-ref", "refs/heads/HEAD", &old]);
    let (path, _) = lab.fork_main("fork").unwrap();
    assert_eq!(id(&path, "origin/HEAD"), lab.head());
    assert_eq!(
        git(&path, &["symbolic-ref", "refs/remotes/origin/HEAD"]),
        "refs/remotes/origin/main\n"
    );
}

#[test]
fn bad_names_touch_nothing() {
    let lab = sample();
    let commit = lab.head();
    for name in ["", "-x", "a b", "../x", "HEAD", "x.lock", "a\nb"] {
        let head = HeadSpec::Branch {
            name: name.into(),
            commit,
            upstream: None,
        };
        let error = lab.fork("bad", head).unwrap_err();
        assert_eq!(error.code(), "InvalidArgument", "{name:?}");
        assert_eq!(
            std::fs::read_dir(lab.path().join("bad")).unwrap().count(),
            0
        );
        std::fs::remove_dir(lab.path().join("bad")).unwrap();
    }
    let missing = HeadSpec::Detached(Oid::from_bytes(&[1; 20]).unwrap());
    assert_eq!(
        lab.fork("bad", missing).unwrap_err().code(),
        "MissingObject"
    );
}

#[test]
fn a_root_that_is_not_empty_stays_as_it_is() {
    let lab = sample();
    let path = lab.path().join("full");
    std::fs::create_dir(&path).unwrap();
    std::fs::write(path.join("x"), "mine").unwrap();
    let root = warren_disk::open_root(&path).unwrap();
    let error = init(&root, &path, "main", None, &Bounds::default()).unwrap_err();
    assert_eq!(error.code(), "InvalidArgument");
    assert_eq!(files(&path, &mut vec![]), ["x 644 mine"]);
}

#[test]
fn init_makes_an_empty_repository() {
    let lab = Lab::new();
    let path = lab.path().join("new");
    std::fs::create_dir(&path).unwrap();
    let root = warren_disk::open_root(&path).unwrap();
    let head = init(
        &root,
        &path,
        "trunk",
        Some("https://example.org/r.git"),
        &Bounds::default(),
    )
    .unwrap();
    assert_eq!(
        head,
        Head {
            commit: None,
            branch: Some("trunk".into())
        }
    );
    assert_eq!(
        git(&path, &["status", "--porcelain", "-b"]),
        "## No commits yet on trunk\n"
    );
    assert_eq!(
        git(&path, &["remote", "get-url", "origin"]),
        "https://example.org/r.git\n"
    );
    fsck(&path);
    crate::layout::check(&root, &Bounds::default()).unwrap();
    let mut names: Vec<_> = std::fs::read_dir(path.join(".git"))
        .unwrap()
        .map(|e| e.unwrap().file_name().into_string().unwrap())
        .collect();
    names.sort();
    assert_eq!(names, ["HEAD", "config", "info", "objects", "refs"]);
}

/// A commit whose tree git itself would not make: raw entries of mode, name, id.
fn raw_commit(lab: &Lab, entries: &[(&str, &str, Oid)]) -> Oid {
    let mut tree = Vec::new();
    for (mode, name, id) in entries {
        tree.extend(format!("{mode} {name}\0").into_bytes());
        tree.extend_from_slice(id.as_bytes());
    }
    let up = lab.upstream();
    let args = ["hash-object", "-w", "-t", "tree", "--literally", "--stdin"];
    let tree = String::from_utf8(git_with(&up, &args, &[], &tree)).unwrap();
    git(&up, &["commit-tree", tree.trim(), "-m", "x"])
        .trim()
        .parse()
        .unwrap()
}

#[test]
fn hostile_trees_are_refused_and_write_nothing_outside() {
    let lab = sample();
    let up = lab.upstream();
    let blob = id(&up, "main:README");
    let tree = id(&up, "main:src");
    let inner = |name: &str| {
        let commit = raw_commit(&lab, &[("100644", name, blob)]);
        id(&up, &format!("{commit}^{{tree}}"))
    };
    let cases: Vec<Vec<(&str, &str, Oid)>> = vec![
        vec![("100644", ".git", blob)],
        vec![("40000", ".git", inner("config"))],
        vec![("40000", ".GIT", inner("config"))],
        vec![("40000", "GIT~1", inner("config"))],
        vec![("40000", ".git.", inner("config"))],
        vec![("40000", ".g\u{200c}it", inner("config"))],
        vec![("40000", "a", inner(".git"))],
        vec![("40000", "..", inner("x"))],
        vec![("100644", "../x", blob)],
        vec![("100644", "/x", blob)],
        vec![("100644", "a\\b", blob)],
        vec![("100644", "", blob)],
        vec![("120000", ".gitmodules", blob)],
        // A link, and a directory of the same name to write through it.
        vec![("120000", "a", blob), ("40000", "a", tree)],
        vec![("100644", "a", blob), ("100644", "a", blob)],
        vec![("100644", "b", blob), ("100644", "a", blob)],
        vec![("100644", "a", tree)],
        vec![("40000", "a", blob)],
        vec![("7", "a", blob)],
    ];
    for (n, entries) in cases.iter().enumerate() {
        let commit = raw_commit(&lab, entries);
        let error = lab
            .fork(&format!("bad{n}"), HeadSpec::Detached(commit))
            .unwrap_err();
        assert_eq!(error.code(), "UnsafePath", "{entries:?}: {error}");
        let config = std::fs::read_to_string(lab.path().join(format!("bad{n}/.git/config")));
        assert!(config.unwrap_or_default().len() < 500);
    }
    assert!(!lab.path().join("x").exists() && !Path::new("/x").exists());
}

#[test]
fn a_tree_bomb_is_refused() {
    let lab = sample();
    let mut tree = id(&lab.upstream(), "main:src");
    for _ in 0..12 {
        let names: Vec<_> = (0..10).map(|n| format!("d{n}")).collect();
        let entries: Vec<_> = names
            .iter()
            .map(|name| ("40000", name.as_str(), tree))
            .collect();
        let commit = raw_commit(&lab, &entries);
        tree = id(&lab.upstream(), &format!("{commit}^{{tree}}"));
    }
    let repo = git2::Repository::open_bare(lab.upstream()).unwrap();
    let read = crate::checkout::read_within(&repo.odb().unwrap(), tree, 10_000, &Bounds::default());
    assert!(matches!(read, Err(RepoError::TooLarge(_))));
}

#[test]
fn a_very_deep_tree_is_refused() {
    let lab = sample();
    let mut tree = id(&lab.upstream(), "main:src");
    let up = lab.upstream();
    let odb = git2::Repository::open_bare(&up).unwrap();
    for _ in 0..3000 {
        let mut builder = odb.treebuilder(None).unwrap();
        builder.insert("d", tree, 0o40_000).unwrap();
        tree = builder.write().unwrap();
    }
    let commit = git(&up, &["commit-tree", &tree.to_string(), "-m", "deep"]);
    let head = HeadSpec::Detached(commit.trim().parse().unwrap());
    assert!(matches!(
        lab.fork("deep", head),
        Err(RepoError::TooLarge(_))
    ));
}

#[test]
fn a_submodule_becomes_an_empty_directory() {
    let lab = sample();
    let commit = lab.head().to_string();
    let entry = format!("160000,{commit},mods/sub");
    git(
        &lab.work(),
        &["update-index", "--add", "--cacheinfo", &entry],
    );
    git(&lab.work(), &["commit", "-q", "-m", "sub"]);
    lab.push();
    let (path, _) = lab.fork_main("fork").unwrap();
    assert_eq!(std::fs::read_dir(path.join("mods/sub")).unwrap().count(), 0);
    assert_eq!(git(&path, &["status", "--porcelain"]), "");
}

#[test]
fn names_that_fold_together_are_named() {
    let lab = sample();
    let path = lab.path().join("fold");
    std::fs::create_dir(&path).unwrap();
    // As a folding file system would show it: the name is taken.
    std::fs::write(path.join("README"), "first").unwrap();
    let root = warren_disk::open_root(&path).unwrap();
    let up = lab.upstream();
    let repo = git2::Repository::open_bare(&up).unwrap();
    let odb = repo.odb().unwrap();
    let (items, _) =
        crate::checkout::plan(&up, &odb, id(&up, "main^{tree}"), &Bounds::default()).unwrap();
    let place = crate::checkout::Place {
        git_dir: &up,
        root: &root,
        bounds: &Bounds::default(),
    };
    let error = crate::checkout::write(place, &items, &[], &mut |_, _| {}).unwrap_err();
    assert!(
        matches!(&error, RepoError::UnsafePath(path) if path.starts_with("README")),
        "{error}"
    );
    assert_eq!(
        std::fs::read_to_string(path.join("README")).unwrap(),
        "first"
    );
}

#[test]
fn attributes_convert_as_git_does() {
    let lab = Lab::new();
    let attributes = "*.crlf text eol=crlf\n*.auto text=auto eol=crlf\n*.lf text eol=lf\n\
        *.only eol=crlf\n*.id ident\n*.both ident eol=crlf\n*.old crlf eol=crlf\n\
        *.bin -text eol=crlf\n[attr]win text eol=crlf\n*.mac win\n*.input text=input eol=crlf\n\
        *.u16 text working-tree-encoding=UTF-16\n*.u16le text working-tree-encoding=UTF-16LE-BOM eol=crlf\n\
        *.u16be working-tree-encoding=utf-16be\n*.u32 working-tree-encoding=UTF-32LE\n*.lfs filter=lfs -text\n\
        *.unset text eol=crlf\n*.unset !eol\n";
    lab.write(&[
        (".gitattributes", attributes),
        (
            "sub/.gitattributes",
            "*.lf eol=crlf\n*.id -ident\n*.mac -text\n",
        ),
    ]);
    let contents: &[&[u8]] = &[
        b"",
        b"\n",
        b"a\nb\n",
        b"a\r\nb\r\n",
        b"a\r\nb\n",
        b"a\rb\n",
        b"no end",
        b"a\0b\n",
        b"\x01\x02\x03\x04\n",
        b"text\n\x1a",
        b"$Id$\n$Id: x $ $Id:y$\n$Id: a b c $\n$Id: unclosed\n$Idx$ $Id$\n",
        "wide \u{e9} \u{1f980}\n$Id$\n".as_bytes(),
        b"\xff\xfe not utf-8\n",
        b"version https://git-lfs.github.com/spec/v1\noid sha256:00\nsize 1\n",
    ];
    let up = lab.upstream();
    git(&lab.work(), &["add", "-A"]);
    let mut entries = Vec::new();
    for (n, content) in contents.iter().enumerate() {
        let args = ["hash-object", "-w", "--no-filters", "--stdin"];
        let blob = String::from_utf8(git_with(&lab.work(), &args, &[], content)).unwrap();
        for kind in [
            "crlf", "auto", "lf", "only", "id", "both", "old", "bin", "mac", "input", "u16",
            "u16le", "u16be", "u32", "lfs", "unset", "none",
        ] {
            for dir in ["", "sub/", "sub/deep/"] {
                entries.extend(format!("100644 {}\t{dir}f{n}.{kind}\n", blob.trim()).into_bytes());
            }
        }
    }
    git_with(
        &lab.work(),
        &["update-index", "--add", "--index-info"],
        &[],
        &entries,
    );
    git(&lab.work(), &["commit", "-q", "-m", "all"]);
    lab.push();
    let (path, _) = lab.fork_main("fork").unwrap();
    let (ours, theirs) = (
        files(&path, &mut vec![]),
        files(&clone(&lab, "clone"), &mut vec![]),
    );
    assert_eq!(ours.len(), theirs.len());
    for (ours, theirs) in ours.iter().zip(&theirs) {
        assert_eq!(ours, theirs);
    }
    assert_eq!(git(&path, &["status", "--porcelain"]), "");
    drop(up);
}

#[test]
fn a_fork_is_clean_where_line_ends_disagree() {
    let lab = Lab::new();
    lab.write(&[("a.txt", "one\r\ntwo\r\n")]);
    git(&lab.work(), &["add", "-A"]);
    git(&lab.work(), &["commit", "-q", "-m", "crlf"]);
    lab.write(&[(".gitattributes", "* text=auto\n")]);
    lab.commit_and_push("auto");
    let (path, _) = lab.fork_main("fork").unwrap();
    assert_eq!(git(&path, &["status", "--porcelain"]), "");
    assert_eq!(
        std::fs::read(path.join("a.txt")).unwrap(),
        b"one\r\ntwo\r\n"
    );
}
