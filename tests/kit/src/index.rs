//! A package index (PEP 503) over a directory of wheels and source archives.

use std::io::{self, BufReader, Write};
use std::net::{Ipv4Addr, SocketAddr, TcpListener, TcpStream};
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex, PoisonError};
use std::thread::JoinHandle;

use crate::wire::read_head;

/// An index on a loopback port. Stops when dropped.
#[derive(Debug)]
pub struct Index {
    address: SocketAddr,
    seen: Arc<Mutex<Vec<String>>>,
    stopped: Arc<AtomicBool>,
    accept: Option<JoinHandle<()>>,
}

impl Index {
    /// Serves the files in a directory, as they are when asked for.
    ///
    /// # Panics
    /// When no port is free.
    pub fn serve(dir: impl Into<PathBuf>) -> Self {
        let listener = TcpListener::bind((Ipv4Addr::LOCALHOST, 0)).expect("a free port");
        let address = listener.local_addr().expect("an address");
        let (seen, stopped) = (Arc::default(), Arc::default());
        let mut index = Self {
            address,
            seen: Arc::clone(&seen),
            stopped: Arc::clone(&stopped),
            accept: None,
        };
        let dir = dir.into();
        let accept = std::thread::spawn(move || {
            for stream in listener.incoming() {
                if stopped.load(Ordering::SeqCst) {
                    return;
                }
                // A client that goes away in the middle asks again.
                drop(stream.and_then(|stream| answer(&dir, stream, &seen)));
            }
        });
        index.accept = Some(accept);
        index
    }

    /// What clients are configured with.
    pub fn url(&self) -> String {
        format!("http://{}/simple", self.address)
    }

    /// Port on loopback.
    pub fn port(&self) -> u16 {
        self.address.port()
    }

    /// Paths that were asked for, queries included.
    pub fn seen(&self) -> Vec<String> {
        let seen = self.seen.lock().unwrap_or_else(PoisonError::into_inner);
        seen.clone()
    }
}

impl Drop for Index {
    fn drop(&mut self) {
        self.stopped.store(true, Ordering::SeqCst);
        // Wakes `accept`; when it cannot connect, there is nobody to wake.
        drop(TcpStream::connect(self.address));
        if let Some(accept) = self.accept.take() {
            drop(accept.join());
        }
    }
}

fn answer(dir: &Path, stream: TcpStream, seen: &Mutex<Vec<String>>) -> io::Result<()> {
    let mut output = stream.try_clone()?;
    let Some(head) = read_head(&mut BufReader::new(stream))? else {
        return Ok(());
    };
    let asked = format!("{}?{}", head.path, head.query);
    seen.lock()
        .unwrap_or_else(PoisonError::into_inner)
        .push(asked);
    let parts: Vec<_> = head
        .path
        .split('/')
        .filter(|part| !part.is_empty())
        .collect();
    let (status, kind, body) = match parts[..] {
        ["simple", project] => match page(dir, project)? {
            Some(page) => (200, "text/html", page.into_bytes()),
            None => (404, "text/plain", Vec::new()),
        },
        ["files", file] => match std::fs::read(dir.join(file)) {
            Ok(bytes) => (200, "application/octet-stream", bytes),
            Err(_) => (404, "text/plain", Vec::new()),
        },
        _ => (404, "text/plain", Vec::new()),
    };
    let length = body.len();
    write!(
        output,
        "HTTP/1.1 {status} Status\r\nContent-Type: {kind}\r\nContent-Length: {length}\r\n\
         Connection: close\r\n\r\n"
    )?;
    if head.method != "HEAD" {
        output.write_all(&body)?;
    }
    Ok(())
}

/// Links to the files of a project; none: there is no file of it.
fn page(dir: &Path, project: &str) -> io::Result<Option<String>> {
    let mut links = String::new();
    for entry in std::fs::read_dir(dir)? {
        let file = entry?.file_name();
        let file = file.to_string_lossy();
        let name = file.split('-').next().unwrap_or_default().to_lowercase();
        if name.replace(['_', '.'], "-") == project {
            links += &format!("<a href=\"/files/{file}\">{file}</a><br>\n");
        }
    }
    Ok((!links.is_empty()).then(|| format!("<!DOCTYPE html><html><body>\n{links}</body></html>")))
}
