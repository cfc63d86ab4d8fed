//! Servers, a proxy in front of them, and a client that says exactly what it is told to.

use std::net::{IpAddr, Ipv4Addr, SocketAddr};
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use std::sync::{Arc, Mutex};
use std::time::Duration;

use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::{TcpListener, TcpStream};
use tokio::time::timeout;
use warren_model::{Endpoints, Target};

use crate::Connector;
use crate::proxy::{Limits, Outcome, Proxy, Refused, Report, Settings, Sink};

/// Longer than anything here takes.
const PATIENCE: Duration = Duration::from_secs(60);

/// A server that answers every request with the same bytes, and keeps what it was sent.
pub(super) struct Origin {
    pub(super) port: u16,
    seen: Arc<Mutex<Vec<String>>>,
    connections: Arc<AtomicUsize>,
}

impl Origin {
    /// Sends `answer`, then `filler` again and again for as long as somebody reads.
    pub(super) async fn new(answer: &str, filler: &'static str) -> Self {
        let listener = TcpListener::bind((Ipv4Addr::LOCALHOST, 0)).await.unwrap();
        let port = listener.local_addr().unwrap().port();
        let (seen, connections) = (Arc::default(), Arc::default());
        let origin = Self {
            port,
            seen: Arc::clone(&seen),
            connections: Arc::clone(&connections),
        };
        let answer = answer.replace('\n', "\r\n");
        tokio::spawn(async move {
            while let Ok((mut stream, _)) = listener.accept().await {
                connections.fetch_add(1, Ordering::SeqCst);
                let (seen, answer) = (Arc::clone(&seen), answer.clone());
                tokio::spawn(async move {
                    let head = read_head(&mut stream).await;
                    seen.lock().unwrap().push(head);
                    let mut sent = stream.write_all(answer.as_bytes()).await;
                    while !filler.is_empty() && sent.is_ok() {
                        sent = stream.write_all(filler.as_bytes()).await;
                    }
                });
            }
        });
        origin
    }

    pub(super) async fn ok() -> Self {
        Self::new("HTTP/1.1 200 OK\nContent-Length: 2\n\nhi", "").await
    }

    /// Heads of the requests, line ends as `\n`.
    pub(super) fn seen(&self) -> Vec<String> {
        self.seen.lock().unwrap().clone()
    }

    pub(super) fn connections(&self) -> usize {
        self.connections.load(Ordering::SeqCst)
    }
}

/// Gives back what it gets.
pub(super) async fn echo() -> u16 {
    let listener = TcpListener::bind((Ipv4Addr::LOCALHOST, 0)).await.unwrap();
    let port = listener.local_addr().unwrap().port();
    tokio::spawn(async move {
        while let Ok((mut stream, _)) = listener.accept().await {
            tokio::spawn(async move {
                let (mut read, mut write) = stream.split();
                tokio::io::copy(&mut read, &mut write).await
            });
        }
    });
    port
}

async fn read_head(stream: &mut TcpStream) -> String {
    let mut head = Vec::new();
    while !head.ends_with(b"\r\n\r\n") {
        match stream.read_u8().await {
            Ok(byte) => head.push(byte),
            Err(_) => break,
        }
    }
    String::from_utf8_lossy(&head).replace("\r\n", "\n")
}

/// Keeps what it is told.
#[derive(Default)]
pub(super) struct Notes {
    opened: Mutex<Vec<String>>,
    reports: Mutex<Vec<Report>>,
    pub(super) full: AtomicBool,
}

impl Notes {
    pub(super) fn count(&self) -> usize {
        self.reports.lock().unwrap().len()
    }
}

impl Sink for Notes {
    fn opening(&self, target: &Target) -> Result<(), Refused> {
        if self.full.load(Ordering::SeqCst) {
            return Err(Refused);
        }
        self.opened.lock().unwrap().push(target.to_string());
        Ok(())
    }

    fn ended(&self, report: &Report) {
        self.reports.lock().unwrap().push(report.clone());
    }
}

/// Answers with these addresses, one list a question, the last for ever.
pub(super) struct Names {
    answers: Vec<Vec<IpAddr>>,
    asked: AtomicUsize,
}

impl Names {
    pub(super) fn new(answers: &[&[&str]]) -> Arc<Self> {
        let parse = |list: &&[&str]| list.iter().map(|text| text.parse().unwrap()).collect();
        Arc::new(Self {
            answers: answers.iter().map(parse).collect(),
            asked: AtomicUsize::new(0),
        })
    }

