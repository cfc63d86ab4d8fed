//! What a guest may take of the disk, whichever way it writes.

use super::*;

const MIB: u64 = 1 << 20;

fn limited(bytes: Option<u64>, inodes: Option<u64>) -> Grants {
    let mut grants = grants();
    grants.limits.disk_bytes = bytes;
    grants.limits.inodes = inodes;
    grants
}

async fn world(bytes: u64, inodes: u64) -> World {
    World::with(hostile(), limited(Some(bytes), Some(inodes))).await
}

async fn play(world: &World, scenario: &str, how: &str) -> Value {
    let spec = json!({ "scenario": scenario, "how": how });
    world.play_in(world.cx(), spec).await.unwrap()
}

/// Allocated bytes and inodes below the root.
fn used(world: &World) -> (u64, u64) {
    let dir = Dir::open_ambient_dir(world.root(), ambient_authority()).unwrap();
    let usage = warren_disk::usage::usage(&dir).unwrap();
    (usage.bytes, usage.files + usage.dirs)
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn every_way_to_write_ends_at_the_limit() {
    for how in [
        "write",
        "stream",
        "stream-plain",
        "stream-zeroes",
        "stream-splice",
        "append",
        "append-plain",
        "append-zeroes",
        "append-splice",
        "many",
    ] {
        let world = world(4 * MIB, 100_000).await;
        let source = how.ends_with("splice");
        if source {
            std::fs::write(world.root().join("source"), vec![7; 4096]).unwrap();
        }
        let said = play(&world, "disk-fill", how).await;
        assert_eq!(said["error"], "quota", "{how}: {said}");
        let (bytes, _) = used(&world);
        assert!(bytes <= 4 * MIB, "{how}: {bytes}");
        // To the last block: what is held for speed is given back before anything is refused.
        assert!(bytes > 4 * MIB - 3 * 4096, "{how}: {bytes}");
        world.still_works().await;
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_file_with_holes_is_no_longer_than_the_limit() {
    for how in ["sparse", "set-size"] {
        let world = world(64 * MIB, 100).await;
        let said = play(&world, "disk-fill", how).await;
        assert_eq!(said["error"], "quota", "{how}: {said}");
        let length = world.root().join("fill").metadata().unwrap().len();
        assert!(length <= 64 * MIB && length > 32 * MIB, "{how}: {length}");
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn inodes_end_at_their_limit_and_a_link_is_none() {
    for how in ["file", "dir", "symlink"] {
        let world = world(64 * MIB, 50).await;
        std::fs::write(world.root().join("there"), "x").unwrap();
        let said = play(&world, "disk-inodes", how).await;
        assert_eq!(said, json!({ "made": 49, "error": "quota" }), "{how}");
        assert_eq!(used(&world).1, 50, "{how}");
        world.still_works().await;
    }
    let world = world(64 * MIB, 50).await;
    std::fs::write(world.root().join("one"), "x").unwrap();
    let said = play(&world, "disk-inodes", "link").await;
    assert!(said["made"].as_u64().unwrap() > 50, "{said}");
    assert_ne!(said["error"], "quota", "{said}");
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_file_without_a_name_counts_until_it_is_closed() {
    let world = world(4 * MIB, 100).await;
    let said = play(&world, "disk-held", "").await;
    let expected = json!({
        "while-open": { "error": "quota" },
        "while-streamed": { "error": "quota" },
        "cut": true,
        "after": true,
    });
    assert_eq!(said, expected);
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn what_is_removed_cut_or_replaced_can_be_used_again() {
    let world = world(4 * MIB, 100).await;
    let said = play(&world, "disk-back", "").await;
    for pair in said["tried"].as_array().unwrap() {
        let expected = match pair[0].as_str().unwrap() {
            "second" => json!({ "error": "quota" }),
            _ => json!(true),
        };
        assert_eq!(pair[1], expected, "{said}");
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn what_others_wrote_counts_too() {
    let world = world(4 * MIB, 100).await;
    std::fs::write(world.root().join("theirs"), vec![7; 3 << 20]).unwrap();
    let said = play(&world, "disk-fill", "write").await;
    assert_eq!(said["error"], "quota");
    assert!(said["written"].as_u64().unwrap() <= MIB, "{said}");
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn the_caller_is_told_which_limit_it_was() {
    let world = world(4 * MIB, 100).await;
    for scenario in ["disk-honest", "disk-panic"] {
        let error = world.play(scenario).await.unwrap_err();
        assert_eq!(error.code(), "WorkspaceQuotaExceeded", "{error:?}");
        let words = "handler `hostile` found no room: the rootdir may use 4194304 bytes";
        assert_eq!(error.to_string(), words);
        assert!(error.hint().is_some());
        world.still_works().await;
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_disk_at_its_limit_is_no_space_left() {
    let mut config = config(&[hostile()], limited(None, None));
    config.services.disk = Some(warren_disk::space::Limits {
        soft_percent: 0,
        hard_percent: 0,
    });
    let world = World::of(config, "hostile").await;
    for how in ["write", "many"] {
        let said = play(&world, "disk-fill", how).await;
        assert_eq!(said["error"], "insufficient-space", "{how}: {said}");
    }
    let error = world.play("disk-honest").await.unwrap_err();
    assert_eq!(error.code(), "WorkspaceQuotaExceeded");
    assert!(
        error
            .to_string()
            .contains("the disk is at its limit of 0 %"),
        "{error}"
    );
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn permission_comes_before_the_quota() {
    let mut narrow = limited(Some(1), Some(0));
    narrow.root = RootAccess::ReadOnly;
    let world = World::with(hostile(), narrow).await;
    let root = world.root();
    std::fs::write(root.join("file"), "mine").unwrap();
    std::fs::create_dir(root.join("dir")).unwrap();
    let before = root.join("file").metadata().unwrap().modified().unwrap();
    let said = play(&world, "disk-read-only", "").await;
    assert_eq!((&said["read"], &said["dir"]), (&json!(true), &json!(true)));
    let tried = said["tried"].as_array().unwrap();
    assert_eq!(tried.len(), 21);
    for pair in tried {
        assert_eq!(pair[1], json!({ "error": "not-permitted" }), "{pair}");
    }
    let mut names: Vec<_> = std::fs::read_dir(&root)
        .unwrap()
        .map(|entry| entry.unwrap().file_name())
        .collect();
    names.sort();
    assert_eq!(names, ["dir", "file"]);
    assert_eq!(std::fs::read_to_string(root.join("file")).unwrap(), "mine");
    assert_eq!(
        root.join("file").metadata().unwrap().modified().unwrap(),
        before
    );
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn no_link_leads_out_however_it_is_moved() {
    let world = World::with(hostile(), grants()).await;
    std::fs::write(world.dir.path().join("outside"), "secret").unwrap();
    let said = play(&world, "disk-links", "").await;
    for pair in said["tried"].as_array().unwrap() {
        let what = pair[0].as_str().unwrap();
        let refused = what.contains("bad")
            || matches!(what, "move link" | "hard link" | "move dir" | "move above")
            || matches!(what, "by handle" | "move by handle");
        let expected = if refused {
            json!({ "error": "not-permitted" })
        } else {
            json!(true)
        };
        assert_eq!(pair[1], expected, "{what}: {said}");
    }
    let root = world.root().canonicalize().unwrap();
    let mut links = 0;
    let mut dirs = vec![root.clone()];
    while let Some(dir) = dirs.pop() {
        for entry in std::fs::read_dir(dir).unwrap() {
            let entry = entry.unwrap();
            let kind = entry.file_type().unwrap();
            if kind.is_dir() {
                dirs.push(entry.path());
            } else if kind.is_symlink() {
                links += 1;
                if let Ok(real) = entry.path().canonicalize() {
                    assert!(real.starts_with(&root), "{:?} -> {real:?}", entry.path());
                }
            }
        }
    }
    assert_eq!(links, 4);
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn listings_that_are_held_are_limited() {
    let world = World::with(hostile(), grants()).await;
    for n in 0..1000 {
        std::fs::write(world.root().join(n.to_string()), "").unwrap();
    }
    let said = play(&world, "disk-streams", "").await;
    assert_eq!(said["error"], "insufficient-memory", "{said}");
    assert!(said["open"].as_u64().unwrap() < 250, "{said}");
    world.still_works().await;
}
