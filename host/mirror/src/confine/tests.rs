//! What the layer stops alone: libgit2 is used here without the check of a repository's layout that
//! comes before it elsewhere. Every trick is shown to work without the layer.

use std::io::ErrorKind;
use std::net::{TcpListener, TcpStream};
use std::os::unix::fs::symlink;
use std::path::PathBuf;

use git2::{Oid, Repository};
use warren_testkit::{GitRepo, Work};

use super::*;

/// Without bounds.
fn run<T: Send>(
    reach: &Reach,
    url: Option<&RemoteUrl>,
    work: impl FnOnce(Resolver) -> Result<T, MirrorError> + Send,
) -> Result<T, MirrorError> {
    super::run(reach, url, &Bounds::default(), work)
}

const SECRET: &str = "a secret of another project\n";

/// A RootDir and another Project's, both repositories.
struct Lab {
    work: Work,
    root: GitRepo,
    victim: GitRepo,
}

impl Lab {
    fn new() -> Self {
        warren_repo::setup::init().unwrap();
        let work = Work::new();
        let repo = |name: &str, file: &str, text: &str| {
            let repo = GitRepo::init(work.dir(name));
            repo.write(file, text);
            repo.commit("first");
            repo
        };
        Self {
            root: repo("p/root", "a.txt", "a\n"),
            victim: repo("v/root", "secret.txt", SECRET),
            work,
        }
    }

    fn git(&self, name: &str) -> PathBuf {
        self.root.path().join(".git").join(name)
    }

    fn theirs(&self, name: &str) -> PathBuf {
        self.victim.path().join(".git").join(name)
    }

    fn secret(&self) -> Oid {
        let id = self.victim.git(&["rev-parse", "HEAD:secret.txt"]);
        Oid::from_str(id.trim()).unwrap()
    }

    fn reach(&self, access: Access) -> Reach {
        let mut reach = Reach::new(false);
        let root = warren_disk::open_root(self.root.path()).unwrap();
        reach.open(root, access).unwrap();
        reach
    }

    /// A trick gets at the other Project without the layer, and not with it.
    fn is_stopped(&self, what: &str, trick: impl Fn(&Path) -> bool + Send + Sync) {
        let go = |reach: &Reach| run(reach, None, |_| Ok(trick(self.root.path()))).unwrap();
        assert!(go(&Reach::new(true)), "{what}: it is no trick");
        assert!(!go(&self.reach(Access::Read)), "{what}: it gets out");
        assert!(!go(&self.reach(Access::Write)), "{what}: it gets out");
    }
}

fn reads(repo: Result<Repository, git2::Error>, id: Oid) -> bool {
    repo.and_then(|repo| {
        let blob = repo.find_blob(id)?;
        Ok(blob.content() == SECRET.as_bytes())
    })
    .unwrap_or(false)
}

#[test]
fn planted_pointers_lead_nowhere() {
    let lab = Lab::new();
    let secret = lab.secret();
    let open_and_read = |root: &Path| reads(Repository::open(root), secret);

    let alternates = lab.git("objects/info/alternates");
    std::fs::write(
        &alternates,
        format!("{}\n", lab.theirs("objects").display()),
    )
    .unwrap();
    lab.is_stopped("alternates", open_and_read);
    std::fs::remove_file(alternates).unwrap();

    let aside = lab.work.join("aside");
    let objects = lab.git("objects");
    std::fs::rename(&objects, &aside).unwrap();
    symlink(lab.theirs("objects"), &objects).unwrap();
    lab.is_stopped("symlinked objects", open_and_read);
    std::fs::remove_file(&objects).unwrap();
    std::fs::rename(&aside, &objects).unwrap();

    let pointer = lab.git("commondir");
    std::fs::write(&pointer, format!("{}\n", lab.theirs("").display())).unwrap();
    lab.is_stopped("commondir", open_and_read);
    std::fs::remove_file(pointer).unwrap();

    let git = lab.git("");
    let git = git.parent().unwrap().join(".git");
    std::fs::rename(&git, &aside).unwrap();
    std::fs::write(&git, format!("gitdir: {}\n", lab.theirs("").display())).unwrap();
    lab.is_stopped("gitdir", open_and_read);
    std::fs::remove_file(&git).unwrap();
    symlink(lab.theirs(""), &git).unwrap();
    lab.is_stopped("symlinked `.git`", open_and_read);
}

#[test]
fn planted_settings_lead_nowhere() {
    let lab = Lab::new();
    let config = std::fs::read(lab.git("config")).unwrap();
    lab.root.git(&[
        "config",
        "core.worktree",
        &lab.victim.path().display().to_string(),
    ]);
    lab.is_stopped("worktree", |root| {
        let add = || -> Result<Oid, git2::Error> {
            let repo = Repository::open(root)?;
            repo.blob_path(&repo.workdir().unwrap_or(root).join("secret.txt"))
        };
        add().is_ok()
    });
    std::fs::write(lab.git("config"), config).unwrap();

    let theirs = lab.work.join("v/settings");
    std::fs::write(&theirs, "[warren]\n\tsecret = yes\n").unwrap();
    lab.root
        .git(&["config", "include.path", &theirs.display().to_string()]);
    lab.is_stopped("include", |root| {
        let read = || {
            Repository::open(root)?
                .config()?
                .get_string("warren.secret")
        };
        read().is_ok()
    });
}