    pub(super) fn asked(&self) -> usize {
        self.asked.load(Ordering::SeqCst)
    }

    fn connector(self: Arc<Self>) -> Connector {
        Connector::with_lookup(Arc::new(move |_| {
            let at = self.asked.fetch_add(1, Ordering::SeqCst);
            Ok(self.answers[at.min(self.answers.len() - 1)].clone())
        }))
    }
}

/// A proxy, and who is told.
pub(super) struct World {
    pub(super) proxy: Proxy,
    address: SocketAddr,
    pub(super) notes: Arc<Notes>,
}

impl World {
    pub(super) fn new(granted: &[String], limits: Limits) -> Self {
        Self::with_names(granted, limits, Names::new(&[&[]]))
    }

    pub(super) fn with_names(granted: &[String], limits: Limits, names: Arc<Names>) -> Self {
        let listener = std::net::TcpListener::bind((Ipv4Addr::LOCALHOST, 0)).unwrap();
        let address = listener.local_addr().unwrap();
        let notes = Arc::new(Notes::default());
        let granted = granted.iter().map(|text| text.parse().unwrap()).collect();
        let settings = Settings {
            endpoints: Endpoints::new(granted),
            limits,
            connector: names.connector(),
            sink: Arc::<Notes>::clone(&notes),
        };
        Self {
            proxy: Proxy::serve(listener, settings).unwrap(),
            address,
            notes,
        }
    }

    pub(super) async fn connect(&self) -> TcpStream {
        TcpStream::connect(self.address).await.unwrap()
    }

    /// Sends this, with `\n` for line ends, and reads until the proxy hangs up.
    pub(super) async fn say(&self, text: &str) -> String {
        self.say_raw(text.replace('\n', "\r\n").as_bytes()).await
    }

    pub(super) async fn say_raw(&self, bytes: &[u8]) -> String {
        let mut stream = self.connect().await;
        let mut answer = Vec::new();
        let talk = async {
            // A proxy that has heard enough hangs up in the middle.
            let _ = stream.write_all(bytes).await;
            let mut part = [0; 4096];
            while let Ok(read @ 1..) = stream.read(&mut part).await {
                answer.extend_from_slice(&part[..read]);
            }
        };
        timeout(PATIENCE, talk).await.expect("the proxy hangs up");
        String::from_utf8_lossy(&answer).replace("\r\n", "\n")
    }

    pub(super) async fn get(&self, url: &str) -> String {
        self.say(&format!(
            "GET {url} HTTP/1.1\nHost: h\nConnection: close\n\n"
        ))
        .await
    }

    /// A tunnel whose `CONNECT` was answered with 200.
    pub(super) async fn tunnel(&self, authority: &str) -> TcpStream {
        let mut stream = self.connect().await;
        let ask = format!("CONNECT {authority} HTTP/1.1\r\nHost: {authority}\r\n\r\n");
        stream.write_all(ask.as_bytes()).await.unwrap();
        let head = read_head(&mut stream).await;
        assert!(head.starts_with("HTTP/1.1 200 "), "{head}");
        stream
    }

    /// All that the reports say.
    pub(super) fn notes_of_denials(&self) -> Vec<String> {
        let reports = self.notes.reports.lock().unwrap();
        reports.iter().map(|report| format!("{report:?}")).collect()
    }

    pub(super) fn opened(&self) -> Vec<String> {
        self.notes.opened.lock().unwrap().clone()
    }

    /// The reports, when there are so many.
    pub(super) async fn reports(&self, count: usize) -> Vec<Report> {
        let there = async {
            while self.notes.reports.lock().unwrap().len() < count {
                tokio::time::sleep(Duration::from_millis(5)).await;
            }
        };
        timeout(PATIENCE, there).await.expect("reports come");
        let reports = self.notes.reports.lock().unwrap().clone();
        assert_eq!(reports.len(), count, "{reports:?}");
        reports
    }

    pub(super) async fn outcome(&self) -> Outcome {
        self.reports(1).await.remove(0).outcome
    }
}

/// Waits until the peer has hung up.
pub(super) async fn hung_up(stream: &mut TcpStream) {
    let mut part = [0; 4096];
    let closed = async { while let Ok(1..) = stream.read(&mut part).await {} };
    timeout(PATIENCE, closed).await.expect("the proxy hangs up");
}
