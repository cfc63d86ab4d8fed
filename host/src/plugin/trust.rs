//! Who may load, and with what: the policy, the approvals, and what the two make of a component.

use std::fmt;
use std::sync::Arc;

use warren_model::HandlerType;
use warren_policy::{
    Approval, Candidate, Capability, Grant, GrantId, Lock, Policy, Verdict, capabilities, effective,
};

use super::grants::{GrantTable, Grants};
use super::inspect::Inspection;
use super::load_error::{LoadError, ManifestError, NotApproved, Origin};
use super::lock::LockError;

/// Makes of a canonical grant what the runtime checks against: looks programs up, parses patterns.
/// The error says what of the plugin's wish cannot be.
pub type Resolver = Arc<dyn Fn(&HandlerType, &Grant) -> Result<Grants, String> + Send + Sync>;

/// Who may load, and with what.
#[derive(Clone)]
pub enum Trust {
    /// What policy and approvals say.
    Reviewed(Arc<Authority>),
    /// What the embedder of the runtime gives each type itself, without asking anybody.
    Given(Box<GrantTable>),
}

impl Default for Trust {
    /// Every plugin is plain.
    fn default() -> Self {
        Self::Given(Box::default())
    }
}

impl fmt::Debug for Trust {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Reviewed(_) => f.write_str("Reviewed"),
            Self::Given(table) => f.debug_tuple("Given").field(table).finish(),
        }
    }
}

/// Policy and approvals of a host.
pub struct Authority {
    policy: Policy,
    shipped: Policy,
    lock: Result<Lock, Arc<LockError>>,
    resolver: Resolver,
}

/// What policy and approvals make of a component.
#[derive(Debug, Clone)]
pub struct Review {
    /// What it would get now.
    pub grant: Grant,
    /// Id of that.
    pub id: GrantId,
    /// What was approved for its type, if anything was.
    pub approval: Option<Approval>,
    /// Whether it may load.
    pub verdict: Verdict,
}

impl Authority {
    /// Of a policy with the shipped grants filled in, the shipped policy, and the approvals, which
    /// may be unreadable: then nothing loads.
    pub fn new(
        policy: Policy,
        shipped: Policy,
        lock: Result<Lock, LockError>,
        resolver: Resolver,
    ) -> Self {
        Self {
            policy,
            shipped,
            lock: lock.map_err(Arc::new),
            resolver,
        }
    }

    /// The policy in force.
    pub fn policy(&self) -> &Policy {
        &self.policy
    }

    /// What a component would get, and whether it may load.
    ///
    /// # Errors
    ///
    /// When it has no manifest, or the approvals cannot be read.
    pub fn review(&self, origin: &Origin, inspection: &Inspection) -> Result<Review, LoadError> {
        let manifest = inspection.manifest()?;
        let lock = self
            .lock
            .as_ref()
            .map_err(|error| LoadError::Lock(Arc::clone(error)))?;
        let handler = &manifest.handler_type;
        let under = |policy: &Policy| {
            effective(
                policy.plugin.get(handler),
                &manifest.wants,
                &inspection.imports,
            )
        };
        let grant = under(&self.policy);
        let shipped = match origin {
            Origin::Shipped(_) => Some(under(&self.shipped)),
            Origin::File(_) => None,
        };
        let verdict = lock.judge(Candidate {
            digest: &inspection.digest,
            imports: &inspection.imports,
            manifest,
            grant: &grant,
            shipped: shipped.as_ref(),
        });
        Ok(Review {
            id: GrantId::of(handler, &inspection.digest, &grant),
            approval: lock.plugin.get(handler).cloned(),
            grant,
            verdict,
        })
    }

    fn resolve(&self, handler: &HandlerType, review: &Review) -> Result<Grants, LoadError> {
        let grants = (self.resolver)(handler, &review.grant)
            .map_err(|reason| LoadError::Manifest(ManifestError::Wish(reason)))?;
        Ok(Grants {
            id: review.id.clone(),
            ..grants
        })
    }
}

/// What a component may reach when it is loaded.
pub(crate) struct Granted {
    /// What its calls are checked against.
    pub(crate) grants: Grants,
    /// Where that comes from; none when the embedder gave it.
    pub(crate) review: Option<Review>,
}

impl Trust {
    /// What policy and approvals make of a component; none when the embedder gives grants itself.
    ///
    /// # Errors
    ///
    /// As for [`Authority::review`].
    pub fn review(
        &self,
        origin: &Origin,
        inspection: &Inspection,
    ) -> Result<Option<Review>, LoadError> {
        match self {
            Self::Reviewed(authority) => authority.review(origin, inspection).map(Some),
            Self::Given(_) => Ok(None),
        }
    }

    /// The grants that a component would have, approved or not.
    pub(crate) fn grants(
        &self,
        origin: &Origin,
        inspection: &Inspection,
    ) -> Result<Granted, LoadError> {
        let manifest = inspection.manifest()?;
        check_wanted(inspection)?;
        match self {
            Self::Reviewed(authority) => {
                let review = authority.review(origin, inspection)?;
                Ok(Granted {
                    grants: authority.resolve(&manifest.handler_type, &review)?,
                    review: Some(review),
                })
            }
            Self::Given(table) => Ok(Granted {
                grants: table.get(manifest.handler_type.as_str()).clone(),
                review: None,
            }),
        }
    }
}

impl Granted {
    /// Refuses what nobody approved.
    pub(crate) fn check_approved(&self, handler: &HandlerType) -> Result<(), LoadError> {
        let Some(review) = &self.review else {
            return Ok(());
        };
        let handler = handler.clone();
        Err(LoadError::NotApproved(match &review.verdict {
            Verdict::Approved => return Ok(()),
            Verdict::Unknown => NotApproved::Unknown(handler),
            Verdict::Revoked => NotApproved::Revoked(handler),
            Verdict::Differs(changes) => NotApproved::Differs {
                handler,
                changes: changes.clone(),
            },
        }))
    }
}

/// Refuses imports that the manifest does not ask for.
fn check_wanted(inspection: &Inspection) -> Result<(), LoadError> {
    let wants = &inspection.manifest()?.wants;
    let unwanted: Vec<Capability> = capabilities(&inspection.imports)
        .into_iter()
        .filter(|capability| !capability.is_wanted(wants))
        .collect();
    if unwanted.is_empty() {
        return Ok(());
    }
    let of = |import: &&String| {
        Capability::of_import(import).is_some_and(|capability| unwanted.contains(&capability))
    };
    let imports = inspection.imports.iter().filter(of).cloned().collect();
    Err(LoadError::UnwantedImport(imports))
}
