//! Git over smart HTTP: `git http-backend` behind a small server that can be told to misbehave.

use std::collections::HashMap;
use std::io::{self, BufRead, BufReader, Read, Write};
use std::net::{Ipv4Addr, Shutdown, SocketAddr, TcpListener, TcpStream};
use std::os::unix::process::CommandExt;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::sync::{Arc, Condvar, Mutex, MutexGuard, PoisonError};
use std::thread::JoinHandle;

use base64::Engine;

use crate::repo::clean;
use crate::wire::{Body, Head, read_head};

/// How the server misbehaves.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Fault {
    /// Accepts the request and never answers.
    NoAnswer,
    /// Sends the headers of an answer and nothing more.
    StallAfterHeaders,
    /// Reads this many bytes of a request's body and nothing more, and never answers.
    StallInBody(u64),
    /// Answers with a status code and an empty body.
    Status(u16),
    /// Answers 301 to this base, with the path and query of the request behind it.
    Redirect(String),
    /// Sends this many bytes of the answer's body and closes.
    Cut(u64),
}

/// What the server saw of one request.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Seen {
    /// Method.
    pub method: String,
    /// Path, without the query.
    pub path: String,
    /// Query, without `?`.
    pub query: String,
    /// `Authorization` as it was sent.
    pub authorization: Option<String>,
}

#[derive(Debug, Default)]
struct Rules {
    /// Path prefix, and the `Authorization` that it wants.
    auth: Vec<(String, String)>,
    /// Text that path or query must hold, and what then goes wrong.
    faults: Vec<(String, Fault)>,
    seen: Vec<Seen>,
}

#[derive(Debug)]
struct State {
    root: PathBuf,
    backend: PathBuf,
    rules: Mutex<Rules>,
    stopped: AtomicBool,
    /// Signalled when `stopped` is set, for requests that stall.
    stop: (Mutex<()>, Condvar),
    next: AtomicU64,
    /// What blocks a connection's thread, to be ended on drop.
    open: Mutex<HashMap<u64, (TcpStream, Option<u32>)>>,
    threads: Mutex<Vec<JoinHandle<()>>>,
}

/// A server on a loopback port over a directory of bare repositories. Anyone may fetch and push
/// unless [`GitHttp::require`] says otherwise. Stops when dropped.
#[derive(Debug)]
pub struct GitHttp {
    address: SocketAddr,
    state: Arc<State>,
    accept: Option<JoinHandle<()>>,
}

fn locked<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}

impl GitHttp {
    /// Starts a server over the repositories in `root`.
    ///
    /// # Panics
    /// When the git program or its `http-backend` is missing, or no port is free.
    pub fn serve(root: impl Into<PathBuf>) -> Self {
        let listener = TcpListener::bind((Ipv4Addr::LOCALHOST, 0)).expect("a free port");
        let address = listener.local_addr().expect("an address");
        let state = Arc::new(State {
            root: root.into(),
            backend: backend(),
            rules: Mutex::default(),
            stopped: AtomicBool::new(false),
            stop: Default::default(),
            next: AtomicU64::new(0),
            open: Mutex::default(),
            threads: Mutex::default(),
        });
        let accepting = Arc::clone(&state);
        let accept = std::thread::spawn(move || accept(&listener, &accepting));
        Self {
            address,
            state,
            accept: Some(accept),
        }
    }

    /// Port on loopback.
    pub fn port(&self) -> u16 {
        self.address.port()
    }

    /// URL of a repository, by its path below the root.
    pub fn url(&self, repo: &str) -> String {
        format!("http://{}/{repo}", self.address)
    }

    /// From now on paths with this prefix (`/private/` say) want basic authentication.
    pub fn require(&self, prefix: &str, user: &str, password: &str) {
        let token = base64::engine::general_purpose::STANDARD.encode(format!("{user}:{password}"));
        let rule = (prefix.to_owned(), format!("Basic {token}"));
        locked(&self.state.rules).auth.push(rule);
    }

    /// From now on requests whose `path?query` holds `what` go wrong. The latest rule wins.
    pub fn misbehave(&self, what: &str, fault: Fault) {
        let rule = (what.to_owned(), fault);
        locked(&self.state.rules).faults.insert(0, rule);
    }

    /// From now on nothing goes wrong.
    pub fn behave(&self) {
        locked(&self.state.rules).faults.clear();
    }

    /// The requests so far.
    pub fn seen(&self) -> Vec<Seen> {
        locked(&self.state.rules).seen.clone()
    }

    /// Forgets the requests so far.
    pub fn forget(&self) {
        locked(&self.state.rules).seen.clear();
    }
}

impl Drop for GitHttp {
    fn drop(&mut self) {
        self.state.stopped.store(true, Ordering::SeqCst);
        {
            let _guard = locked(&self.state.stop.0);
            self.state.stop.1.notify_all();
        }
        // Wakes `accept`; when it cannot connect, there is nobody to wake.
        drop(TcpStream::connect(self.address));
        if let Some(accept) = self.accept.take() {
            drop(accept.join());
        }
        for (stream, group) in locked(&self.state.open).values() {
            drop(stream.shutdown(Shutdown::Both));
            kill_group(*group);
        }
        let threads = std::mem::take(&mut *locked(&self.state.threads));
        for thread in threads {
            drop(thread.join());
        }
    }
}

