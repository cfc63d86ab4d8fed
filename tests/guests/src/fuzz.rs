//! Every import with what nobody should pass.

use serde_json::{Value, json};
use warren_sdk::git::{self, Remote, RestoreAs};
use warren_sdk::process::{self, Command, Program};
use warren_sdk::{log, progress};

fn texts() -> Vec<String> {
    let mut texts: Vec<String> = [
        "",
        "\0",
        ".",
        "..",
        "/",
        "-x",
        "a\nb",
        "\u{202e}x",
        "\u{10ffff}",
        "refs/heads/",
        "@{-1}",
        "http://",
        "ssh://-oProxyCommand=x/y",
        "https://[::",
        "%",
        "main",
    ]
    .map(str::to_owned)
    .into();
    texts.push("x".repeat(100_000));
    texts.push("../".repeat(2000));
    texts
}

/// How many calls there were, and how many of them were refused.
#[derive(Default)]
struct Tally {
    calls: u32,
    refused: u32,
}

impl Tally {
    fn count<T, E>(&mut self, result: Result<T, E>) {
        self.calls += 1;
        self.refused += u32::from(result.is_err());
    }

    fn git(&mut self, a: &str, b: &str) {
        let origin = Remote {
            url: a.to_owned(),
            credential_alias: Some(b.to_owned()),
        };
        let plain = Remote {
            url: b.to_owned(),
            credential_alias: None,
        };
        self.count(git::clone(&origin, Some(b)));
        self.count(git::clone_at(&plain, Some(a), a));
        self.count(git::snapshot(&plain, &[a.to_owned(), b.to_owned()]));
        self.count(git::commit_all(&plain, a));
        self.count(git::push(&plain, a, b, Some(a)));
        self.count(git::restore(&plain, a, b, RestoreAs::Branch));
        self.count(git::remote_ref(&origin, a));
        self.count(git::delete_remote_ref(&plain, a, b));
    }

    fn process(&mut self, a: &str, b: &str) {
        for program in [Program::Alias, Program::Path, Program::InRoot] {
            self.count(process::find(&program(a.to_owned())));
            let command = Command::new(program(a.to_owned()))
                .args([b, a])
                .env(b, a)
                .timeout_ms(if a == b { u64::MAX } else { 0 });
            self.count(process::run(&command));
        }
    }
}

pub(crate) fn all() -> Value {
    let texts = texts();
    let mut tally = Tally::default();
    for a in &texts {
        log::warn(a);
        for (done, total) in [(u64::MAX, Some(0)), (0, None), (5, Some(u64::MAX))] {
            progress::report(a, done, total);
        }
        for b in &texts {
            tally.git(a, b);
            tally.process(a, b);
        }
    }
    json!({ "calls": tally.calls, "refused": tally.refused })
}
