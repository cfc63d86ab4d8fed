use std::fs::{self, Permissions};
use std::os::unix::fs::{PermissionsExt, symlink};
use std::path::{Path, PathBuf};

use cap_std::ambient_authority;
use cap_std::fs::Dir;
use tempfile::TempDir;

use super::*;

const SH: &str = "/bin/sh";
const LISTED: [&str; 1] = [".venv/bin/python"];

/// A Workspace root with one RootDir, and a folder of the operator's with programs.
struct Place {
    temporary: TempDir,
    programs: Programs,
}

impl Place {
    fn new() -> Self {
        let temporary = tempfile::tempdir().unwrap();
        let path = temporary.path().canonicalize().unwrap();
        for folder in ["ws/p/d/.venv/bin", "ws/p/other", "bin"] {
            fs::create_dir_all(path.join(folder)).unwrap();
        }
        write(&path.join("bin/tool"), 0o755);
        let search = [path.join("bin"), PathBuf::from("/usr/bin")];
        let mut programs = Programs::new(&search, &[path.join("ws")]).unwrap();
        programs.alias("sh", &[SH]);
        programs.alias("tool", &["tool"]);
        programs.alias("absent", &["no-such-program"]);
        Self {
            temporary,
            programs,
        }
    }

    fn path(&self, name: &str) -> PathBuf {
        self.temporary.path().canonicalize().unwrap().join(name)
    }

    fn root(&self) -> Dir {
        Dir::open_ambient_dir(self.path("ws/p/d"), ambient_authority()).unwrap()
    }

    fn python(&self) -> PathBuf {
        self.path("ws/p/d/.venv/bin/python")
    }

    fn in_root(&self) -> Result<Program, ProcessError> {
        self.programs
            .resolve_in_root(&self.root(), LISTED[0], &LISTED)
    }

    fn code(&self) -> &'static str {
        self.in_root().map_or_else(|error| error.code(), |_| "ok")
    }
}

fn write(path: &Path, mode: u32) {
    fs::write(path, "#!/bin/sh\n").unwrap();
    fs::set_permissions(path, Permissions::from_mode(mode)).unwrap();
}

fn code<T>(result: Result<T, ProcessError>) -> &'static str {
    result.map_or_else(|error| error.code(), |_| "ok")
}

#[test]
fn aliases_are_found_in_the_search_folders() {
    let place = Place::new();
    let tool = place.programs.resolve_alias("tool").unwrap();
    assert_eq!(Path::new(tool.path()), place.path("bin/tool"));
    assert!(tool.file().is_none(), "a script is executed by path");
    assert!(place.programs.resolve_alias("sh").unwrap().file().is_some());
    let absent = place.programs.resolve_alias("absent").unwrap_err();
    assert_eq!(absent.to_string(), "program `absent` was not found");
    assert_eq!(code(place.programs.resolve_alias("ls")), "ProcessDenied");
}

#[test]
fn an_alias_never_leads_into_a_workspace() {
    let mut place = Place::new();
    write(&place.path("ws/p/d/evil"), 0o755);
    symlink(place.path("ws/p/d/evil"), place.path("bin/link")).unwrap();
    symlink(SH, place.path("ws/p/d/sh")).unwrap();
    let paths = ["ws/p/d/evil", "bin/link", "ws/p/d/sh"];
    for path in paths.map(|path| place.path(path)) {
        place.programs.alias("evil", &[path.to_str().unwrap()]);
        let found = place.programs.resolve_alias("evil");
        assert_eq!(code(found), "ProcessNotFound", "{}", path.display());
        let found = place.programs.resolve_path(&path);
        assert_eq!(code(found), "ProcessDenied", "{}", path.display());
    }
}

#[test]
fn a_path_must_be_granted() {
    let mut place = Place::new();
    let resolve = |place: &Place, path: &Path| code(place.programs.resolve_path(path));
    // The shell by another path than the alias has.
    let real = Path::new(SH).canonicalize().unwrap();
    assert_eq!(resolve(&place, &real), "ok");
    write(&place.path("bin/other"), 0o755);
    assert_eq!(resolve(&place, &place.path("bin/other")), "ProcessDenied");
    place.programs.allow(place.path("bin")).unwrap();
    assert_eq!(resolve(&place, &place.path("bin/other")), "ok");
    for path in [
        "bin/sh",
        "../bin/sh",
        "/bin/../bin/sh",
        "$(touch /tmp/x)",
        "",
    ] {
        assert_eq!(resolve(&place, Path::new(path)), "ProcessInvalidArgument");
    }
    assert_eq!(
        resolve(&place, Path::new("/bin/no-such")),
        "ProcessNotFound"
    );
    assert_eq!(
        resolve(&place, &place.path("bin")),
        "ProcessInvalidArgument"
    );
    let magic = Path::new("/proc/self/exe");
    assert_eq!(resolve(&place, magic), "ProcessInvalidArgument");
}

