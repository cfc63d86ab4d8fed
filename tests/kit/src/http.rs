//! Git over smart HTTP: `git http-backend` behind a small server that can be told to misbehave.

use std::collections::HashMap;
use std::io::{self, BufReader, Read, Write};
use std::net::{Ipv4Addr, Shutdown, SocketAddr, TcpListener, TcpStream};
use std::path::PathBuf;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::sync::{Arc, Condvar, Mutex, MutexGuard, PoisonError};
use std::thread::JoinHandle;
use std::time::Duration;

use base64::Engine;

use crate::cgi;
use crate::wire::{Body, Head, read_head};

/// How the server misbehaves.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Fault {
    /// Accepts the request and never answers.
    NoAnswer,
    /// Sends the headers of an answer and nothing more.
    StallAfterHeaders,
    /// Sends the headers of an answer, then a byte now and then, for ever.
    Drip,
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
            backend: cgi::backend(),
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
            cgi::kill_group(*group);
        }
        let threads = std::mem::take(&mut *locked(&self.state.threads));
        for thread in threads {
            drop(thread.join());
        }
    }
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
    let status = match &fault {
        Some(Fault::NoAnswer | Fault::StallAfterHeaders | Fault::Drip | Fault::StallInBody(_)) => {
            return hang(state, &head, &mut body, &mut output, fault.as_ref());
        }
        Some(Fault::Status(status)) => Some((*status, String::new())),
        Some(Fault::Redirect(base)) => {
            let location = format!("Location: {base}{}?{}\r\n", head.path, head.query);
            Some((301, location))
        }
        _ if !authorized => Some((401, "WWW-Authenticate: Basic realm=\"test\"\r\n".to_owned())),
        _ => None,
    };
    if let Some((status, extra)) = status {
        io::copy(&mut body, &mut io::sink())?;
        return write!(
            output,
            "HTTP/1.1 {status} Status\r\n{extra}Content-Length: 0\r\nConnection: close\r\n\r\n"
        );
    }
    let cut = match fault {
        Some(Fault::Cut(bytes)) => Some(bytes),
        _ => None,
    };
    run_backend(state, id, &head, &mut body, &mut output, cut)
}

/// Does as much as the fault says, then nothing until the server stops.
fn hang(
    state: &State,
    head: &Head,
    body: &mut Body<'_>,
    output: &mut TcpStream,
    fault: Option<&Fault>,
) -> io::Result<()> {
    match fault {
        Some(Fault::StallInBody(bytes)) => {
            io::copy(&mut body.take(*bytes), &mut io::sink())?;
        }
        Some(Fault::StallAfterHeaders | Fault::Drip) => {
            let kind = if head.path.ends_with("info/refs") {
                head.query.replace("service=", "") + "-advertisement"
            } else {
                head.path.rsplit('/').next().unwrap_or_default().to_owned() + "-result"
            };
            write!(
                output,
                "HTTP/1.1 200 OK\r\nContent-Type: application/x-{kind}\r\nContent-Length: 100000\r\n\r\n"
            )?;
        }
        _ => {}
    }
    while fault == Some(&Fault::Drip) && !state.stopped.load(Ordering::SeqCst) {
        // A packet of 65,519 bytes that takes its time.
        output.write_all(b"f")?;
        std::thread::sleep(Duration::from_millis(20));
    }
    stall(state);
    Ok(())
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
    let mut child = cgi::spawn(&state.backend, &state.root, head)?;
    if let Some(open) = locked(&state.open).get_mut(&id) {
        open.1 = Some(child.id());
    }
    if state.stopped.load(Ordering::SeqCst) {
        cgi::kill_group(Some(child.id()));
    }
    let result = cgi::relay(&mut child, body, output, cut);
    if result.is_err() {
        cgi::kill_group(Some(child.id()));
    }
    // After the wait its number may be another's.
    if let Some(open) = locked(&state.open).get_mut(&id) {
        open.1 = None;
    }
    child.wait()?;
    result
}
