//! Settings of libgit2 that hold for the whole process.

use std::sync::OnceLock;

use git2::ConfigLevel;

use crate::RepoError;

/// Most bytes of parsed objects that libgit2 keeps over all repositories.
const CACHE_BYTES_MAX: isize = 64 << 20;

/// Most bytes of packs mapped at a time.
const MAPPED_BYTES_MAX: usize = 1 << 30;

/// Most packs open at a time; the rest of the descriptors belong to children and walks.
const OPEN_PACKS_MAX: usize = 64;

static DONE: OnceLock<Result<(), String>> = OnceLock::new();

/// Sets libgit2 up: no config from outside a repository is read, owners are not compared (a RootDir
/// is ours because the host registered it), every object is checked when it is read and written,
/// and caches and buffers are bounded.
///
/// Call it once at start, before any other thread uses libgit2: the first use loads the CA store
/// (about 55 ms). Later calls do nothing; [`crate::Repo::open`] makes one.
///
/// # Errors
///
/// libgit2 refuses a setting. The same error is returned by every later call.
pub fn init() -> Result<(), RepoError> {
    DONE.get_or_init(|| apply().map_err(|error| error.message().to_owned()))
        .clone()
        .map_err(|message| RepoError::Git {
            doing: "set libgit2 up",
            source: git2::Error::from_str(&message),
        })
}

#[expect(
    unsafe_code,
    reason = "the settings are process-wide; `DONE` makes this run once, before a repository is opened"
)]
fn apply() -> Result<(), git2::Error> {
    crate::memory::bound()?;
    git2::opts::strict_object_creation(true);
    git2::opts::strict_hash_verification(true);
    // SAFETY: no other code sets these, and `OnceLock` lets one thread in.
    unsafe {
        for level in [
            ConfigLevel::System,
            ConfigLevel::Global,
            ConfigLevel::XDG,
            ConfigLevel::ProgramData,
        ] {
            git2::opts::set_search_path(level, "")?;
        }
        git2::opts::set_verify_owner_validation(false)?;
        git2::opts::set_cache_max_size(CACHE_BYTES_MAX)?;
        git2::opts::set_mwindow_mapped_limit(MAPPED_BYTES_MAX)?;
        git2::opts::set_mwindow_file_limit(OPEN_PACKS_MAX)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    #[expect(unsafe_code, reason = "reads a setting")]
    fn no_config_of_the_machine_is_read() {
        init().unwrap();
        init().unwrap();
        for level in [ConfigLevel::System, ConfigLevel::Global, ConfigLevel::XDG] {
            // SAFETY: nothing changes the setting after `init`.
            let path = unsafe { git2::opts::get_search_path(level) }.unwrap();
            assert!(path.to_bytes().is_empty());
        }
    }
}
