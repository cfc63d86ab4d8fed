//! `createTempFile`, `createTempDirectory`, `getOrCreateTempRootDir`.

use std::path::PathBuf;

use warren_model::{CreatorId, Descriptor, RootState};

use super::{CreateRootDir, Service};
use crate::error::Error;
use crate::store::ProjectKey;

/// Type of the handler whose RootDirs hold temp files.
const TEMP: &str = "temp";

/// Longest prefix or suffix in bytes.
const PART_BYTES_MAX: usize = 64;

/// A fresh file or directory.
#[derive(Debug, Clone, serde::Serialize)]
#[serde(rename_all = "camelCase")]
pub struct TempEntry {
    /// The RootDir that holds it.
    pub dir_name: warren_model::DirName,
    /// Its name in the RootDir.
    pub name: String,
    /// Its path on the host.
    pub path: PathBuf,
}

impl Service {
    /// The temp RootDir of a creator, which goes when the creator closes; made when missing.
    pub async fn get_or_create_temp_root_dir(
        &self,
        key: &ProjectKey,
        creator: &CreatorId,
    ) -> Result<Descriptor, Error> {
        let _lock = self.inner.locks.temp(key).await?;
        let listing = {
            let _lock = self.inner.locks.shared(key).await?;
            self.running(key).await?.list()?
        };
        let found = listing.descriptors.into_iter().find(|d| {
            d.handler_type.as_str() == TEMP
                && d.creator_process_id == *creator
                && d.delete_on_creator_close
                && d.label.is_none()
                && d.state == RootState::Ready
        });
        if let Some(found) = found {
            return Ok(found);
        }
        let mut spec = CreateRootDir::new(TEMP.parse()?, creator.clone());
        spec.delete_on_close = true;
        self.create_root_dir(key, spec).await
    }

    /// A fresh empty file, mode 0600, named `<prefix><unguessable><suffix>`.
    pub async fn create_temp_file(
        &self,
        key: &ProjectKey,
        creator: &CreatorId,
        prefix: &str,
        suffix: &str,
    ) -> Result<TempEntry, Error> {
        self.create_temp(key, creator, prefix, suffix, |root, name| {
            warren_disk::beneath::create_file(root, name.as_ref(), 0o600).map(drop)
        })
        .await
    }

    /// A fresh empty directory, named likewise.
    pub async fn create_temp_directory(
        &self,
        key: &ProjectKey,
        creator: &CreatorId,
        prefix: &str,
        suffix: &str,
    ) -> Result<TempEntry, Error> {
        self.create_temp(key, creator, prefix, suffix, |root, name| {
            root.create_dir(name)
        })
        .await
    }

    async fn create_temp(
        &self,
        key: &ProjectKey,
        creator: &CreatorId,
        prefix: &str,
        suffix: &str,
        make: impl FnOnce(&warren_disk::Dir, &str) -> std::io::Result<()>,
    ) -> Result<TempEntry, Error> {
        check_part("prefix", prefix)?;
        check_part("suffix", suffix)?;
        self.check_quota()?;
        let root = self.get_or_create_temp_root_dir(key, creator).await?;
        let _lock = self.inner.locks.shared(key).await?;
        let folder = self.running(key).await?;
        super::roots::ready(&folder, &root.dir_name)?;
        let name = format!("{prefix}{}{suffix}", uuid::Uuid::new_v4().simple());
        let made = folder
            .root(&root.dir_name)
            .and_then(|dir| make(&dir, &name).map_err(Error::io("make a temp entry")));
        if made.is_err() {
            // Disposed of meanwhile: that is what is wrong, not what it did to the files.
            super::roots::ready(&folder, &root.dir_name)?;
        }
        made?;
        Ok(TempEntry {
            path: folder.path().join(root.dir_name.as_str()).join(&name),
            dir_name: root.dir_name,
            name,
        })
    }
}

fn check_part(what: &'static str, part: &str) -> Result<(), Error> {
    let reason = if part.len() > PART_BYTES_MAX {
        format!("it is longer than {PART_BYTES_MAX} bytes")
    } else if part.contains(['/', '\\']) || part.chars().any(char::is_control) {
        "`/`, `\\` and control characters are not allowed".to_owned()
    } else if part.starts_with(['-', '.']) && what == "prefix" {
        "`-` and `.` in front are not allowed".to_owned()
    } else {
        return Ok(());
    };
    Err(Error::InvalidArgument { what, reason })
}

#[cfg(test)]
mod tests {
    use super::check_part;

    #[test]
    fn a_part_is_no_path() {
        for bad in [
            "../x",
            "a/b",
            "a\\b",
            "a\0",
            "-rf",
            ".hidden",
            &"x".repeat(65),
        ] {
            assert!(check_part("prefix", bad).is_err(), "{bad:?}");
        }
        assert!(check_part("suffix", ".json").is_ok());
        assert!(check_part("prefix", "report_").is_ok());
    }
}
