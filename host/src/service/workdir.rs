//! `setWorkingDir`, `getWorkingDir`, `clearWorkingDir`: one RootDir a creator.

use warren_model::{CreatorId, Descriptor, DirName};

use super::{Service, roots};
use crate::error::Error;
use crate::store::ProjectKey;

impl Service {
    /// Makes a RootDir the working directory of a creator.
    pub async fn set_working_dir(
        &self,
        key: &ProjectKey,
        creator: &CreatorId,
        dir_name: &DirName,
    ) -> Result<Descriptor, Error> {
        let _lock = self.inner.locks.shared(key).await?;
        let descriptor = roots::ready(&self.running(key).await?, dir_name)?;
        self.inner
            .store
            .set_working_dir(key, creator, Some(&descriptor))
            .await?;
        Ok(descriptor)
    }

    /// The working directory of a creator; none: it has none, or it is disposed of.
    pub async fn get_working_dir(
        &self,
        key: &ProjectKey,
        creator: &CreatorId,
    ) -> Result<Option<Descriptor>, Error> {
        let folder = self.running(key).await?;
        let Some((name, made)) = self.inner.store.working_dir(key, creator).await? else {
            return Ok(None);
        };
        match roots::ready(&folder, &name.parse()?) {
            // Another one may have got the name since.
            Ok(found) => Ok(Some(found).filter(|found| found.created_at.to_string() == made)),
            Err(Error::RootDirNotFound(_)) => Ok(None),
            Err(error) => Err(error),
        }
    }

    /// Leaves a creator without a working directory.
    pub async fn clear_working_dir(
        &self,
        key: &ProjectKey,
        creator: &CreatorId,
    ) -> Result<(), Error> {
        let _lock = self.inner.locks.shared(key).await?;
        self.running(key).await?;
        Ok(self.inner.store.set_working_dir(key, creator, None).await?)
    }
}
