//! `createRootDir(temp)` against a native twin that does the same file operations.

use std::path::Path;
use std::time::{Duration, Instant};

use warren::service::CreateRootDir;
use warren_disk::atomic::{self, Durable};
use warren_model::DirName;

use crate::table::{Table, median};
use crate::world::{World, key};

const ROUNDS: usize = 500;

pub(crate) async fn run(table: &mut Table) {
    let world = World::new();
    let service = world.service("ws").await;
    let key = key("p");
    service.init(&key).await.expect("a workspace");
    let twin_path = world.work.dir("twin");
    let (mut ours, mut theirs) = (Vec::new(), Vec::new());
    for round in 0..ROUNDS + 20 {
        let spec = CreateRootDir::new("temp".parse().expect("a type"), "c".parse().expect("an id"));
        let start = Instant::now();
        let made = service
            .create_root_dir(&key, spec)
            .await
            .expect("a RootDir");
        let a = start.elapsed();
        let document = serde_json::to_vec_pretty(&made).expect("a document");
        let b = twin(&twin_path, &document);
        if round >= 20 {
            ours.push(a);
            theirs.push(b);
        }
    }
    table.ratio(
        "createRootDir(temp) : native twin",
        "2",
        (median(ours), median(theirs)),
    );
}

/// Lock, look at the Workspace and the disk, claim the name, make the folder, open it, say ready.
fn twin(path: &Path, document: &[u8]) -> Duration {
    let name = DirName::anonymous();
    let start = Instant::now();
    let dir = warren_disk::open_root(path).expect("a directory");
    let lock = warren_disk::lock::Lock::try_shared(&dir, ".lock").expect("a lock");
    let space = warren_disk::space::Space::of(&dir).expect("a disk");
    atomic::create_new(&dir, &name.descriptor_file(), document, Durable::No).expect("a claim");
    dir.create_dir(name.as_str()).expect("a folder");
    let root = warren_disk::beneath::open_dir(&dir, name.as_str().as_ref()).expect("a root");
    atomic::write(&dir, &name.descriptor_file(), document, Durable::Yes).expect("a descriptor");
    let took = start.elapsed();
    drop((lock, root, space));
    took
}
