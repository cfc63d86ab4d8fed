//! Names of folders: never two to one, never out of their place.

use std::cell::RefCell;
use std::os::unix::ffi::OsStrExt;
use std::path::{Component, Path};

use warren_disk::{Dir, beneath, open_root};
use warren_model::{CreatorId, DirName, HandlerType, ProjectId, TenantId};
use warren_model::{project_folder, tenant_folder};

/// Two texts as ids, hints and dirNames.
pub fn names(data: &[u8]) {
    let Some((a, b)) = super::split(data) else {
        return;
    };
    dir_name(a);
    ids(a, b);
    if let (Ok(x), Ok(y)) = (a.parse::<DirName>(), b.parse::<DirName>()) {
        assert_eq!(x == y, a == b);
        // The file beside one folder is never the folder of another.
        assert_ne!(x.descriptor_file(), y.as_str());
        assert!(x.folded() == y.folded() || a != b);
    }
    if let Ok(handler) = a.parse::<HandlerType>() {
        assert!(
            handler
                .as_str()
                .bytes()
                .all(|c| c.is_ascii_graphic() && c != b'/')
        );
    }
}

fn dir_name(text: &str) {
    let made = DirName::from_hint(text);
    for name in made.into_iter().chain(text.parse()) {
        assert_eq!(name.as_str().parse::<DirName>().as_ref(), Ok(&name));
        one_component(name.as_str());
        one_component(&name.descriptor_file());
        assert_ne!(name.descriptor_file().to_lowercase(), "workspace.json");
        assert!(name.descriptor_file().parse::<DirName>().is_err());
        assert_eq!(name.folded(), name.folded().to_lowercase());
        let full = format!("refs/heads/vance/suspend/{name}");
        assert!(
            git2::Reference::is_valid_name(&full),
            "git refuses {full:?}"
        );
        if name.as_str().len() <= 100 {
            let second = name.with_suffix(2);
            assert_eq!(second.as_str().parse::<DirName>().as_ref(), Ok(&second));
        }
    }
}

fn ids(a: &str, b: &str) {
    let (x, y) = (a.parse::<ProjectId>(), b.parse::<ProjectId>());
    assert_eq!(x.is_ok(), a.parse::<TenantId>().is_ok());
    assert_eq!(x.is_ok(), a.parse::<CreatorId>().is_ok());
    let Ok(x) = x else {
        return;
    };
    assert!(!a.contains(['/', '\\', '\0', '\n', '\u{1b}']), "{a:?}");
    let folder = project_folder(&x);
    one_component(&folder);
    assert!(
        !folder.starts_with(['.', '-']) && folder.is_ascii(),
        "{folder}"
    );
    // What can be read back was not two to one.
    let back = warren_disk::text::unescape(&folder).expect("it is escaped as all is");
    assert_eq!(back, a.as_bytes(), "{folder}");
    if let Ok(y) = y {
        assert_eq!(a == b, folder == project_folder(&y));
        assert_eq!(x == y, a == b);
    }
    let tenant: TenantId = a.parse().expect("the grammar is one");
    one_component(&tenant_folder(&tenant));
}

fn one_component(name: &str) {
    let parts: Vec<_> = Path::new(name).components().collect();
    assert!(
        matches!(parts[..], [Component::Normal(part)] if part == name),
        "{name:?}"
    );
    // Room for `.json`, `.lock` and what a writer puts in front.
    assert!(name.len() <= 245 && !name.contains('\0'), "{name:?}");
}

/// A path in a RootDir with links out of it, and one name of a git tree.
pub fn path(data: &[u8]) {
    thread_local! {
        static TREE: RefCell<Option<Tree>> = const { RefCell::new(None) };
    }
    TREE.with_borrow_mut(|tree| tree.get_or_insert_with(Tree::new).try_path(data));
    if warren_repo::is_safe_name(data) {
        let name = Path::new(std::ffi::OsStr::from_bytes(data));
        let mut parts = name.components();
        assert!(matches!(parts.next(), Some(Component::Normal(part)) if part.as_bytes() == data));
        assert!(parts.next().is_none());
        let folded = data.to_ascii_lowercase();
        assert!(folded != b".git" && !folded.starts_with(b".git:") && folded != b"git~1");
    }
}

/// A directory with links, and a secret beside it.
struct Tree {
    dir: Dir,
    outside: u64,
    _temp: tempfile::TempDir,
}

impl Tree {
    fn new() -> Self {
        let place = Some("/dev/shm").filter(|place| Path::new(place).is_dir());
        let temp = place
            .map_or_else(tempfile::tempdir, tempfile::tempdir_in)
            .expect("a directory");
        let root = temp.path().join("root");
        std::fs::create_dir_all(root.join("d/e")).expect("folders");
        std::fs::write(temp.path().join("secret"), "outside").expect("a file");
        std::fs::write(root.join("f"), "inside").expect("a file");
        for (target, link) in [("..", "up"), ("../secret", "s"), ("/", "top"), ("d", "in")] {
            std::os::unix::fs::symlink(target, root.join(link)).expect("a link");
        }
        let dir = open_root(&root).expect("a root");
        let above = open_root(temp.path()).expect("a directory");
        let outside = beneath::stat(&above, Path::new("secret"))
            .expect("a file")
            .ino;
        Self {
            dir,
            outside,
            _temp: temp,
        }
    }

    fn try_path(&self, data: &[u8]) {
        use std::io::Read;
        let path = Path::new(std::ffi::OsStr::from_bytes(data));
        if let Ok(stat) = beneath::stat(&self.dir, path) {
            assert_ne!(stat.ino, self.outside, "{path:?}");
        }
        if let Ok(mut file) = beneath::open_file(&self.dir, path) {
            let mut text = String::new();
            file.read_to_string(&mut text).expect("it reads");
            assert_eq!(text, "inside", "{path:?}");
        }
        if let Ok(dir) = beneath::open_dir(&self.dir, path) {
            // From wherever it led, the secret is not next to it, nor is the system.
            for name in ["secret", "etc", "root"] {
                assert!(
                    beneath::stat(&dir, Path::new(name)).is_err(),
                    "{path:?}/{name}"
                );
            }
        }
        if let Ok(target) = beneath::read_link(&self.dir, path) {
            assert!(
                ["..", "../secret", "/", "d"]
                    .iter()
                    .any(|t| target == Path::new(t))
            );
        }
    }
}
