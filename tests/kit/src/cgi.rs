//! `git http-backend`, run for one request.

use std::io::{self, BufRead, BufReader, Read, Write};
use std::net::TcpStream;
use std::os::unix::process::CommandExt;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};

use crate::repo::clean;
use crate::wire::{Body, Head};

/// Kills a child and its own children: each backend leads a process group of its own.
pub(crate) fn kill_group(group: Option<u32>) {
    let pid = group
        .and_then(|id| i32::try_from(id).ok())
        .and_then(rustix::process::Pid::from_raw);
    if let Some(pid) = pid {
        // It may have ended already.
        let _ = rustix::process::kill_process_group(pid, rustix::process::Signal::KILL);
    }
}

/// Where the program is.
pub(crate) fn backend() -> PathBuf {
    let mut command = Command::new("git");
    let output = clean(&mut command)
        .arg("--exec-path")
        .output()
        .expect("the git program");
    let path = String::from_utf8_lossy(&output.stdout).trim().to_owned();
    [path.as_str(), "/usr/lib/git-core"]
        .iter()
        .map(|dir| Path::new(dir).join("git-http-backend"))
        .find(|path| path.is_file())
        .expect("git-http-backend, which comes with git")
}

/// Starts it for a request, as the leader of a process group of its own.
pub(crate) fn spawn(backend: &Path, root: &Path, head: &Head) -> io::Result<Child> {
    let mut command = Command::new(backend);
    clean(&mut command)
        .env("GIT_PROJECT_ROOT", root)
        .env("GIT_HTTP_EXPORT_ALL", "1")
        .env("REMOTE_USER", "test")
        .env("REMOTE_ADDR", "127.0.0.1")
        .env("REQUEST_METHOD", &head.method)
        .env("PATH_INFO", &head.path)
        .env("QUERY_STRING", &head.query)
        .process_group(0)
        .stdin(Stdio::piped())
        .stdout(Stdio::piped())
        .stderr(Stdio::null());
    for (header, variable) in [
        ("content-type", "CONTENT_TYPE"),
        ("content-length", "CONTENT_LENGTH"),
        ("content-encoding", "HTTP_CONTENT_ENCODING"),
        ("git-protocol", "GIT_PROTOCOL"),
    ] {
        if let Some(value) = head.header(header) {
            command.env(variable, value);
        }
    }
    command.spawn()
}

/// Hands it the request's body and sends its answer, of whose body only `cut` bytes if given.
pub(crate) fn relay(
    child: &mut Child,
    body: &mut Body<'_>,
    output: &mut TcpStream,
    cut: Option<u64>,
) -> io::Result<()> {
    let (Some(mut stdin), Some(stdout)) = (child.stdin.take(), child.stdout.take()) else {
        return Err(io::Error::other("the backend has no pipes"));
    };
    // A backend that refuses early closes its input; what matters is its answer.
    if let Err(error) = io::copy(body, &mut stdin)
        && error.kind() != io::ErrorKind::BrokenPipe
    {
        return Err(error);
    }
    drop(stdin);
    let mut stdout = BufReader::new(stdout);
    let mut status = "200 OK".to_owned();
    let mut headers = String::new();
    loop {
        let mut line = String::new();
        if stdout.read_line(&mut line)? == 0 || line.trim().is_empty() {
            break;
        }
        match line.trim().split_once(": ") {
            Some(("Status", value)) => value.clone_into(&mut status),
            _ => headers.push_str(&format!("{}\r\n", line.trim())),
        }
    }
    write!(
        output,
        "HTTP/1.1 {status}\r\n{headers}Transfer-Encoding: chunked\r\nConnection: close\r\n\r\n"
    )?;
    copy_chunked(&mut stdout, output, cut)
}

fn copy_chunked(from: &mut impl Read, to: &mut TcpStream, mut cut: Option<u64>) -> io::Result<()> {
    let mut buffer = vec![0; 16 * 1024];
    loop {
        let read = from.read(&mut buffer)?;
        if read == 0 {
            return to.write_all(b"0\r\n\r\n");
        }
        let send = cut.map_or(read, |left| read.min(usize::try_from(left).unwrap_or(read)));
        write!(to, "{read:x}\r\n")?;
        to.write_all(&buffer[..send])?;
        if let Some(left) = &mut cut {
            *left -= send as u64;
            if *left == 0 {
                return Err(io::ErrorKind::ConnectionAborted.into());
            }
        }
        to.write_all(b"\r\n")?;
    }
}
