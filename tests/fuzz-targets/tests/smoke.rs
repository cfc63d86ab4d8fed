//! A bounded run of the fuzz targets: their corpora, and some thousands of mutations of them with a
//! fixed seed, so that a failure comes again.

use std::panic::{AssertUnwindSafe, catch_unwind};
use std::path::{Path, PathBuf};

use warren_fuzz_targets::{TARGETS, Target};

/// Mutations of each target.
const MUTATIONS: usize = 2000;

/// Longest mutated input in bytes.
const BYTES_MAX: usize = 4096;

fn fuzz_dir() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("../fuzz")
}

fn corpus(name: &str) -> Vec<Vec<u8>> {
    let folder = fuzz_dir().join("corpus").join(name);
    let entries = std::fs::read_dir(&folder).unwrap_or_else(|error| panic!("{folder:?}: {error}"));
    let mut files: Vec<PathBuf> = entries.map(|entry| entry.unwrap().path()).collect();
    files.sort();
    files
        .iter()
        .map(|file| std::fs::read(file).unwrap())
        .collect()
}

/// Runs one input; a failure shows it.
fn run(name: &str, target: Target, input: &[u8]) {
    if catch_unwind(AssertUnwindSafe(|| target(input))).is_err() {
        panic!("{name} fails for {:?}", input.escape_ascii().to_string());
    }
}

/// SplitMix64.
struct Random(u64);

impl Random {
    fn next(&mut self) -> u64 {
        self.0 = self.0.wrapping_add(0x9e37_79b9_7f4a_7c15);
        let mut z = self.0;
        z = (z ^ (z >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        z = (z ^ (z >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
        z ^ (z >> 31)
    }

    fn below(&mut self, n: usize) -> usize {
        usize::try_from(self.next() % n.max(1) as u64).unwrap()
    }
}

/// One to four edits: flip, insert, delete, repeat, or splice with another input.
fn mutate(random: &mut Random, corpus: &[Vec<u8>]) -> Vec<u8> {
    const TOKENS: &[&[u8]] = &[
        b"..",
        b"/",
        b"\n",
        b"\\",
        b"\"",
        b"%",
        b"@",
        b":",
        b"*",
        b"**",
        b"\0",
        b"\xff",
        b"[",
        b"]",
        b"{",
        b"}",
        b"-",
        b".lock",
        b".json",
        b"\xe2\x80\xae",
        b"\x1b[",
        b"=",
        b"9",
        b"#",
        b"=\"",
    ];
    let mut input = corpus[random.below(corpus.len())].clone();
    for _ in 0..=random.below(4) {
        let at = random.below(input.len() + 1);
        match random.below(5) {
            0 if at < input.len() => input[at] ^= 1 << random.below(8),
            1 => {
                let token = TOKENS[random.below(TOKENS.len())];
                input.splice(at..at, token.iter().copied());
            }
            2 => {
                let end = (at + 1 + random.below(8)).min(input.len());
                input.drain(at..end);
            }
            3 => {
                let end = (at + 1 + random.below(32)).min(input.len());
                let piece = input[at..end].to_vec();
                input.splice(at..at, piece);
            }
            _ => {
                let other = &corpus[random.below(corpus.len())];
                let from = random.below(other.len() + 1);
                input.truncate(at);
                input.extend_from_slice(&other[from..]);
            }
        }
    }
    input.truncate(BYTES_MAX);
    input
}

fn smoke(name: &str) {
    let (_, target) = TARGETS.iter().find(|(n, _)| *n == name).unwrap();
    let corpus = corpus(name);
    assert!(corpus.len() >= 5, "{name} has no corpus to speak of");
    for input in &corpus {
        run(name, *target, input);
    }
    let mut random = Random(name.bytes().map(u64::from).sum());
    for _ in 0..MUTATIONS {
        run(name, *target, &mutate(&mut random, &corpus));
    }
}

macro_rules! smoke {
    ($($name:ident),* $(,)?) => {
        $(#[test] fn $name() { smoke(stringify!($name)); })*

        /// A target without a smoke test, or without a binary for cargo-fuzz, is run by nobody.
        #[test]
        fn no_target_is_forgotten() {
            let run = [$(stringify!($name)),*];
            let all: Vec<&str> = TARGETS.iter().map(|(name, _)| *name).collect();
            assert_eq!(all, run);
            let manifest = std::fs::read_to_string(fuzz_dir().join("Cargo.toml")).unwrap();
            for name in all {
                let file = format!("fuzz_targets/{name}.rs");
                assert!(manifest.contains(&format!("path = \"{file}\"")), "{name}");
                let body = std::fs::read_to_string(fuzz_dir().join(file)).unwrap();
                assert!(body.contains(&format!("warren_fuzz_targets::{name}(data)")), "{name}");
            }
        }
    };
}

smoke!(
    audit,
    descriptor,
    endpoint,
    git_ref,
    known_hosts,
    layout_config,
    lock,
    manifest,
    metadata,
    names,
    path,
    policy,
    ref_patterns,
    text,
    url,
    url_patterns,
);