#[test]
fn nothing_but_the_root_is_read_written_or_listed() {
    let lab = Lab::new();
    let theirs = lab.victim.path().to_owned();
    lab.is_stopped("a file", |_| {
        std::fs::read(theirs.join("secret.txt")).is_ok()
    });
    lab.is_stopped("a list", |_| std::fs::read_dir(&theirs).is_ok());
    lab.is_stopped("a new file", |_| {
        std::fs::write(theirs.join("x"), "x").is_ok()
    });
    lab.is_stopped("a way around", |root| {
        std::fs::read(root.join("../../v/root/secret.txt")).is_ok()
    });
    lab.is_stopped("the process", |_| {
        std::fs::read("/proc/self/environ").is_ok()
    });
    lab.is_stopped("a thread of the thread", |_| {
        let read = || std::fs::read(theirs.join("secret.txt")).is_ok();
        std::thread::scope(|scope| scope.spawn(read).join().unwrap())
    });
    let hard = lab.root.path().join("hard");
    lab.is_stopped("a hard link", |_| {
        let done = std::fs::hard_link(theirs.join("secret.txt"), &hard).is_ok();
        drop(std::fs::remove_file(&hard));
        done
    });
    lab.is_stopped("a link that was there before", |root| {
        drop(std::fs::remove_file(root.join("s")));
        // In a root that is only read there is none to follow.
        symlink(theirs.join("secret.txt"), root.join("s")).is_ok()
            && std::fs::read(root.join("s")).is_ok()
    });

    // What looks does not write, what fills does.
    let write = |access| {
        let file = lab.root.path().join("new");
        let write = |_| Ok(std::fs::write(&file, "x").map_err(|error| error.kind()));
        run(&lab.reach(access), None, write).unwrap()
    };
    assert_eq!(write(Access::Read), Err(ErrorKind::PermissionDenied));
    assert_eq!(write(Access::Write), Ok(()));
}

#[test]
fn only_the_port_of_the_remote_is_connected_to() {
    let lab = Lab::new();
    let (remote, other) = (
        TcpListener::bind("127.0.0.1:0").unwrap(),
        TcpListener::bind("127.0.0.1:0").unwrap(),
    );
    let mut reach = lab.reach(Access::Read);
    reach.port(remote.local_addr().unwrap().port());
    let connect = |to: &TcpListener| {
        let address = to.local_addr().unwrap();
        run(&reach, None, |_| {
            Ok(TcpStream::connect(address).map(drop).map_err(|e| e.kind()))
        })
        .unwrap()
    };
    assert_eq!(connect(&remote), Ok(()));
    assert_eq!(connect(&other), Err(ErrorKind::PermissionDenied));
    let listen = run(&reach, None, |_| {
        Ok(TcpListener::bind("127.0.0.1:0").is_ok())
    });
    assert!(!listen.unwrap());
}

#[test]
fn other_threads_stay_as_they_are() {
    let lab = Lab::new();
    let file = lab.victim.path().join("secret.txt");
    let reach = lab.reach(Access::Read);
    let inside = run(&reach, None, |_| {
        assert!(std::fs::read(&file).is_err());
        Ok(())
    });
    inside.unwrap();
    assert_eq!(std::fs::read_to_string(&file).unwrap(), SECRET);
}

#[test]
fn without_the_layer_nothing_is_done() {
    let lab = Lab::new();
    // The kernel stacks 16 of them; the next one fails as one does that it does not have.
    let result = run(&lab.reach(Access::Read), None, |_| {
        for _ in 0..15 {
            restrict_thread(&PathRules::new(), &[]).unwrap();
        }
        let mut went = false;
        let error = run(
            &Reach::Places {
                places: PathRules::new(),
                ports: vec![],
            },
            None,
            |_| {
                went = true;
                Ok(())
            },
        )
        .unwrap_err();
        assert!(!went);
        assert_eq!(error.code(), "GitUnconfined");
        // Unless the policy says so.
        run(&Reach::new(true), None, |_| {
            went = true;
            Ok(())
        })?;
        assert!(went);
        Ok(())
    });
    result.unwrap();
}

#[test]
fn an_address_is_looked_up_from_outside() {
    let lab = Lab::new();
    let ask = |url: &str| {
        let url = RemoteUrl::parse(url).unwrap();
        run(&lab.reach(Access::Read), Some(&url), |resolver| {
            let until = std::time::Instant::now() + std::time::Duration::from_secs(20);
            Ok(resolver.resolve(until))
        })
        .unwrap()
    };
    let found = ask("http://localhost:81/x").unwrap();
    assert!(
        found
            .iter()
            .all(|address| address.ip().is_loopback() && address.port() == 81)
    );
    let found = ask("http://[::1]:82/x").unwrap();
    assert_eq!(found, ["[::1]:82".parse().unwrap()]);
    assert_eq!(ask("http://nowhere.invalid/x"), None);
}

/// `cargo test -p warren-mirror --release -- --ignored --nocapture what_it_costs`
#[test]
#[ignore = "a measurement"]
#[expect(clippy::print_stderr, reason = "says what it has measured")]
fn what_it_costs() {
    const ROUNDS: u32 = 500;
    let lab = Lab::new();
    let measure = |unconfined: bool| {
        let start = std::time::Instant::now();
        for _ in 0..ROUNDS {
            let mut reach = Reach::new(unconfined);
            for _ in 0..3 {
                let root = warren_disk::open_root(lab.root.path()).unwrap();
                reach.open(root, Access::Write).unwrap();
            }
            reach.certificates().unwrap();
            reach.port(443);
            run(&reach, None, |_| Ok(())).unwrap();
        }
        start.elapsed() / ROUNDS
    };
    measure(true);
    let (bare, confined) = (measure(true), measure(false));
    eprintln!("a thread: {bare:?}; confined: {confined:?}");
}
