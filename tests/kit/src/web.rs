//! A plain HTTP server whose answers are what a test writes to the socket.

use std::io::{self, BufReader, Read, Write};
use std::net::{Ipv4Addr, Shutdown, SocketAddr, TcpListener, TcpStream};
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Condvar, Mutex, MutexGuard, PoisonError};
use std::thread::JoinHandle;

use crate::wire::{Body, Head, read_head};

/// A request as it arrived.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Asked {
    /// Method.
    pub method: String,
    /// Path and query.
    pub target: String,
    /// Headers in order, their names in lower case.
    pub headers: Vec<(String, String)>,
    /// Bytes of the body.
    pub body_bytes: u64,
}

impl Asked {
    /// The value of a header, by lowercase name.
    pub fn header(&self, name: &str) -> Option<&str> {
        self.headers
            .iter()
            .find(|(key, _)| key == name)
            .map(|(_, value)| value.as_str())
    }
}

type Answer = dyn Fn(&Asked, &mut dyn Write) -> io::Result<()> + Send + Sync;

#[derive(Default)]
struct State {
    seen: Mutex<Vec<Asked>>,
    open: Mutex<Vec<TcpStream>>,
    /// Connections whose thread runs.
    busy: Mutex<usize>,
    idle: Condvar,
    stopped: AtomicBool,
}

/// A server on a loopback port; each answer ends its connection. Stops when dropped.
pub struct WebServer {
    address: SocketAddr,
    state: Arc<State>,
    accept: Option<JoinHandle<()>>,
}

fn locked<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}

impl WebServer {
    /// Starts one. `answer` writes whole answers, or as much of one as it likes: an error ends it, as
    /// does the client.
    ///
    /// # Panics
    /// When no port is free.
    pub fn serve(
        answer: impl Fn(&Asked, &mut dyn Write) -> io::Result<()> + Send + Sync + 'static,
    ) -> Self {
        let listener = TcpListener::bind((Ipv4Addr::LOCALHOST, 0)).expect("a free port");
        let address = listener.local_addr().expect("an address");
        let state = Arc::new(State::default());
        let answer: Arc<Answer> = Arc::new(answer);
        let accepting = Arc::clone(&state);
        let accept = std::thread::spawn(move || accept(&listener, &accepting, &answer));
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

    /// `127.0.0.1:port`.
    pub fn authority(&self) -> String {
        self.address.to_string()
    }

    /// The requests so far.
    pub fn seen(&self) -> Vec<Asked> {
        locked(&self.state.seen).clone()
    }

    /// Waits until no connection is open.
    pub fn wait_idle(&self) {
        let mut busy = locked(&self.state.busy);
        while *busy > 0 {
            busy = self
                .state
                .idle
                .wait(busy)
                .unwrap_or_else(PoisonError::into_inner);
        }
    }
}

impl Drop for WebServer {
    fn drop(&mut self) {
        self.state.stopped.store(true, Ordering::SeqCst);
        // Wakes `accept`; when it cannot connect, there is nobody to wake.
        drop(TcpStream::connect(self.address));
        if let Some(accept) = self.accept.take() {
            drop(accept.join());
        }
        for stream in locked(&self.state.open).iter() {
            drop(stream.shutdown(Shutdown::Both));
        }
        self.wait_idle();
    }
}

fn accept(listener: &TcpListener, state: &Arc<State>, answer: &Arc<Answer>) {
    for stream in listener.incoming() {
        if state.stopped.load(Ordering::SeqCst) {
            return;
        }
        let Ok(stream) = stream else { continue };
        let Ok(twin) = stream.try_clone() else {
            continue;
        };
        locked(&state.open).push(twin);
        *locked(&state.busy) += 1;
        let (state, answer) = (Arc::clone(state), Arc::clone(answer));
        std::thread::spawn(move || {
            // A client that goes away in the middle is what some tests are about.
            drop(serve(&state, &stream, &*answer));
            drop(stream.shutdown(Shutdown::Both));
            *locked(&state.busy) -= 1;
            state.idle.notify_all();
        });
    }
}

fn serve(state: &State, stream: &TcpStream, answer: &Answer) -> io::Result<()> {
    let mut input = BufReader::new(stream.try_clone()?);
    let Some(head) = read_head(&mut input)? else {
        return Ok(());
    };
    let body_bytes = io::copy(&mut Body::new(&head, &mut input), &mut io::sink())?;
    let asked = asked(head, body_bytes);
    locked(&state.seen).push(asked.clone());
    let mut output = stream.try_clone()?;
    answer(&asked, &mut output)?;
    if asked.target.contains("stall") {
        // Until the client or the server goes.
        input.read_to_end(&mut Vec::new())?;
    }
    Ok(())
}

fn asked(head: Head, body_bytes: u64) -> Asked {
    let target = match head.query.as_str() {
        "" => head.path,
        query => format!("{}?{query}", head.path),
    };
    Asked {
        method: head.method,
        target,
        headers: head.headers,
        body_bytes,
    }
}
