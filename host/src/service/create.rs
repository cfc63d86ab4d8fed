//! `createRootDir`.

use std::io;

use jiff::Timestamp;
use warren_disk::atomic::Durable;
use warren_model::{CreatorId, Descriptor, DirName, HandlerType, Metadata, RootState};

use super::Service;
use super::folder::Folder;
use super::handlers::handler_ref;
use crate::error::{Error, Step};
use crate::store::ProjectKey;

/// Longest label, engine or session in bytes.
const TEXT_BYTES_MAX: usize = 1024;

/// How many names are tried when folders without Descriptor stand in the way.
const NAMES_MAX: u64 = 1000;

/// What to make.
#[derive(Debug, Clone)]
pub struct CreateRootDir {
    /// Type of the handler.
    pub handler_type: HandlerType,
    /// Process that asks.
    pub creator: CreatorId,
    /// Hint for the name; any text.
    pub label: Option<String>,
    /// Engine of the creator.
    pub engine: Option<String>,
    /// Session of the creator.
    pub session: Option<String>,
    /// Whether it goes when the creator closes.
    pub delete_on_close: bool,
    /// What the handler needs to know.
    pub metadata: Metadata,
}

impl CreateRootDir {
    /// An anonymous RootDir with nothing but what is required.
    pub fn new(handler_type: HandlerType, creator: CreatorId) -> Self {
        Self {
            handler_type,
            creator,
            label: None,
            engine: None,
            session: None,
            delete_on_close: false,
            metadata: Metadata::default(),
        }
    }

    fn check(&self) -> Result<(), Error> {
        let texts = [
            ("label", &self.label),
            ("engine", &self.engine),
            ("session", &self.session),
        ];
        for (what, text) in texts {
            let Some(text) = text else { continue };
            if text.len() > TEXT_BYTES_MAX {
                return Err(Error::InvalidArgument {
                    what,
                    reason: format!("it is longer than {TEXT_BYTES_MAX} bytes"),
                });
            }
        }
        Ok(())
    }
}

impl Service {
    /// Makes a RootDir and lets its handler fill it.
    ///
    /// Happened when the Descriptor says `ready`; whatever fails before that is removed.
    pub async fn create_root_dir(
        &self,
        key: &ProjectKey,
        spec: CreateRootDir,
    ) -> Result<Descriptor, Error> {
        spec.check()?;
        let plugin = self.plugin(&spec.handler_type)?;
        let lock = self.inner.locks.shared(key).await?;
        let folder = self.running(key).await?.under(&lock);
        self.check_quota()?;
        let hint = spec
            .label
            .clone()
            .or_else(|| plugin.description().default_label.clone());
        let draft = Descriptor {
            tenant: key.tenant.clone(),
            project_id: key.project.clone(),
            dir_name: DirName::anonymous(),
            handler_type: spec.handler_type,
            creator_process_id: spec.creator,
            created_at: Timestamp::now(),
            delete_on_creator_close: spec.delete_on_close,
            label: spec.label,
            creator_engine: spec.engine,
            session_id: spec.session,
            metadata: spec.metadata,
            state: RootState::Initializing,
            handler: Some(handler_ref(&plugin)),
            recovered_generation: None,
            extra: serde_json::Map::new(),
        };
        let claimed = self.claim(key, &folder, draft, hint.as_deref()).await?;
        let filled = self.fill(&folder, &claimed, Step::Init).await;
        let made = filled.and_then(|metadata| {
            let ready = Descriptor {
                metadata,
                state: RootState::Ready,
                ..claimed.clone()
            };
            folder.put(&ready, Durable::Yes)?;
            Ok(ready)
        });
        match made {
            Ok(ready) => {
                tracing::info!(project = %key, dir_name = %ready.dir_name, handler = %ready.handler_type, "RootDir made");
                Ok(ready)
            }
            Err(error) => {
                self.undo(&folder, &claimed.dir_name).await;
                Err(error)
            }
        }
    }

    /// Takes a name: writes the Descriptor and makes the empty folder.
    async fn claim(
        &self,
        key: &ProjectKey,
        folder: &Folder,
        mut draft: Descriptor,
        hint: Option<&str>,
    ) -> Result<Descriptor, Error> {
        let Some(base) = hint.and_then(DirName::from_hint) else {
            // A fresh UUID: nobody else has it, so there is nothing to look up or to lock.
            self.take(folder, &draft)?;
            return Ok(draft);
        };
        let _names = self.inner.locks.names(key).await?;
        let mut taken: std::collections::HashSet<String> = folder.taken()?.into_iter().collect();
        // A recover that could not write anything left nothing on disk that holds the name.
        let waiting = self.inner.store.snapshots(key).await?;
        taken.extend(waiting.iter().map(|snapshot| snapshot.dir_name.folded()));
        let names = std::iter::once(base.clone())
            .chain((2..).map(|n| base.with_suffix(n)))
            .filter(|name| !taken.contains(&name.folded()));
        for name in names.take(usize::try_from(NAMES_MAX).unwrap_or(usize::MAX)) {
            draft.dir_name = name;
            match self.take(folder, &draft) {
                Err(Error::Io { source, .. }) if source.kind() == io::ErrorKind::AlreadyExists => {}
                other => return other.map(|()| draft),
            }
        }
        Err(Error::InvalidArgument {
            what: "label",
            reason: format!("{NAMES_MAX} names like `{base}` are taken"),
        })
    }

    fn take(&self, folder: &Folder, draft: &Descriptor) -> Result<(), Error> {
        let name = draft.dir_name.as_str();
        folder
            .claim(draft)
            .map_err(Error::io(format!("write the Descriptor of `{name}`")))?;
        let made = folder
            .dir()
            .create_dir(name)
            .map_err(Error::io(format!("make RootDir `{name}`")));
        if made.is_err() {
            // Only the Descriptor is ours; a folder in the way is somebody's.
            folder.forget(&draft.dir_name)?;
        }
        made
    }

    /// Removes a RootDir that could not be filled. What resists is removed by the next init: its
    /// Descriptor says that it was never ready.
    async fn undo(&self, folder: &Folder, dir_name: &DirName) {
        let (folder, name) = (folder.clone(), dir_name.clone());
        let undone = super::blocking(move || folder.delete(&name)).await;
        if let Err(error) = undone.and_then(|undone| undone) {
            tracing::warn!(%dir_name, error = crate::error::chain(&error), "cannot remove a half-made RootDir");
        }
    }
}
