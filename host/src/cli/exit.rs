//! What the exit code says. docs/cli.md has the same table.

/// Done.
pub(crate) const OK: u8 = 0;
/// Anything not named below: a defect, a failing disk, a damaged file.
pub(crate) const INTERNAL: u8 = 1;
/// The command line cannot be understood.
pub(crate) const USAGE: u8 = 2;
/// Refused: a name, an argument, a setting, or what the policy does not allow.
pub(crate) const REFUSED: u8 = 3;
/// There is no such thing.
pub(crate) const NOT_FOUND: u8 = 4;
/// Something else is in the way: another operation, another owner, another status.
pub(crate) const CONFLICT: u8 = 5;
/// The disk is full.
pub(crate) const QUOTA: u8 = 6;
/// It cannot be suspended: work would be lost.
pub(crate) const UNSAVED: u8 = 7;
/// The remote cannot be reached, or refused.
pub(crate) const REMOTE: u8 = 8;
/// A handler, a plugin or a program it ran failed.
pub(crate) const HANDLER: u8 = 9;
/// Done in part: some RootDirs failed, and the report names them.
pub(crate) const PARTIAL: u8 = 10;
/// Stopped by SIGINT.
pub(crate) const INTERRUPTED: u8 = 130;
/// Stopped by SIGTERM.
pub(crate) const TERMINATED: u8 = 143;

/// Every error code.
const CODES: [(u8, &[&str]); 10] = [
    (
        INTERNAL,
        &[
            "AuditDamaged",
            "AuditUnavailable",
            "DeleteIncomplete",
            "DemoFailed",
            "DescriptorDamaged",
            "GitIo",
            "HandlerIo",
            "Internal",
            "Io",
            "RootUnavailable",
            "Several",
            "StoreDamaged",
            "StoreFailed",
        ],
    ),
    (USAGE, &["Usage"]),
    (
        REFUSED,
        &[
            "ConfigInvalid",
            "ConfigSyntax",
            "ConfigUnknownKey",
            "ConfigUnreadable",
            "ConfigWrongType",
            "ConfirmationNeeded",
            "Declined",
            "GitDenied",
            "GitInvalidArgument",
            "GitUnconfined",
            "HomeUnknown",
            "InvalidArgument",
            "InvalidMetadata",
            "InvalidName",
            "PersistenceOverlap",
            "PluginLock",
            "PluginNotApproved",
            "PolicyInvalid",
            "ProcessDenied",
            "ProcessInvalidArgument",
            "StoreUnsupported",
            "UnsupportedAction",
        ],
    ),
    (
        NOT_FOUND,
        &[
            "PluginNotFound",
            "RootDirNotFound",
            "UnknownHandler",
            "WorkspaceNotFound",
        ],
    ),
    (
        CONFLICT,
        &[
            "GitLocked",
            "PluginInUse",
            "RootDirNotReady",
            "RootDirUnreadable",
            "StoreBusy",
            "StoreConflict",
            "WorkspaceBusy",
            "WorkspaceConflict",
            "WorkspaceDisposed",
            "WorkspaceElsewhere",
            "WorkspaceNotRunning",
        ],
    ),
    (QUOTA, &["GitNoSpace", "WorkspaceQuotaExceeded"]),
    (
        UNSAVED,
        &[
            "GitNestedRepository",
            "GitNotARepository",
            "GitOperationInProgress",
            "GitTooLarge",
            "GitUnsafeRepository",
            "GitUnsupportedFormat",
            "OrphanedContent",
            "SuspendUnproven",
            "WorkspaceSuspendNotConfigured",
        ],
    ),
    (
        REMOTE,
        &[
            "GitAuthenticationFailed",
            "GitCancelled",
            "GitConflict",
            "GitHostKeyChanged",
            "GitHostKeyUnknown",
            "GitMissing",
            "GitRejected",
            "GitTimeout",
            "GitUnreachable",
        ],
    ),
    (
        HANDLER,
        &[
            "DuplicateHandlerType",
            "EnvironmentBroken",
            "HandlerBadMetadata",
            "HandlerCancelled",
            "HandlerFailed",
            "HandlerLimit",
            "HandlerTimeout",
            "HandlerTrapped",
            "PluginCache",
            "PluginCompile",
            "PluginCoreModule",
            "PluginDescription",
            "PluginIncompatible",
            "PluginMalformed",
            "PluginManifest",
            "PluginTooLarge",
            "PluginUnreadable",
            "ProcessFailed",
            "ProcessKilled",
            "ProcessTimeout",
            "ProgramFailed",
            "ProgramMissing",
            "ReservedHandlerType",
            "UngrantedImport",
            "UnknownImport",
            "UnwantedImport",
        ],
    ),
    (INTERRUPTED, &["Interrupted"]),
];

/// The exit code for an error code.
pub(crate) fn of(code: &str) -> u8 {
    CODES
        .iter()
        .find(|(_, codes)| codes.contains(&code))
        .map_or(INTERNAL, |(exit, _)| *exit)
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeSet;
    use std::path::Path;

    use super::{CODES, of};

    /// Sources whose errors reach the caller of a command. Other `code` functions are wrapped.
    const SOURCES: [&str; 9] = [
        "src/error.rs",
        "src/config/build.rs",
        "src/config/error.rs",
        "src/store/mod.rs",
        "src/plugin/error.rs",
        "src/plugin/load_error.rs",
        "src/plugin/lock.rs",
        "src/cli/error.rs",
        "mirror/src/error.rs",
    ];

    fn codes_of(source: &str) -> BTreeSet<String> {
        let mut found = BTreeSet::new();
        for body in source.split("fn code(&self) -> &'static str {").skip(1) {
            let body = body.split("\n    }\n").next().unwrap();
            let parts = body.split('"').skip(1).step_by(2);
            found.extend(parts.map(str::to_owned));
        }
        found
    }

    fn every_code() -> BTreeSet<String> {
        let base = Path::new(env!("CARGO_MANIFEST_DIR"));
        // What the parser of the command line refuses.
        let mut found = BTreeSet::from(["Usage".to_owned()]);
        for source in SOURCES {
            let codes = codes_of(&std::fs::read_to_string(base.join(source)).unwrap());
            assert!(!codes.is_empty(), "{source} has no codes");
            found.extend(codes);
        }
        found
    }

    #[test]
    fn every_code_is_mapped_once_and_exists() {
        let mapped: Vec<&str> = CODES
            .iter()
            .flat_map(|(_, codes)| codes.iter().copied())
            .collect();
        let unique: BTreeSet<String> = mapped.iter().map(ToString::to_string).collect();
        assert_eq!(unique.len(), mapped.len(), "a code is mapped twice");
        assert_eq!(unique, every_code());
    }

    #[test]
    fn the_documentation_lists_every_code_with_its_exit_code() {
        let path = Path::new(env!("CARGO_MANIFEST_DIR")).join("../docs/cli.md");
        let text = std::fs::read_to_string(path).unwrap();
        for code in every_code() {
            let row = text
                .lines()
                .find(|line| line.starts_with(&format!("| `{code}` |")))
                .unwrap_or_else(|| panic!("`{code}` is not in docs/cli.md"));
            let exit = row.split('|').nth(2).unwrap().trim();
            assert_eq!(exit, of(&code).to_string(), "`{code}`");
        }
    }

    #[test]
    fn what_nobody_named_is_internal() {
        assert_eq!(of("Quux"), super::INTERNAL);
        assert_eq!(of("WorkspaceNotFound"), super::NOT_FOUND);
    }
}
