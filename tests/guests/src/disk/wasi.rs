//! WASI itself: what std does not reach, and every way on its own.

use serde_json::{Value, json};
use wasip2::filesystem::preopens::get_directories;
use wasip2::filesystem::types::{
    Descriptor, DescriptorFlags, ErrorCode, NewTimestamp, OpenFlags, PathFlags,
    filesystem_error_code,
};
use wasip2::io::streams::{OutputStream, StreamError};

const NONE: PathFlags = PathFlags::empty();

pub(super) fn play(name: &str, how: &str) -> Value {
    match name {
        "disk-fill" => fill(how),
        "disk-inodes" => inodes(how),
        "disk-held" => held(),
        "disk-back" => back(),
        "disk-links" => links(),
        "disk-read-only" => read_only(),
        "disk-streams" => streams(),
        _ => Value::Null,
    }
}

fn root() -> Descriptor {
    let (root, _) = get_directories().remove(0);
    root
}

fn name(error: ErrorCode) -> String {
    error.name().to_owned()
}

fn of(error: StreamError) -> ErrorCode {
    match error {
        StreamError::LastOperationFailed(error) => {
            filesystem_error_code(&error).unwrap_or(ErrorCode::Io)
        }
        StreamError::Closed => ErrorCode::Pipe,
    }
}

fn said<T>(result: Result<T, ErrorCode>) -> Value {
    match result {
        Ok(_) => Value::Bool(true),
        Err(error) => json!({ "error": name(error) }),
    }
}

fn open(root: &Descriptor, path: &str, flags: OpenFlags) -> Result<Descriptor, ErrorCode> {
    let rights = DescriptorFlags::READ | DescriptorFlags::WRITE;
    root.open_at(NONE, path, flags, rights)
}

/// Writes in one way until that is refused; at most 1 GiB.
fn fill(how: &str) -> Value {
    let root = root();
    let file = match open(&root, "fill", OpenFlags::CREATE) {
        Ok(file) => file,
        Err(error) => return json!({ "written": 0, "error": name(error) }),
    };
    let block = vec![7; 4096];
    let mut written = 0;
    let ended = loop {
        let step = match how {
            "write" => file.write(&block, written),
            "sparse" => file.write(&block[..1], written * 1024).map(|_| 4096),
            "set-size" => file.set_size((written + 4096) * 1024).map(|()| 4096),
            "many" => open(&root, &format!("f{written}"), OpenFlags::CREATE)
                .and_then(|file| file.write(&block, 0)),
            _ => stream(&root, &file, how, written, &block),
        };
        match step {
            Ok(bytes) => written += bytes,
            Err(error) => break json!({ "written": written, "error": name(error) }),
        }
        if written > 1 << 30 {
            break json!({ "written": written });
        }
    };
    drop(file);
    ended
}

fn stream(
    root: &Descriptor,
    file: &Descriptor,
    how: &str,
    at: u64,
    block: &[u8],
) -> Result<u64, ErrorCode> {
    let out = if how.starts_with("append") {
        file.append_via_stream()?
    } else {
        file.write_via_stream(at)?
    };
    push(root, &out, how, block).map_err(of)?;
    Ok(block.len() as u64)
}

fn push(root: &Descriptor, out: &OutputStream, how: &str, block: &[u8]) -> Result<(), StreamError> {
    match how {
        "stream-zeroes" => {
            out.check_write()?;
            out.write_zeroes(block.len() as u64)?;
            out.blocking_flush()
        }
        "append-zeroes" => out.blocking_write_zeroes_and_flush(block.len() as u64),
        "append-splice" | "stream-splice" => {
            let source = root
                .open_at(NONE, "source", OpenFlags::empty(), DescriptorFlags::READ)
                .and_then(|file| file.read_via_stream(0));
            let Ok(source) = source else {
                return Err(StreamError::Closed);
            };
            out.blocking_splice(&source, block.len() as u64).map(drop)
        }
        "append-plain" | "stream-plain" => {
            out.check_write()?;
            out.write(block)?;
            out.blocking_flush()
        }
        _ => out.blocking_write_and_flush(block),
    }
}

