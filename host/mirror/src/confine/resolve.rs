//! Addresses of a host, asked for by one thread and looked up by another.

use std::net::{IpAddr, SocketAddr, ToSocketAddrs};
use std::sync::mpsc::{self, Receiver, Sender};
use std::time::Instant;

use crate::remote_url::RemoteUrl;

type Answer = Option<Vec<SocketAddr>>;

/// Asks for the addresses of the one host that an operation is about.
#[derive(Debug, Clone)]
pub(crate) struct Resolver(Sender<Sender<Answer>>);

/// Answers.
#[derive(Debug)]
pub(super) struct Answers(Receiver<Sender<Answer>>);

pub(super) fn pair() -> (Resolver, Answers) {
    let (asks, asked) = mpsc::channel();
    (Resolver(asks), Answers(asked))
}

impl Resolver {
    /// The addresses; none: there are none, or nobody knew until then.
    pub(crate) fn resolve(&self, until: Instant) -> Answer {
        let (answer, answered) = mpsc::channel();
        self.0.send(answer).ok()?;
        let left = until.saturating_duration_since(Instant::now());
        answered.recv_timeout(left).ok().flatten()
    }
}

impl Answers {
    /// Answers until nobody can ask any more.
    pub(super) fn serve(self, url: Option<&RemoteUrl>) {
        while let Ok(answer) = self.0.recv() {
            let Some(url) = url else {
                continue;
            };
            look_up(url, answer);
        }
    }
}

/// The system's resolver knows no deadline, so it gets a thread of its own, which nobody waits for.
fn look_up(url: &RemoteUrl, answer: Sender<Answer>) {
    let host = url.host_text();
    let host = host
        .trim_start_matches('[')
        .trim_end_matches(']')
        .to_owned();
    let port = url.port;
    // Whoever asked may have given up; then nobody wants the answer.
    if let Ok(address) = host.parse::<IpAddr>() {
        drop(answer.send(Some(vec![SocketAddr::new(address, port)])));
        return;
    }
    std::thread::spawn(move || {
        let found = (host.as_str(), port).to_socket_addrs().ok();
        let found = found.map(Iterator::collect::<Vec<_>>);
        drop(answer.send(found.filter(|addresses| !addresses.is_empty())));
    });
}
