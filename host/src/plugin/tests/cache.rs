//! Compiled code is loaded only when it is the host's own.

use std::os::unix::fs::PermissionsExt;

use super::*;
use crate::plugin::cache::{Cache, Entry};
use crate::plugin::engine::engine;

const EMPTY_COMPONENT: &[u8] = b"\0asm\x0d\0\x01\0";

struct Kept {
    state: TempDir,
    engine: wasmtime::Engine,
}

impl Kept {
    /// A state directory with one entry, under the digest `one`.
    fn new() -> Self {
        let state = scratch();
        let pool = PoolSize {
            calls: 1,
            ..PoolSize::default()
        };
        let engine = engine(&pool).unwrap();
        let kept = Self { state, engine };
        let entry = Entry {
            component: wasmtime::component::Component::new(&kept.engine, EMPTY_COMPONENT).unwrap(),
            description: b"said".to_vec(),
        };
        kept.open().store(&kept.engine, "one", &entry).unwrap();
        kept
    }

    fn open(&self) -> Cache {
        Cache::open(self.state.path()).unwrap()
    }

    fn load(&self, digest: &str) -> Option<Entry> {
        self.open().load(&self.engine, digest)
    }

    fn entry(&self) -> PathBuf {
        let mut entries = std::fs::read_dir(self.state.path().join("cache")).unwrap();
        entries.next().unwrap().unwrap().path()
    }
}

#[test]
fn an_entry_comes_back_and_others_cannot_read_it() {
    let kept = Kept::new();
    assert_eq!(kept.load("one").unwrap().description, b"said");
    assert!(kept.load("two").is_none());
    let mode = |path: &Path| path.metadata().unwrap().permissions().mode() & 0o777;
    assert_eq!(mode(&kept.state.path().join("cache")), 0o700);
    assert_eq!(mode(&kept.state.path().join("host.key")), 0o600);
    assert_eq!(mode(&kept.entry()), 0o600);
}

#[test]
fn any_changed_byte_is_found() {
    let kept = Kept::new();
    let path = kept.entry();
    let good = std::fs::read(&path).unwrap();
    for at in [0, 31, 32, 36, 40, good.len() / 2, good.len() - 1] {
        let mut bad = good.clone();
        bad[at] ^= 1;
        std::fs::write(&path, bad).unwrap();
        assert!(kept.load("one").is_none(), "byte {at}");
    }
    for cut in [0, 10, 32, good.len() - 1] {
        std::fs::write(&path, &good[..cut]).unwrap();
        assert!(kept.load("one").is_none(), "cut at {cut}");
    }
    std::fs::write(&path, &good).unwrap();
    assert!(kept.load("one").is_some());
}

#[test]
fn an_entry_cannot_be_moved_or_linked() {
    let kept = Kept::new();
    let path = kept.entry();
    let name = path.file_name().unwrap().to_str().unwrap();
    let other = path.with_file_name(name.replace("one", "two"));
    std::fs::copy(&path, &other).unwrap();
    assert!(kept.load("two").is_none());
    let aside = path.with_file_name("aside");
    std::fs::rename(&path, &aside).unwrap();
    std::os::unix::fs::symlink(&aside, &path).unwrap();
    assert!(kept.load("one").is_none());
}

#[test]
fn another_key_or_a_key_that_others_could_read_makes_entries_void() {
    let kept = Kept::new();
    let key = kept.state.path().join("host.key");
    std::fs::set_permissions(&key, std::fs::Permissions::from_mode(0o644)).unwrap();
    assert!(kept.load("one").is_none());
    assert_eq!(key.metadata().unwrap().permissions().mode() & 0o777, 0o600);
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_second_start_takes_what_the_first_has_compiled() {
    let state = scratch();
    let start = async || {
        let mut config = config(&[("temp", warren_plugins::TEMP)], Grants::default());
        config.state_dir = state.path().to_owned();
        World::of(config, "temp").await.plugin.description().clone()
    };
    let first = start().await;
    let entry = || {
        let mut entries = std::fs::read_dir(state.path().join("cache")).unwrap();
        entries.next().unwrap().unwrap().path()
    };
    let written = entry().metadata().unwrap().modified().unwrap();
    assert_eq!(start().await, first);
    assert_eq!(entry().metadata().unwrap().modified().unwrap(), written);
    // Damaged, it is made anew.
    std::fs::write(entry(), "junk").unwrap();
    assert_eq!(start().await, first);
    assert!(entry().metadata().unwrap().len() > 1000);
}
