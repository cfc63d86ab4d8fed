//! Ends the connections of an operation when its time is up or its caller gave up, whatever
//! libgit2, libssh2 or openssl is waiting for.

use std::net::{Shutdown, TcpStream};
use std::sync::{Arc, Condvar, Mutex, MutexGuard, PoisonError};
use std::thread::JoinHandle;
use std::time::{Duration, Instant};

use warren_repo::{Bounds, RepoError};

/// How long a cancelled operation may go on.
const CANCEL_PAUSE: Duration = Duration::from_millis(50);

/// Why the connections were ended.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Fired {
    Deadline,
    Cancelled,
}

#[derive(Debug, Default)]
struct State {
    open: Vec<TcpStream>,
    fired: Option<Fired>,
    done: bool,
}

#[derive(Debug)]
struct Shared {
    state: Mutex<State>,
    changed: Condvar,
}

/// A thread that watches one operation; ends with it.
#[derive(Debug)]
pub(super) struct Watch {
    shared: Arc<Shared>,
    thread: Option<JoinHandle<()>>,
}

impl Shared {
    fn lock(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Watch {
    pub(super) fn start(bounds: &Bounds) -> Self {
        let bounds = bounds.clone();
        let shared = Arc::new(Shared {
            state: Mutex::default(),
            changed: Condvar::new(),
        });
        let watched = Arc::clone(&shared);
        let thread = std::thread::spawn(move || watch(&watched, &bounds));
        Self {
            shared,
            thread: Some(thread),
        }
    }

    /// From now on also ends this connection; at once when the time is up already.
    pub(super) fn guard(&self, stream: TcpStream) {
        let mut state = self.shared.lock();
        if state.fired.is_some() {
            // It may be closed already.
            drop(stream.shutdown(Shutdown::Both));
        }
        state.open.push(stream);
    }

    pub(super) fn fired(&self) -> Option<Fired> {
        self.shared.lock().fired
    }
}

fn watch(shared: &Shared, bounds: &Bounds) {
    let mut state = shared.lock();
    while !state.done {
        let fired = match bounds.check() {
            Ok(()) => None,
            Err(RepoError::Cancelled) => Some(Fired::Cancelled),
            Err(_) => Some(Fired::Deadline),
        };
        if fired.is_some() {
            state.fired = fired;
            for stream in state.open.drain(..) {
                // It may be closed already.
                drop(stream.shutdown(Shutdown::Both));
            }
            return;
        }
        let left = bounds
            .deadline
            .map(|deadline| deadline.saturating_duration_since(Instant::now()));
        let pause = left.map_or(CANCEL_PAUSE, |left| CANCEL_PAUSE.min(left));
        state = match shared.changed.wait_timeout(state, pause) {
            Ok((state, _)) => state,
            Err(poisoned) => poisoned.into_inner().0,
        };
    }
}

impl Drop for Watch {
    fn drop(&mut self) {
        self.shared.lock().done = true;
        self.shared.changed.notify_all();
        if let Some(thread) = self.thread.take() {
            // It cannot panic; and there is nothing left to tell anyone.
            drop(thread.join());
        }
    }
}
