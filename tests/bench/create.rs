//! `createRootDir(temp)` against a native twin that does the same file operations, in memory and on
//! the disk that holds the temp directory.

use std::io::Read;
use std::path::Path;
use std::time::{Duration, Instant};

use warren::service::CreateRootDir;
use warren_disk::atomic::{self, Durable};
use warren_model::{Descriptor, DirName, WorkspaceFile};

use crate::table::{Table, median};
use crate::world::{World, key};

const ROUNDS: usize = 500;

pub(crate) async fn run(table: &mut Table) {
    in_world(
        table,
        "createRootDir(temp) : native twin, tmpfs",
        &World::new(),
    )
    .await;
    let disk = World::on_disk();
    in_world(
        table,
        "createRootDir(temp) : native twin, disk with fsync",
        &disk,
    )
    .await;
}

async fn in_world(table: &mut Table, what: &str, world: &World) {
    let service = world.service("ws").await;
    let key = key("p");
    service.init(&key).await.expect("a workspace");
    let twin_path = world.work.dir("twin");
    let workspace = world.work.join("ws/p");
    let (mut ours, mut theirs) = (Vec::new(), Vec::new());
    for round in 0..ROUNDS + 20 {
        let spec = CreateRootDir::new("temp".parse().expect("a type"), "c".parse().expect("an id"));
        let start = Instant::now();
        let made = service
            .create_root_dir(&key, spec)
            .await
            .expect("a RootDir");
        let a = start.elapsed();
        let b = twin(&twin_path, &workspace, &made);
        if round >= 20 {
            ours.push(a);
            theirs.push(b);
        }
    }
    table.ratio(what, "2", (median(ours), median(theirs)));
}

/// Lock, look at the Workspace and the disk, claim the name, make the folder, open it, say ready.
fn twin(path: &Path, workspace: &Path, made: &Descriptor) -> Duration {
    let name = DirName::anonymous();
    let start = Instant::now();
    let dir = warren_disk::open_root(path).expect("a directory");
    let lock = warren_disk::lock::Lock::try_shared(&dir, ".lock").expect("a lock");
    let folder = warren_disk::open_root(workspace).expect("a folder");
    let mut text = Vec::new();
    warren_disk::beneath::open_file(&folder, "workspace.json".as_ref())
        .and_then(|mut file| file.read_to_end(&mut text))
        .expect("a workspace");
    let file: WorkspaceFile = serde_json::from_slice(&text).expect("a workspace");
    let space = warren_disk::space::Space::of(&dir).expect("a disk");
    let document = serde_json::to_vec_pretty(made).expect("a document");
    atomic::create_new(&dir, &name.descriptor_file(), &document, Durable::No).expect("a claim");
    dir.create_dir(name.as_str()).expect("a folder");
    let root = warren_disk::beneath::open_dir(&dir, name.as_str().as_ref()).expect("a root");
    let document = serde_json::to_vec_pretty(made).expect("a document");
    atomic::write(&dir, &name.descriptor_file(), &document, Durable::Yes).expect("a descriptor");
    let took = start.elapsed();
    drop((lock, root, space, file));
    took
}
