//! What is different between two grants, two manifests or two lists of imports.

use std::collections::{BTreeMap, BTreeSet};
use std::fmt;

use serde::Serialize;

use crate::grant::{Access, Capability, Grant};
use crate::item::{By, Kind};
use crate::manifest::Wants;

/// Which way a change goes.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
#[serde(rename_all = "lowercase")]
pub enum Direction {
    /// More can be reached, or nobody can be sure that it is not more.
    Widens,
    /// Less can be reached.
    Narrows,
    /// The same can be reached.
    Changed,
}

impl fmt::Display for Direction {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::Widens => "widens",
            Self::Narrows => "narrows",
            Self::Changed => "changed",
        })
    }
}

/// One difference.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct Change {
    /// Where, with dots between: `grant.git.remotes.policy` say.
    pub path: String,
    /// Which way.
    pub direction: Direction,
    /// What was there; none: nothing.
    pub before: Option<String>,
    /// What is there now; none: nothing.
    pub after: Option<String>,
}

impl fmt::Display for Change {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{} {}: ", self.direction, self.path)?;
        match (&self.before, &self.after) {
            (Some(before), Some(after)) => write!(f, "`{before}` becomes `{after}`"),
            (None, Some(after)) => write!(f, "`{after}` is new"),
            (Some(before), None) => write!(f, "`{before}` is gone"),
            (None, None) => f.write_str("nothing"),
        }
    }
}