/// Kills a child and its own children: each backend leads a process group of its own.
fn kill_group(group: Option<u32>) {
    let pid = group
        .and_then(|id| i32::try_from(id).ok())
        .and_then(rustix::process::Pid::from_raw);
    if let Some(pid) = pid {
        // It may have ended already.
        let _ = rustix::process::kill_process_group(pid, rustix::process::Signal::KILL);
    }
}

fn backend() -> PathBuf {
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

fn accept(listener: &TcpListener, state: &Arc<State>) {
    for stream in listener.incoming() {
        if state.stopped.load(Ordering::SeqCst) {
            return;
        }
        let Ok(stream) = stream else { continue };
        let Ok(twin) = stream.try_clone() else {
            continue;
        };
        let id = state.next.fetch_add(1, Ordering::Relaxed);
        locked(&state.open).insert(id, (twin, None));
        let serving = Arc::clone(state);
        let thread = std::thread::spawn(move || {
            // A client that goes away in the middle is what some tests are about.
            drop(serve(&serving, id, stream));
            if let Some((stream, _)) = locked(&serving.open).remove(&id) {
                drop(stream.shutdown(Shutdown::Both));
            }
        });
        locked(&state.threads).push(thread);
    }
}

/// Serves one request; every answer closes the connection.
fn serve(state: &State, id: u64, stream: TcpStream) -> io::Result<()> {
    let mut output = stream.try_clone()?;
    let mut input = BufReader::new(stream);
    let Some(head) = read_head(&mut input)? else {
        return Ok(());
    };
    let (fault, authorized) = judge(state, &head);
    if head.header("expect").is_some() {
        output.write_all(b"HTTP/1.1 100 Continue\r\n\r\n")?;
    }
    let mut body = Body::new(&head, &mut input);
    match fault {
        Some(Fault::NoAnswer) => {
            stall(state);
            return Ok(());
        }
        Some(Fault::StallAfterHeaders) => {
            let kind = if head.path.ends_with("info/refs") {
                head.query.replace("service=", "") + "-advertisement"
            } else {
                head.path.rsplit('/').next().unwrap_or_default().to_owned() + "-result"
            };
            write!(
                output,
                "HTTP/1.1 200 OK\r\nContent-Type: application/x-{kind}\r\nContent-Length: 100000\r\n\r\n"
            )?;
            stall(state);
            return Ok(());
        }
        Some(Fault::StallInBody(bytes)) => {
            io::copy(&mut body.take(bytes), &mut io::sink())?;
            stall(state);
            return Ok(());
        }
        _ => {}
    }
    let plain = |output: &mut TcpStream, body: &mut Body<'_>, status: u16, extra: &str| {
        io::copy(body, &mut io::sink())?;
        write!(
            output,
            "HTTP/1.1 {status} Status\r\n{extra}Content-Length: 0\r\nConnection: close\r\n\r\n"
        )
    };
    match fault {
        Some(Fault::Status(status)) => return plain(&mut output, &mut body, status, ""),
        Some(Fault::Redirect(base)) => {
            let location = format!("Location: {base}{}?{}\r\n", head.path, head.query);
            return plain(&mut output, &mut body, 301, &location);
        }
        _ => {}
    }
    if !authorized {
        let challenge = "WWW-Authenticate: Basic realm=\"test\"\r\n";
        return plain(&mut output, &mut body, 401, challenge);
    }
    let cut = match fault {
        Some(Fault::Cut(bytes)) => Some(bytes),
        _ => None,
    };
    run_backend(state, id, &head, &mut body, &mut output, cut)
}

/// Logs a request; says what goes wrong with it and whether it may go on.
fn judge(state: &State, head: &Head) -> (Option<Fault>, bool) {
    let target = format!("{}?{}", head.path, head.query);
    let authorization = head.header("authorization").map(str::to_owned);
    let mut rules = locked(&state.rules);
    let fault = rules
        .faults
        .iter()
        .find(|(what, _)| target.contains(what))
        .map(|(_, fault)| fault.clone());
    let authorized = rules
        .auth
        .iter()
        .filter(|(prefix, _)| head.path.starts_with(prefix))
        .all(|(_, wanted)| authorization.as_ref() == Some(wanted));
    rules.seen.push(Seen {
        method: head.method.clone(),
        path: head.path.clone(),
        query: head.query.clone(),
        authorization,
    });
    (fault, authorized)
}

fn stall(state: &State) {
    let mut guard = locked(&state.stop.0);
    while !state.stopped.load(Ordering::SeqCst) {
        guard = state
            .stop
            .1
            .wait(guard)
            .unwrap_or_else(PoisonError::into_inner);
    }
}

fn run_backend(
    state: &State,
    id: u64,
    head: &Head,
    body: &mut Body<'_>,
    output: &mut TcpStream,
    cut: Option<u64>,
) -> io::Result<()> {
    let mut child = spawn_backend(state, head)?;
    if let Some(open) = locked(&state.open).get_mut(&id) {
        open.1 = Some(child.id());
    }
    if state.stopped.load(Ordering::SeqCst) {
        kill_group(Some(child.id()));
    }
    let result = relay(&mut child, body, output, cut);
    if result.is_err() {
        kill_group(Some(child.id()));
    }
    // After the wait its number may be another's.
    if let Some(open) = locked(&state.open).get_mut(&id) {
        open.1 = None;
    }
    child.wait()?;
    result
}

fn spawn_backend(state: &State, head: &Head) -> io::Result<Child> {
    let mut command = Command::new(&state.backend);
    clean(&mut command)
        .env("GIT_PROJECT_ROOT", &state.root)
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

fn relay(
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
