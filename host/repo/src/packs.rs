//! Copying the objects of one repository of ours into another.

use std::io;
use std::path::Path;

use warren_disk::{Dir, beneath, copy};

use crate::init::make_dir;
use crate::{Bounds, RepoError};

/// Copies every pack and loose object of the bare repository at `from` into `.git`: as blocks shared
/// by the file system where it can, never as hard links. Alternates of `from` are not followed.
///
/// An object that is there already stays.
pub(crate) fn copy_objects(from: &Path, git: &Dir, bounds: &Bounds) -> Result<(), RepoError> {
    let doing = || format!("copy objects from `{}`", from.display());
    let source =
        warren_disk::open_root(&from.join("objects")).map_err(|e| RepoError::io(doing(), e))?;
    for entry in source.entries().map_err(|e| RepoError::io(doing(), e))? {
        let entry = entry.map_err(|e| RepoError::io(doing(), e))?;
        let name = entry.file_name();
        // What is not ours in here, we have no use for.
        let Some(name) = name.to_str() else { continue };
        if name == "pack" || is_fan_out(name) {
            let rel = format!("objects/{name}");
            bounds.take(0, 1)?;
            make_dir(git, &rel)?;
            copy_dir(&source, name, git, &rel, bounds)?;
        }
    }
    Ok(())
}

fn copy_dir(
    source: &Dir,
    name: &str,
    git: &Dir,
    rel: &str,
    bounds: &Bounds,
) -> Result<(), RepoError> {
    let fail = |e| RepoError::io(format!("copy objects to `.git/{rel}`"), e);
    let from = beneath::open_dir(source, Path::new(name)).map_err(fail)?;
    let to = beneath::open_dir(git, Path::new(rel)).map_err(fail)?;
    for entry in from.entries().map_err(fail)? {
        let file_name = entry.map_err(fail)?.file_name();
        let Some(file) = file_name.to_str() else {
            continue;
        };
        let wanted = if name == "pack" {
            is_pack_file(file)
        } else {
            file.len() == 38 && is_hex(file)
        };
        if !wanted {
            continue;
        }
        let content = beneath::open_file(&from, Path::new(file)).map_err(fail)?;
        bounds.take(content.metadata().map_err(fail)?.len(), 1)?;
        match copy::copy_file(&content, &to, file, 0o444) {
            Err(e) if e.kind() == io::ErrorKind::AlreadyExists => {}
            done => {
                done.map_err(fail)?;
            }
        }
    }
    Ok(())
}

fn is_fan_out(name: &str) -> bool {
    name.len() == 2 && is_hex(name)
}

/// Packs, and the indexes that belong to one pack; whatever spans packs is left for git to make.
fn is_pack_file(name: &str) -> bool {
    let Some((stem, suffix)) = name.rsplit_once('.') else {
        return false;
    };
    matches!(suffix, "pack" | "idx" | "rev")
        && stem
            .strip_prefix("pack-")
            .is_some_and(|id| !id.is_empty() && is_hex(id))
}

fn is_hex(text: &str) -> bool {
    text.bytes().all(|b| b.is_ascii_hexdigit())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_objects_are_copied() {
        let tmp = tempfile::tempdir().unwrap();
        let root = warren_disk::open_root(tmp.path()).unwrap();
        let id = "ab".repeat(20);
        let (pack, loose) = (format!("pack-{id}"), "cd".repeat(19));
        for dir in ["from/objects/pack", "from/objects/ab", "from/objects/info"] {
            std::fs::create_dir_all(tmp.path().join(dir)).unwrap();
        }
        for file in [
            format!("pack/{pack}.pack"),
            format!("pack/{pack}.idx"),
            format!("pack/{pack}.promisor"),
            "pack/tmp_pack_x".into(),
            "pack/multi-pack-index".into(),
            format!("ab/{loose}"),
            "ab/tmp_obj_1".into(),
            "info/alternates".into(),
        ] {
            std::fs::write(tmp.path().join("from/objects").join(file), "x").unwrap();
        }
        make_dir(&root, "git").unwrap();
        let git = beneath::open_dir(&root, Path::new("git")).unwrap();
        make_dir(&git, "objects").unwrap();
        for _ in 0..2 {
            copy_objects(&tmp.path().join("from"), &git, &Bounds::default()).unwrap();
        }
        let list = |dir: &str| {
            let entries = std::fs::read_dir(tmp.path().join("git/objects").join(dir)).unwrap();
            let mut names: Vec<_> = entries
                .map(|entry| entry.unwrap().file_name().into_string().unwrap())
                .collect();
            names.sort();
            names
        };
        assert_eq!(list(""), ["ab", "pack"]);
        assert_eq!(list("ab"), [loose]);
        assert_eq!(
            list("pack"),
            [format!("{pack}.idx"), format!("{pack}.pack")]
        );
    }
}