/// One fact of a grant or a wish.
enum Leaf<'a> {
    Root(Access),
    Has(bool),
    /// None: no limit.
    Most(Option<u64>),
    /// None: the default.
    More(Option<u64>),
    List(Kind, &'a [String]),
    Text(&'a str),
}

type Leaves<'a> = BTreeMap<String, Leaf<'a>>;

/// The differences from one grant to another, by path.
pub fn diff(before: &Grant, after: &Grant) -> Vec<Change> {
    compare("grant", &before.leaves(), &after.leaves())
}

/// The differences from what one manifest wants to what another does, by path.
pub fn diff_wants(before: &Wants, after: &Wants) -> Vec<Change> {
    compare("wants", &before.leaves(), &after.leaves())
}

/// The differences between two lists of imports. One that gives no reach of its own, and another
/// version of one that was there, are no widening.
pub fn diff_imports(before: &[String], after: &[String]) -> Vec<Change> {
    let base = |import: &str| import.split('@').next().unwrap_or(import).to_owned();
    let known: BTreeSet<String> = before.iter().map(|import| base(import)).collect();
    let stays: BTreeSet<String> = after.iter().map(|import| base(import)).collect();
    let change = |direction, before: Option<&String>, after: Option<&String>| Change {
        path: "imports".to_owned(),
        direction,
        before: before.cloned(),
        after: after.cloned(),
    };
    let new = after
        .iter()
        .filter(|import| !before.contains(import))
        .map(|import| {
            let widens = Capability::of_import(import).is_some() && !known.contains(&base(import));
            let direction = if widens {
                Direction::Widens
            } else {
                Direction::Changed
            };
            change(direction, None, Some(import))
        });
    let gone = before
        .iter()
        .filter(|import| !after.contains(import))
        .map(|import| {
            let narrows = Capability::of_import(import).is_some() && !stays.contains(&base(import));
            let direction = if narrows {
                Direction::Narrows
            } else {
                Direction::Changed
            };
            change(direction, Some(import), None)
        });
    new.chain(gone).collect()
}

impl Grant {
    /// Whether this grant surely allows all that `other` does.
    pub fn covers(&self, other: &Self) -> bool {
        diff(self, other)
            .iter()
            .all(|change| change.direction != Direction::Widens)
    }

    fn leaves(&self) -> Leaves<'_> {
        let mut all = Leaves::new();
        let mut put = |at: &str, leaf| all.insert(at.to_owned(), leaf);
        put("root", Leaf::Root(self.root));
        put("log", Leaf::Has(self.log));
        put("progress", Leaf::Has(self.progress));
        put("git", Leaf::Has(self.git.is_some()));
        put("process", Leaf::Has(self.process.is_some()));
        put("http", Leaf::Has(self.http.is_some()));
        if let Some(git) = &self.git {
            put(
                "git.remotes.policy",
                Leaf::List(Kind::Remotes, &git.remotes.policy),
            );
            put(
                "git.remotes.wanted",
                Leaf::List(Kind::Remotes, &git.remotes.wanted),
            );
            put("git.push.policy", Leaf::List(Kind::Refs, &git.push.policy));
            put("git.push.wanted", Leaf::List(Kind::Refs, &git.push.wanted));
            put(
                "git.credentials",
                Leaf::List(Kind::Credentials, &git.credentials),
            );
            put("git.received-bytes", Leaf::Most(git.received_bytes));
            put("git.unconfined", Leaf::Has(git.unconfined));
        }
        if let Some(process) = &self.process {
            put(
                "process.programs",
                Leaf::List(Kind::Programs, &process.programs),
            );
            put(
                "process.in-root",
                Leaf::List(Kind::InRoot, &process.in_root),
            );
            put(
                "process.network.policy",
                Leaf::List(Kind::Network(By::Operator), &process.network.policy),
            );
            put(
                "process.network.wanted",
                Leaf::List(Kind::Network(By::Plugin), &process.network.wanted),
            );
            put(
                "process.environment",
                Leaf::List(Kind::Environment, &process.environment),
            );
            put("process.unconfined", Leaf::Has(process.unconfined));
            let limits = &process.limits;
            put(
                "process.wall-seconds",
                Leaf::Most(Some(limits.wall_seconds)),
            );
            put("process.memory-bytes", Leaf::Most(limits.memory_bytes));
            put("process.processes", Leaf::Most(limits.processes));
            put("process.open-files", Leaf::Most(limits.open_files));
            put("process.file-bytes", Leaf::Most(limits.file_bytes));
        }
        if let Some(http) = &self.http {
            put(
                "http.hosts.policy",
                Leaf::List(Kind::Hosts(By::Operator), &http.hosts.policy),
            );
            put(
                "http.hosts.wanted",
                Leaf::List(Kind::Hosts(By::Plugin), &http.hosts.wanted),
            );
            let limits = &http.limits;
            for (key, limit) in [
                ("http.requests", limits.requests),
                ("http.connections", limits.connections),
                ("http.header-bytes", limits.header_bytes),
                ("http.sent-bytes", limits.sent_bytes),
                ("http.received-bytes", limits.received_bytes),
                ("http.silence-seconds", limits.silence_seconds),
            ] {
                put(key, Leaf::Most(Some(limit)));
            }
        }
        for (key, limit) in self.limits.entries() {
            put(&format!("limits.{key}"), Leaf::Most(limit));
        }
        all
    }
}

impl Wants {
    fn leaves(&self) -> Leaves<'_> {
        let mut all = Leaves::new();
        let root = self.root.as_ref().map_or(Access::None, |root| root.access);
        all.insert("root".to_owned(), Leaf::Root(root));
        for (capability, wanted) in [
            ("git", self.git.is_some()),
            ("process", self.process.is_some()),
            ("http", self.http.is_some()),
            ("log", self.log.is_some()),
            ("progress", self.progress.is_some()),
        ] {
            all.insert(capability.to_owned(), Leaf::Has(wanted));
        }
        for (at, reason) in self.reasons() {
            all.insert(format!("{at}.reason"), Leaf::Text(reason));
        }
        for (at, kind, items) in self.lists() {
            all.insert(at.to_owned(), Leaf::List(kind, items));
        }
        for (key, limit) in self.limits.iter().flat_map(|limits| limits.entries()) {
            all.insert(format!("limits.{key}"), Leaf::More(limit));
        }
        all
    }
}

