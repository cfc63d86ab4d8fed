//! Trees made from a sorted list of paths, without an index.

use git2::{ObjectType, Oid};

use crate::RepoError;
use crate::index::GITLINK;
use crate::objects::{Outbox, Transfer};

/// Trees worked out, but not written.
pub(crate) struct Trees {
    pub(crate) root: Oid,
    /// Bottom up.
    trees: Vec<Tree>,
}

struct Tree {
    id: Oid,
    data: Vec<u8>,
    blobs: Vec<Oid>,
}

#[derive(Default)]
struct Open {
    /// Length of its path, with the slash.
    prefix: usize,
    data: Vec<u8>,
    blobs: Vec<Oid>,
}

impl Open {
    fn add(&mut self, mode: u32, name: &[u8], id: Oid) {
        self.data.extend_from_slice(format!("{mode:o} ").as_bytes());
        self.data.extend_from_slice(name);
        self.data.push(0);
        self.data.extend_from_slice(id.as_bytes());
    }

    fn close(self) -> Result<Tree, RepoError> {
        let id = Oid::hash_object(ObjectType::Tree, &self.data)
            .map_err(RepoError::git("hash a tree"))?;
        Ok(Tree {
            id,
            data: self.data,
            blobs: self.blobs,
        })
    }
}

impl Trees {
    /// Works out the trees of files by path. The paths are sorted by bytes, safe, and clash nowhere;
    /// sorted like that, every folder's entries come in the order of a tree.
    pub(crate) fn plan<'p>(
        files: impl Iterator<Item = (&'p [u8], u32, Oid)>,
    ) -> Result<Self, RepoError> {
        let mut trees = Vec::new();
        let mut stack = vec![Open::default()];
        let mut folder: Vec<u8> = Vec::new();
        for (path, mode, id) in files {
            while !path.starts_with(&folder) {
                close(&mut stack, &mut folder, &mut trees)?;
            }
            while let Some(slash) = path[folder.len()..].iter().position(|&b| b == b'/') {
                folder.extend_from_slice(&path[folder.len()..=folder.len() + slash]);
                stack.push(Open {
                    prefix: folder.len(),
                    ..Open::default()
                });
            }
            if let Some(open) = stack.last_mut() {
                open.add(mode, &path[folder.len()..], id);
                if mode != GITLINK {
                    open.blobs.push(id);
                }
            }
        }
        while stack.len() > 1 {
            close(&mut stack, &mut folder, &mut trees)?;
        }
        let root = stack.pop().unwrap_or_default().close()?;
        let id = root.id;
        trees.push(root);
        Ok(Self { root: id, trees })
    }

    /// Takes the blobs that only the RootDir has. A tree that the outbox has is complete.
    pub(crate) fn want(
        &self,
        transfer: &mut Transfer<'_>,
        to: &Outbox<'_>,
    ) -> Result<(), RepoError> {
        for tree in self.trees.iter().filter(|tree| !to.has(tree.id)) {
            for &blob in &tree.blobs {
                transfer.blob(blob)?;
            }
        }
        Ok(())
    }

    /// Writes the trees, bottom up. Their blobs must be there.
    pub(crate) fn write(&self, to: &Outbox<'_>) -> Result<(), RepoError> {
        for tree in &self.trees {
            to.put(ObjectType::Tree, &tree.data)?;
        }
        Ok(())
    }
}

/// Closes the innermost folder and enters it into its parent.
fn close(
    stack: &mut Vec<Open>,
    folder: &mut Vec<u8>,
    trees: &mut Vec<Tree>,
) -> Result<(), RepoError> {
    if let Some(open) = stack.pop() {
        let tree = open.close()?;
        let parent = stack.last().map_or(0, |parent| parent.prefix);
        if let Some(above) = stack.last_mut() {
            above.add(0o040_000, &folder[parent..folder.len() - 1], tree.id);
        }
        folder.truncate(parent);
        trees.push(tree);
    }
    Ok(())
}
