use super::*;
use crate::testing::{Mount, open, scratch};
use std::fs;
use std::path::Path;
use std::process::Command;

fn space(used: u64, available: u64) -> Space {
    Space {
        bytes_total: used + available,
        bytes_used: used,
        bytes_available: available,
        inodes_total: 0,
        inodes_used: 0,
        inodes_available: 0,
    }
}

/// `Use%` and `IUse%` as `df` prints them.
fn df(path: &Path) -> (String, String) {
    let done = Command::new("df")
        .env_clear()
        .env("PATH", "/usr/bin:/bin")
        .args(["--output=pcent,ipcent"])
        .arg(path)
        .output()
        .unwrap();
    let text = String::from_utf8(done.stdout).unwrap();
    let mut words = text.lines().nth(1).unwrap().split_whitespace();
    let mut next = || words.next().unwrap().trim_end_matches('%').to_owned();
    (next(), next())
}

fn ours(path: &Path) -> (String, String) {
    let space = Space::of(&open(path)).unwrap();
    let inodes = match space.inodes_total {
        0 => "-".into(),
        _ => space.inodes_percent_used().to_string(),
    };
    (space.percent_used().to_string(), inodes)
}

#[test]
fn percent_is_rounded_up() {
    for (used, available, percent) in [
        (0, 100, 0),
        (1, 1_000_000, 1),
        (80, 20, 80),
        (8001, 1999, 81),
        (100, 0, 100),
        (0, 0, 0),
        (u64::MAX, u64::MAX, 50),
    ] {
        let space = Space {
            bytes_total: 0,
            ..space(0, 0)
        };
        let space = Space {
            bytes_used: used,
            bytes_available: available,
            ..space
        };
        assert_eq!(space.percent_used(), percent);
    }
}

#[test]
fn limits_count_from_their_very_value() {
    let limits = Limits {
        soft_percent: 80,
        hard_percent: 95,
    };
    let soft = |used_percent| Verdict::Soft {
        resource: Resource::Bytes,
        used_percent,
        limit_percent: 80,
    };
    let hard = |resource, used_percent| Verdict::Hard {
        resource,
        used_percent,
        limit_percent: 95,
    };
    for (used, verdict) in [
        (79, Verdict::Fine),
        (80, soft(80)),
        (94, soft(94)),
        (95, hard(Resource::Bytes, 95)),
        (100, hard(Resource::Bytes, 100)),
    ] {
        assert_eq!(limits.judge(&space(used, 100 - used)), verdict);
    }
    let inodes = Space {
        inodes_total: 100,
        inodes_used: 96,
        inodes_available: 4,
        ..space(85, 15)
    };
    assert_eq!(limits.judge(&inodes), hard(Resource::Inodes, 96));
}

#[test]
fn what_is_mounted_here_reads_as_df_reads_it() {
    for path in ["/", "/dev/shm", "/tmp"] {
        if !Path::new(path).is_dir() {
            continue;
        }
        // Others write meanwhile.
        let mut tries = (0..20).map(|_| (df(Path::new(path)), ours(Path::new(path))));
        assert!(tries.any(|(df, ours)| df == ours), "{path}");
    }
}

#[test]
fn a_reserve_counts_as_df_counts_it() {
    let tmp = tempfile::tempdir().unwrap();
    let at = tmp.path().join("at");
    fs::create_dir(&at).unwrap();
    let image = tmp.path().join("image");
    let options = ["-m", "20", "-N", "500", "-b", "1024"];
    let Some(_mount) = Mount::ext4(&image, 32 << 20, &options, &at) else {
        return;
    };
    let limits = Limits {
        soft_percent: 80,
        hard_percent: 95,
    };
    let mut verdicts = Vec::new();
    for i in 0..32 {
        assert_eq!(df(&at), ours(&at));
        let verdict = limits.judge(&Space::of(&open(&at)).unwrap());
        verdicts.push(match verdict {
            Verdict::Fine => 0,
            Verdict::Soft { .. } => 1,
            Verdict::Hard { resource, .. } => {
                assert_eq!(resource, Resource::Bytes);
                2
            }
        });
        if fs::write(at.join(format!("{i}")), vec![1; 1 << 20]).is_err() {
            break;
        }
    }
    assert!(verdicts.is_sorted() && verdicts.contains(&1) && verdicts.contains(&2));
    assert_eq!(df(&at), ours(&at));
}

#[test]
fn inodes_run_out_before_the_bytes() {
    let tmp = scratch();
    let Some(_mount) = Mount::tmpfs(tmp.path(), c"size=10m,nr_inodes=100") else {
        return;
    };
    let limits = Limits {
        soft_percent: 80,
        hard_percent: 95,
    };
    for i in 0..97 {
        fs::write(tmp.path().join(format!("{i}")), "").unwrap();
    }
    assert_eq!(df(tmp.path()), ours(tmp.path()));
    match limits.judge(&Space::of(&open(tmp.path())).unwrap()) {
        Verdict::Hard {
            resource: Resource::Inodes,
            used_percent: 98,
            limit_percent: 95,
        } => {}
        other => panic!("{other:?}"),
    }
}