fn compare(prefix: &str, before: &Leaves<'_>, after: &Leaves<'_>) -> Vec<Change> {
    let paths: BTreeSet<&String> = before.keys().chain(after.keys()).collect();
    let mut changes = Vec::new();
    for path in paths {
        let mut put = |direction, before: Option<String>, after: Option<String>| {
            changes.push(Change {
                path: format!("{prefix}.{path}"),
                direction,
                before,
                after,
            });
        };
        match (before.get(path), after.get(path)) {
            (Some(Leaf::List(kind, before)), Some(Leaf::List(_, after))) => {
                lists(*kind, before, after, &mut put);
            }
            (None, Some(Leaf::List(kind, after))) => lists(*kind, &[], after, &mut put),
            (Some(Leaf::List(kind, before)), None) => lists(*kind, before, &[], &mut put),
            (before, after) => {
                if let Some(direction) = plain(before, after) {
                    put(
                        direction,
                        before.and_then(Leaf::shown),
                        after.and_then(Leaf::shown),
                    );
                }
            }
        }
    }
    changes
}

impl Leaf<'_> {
    fn shown(&self) -> Option<String> {
        match self {
            Self::Root(access) => Some(access.as_str().to_owned()),
            Self::Has(has) => Some(has.to_string()),
            Self::Most(limit) => {
                Some(limit.map_or("no limit".to_owned(), |limit| limit.to_string()))
            }
            Self::More(limit) => limit.map(|limit| limit.to_string()),
            Self::Text(text) => Some((*text).to_owned()),
            Self::List(_, items) => Some(items.join(", ")),
        }
    }
}

/// Which way a fact goes that is no list; none: it is the same, or its capability says it already.
fn plain(before: Option<&Leaf<'_>>, after: Option<&Leaf<'_>>) -> Option<Direction> {
    let way = |order| match order {
        std::cmp::Ordering::Less => Some(Direction::Widens),
        std::cmp::Ordering::Equal => None,
        std::cmp::Ordering::Greater => Some(Direction::Narrows),
    };
    let infinite = |limit: Option<u64>| limit.map_or(u128::MAX, u128::from);
    let more = |leaf: Option<&Leaf<'_>>| match leaf {
        Some(Leaf::More(limit)) => *limit,
        _ => None,
    };
    match (before, after) {
        (Some(Leaf::Root(before)), Some(Leaf::Root(after))) => way(before.cmp(after)),
        (Some(Leaf::Has(before)), Some(Leaf::Has(after))) => way(before.cmp(after)),
        (None, Some(Leaf::Has(true))) => Some(Direction::Widens),
        (Some(Leaf::Has(true)), None) => Some(Direction::Narrows),
        (Some(Leaf::Most(before)), Some(Leaf::Most(after))) => {
            way(infinite(*before).cmp(&infinite(*after)))
        }
        (Some(Leaf::More(_)), _) | (_, Some(Leaf::More(_))) => way(more(before).cmp(&more(after))),
        (Some(Leaf::Text(before)), Some(Leaf::Text(after))) if before != after => {
            Some(Direction::Changed)
        }
        _ => None,
    }
}

fn lists(
    kind: Kind,
    before: &[String],
    after: &[String],
    put: &mut impl FnMut(Direction, Option<String>, Option<String>),
) {
    let (before, after) = (kind.canonical(before), kind.canonical(after));
    for item in after.iter().filter(|item| !before.contains(item)) {
        let covered = kind.any_covers(&before, item);
        let direction = if covered {
            Direction::Changed
        } else {
            Direction::Widens
        };
        put(direction, None, Some(item.clone()));
    }
    for item in before.iter().filter(|item| !after.contains(item)) {
        let covered = kind.any_covers(&after, item);
        let direction = if covered {
            Direction::Changed
        } else {
            Direction::Narrows
        };
        put(direction, Some(item.clone()), None);
    }
}
