//! TLS in front of another server on loopback, with a certificate that nobody trusts by default.

use std::io::{self, ErrorKind, Read, Write};
use std::net::{Ipv4Addr, SocketAddr, TcpListener, TcpStream};
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::thread::JoinHandle;
use std::time::Duration;

use openssl::asn1::Asn1Time;
use openssl::bn::BigNum;
use openssl::error::ErrorStack;
use openssl::hash::MessageDigest;
use openssl::pkey::{PKey, Private};
use openssl::rsa::Rsa;
use openssl::ssl::{SslAcceptor, SslMethod, SslStream};
use openssl::x509::extension::{BasicConstraints, SubjectAlternativeName};
use openssl::x509::{X509, X509NameBuilder};

/// How long one side of a connection is listened to before the other has its turn.
const TURN: Duration = Duration::from_millis(5);

/// A TLS server that hands everything on. Stops when dropped.
#[derive(Debug)]
pub struct Tls {
    address: SocketAddr,
    certificate: PathBuf,
    stopped: Arc<AtomicBool>,
    accept: Option<JoinHandle<()>>,
}

impl Tls {
    /// Starts a server for `127.0.0.1` in front of the plain one on `port`; its certificate lies in
    /// `dir`.
    ///
    /// # Panics
    /// When no certificate can be made or no port is free.
    pub fn before(port: u16, dir: &Path) -> Self {
        let (certificate, key) = certificate().expect("a certificate");
        let file = dir.join("tls.pem");
        let pem = certificate.to_pem().expect("a certificate as text");
        std::fs::write(&file, pem).expect("a file for the certificate");
        let acceptor = acceptor(&certificate, &key).expect("a TLS server");
        let listener = TcpListener::bind((Ipv4Addr::LOCALHOST, 0)).expect("a free port");
        let address = listener.local_addr().expect("an address");
        let stopped = Arc::new(AtomicBool::new(false));
        let stop = Arc::clone(&stopped);
        let accept = std::thread::spawn(move || {
            let mut threads = Vec::new();
            for stream in listener.incoming() {
                if stop.load(Ordering::SeqCst) {
                    break;
                }
                let (acceptor, stop) = (acceptor.clone(), Arc::clone(&stop));
                threads.push(std::thread::spawn(move || {
                    // A client that does not trust us goes away; that is what it is for.
                    drop(stream.and_then(|stream| relay(&acceptor, stream, port, &stop)));
                }));
            }
            for thread in threads {
                drop(thread.join());
            }
        });
        Self {
            address,
            certificate: file,
            stopped,
            accept: Some(accept),
        }
    }

    /// URL of a path.
    pub fn url(&self, path: &str) -> String {
        format!("https://{}/{path}", self.address)
    }

    /// File with the certificate, to trust it.
    pub fn certificate(&self) -> &Path {
        &self.certificate
    }
}

impl Drop for Tls {
    fn drop(&mut self) {
        self.stopped.store(true, Ordering::SeqCst);
        // Wakes the thread that accepts; when it cannot connect, there is nobody to wake.
        drop(TcpStream::connect(self.address));
        if let Some(accept) = self.accept.take() {
            drop(accept.join());
        }
    }
}

fn certificate() -> Result<(X509, PKey<Private>), ErrorStack> {
    let key = PKey::from_rsa(Rsa::generate(2048)?)?;
    let mut name = X509NameBuilder::new()?;
    name.append_entry_by_text("CN", "127.0.0.1")?;
    let name = name.build();
    let serial = BigNum::from_u32(1)?.to_asn1_integer()?;
    let (from, to) = (Asn1Time::days_from_now(0)?, Asn1Time::days_from_now(1)?);
    let mut builder = X509::builder()?;
    builder.set_version(2)?;
    builder.set_serial_number(&serial)?;
    builder.set_subject_name(&name)?;
    builder.set_issuer_name(&name)?;
    builder.set_pubkey(&key)?;
    builder.set_not_before(&from)?;
    builder.set_not_after(&to)?;
    builder.append_extension(BasicConstraints::new().critical().ca().build()?)?;
    let names = SubjectAlternativeName::new()
        .ip("127.0.0.1")
        .dns("git.example")
        .build(&builder.x509v3_context(None, None))?;
    builder.append_extension(names)?;
    builder.sign(&key, MessageDigest::sha256())?;
    Ok((builder.build(), key))
}

fn acceptor(certificate: &X509, key: &PKey<Private>) -> Result<SslAcceptor, ErrorStack> {
    let mut builder = SslAcceptor::mozilla_intermediate_v5(SslMethod::tls())?;
    builder.set_certificate(certificate)?;
    builder.set_private_key(key)?;
    Ok(builder.build())
}

/// Carries bytes both ways, in turns: a TLS stream cannot be split.
fn relay(
    acceptor: &SslAcceptor,
    client: TcpStream,
    port: u16,
    stop: &AtomicBool,
) -> io::Result<()> {
    client.set_read_timeout(Some(Duration::from_secs(10)))?;
    let mut client = acceptor.accept(client).map_err(io::Error::other)?;
    client.get_ref().set_read_timeout(Some(TURN))?;
    let mut server = TcpStream::connect((Ipv4Addr::LOCALHOST, port))?;
    server.set_read_timeout(Some(TURN))?;
    let mut buffer = vec![0; 64 * 1024];
    while !stop.load(Ordering::SeqCst) {
        if let Some(read) = turn(client.read(&mut buffer))? {
            if read == 0 {
                return Ok(());
            }
            server.write_all(&buffer[..read])?;
        }
        if let Some(read) = turn(server.read(&mut buffer))? {
            if read == 0 {
                return close(&mut client);
            }
            client.write_all(&buffer[..read])?;
        }
    }
    Ok(())
}

/// What a read gave; none: nothing in this turn.
fn turn(result: io::Result<usize>) -> io::Result<Option<usize>> {
    match result {
        Ok(read) => Ok(Some(read)),
        Err(error) if matches!(error.kind(), ErrorKind::WouldBlock | ErrorKind::TimedOut) => {
            Ok(None)
        }
        Err(error) => Err(error),
    }
}

fn close(client: &mut SslStream<TcpStream>) -> io::Result<()> {
    client.shutdown().map_err(io::Error::other).map(drop)
}
