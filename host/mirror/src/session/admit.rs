//! Who may be asked, and with what: everything that is read before work is confined.

use std::sync::Arc;

use super::{Origin, Session};
use crate::credentials::Login;
use crate::mirror::{self, Mirror};
use crate::policy::Permit;
use crate::remote_url::Scheme;
use crate::wire::Judge;
use crate::{MirrorError, known_hosts};

/// A remote that the policy granted, with all that is read before work is confined.
pub(super) struct Admitted {
    pub(super) permit: Permit,
    pub(super) login: Option<Login>,
    pub(super) known_hosts: String,
    pub(super) key: String,
    pub(super) mirror: Mirror,
}

impl Session {
    /// Holds a remote against the policy; nothing is asked of anybody.
    pub(super) fn permit(&self, origin: &Origin) -> Result<Permit, MirrorError> {
        let permit = self.judge(&origin.url)?;
        if let Some(alias) = &origin.credential_alias {
            let granted = self
                .spec
                .aliases
                .as_ref()
                .is_none_or(|aliases| aliases.contains(alias));
            if !granted {
                let shown = warren_disk::text::excerpt(alias.as_bytes(), 100);
                return Err(MirrorError::Denied(format!("credential `{shown}`")));
            }
            self.shared.credentials.check(alias, &permit.url)?;
        }
        if permit.url.scheme == Scheme::File {
            self.check_file(&permit)?;
        }
        Ok(permit)
    }

    /// Judges where a server sends us as if a caller had asked for it.
    pub(super) fn judge_hops(&self, origin: &Origin) -> Judge {
        let (shared, layers) = (Arc::clone(&self.shared), self.spec.remotes.clone());
        let alias = origin.credential_alias.clone();
        Box::new(move |url| {
            shared.policy.permit(&url.to_string()).is_ok()
                && layers.iter().all(|layer| layer.lets_through(url))
                && alias
                    .as_ref()
                    .is_none_or(|alias| shared.credentials.check(alias, url).is_ok())
        })
    }

    /// The host's policy and every layer on top.
    fn judge(&self, url: &str) -> Result<Permit, MirrorError> {
        let permit = self.shared.policy.permit(url)?;
        if self
            .spec
            .remotes
            .iter()
            .all(|layer| layer.lets_through(&permit.url))
        {
            return Ok(permit);
        }
        let shown = permit.url.to_string();
        Err(MirrorError::Denied(format!(
            "`{shown}` is not granted to this plugin"
        )))
    }

    /// A listed path must not lead elsewhere by a link.
    fn check_file(&self, permit: &Permit) -> Result<(), MirrorError> {
        let path = &permit.url.path;
        let real = std::fs::canonicalize(path)
            .map_err(|_| MirrorError::Unreachable(format!("there is nothing at `{path}`")))?;
        let listed = real
            .to_str()
            .is_some_and(|real| self.judge(&format!("file://{real}")).is_ok());
        if listed {
            Ok(())
        } else {
            Err(MirrorError::Denied(format!("`{path}` leads elsewhere")))
        }
    }

    /// Grants a remote and reads what only an unconfined thread can.
    pub(super) fn admit(&self, origin: &Origin) -> Result<Admitted, MirrorError> {
        let permit = self.permit(origin)?;
        self.check_time()?;
        let url = permit.url.to_string();
        let alias = origin.credential_alias.as_deref();
        let login = alias
            .map(|alias| self.shared.credentials.login(alias, &permit.url))
            .transpose()?;
        let known_hosts = match permit.url.scheme {
            Scheme::Ssh => known_hosts::read(&self.shared.known_hosts)?,
            _ => String::new(),
        };
        let key = mirror::key(&self.spec.tenant, &url, alias);
        let mirror = Mirror::open(&self.shared.mirrors, &self.shared.mirrors_path, &key)?;
        Ok(Admitted {
            permit,
            login,
            known_hosts,
            key,
            mirror,
        })
    }
}