/// Makes entries of one kind until that is refused; at most 100,000.
fn inodes(how: &str) -> Value {
    let root = root();
    for n in 0..100_000 {
        let path = format!("n{n}");
        let made = match how {
            "dir" => root.create_directory_at(&path),
            "symlink" => root.symlink_at("fill", &path),
            "tree" => root.create_directory_at(&"d/".repeat(n + 1)),
            // Two names of one file are one inode.
            "link" => root.link_at(NONE, "one", &root, &path),
            _ => open(&root, &path, OpenFlags::CREATE | OpenFlags::EXCLUSIVE).map(drop),
        };
        if let Err(error) = made {
            return json!({ "made": n, "error": name(error) });
        }
    }
    json!({ "made": 100_000 })
}

const MIB: u64 = 1 << 20;

fn grow(file: &Descriptor, bytes: u64) -> Result<(), ErrorCode> {
    let block = vec![7; 64 * 1024];
    for at in (0..bytes).step_by(block.len()) {
        file.write(&block, at)?;
    }
    Ok(())
}

/// A file without a name takes room as long as it is open. The test gives 4 MiB.
fn held() -> Value {
    let root = root();
    let tries = || {
        let file = open(&root, "held", OpenFlags::CREATE)?;
        grow(&file, 3 * MIB)?;
        root.unlink_file_at("held")?;
        Ok(file)
    };
    let file = match tries() {
        Ok(file) => file,
        Err(error) => return json!({ "setup": name(error) }),
    };
    let again = |path: &str| {
        let file = open(&root, path, OpenFlags::CREATE)?;
        grow(&file, 3 * MIB)
    };
    let while_open = said(again("more"));
    let stream = file.read_via_stream(0);
    drop(file);
    let while_streamed = said(again("more"));
    drop(stream);
    let cut = open(&root, "more", OpenFlags::TRUNCATE).map(drop);
    json!({
        "while-open": while_open,
        "while-streamed": while_streamed,
        "cut": said(cut),
        "after": said(again("more")),
    })
}

/// What is removed, cut or replaced can be used again. The test gives 4 MiB.
fn back() -> Value {
    let root = root();
    let put = |path: &str| {
        let file = open(&root, path, OpenFlags::CREATE)?;
        grow(&file, 3 * MIB)
    };
    let mut tries = Vec::new();
    let mut note = |what: &str, result: Result<(), ErrorCode>| {
        tries.push(json!([what, said(result)]));
    };
    note("first", put("a"));
    note("second", put("b"));
    note(
        "unlink",
        root.unlink_file_at("b")
            .and_then(|()| root.unlink_file_at("a")),
    );
    note("after unlink", put("a"));
    note("truncate", open(&root, "a", OpenFlags::TRUNCATE).map(drop));
    note("after truncate", put("b"));
    note(
        "set-size",
        open(&root, "b", OpenFlags::empty()).and_then(|file| file.set_size(0)),
    );
    note("after set-size", put("a"));
    note("rename", root.rename_at("b", &root, "a"));
    note("after rename", put("b"));
    note("in place", put("b"));
    note("mkdir", root.create_directory_at("d"));
    note("rmdir", root.remove_directory_at("d"));
    json!({ "tried": tries })
}

