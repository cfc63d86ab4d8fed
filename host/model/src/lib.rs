//! What Warren keeps: names, Descriptors, Snapshots, statuses, servers. Plain data, no I/O.
//!
//! Names that come from outside are parsed here once, into types that cannot hold a bad one.

mod address;
mod descriptor;
mod dir_name;
mod endpoint;
mod folder;
mod id;
mod metadata;
mod snapshot;
mod workspace;

pub use address::{is_link_local, is_public};
pub use descriptor::{Descriptor, HandlerRef, RootState};
pub use dir_name::{DIR_NAME_BYTES_MAX, DirName};
pub use endpoint::{Endpoint, EndpointPermit, Endpoints, InvalidEndpoint, Target, WebScheme};
pub use folder::{project_folder, tenant_folder};
pub use id::{CreatorId, HandlerType, ID_BYTES_MAX, InvalidName, ProjectId, TenantId};
pub use metadata::{METADATA_BYTES_MAX, Metadata, MetadataError};
pub use snapshot::{Loss, LossKind, Receipt, Snapshot};
pub use workspace::{SuspendState, SuspendStatus, WorkspaceFile, WorkspaceRecord, WorkspaceStatus};

/// Tenant of a caller that names none.
pub const DEFAULT_TENANT: &str = "default";
