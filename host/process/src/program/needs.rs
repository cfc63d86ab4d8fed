//! What a program needs to have readable besides the system's own programs and libraries.

use std::path::{Path, PathBuf};

/// What every confined program can read anyway.
const SYSTEM: [&str; 6] = ["/usr", "/bin", "/sbin", "/lib", "/lib32", "/lib64"];

/// Stores in which programs and libraries lie side by side, and nothing else.
const STORES: [&str; 2] = ["/nix/store", "/gnu/store"];

/// The parts of an installed Python that it reads. Not `share`: in a home folder that holds more.
const PARTS: [&str; 8] = [
    "bin", "lib", "lib32", "lib64", "libexec", "include", "ssl", "openssl",
];

/// For a program or a folder of programs: itself, for a Python its library, and the link that led
/// there. What is not there now is not needed.
pub(super) fn of(path: &Path) -> Vec<PathBuf> {
    let Ok(real) = path.canonicalize() else {
        return Vec::new();
    };
    let mut needs = Vec::new();
    if !of_system(path) && path != real {
        needs.push(path.to_owned());
    }
    if of_system(&real) {
        return needs;
    }
    let store = STORES.iter().find(|store| real.starts_with(store));
    needs.extend(store.map(PathBuf::from));
    needs.extend(python(&real).unwrap_or_default());
    needs.push(real);
    needs
}

fn of_system(path: &Path) -> bool {
    SYSTEM.iter().any(|place| path.starts_with(place))
}

/// The parts of an installed Python, if this is its interpreter.
fn python(real: &Path) -> Option<Vec<PathBuf>> {
    let prefix = real.parent()?.parent()?;
    let name = real.file_name()?.to_str()?;
    if !(name.starts_with("python") || name.starts_with("pypy")) {
        return None;
    }
    let library = std::fs::read_dir(prefix.join("lib")).ok()?.flatten();
    let is_library = |entry: &std::fs::DirEntry| {
        let name = entry.file_name();
        let named = name
            .to_str()
            .is_some_and(|name| name.starts_with("python") || name.starts_with("pypy"));
        named && entry.path().join("os.py").is_file()
    };
    library
        .into_iter()
        .any(|entry| is_library(&entry))
        .then(|| {
            let parts = PARTS.iter().map(|part| prefix.join(part));
            parts.filter(|part| part.exists()).collect()
        })
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::fs;
    use std::os::unix::fs::symlink;

    #[test]
    fn a_python_takes_its_library_along_but_not_the_home_around_it() {
        let home = tempfile::tempdir().unwrap();
        let home = home.path().canonicalize().unwrap();
        for folder in ["bin", "lib/python3.12", "share", "links"] {
            fs::create_dir_all(home.join(folder)).unwrap();
        }
        fs::write(home.join("lib/python3.12/os.py"), "").unwrap();
        for program in ["bin/python3.12", "bin/uv"] {
            fs::write(home.join(program), "").unwrap();
        }
        symlink("../bin/python3.12", home.join("links/python3")).unwrap();
        let places = |names: &[&str]| -> Vec<_> { names.iter().map(|n| home.join(n)).collect() };
        let found = of(&home.join("links/python3"));
        assert_eq!(
            found,
            places(&["links/python3", "bin", "lib", "bin/python3.12"])
        );
        assert_eq!(of(&home.join("bin/uv")), places(&["bin/uv"]));
        fs::remove_file(home.join("lib/python3.12/os.py")).unwrap();
        assert_eq!(
            of(&home.join("bin/python3.12")),
            places(&["bin/python3.12"])
        );
        assert_eq!(of(Path::new("/usr/bin/env")), places(&[]));
        assert_eq!(of(&home.join("none")), places(&[]));
    }
}
