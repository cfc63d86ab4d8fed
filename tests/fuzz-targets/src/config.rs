//! A `.git/config` that passes the layout check leads libgit2 nowhere.

use std::cell::RefCell;
use std::path::{Path, PathBuf};

use warren_disk::{Dir, open_root};
use warren_repo::{Bounds, layout};

/// The bytes of a `.git/config`.
pub fn layout_config(data: &[u8]) {
    thread_local! {
        static REPO: RefCell<Option<Repo>> = const { RefCell::new(None) };
    }
    REPO.with_borrow_mut(|repo| repo.get_or_insert_with(Repo::new).try_config(data));
}

/// The outline of a repository.
struct Repo {
    root: Dir,
    config: PathBuf,
    _temp: tempfile::TempDir,
}

impl Repo {
    fn new() -> Self {
        let place = Some("/dev/shm").filter(|place| Path::new(place).is_dir());
        let temp = place
            .map_or_else(tempfile::tempdir, tempfile::tempdir_in)
            .expect("a directory");
        let git = temp.path().join(".git");
        for folder in ["objects", "refs"] {
            std::fs::create_dir_all(git.join(folder)).expect("a folder");
        }
        std::fs::write(git.join("HEAD"), "ref: refs/heads/main\n").expect("a file");
        // What a planted include would pull in.
        std::fs::write(git.join("x"), "[pulled]\n\tin = true\n").expect("a file");
        Self {
            root: open_root(temp.path()).expect("a root"),
            config: git.join("config"),
            _temp: temp,
        }
    }

    fn try_config(&self, data: &[u8]) {
        std::fs::write(&self.config, data).expect("a file");
        if layout::check(&self.root, &Bounds::default()).is_err() {
            return;
        }
        // Libgit2's own reading of it, which is what is followed.
        let Ok(config) = git2::Config::open(&self.config) else {
            return;
        };
        let Ok(entries) = config.entries(None) else {
            return;
        };
        let check = entries.for_each(|entry| {
            let name = String::from_utf8_lossy(entry.name_bytes()).to_lowercase();
            // Git2 panics when asked for a value that is not there.
            let value = entry
                .has_value()
                .then(|| String::from_utf8_lossy(entry.value_bytes()).to_lowercase());
            check_entry(&name, value.as_deref());
        });
        // An entry that cannot be listed can not be followed either.
        drop(check);
    }
}

fn check_entry(name: &str, value: Option<&str>) {
    assert_ne!(name, "pulled.in", "an include was followed");
    assert!(
        !name.starts_with("include.") && !name.starts_with("includeif."),
        "{name}"
    );
    assert!(
        name != "core.worktree" && name != "core.attributesfile",
        "{name}"
    );
    let redirects = name.starts_with("url.") && name.ends_with("insteadof");
    assert!(!redirects, "{name}");
    if name == "core.bare" {
        assert_eq!(value, Some("false"));
    }
    if let Some(extension) = name.strip_prefix("extensions.") {
        let known = [
            "noop",
            "preciousobjects",
            "worktreeconfig",
            "objectformat",
            "refstorage",
        ];
        assert!(known.contains(&extension), "{name}");
        if extension == "objectformat" {
            assert_eq!(value, Some("sha1"));
        }
    }
}