#[test]
fn a_program_that_others_may_write_is_refused() {
    let mut place = Place::new();
    place.programs.allow(place.path("bin")).unwrap();
    let tool = place.path("bin/tool");
    for (mode, expected) in [
        (0o755, "ok"),
        (0o757, "ProcessInvalidArgument"),
        (0o644, "ProcessInvalidArgument"),
    ] {
        fs::set_permissions(&tool, Permissions::from_mode(mode)).unwrap();
        assert_eq!(
            code(place.programs.resolve_path(&tool)),
            expected,
            "{mode:o}"
        );
    }
}

#[test]
fn a_link_in_a_root_leads_to_granted_programs_only() {
    let place = Place::new();
    let python = place.python();
    let relink = |target: &Path| {
        let _ = fs::remove_file(&python);
        symlink(target, &python).unwrap();
    };
    relink(Path::new(SH));
    let program = place.in_root().unwrap();
    assert_eq!(program.path(), "./.venv/bin/python");
    assert!(program.file().is_some());

    // A chain, as `python3 -> python -> /usr/bin/python3` is.
    symlink(SH, place.path("ws/p/d/.venv/bin/python3")).unwrap();
    relink(Path::new("python3"));
    assert_eq!(place.code(), "ok");

    write(&place.path("ws/p/other/evil"), 0o755);
    write(&place.path("ws/p/d/own"), 0o755);
    for (target, expected) in [
        ("/usr/bin/env", "ProcessDenied"),
        ("../../../other/evil", "ProcessDenied"),
        ("../../own", "ok"),
        ("/proc/self/exe", "ProcessInvalidArgument"),
        ("/proc/self/root/bin/sh", "ProcessInvalidArgument"),
        ("/dev/null", "ProcessInvalidArgument"),
        ("/etc", "ProcessInvalidArgument"),
        ("python", "ProcessInvalidArgument"),
        ("gone", "ProcessNotFound"),
    ] {
        relink(Path::new(target));
        assert_eq!(place.code(), expected, "{target}");
    }
    let error = place.in_root().unwrap_err().to_string();
    assert_eq!(error, "program `.venv/bin/python` was not found");
}

#[test]
fn a_copy_in_the_root_is_used_and_other_files_are_not() {
    let place = Place::new();
    write(&place.python(), 0o755);
    assert_eq!(place.code(), "ok");
    write(&place.python(), 0o644);
    assert_eq!(place.code(), "ProcessInvalidArgument");
    fs::remove_file(place.python()).unwrap();
    fs::create_dir(place.python()).unwrap();
    assert_eq!(place.code(), "ProcessInvalidArgument");
}

#[test]
fn folders_on_the_way_must_not_be_links() {
    let place = Place::new();
    fs::remove_dir_all(place.path("ws/p/d/.venv")).unwrap();
    fs::create_dir_all(place.path("ws/p/d/real/bin")).unwrap();
    symlink(SH, place.path("ws/p/d/real/bin/python")).unwrap();
    symlink("real", place.path("ws/p/d/.venv")).unwrap();
    assert_eq!(place.code(), "ProcessInvalidArgument");
    fs::remove_file(place.path("ws/p/d/.venv")).unwrap();
    assert_eq!(place.code(), "ProcessNotFound");
}

#[test]
fn only_listed_paths_in_a_root_are_looked_at() {
    let place = Place::new();
    write(&place.path("ws/p/d/evil"), 0o755);
    let resolve = |path: &str, allowed: &[&str]| {
        code(place.programs.resolve_in_root(&place.root(), path, allowed))
    };
    assert_eq!(resolve("evil", &LISTED), "ProcessDenied");
    assert_eq!(resolve("./.venv/bin/python", &LISTED), "ProcessDenied");
    for path in ["", "..", "../other/evil", "/bin/sh", "a\0b", "."] {
        let invalid = resolve(path, &[path]);
        assert_eq!(invalid, "ProcessInvalidArgument", "{path:?}");
    }
}
