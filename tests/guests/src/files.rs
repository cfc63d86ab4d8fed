//! Paths that leave the root, writes that are not allowed, files that block.

use std::fs::{self, File, OpenOptions};
use std::io::{Read, Write};
use std::path::Path;

use serde_json::{Value, json};

/// What came of each try: the content, or the kind of error.
pub(crate) fn escape() -> Value {
    let mut tried = Vec::new();
    let root = warren_sdk::root();
    // The test has put a link to a file outside into the root, and a loop.
    for path in [
        "../secret",
        "/../secret",
        "a/../../secret",
        "out",
        "out-dir/secret",
        "loop",
    ] {
        tried.push(json!([path, read(&root.join(path))]));
    }
    for path in [
        "/etc/passwd",
        "/proc/self/environ",
        "/proc/self/root/etc/passwd",
    ] {
        tried.push(json!([path, read(Path::new(path))]));
    }
    tried.push(json!(["link", link("/etc/passwd", "made-link")]));
    tried.push(json!(["made-link", read(&root.join("made-link"))]));
    let moved = fs::rename(root.join("file"), "/../moved");
    tried.push(json!(["rename", done(moved)]));
    json!({ "tried": tried })
}

/// Tries all ways to change a read-only root.
pub(crate) fn write() -> Value {
    let root = warren_sdk::root();
    let file = root.join("file");
    json!({
        "create": done(File::create(root.join("new"))),
        "append": done(OpenOptions::new().append(true).open(&file).and_then(|mut f| f.write_all(b"x"))),
        "truncate": done(OpenOptions::new().write(true).truncate(true).open(&file)),
        "mkdir": done(fs::create_dir(root.join("dir"))),
        "remove": done(fs::remove_file(&file)),
        "rename": done(fs::rename(&file, root.join("moved"))),
        "hard-link": done(fs::hard_link(&file, root.join("hard"))),
        "link": link("file", "soft"),
        "read": read(&file),
    })
}

/// Writes one small file, as an honest handler would.
pub(crate) fn small(root: &Path) -> Result<(), warren_sdk::Error> {
    let path = root.join("small");
    fs::write(&path, [b'x'; 100]).map_err(|error| warren_sdk::io(&path, error))
}

/// Opens what is no file.
pub(crate) fn open() -> Value {
    let root = warren_sdk::root();
    json!({ "fifo": read(&root.join("fifo")), "file": read(&root.join("file")) })
}

pub(crate) fn empty(root: &Path) {
    for entry in fs::read_dir(root).into_iter().flatten().flatten() {
        let _ = fs::remove_file(entry.path());
    }
}

fn read(path: &Path) -> Value {
    let mut text = String::new();
    match File::open(path).and_then(|mut file| file.read_to_string(&mut text)) {
        Ok(_) => Value::String(text),
        Err(error) => json!({ "error": error.kind().to_string() }),
    }
}

fn done<T>(result: std::io::Result<T>) -> Value {
    match result {
        Ok(_) => Value::Bool(true),
        Err(error) => json!({ "error": error.kind().to_string() }),
    }
}

#[cfg(target_os = "wasi")]
#[expect(unsafe_code, reason = "a symlink can be made no other way")]
fn link(target: &str, name: &str) -> Value {
    // std has this only as an unstable extension; wasi-libc has it.
    unsafe extern "C" {
        fn symlink(target: *const std::ffi::c_char, name: *const std::ffi::c_char) -> i32;
    }
    let (Ok(target), Ok(name)) = (
        std::ffi::CString::new(target),
        std::ffi::CString::new(format!("/{name}")),
    ) else {
        return Value::Null;
    };
    // SAFETY: both are C strings that outlive the call.
    let made = unsafe { symlink(target.as_ptr(), name.as_ptr()) };
    match made {
        0 => Value::Bool(true),
        _ => json!({ "error": std::io::Error::last_os_error().kind().to_string() }),
    }
}

#[cfg(not(target_os = "wasi"))]
fn link(target: &str, name: &str) -> Value {
    let _ = (target, name);
    Value::Null
}