/// Links that point out, at once or after something is moved.
fn links() -> Value {
    let root = root();
    let mut tried = Vec::new();
    let mut note = |what: String, result: Result<(), ErrorCode>| {
        tried.push(json!([what, said(result)]));
    };
    for path in ["d", "d/e", "d/e/f"] {
        note(format!("mkdir {path}"), root.create_directory_at(path));
    }
    for (target, path) in [
        ("/etc/passwd", "bad0"),
        ("..", "bad1"),
        ("../outside", "bad2"),
        ("d/../../outside", "bad3"),
        ("../../outside", "d/bad4"),
        ("e/../../../outside", "d/bad5"),
        ("./../outside", "bad6"),
        ("/", "d/e/f/bad7"),
        ("../../../../outside", "d/e/f/bad8"),
        // Through a link to a deeper directory, its `..` are fewer than they look.
        ("d/e/f", "deep"),
        ("../../../outside", "deep/fine9"),
        ("../../../../outside", "deep/bad10"),
        // Through a link to the root they are more.
        ("../..", "d/e/up"),
        ("../outside", "d/e/up/bad11"),
    ] {
        note(format!("{target} at {path}"), root.symlink_at(target, path));
    }
    // Fine where they are, and nowhere nearer to the root.
    note(
        "sibling".into(),
        root.symlink_at("../../../d", "d/e/f/sibling"),
    );
    note(
        "move link".into(),
        root.rename_at("d/e/f/sibling", &root, "moved"),
    );
    note(
        "hard link".into(),
        root.link_at(NONE, "d/e/f/sibling", &root, "hard"),
    );
    note(
        "move dir".into(),
        root.rename_at("d/e/f", &root, "moved-dir"),
    );
    note(
        "move above".into(),
        root.rename_at("d/e", &root, "moved-above"),
    );
    if let Ok(inner) = root.open_at(
        NONE,
        "d/e",
        OpenFlags::DIRECTORY,
        DescriptorFlags::MUTATE_DIRECTORY,
    ) {
        note(
            "by handle".into(),
            inner.symlink_at("../../../outside", "bad12"),
        );
        note(
            "move by handle".into(),
            inner.rename_at("f", &root, "moved-dir"),
        );
    }
    note(
        "move link deeper".into(),
        root.rename_at("deep", &root, "d/e/deep"),
    );
    json!({ "tried": tried })
}

/// Every way to change something, through WASI itself.
fn read_only() -> Value {
    let root = root();
    let at = |flags, rights| root.open_at(NONE, "file", flags, rights);
    let read = at(OpenFlags::empty(), DescriptorFlags::READ);
    let dir = root.open_at(NONE, "dir", OpenFlags::DIRECTORY, DescriptorFlags::READ);
    let mut tried = vec![
        (
            "truncate only",
            said(at(OpenFlags::TRUNCATE, DescriptorFlags::empty())),
        ),
        (
            "truncate",
            said(at(OpenFlags::TRUNCATE, DescriptorFlags::READ)),
        ),
        (
            "create only",
            said(root.open_at(NONE, "new", OpenFlags::CREATE, DescriptorFlags::empty())),
        ),
        (
            "write",
            said(at(OpenFlags::empty(), DescriptorFlags::WRITE)),
        ),
        ("link", said(root.link_at(NONE, "file", &root, "new"))),
        ("rename", said(root.rename_at("file", &root, "new"))),
        ("symlink", said(root.symlink_at("file", "new"))),
        ("symlink out", said(root.symlink_at("/etc", "new"))),
        ("mkdir", said(root.create_directory_at("new"))),
        ("rmdir", said(root.remove_directory_at("dir"))),
        ("unlink", said(root.unlink_file_at("file"))),
        (
            "times",
            said(root.set_times_at(NONE, "file", NewTimestamp::Now, NewTimestamp::Now)),
        ),
        (
            "own times",
            said(root.set_times(NewTimestamp::Now, NewTimestamp::Now)),
        ),
    ];
    if let Ok(file) = &read {
        tried.extend([
            ("file write", said(file.write(b"x", 0))),
            ("file size", said(file.set_size(0))),
            (
                "file times",
                said(file.set_times(NewTimestamp::Now, NewTimestamp::Now)),
            ),
            ("file stream", said(file.write_via_stream(0))),
            ("file append", said(file.append_via_stream())),
        ]);
    }
    if let Ok(dir) = &dir {
        tried.extend([
            ("dir mkdir", said(dir.create_directory_at("new"))),
            ("dir link", said(root.link_at(NONE, "file", dir, "new"))),
            ("dir rename", said(root.rename_at("file", dir, "new"))),
        ]);
    }
    json!({ "tried": tried, "read": said(read), "dir": said(dir) })
}

/// Lists the root again and again without letting go.
fn streams() -> Value {
    let root = root();
    let mut open = Vec::new();
    while open.len() < 10_000 {
        match root.read_directory() {
            Ok(stream) => open.push(stream),
            Err(error) => return json!({ "open": open.len(), "error": name(error) }),
        }
    }
    json!({ "open": open.len() })
}
