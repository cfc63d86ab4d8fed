//! The loss manifest: the entries of the root and how much they hold.

use std::fs;
use std::path::{Path, PathBuf};

use warren_sdk::{Error, Loss, LossKind, log};

/// Most entries that are named; the others are one line together.
const NAMED_MAX: usize = 256;

/// Most files and directories that are counted: a tree may be larger than a suspend should wait.
const COUNTED_MAX: usize = 100_000;

/// Lists the top-level entries by name, with the bytes in each as far as they could be counted.
pub(crate) fn list(root: &Path) -> Result<Vec<Loss>, Error> {
    let mut names = Vec::new();
    let mut unlisted = false;
    for entry in fs::read_dir(root).map_err(|error| warren_sdk::io(root, error))? {
        match entry {
            Ok(entry) => names.push(entry.file_name()),
            Err(error) => {
                // A name that is not UTF-8, say: it is lost like the others, only unnamed.
                // Nothing can be read behind it.
                log::warn(&format!("the loss list is incomplete: {error}"));
                unlisted = true;
                break;
            }
        }
    }
    names.sort();

    let mut counted = 0;
    let mut losses = Vec::new();
    let mut others = (0, 0);
    for name in names {
        let bytes = bytes_in(&root.join(&name), &mut counted);
        if losses.len() < NAMED_MAX {
            losses.push(lost(name.to_string_lossy().into_owned(), bytes));
        } else {
            others = (others.0 + 1, others.1 + bytes);
        }
    }
    if others.0 > 0 {
        losses.push(lost(format!("({} more)", others.0), others.1));
    }
    if unlisted {
        losses.push(lost("(more that cannot be listed)".to_owned(), 0));
    }
    if counted >= COUNTED_MAX {
        log::info(&format!("only {COUNTED_MAX} entries were counted"));
    }
    Ok(losses)
}

fn lost(path: String, bytes: u64) -> Loss {
    Loss {
        kind: LossKind::Ephemeral,
        path,
        bytes,
    }
}

/// Adds up the files below a path, without following links. What can not be read counts nothing:
/// it is going to be deleted anyway.
fn bytes_in(path: &Path, counted: &mut usize) -> u64 {
    let mut bytes = 0;
    let mut left: Vec<PathBuf> = vec![path.to_owned()];
    while let Some(path) = left.pop() {
        if *counted >= COUNTED_MAX {
            break;
        }
        *counted += 1;
        let Ok(metadata) = fs::symlink_metadata(&path) else {
            continue;
        };
        if metadata.is_file() {
            bytes += metadata.len();
        } else if metadata.is_dir()
            && let Ok(entries) = fs::read_dir(&path)
        {
            let room = COUNTED_MAX - *counted;
            left.extend(entries.map_while(Result::ok).take(room).map(|e| e.path()));
        }
    }
    bytes
}

#[cfg(test)]
mod tests {
    use super::*;
    use warren_sdk::testing::Host;

    #[test]
    fn directories_are_added_up_and_links_not_followed() {
        let host = Host::new();
        let root = host.root();
        fs::create_dir_all(root.join("d/e")).unwrap();
        fs::write(root.join("d/x"), [0; 10]).unwrap();
        fs::write(root.join("d/e/y"), [0; 7]).unwrap();
        std::os::unix::fs::symlink(root.join("d"), root.join("link")).unwrap();
        let listed: Vec<_> = list(root)
            .unwrap()
            .into_iter()
            .map(|loss| (loss.kind, loss.path, loss.bytes))
            .collect();
        let expected = [
            (LossKind::Ephemeral, "d".to_owned(), 17),
            (LossKind::Ephemeral, "link".to_owned(), 0),
        ];
        assert_eq!(listed, expected);
    }

    #[test]
    fn the_list_is_bounded_and_says_how_many_more() {
        let host = Host::new();
        for n in 0..NAMED_MAX + 3 {
            fs::write(host.root().join(format!("{n:04}")), "ab").unwrap();
        }
        let listed = list(host.root()).unwrap();
        assert_eq!(listed.len(), NAMED_MAX + 1);
        let last = listed.last().unwrap();
        assert_eq!((last.path.as_str(), last.bytes), ("(3 more)", 6));
    }
}
