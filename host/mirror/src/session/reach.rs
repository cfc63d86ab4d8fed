//! What the threads of the verbs may reach.

use std::path::Path;

use warren_confine::Access;

use super::admit::Admitted;
use super::{Aim, Session};
use crate::MirrorError;
use crate::confine::Reach;
use crate::remote_url::Scheme;

impl Session {
    /// What the thread of a verb with a remote may reach.
    pub(super) fn reach(&self, admitted: &Admitted, aim: Aim) -> Result<Reach, MirrorError> {
        let mut reach = self.reach_root(aim)?;
        reach.open(admitted.mirror.dir(), Access::Write)?;
        reach.open(self.folder()?.dir(), Access::Write)?;
        let url = &admitted.permit.url;
        match url.scheme {
            Scheme::File => {
                let access = match aim {
                    Aim::Publish if !self.spec.dry_run => Access::Write,
                    _ => Access::Read,
                };
                reach.path(Path::new(&url.path), access)?;
            }
            Scheme::Https => {
                reach.certificates()?;
                if let Some(file) = &self.shared.ca_file {
                    reach.path(file, Access::Read)?;
                }
                reach.port(url.port);
            }
            Scheme::Http | Scheme::Ssh => reach.port(url.port),
        }
        Ok(reach)
    }

    /// What the thread of a verb without a remote may reach.
    pub(super) fn reach_root(&self, aim: Aim) -> Result<Reach, MirrorError> {
        let mut reach = Reach::new(self.spec.unconfined);
        let access = match aim {
            Aim::Fill => Access::Write,
            Aim::Look | Aim::Publish => Access::Read,
        };
        reach.open(&self.spec.root, access)?;
        Ok(reach)
    }
}
