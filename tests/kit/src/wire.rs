//! The little of HTTP/1.1 that a git client speaks, over a plain socket so that tests can break it.

use std::io::{self, BufRead, BufReader, Read};
use std::net::TcpStream;

/// Longest head of a request in bytes.
const HEAD_BYTES_MAX: usize = 64 * 1024;

/// The head of one request.
#[derive(Debug)]
pub(crate) struct Head {
    pub(crate) method: String,
    pub(crate) path: String,
    pub(crate) query: String,
    pub(crate) headers: Vec<(String, String)>,
}

impl Head {
    /// The value of a header, by lowercase name.
    pub(crate) fn header(&self, name: &str) -> Option<&str> {
        self.headers
            .iter()
            .find(|(key, _)| key == name)
            .map(|(_, value)| value.as_str())
    }
}

/// Reads the head of a request; none: the client closed.
pub(crate) fn read_head(stream: &mut BufReader<TcpStream>) -> io::Result<Option<Head>> {
    let mut bytes = Vec::new();
    loop {
        let before = bytes.len();
        let room = (HEAD_BYTES_MAX - before) as u64;
        if stream.by_ref().take(room).read_until(b'\n', &mut bytes)? == 0 {
            return Ok(None);
        }
        if matches!(&bytes[before..], b"\r\n" | b"\n") {
            break;
        }
    }
    let mut fields = [httparse::EMPTY_HEADER; 64];
    let mut request = httparse::Request::new(&mut fields);
    request.parse(&bytes).map_err(io::Error::other)?;
    let target = request.path.unwrap_or_default();
    let (path, query) = target.split_once('?').unwrap_or((target, ""));
    Ok(Some(Head {
        method: request.method.unwrap_or_default().to_owned(),
        path: path.to_owned(),
        query: query.to_owned(),
        headers: request
            .headers
            .iter()
            .map(|field| {
                let value = String::from_utf8_lossy(field.value).into_owned();
                (field.name.to_ascii_lowercase(), value)
            })
            .collect(),
    }))
}

/// The body of a request, its transfer coding undone.
pub(crate) enum Body<'a> {
    /// So many bytes are left.
    Sized(io::Take<&'a mut BufReader<TcpStream>>),
    /// Chunks, with what is left of the current one; none: the last one has been seen.
    Chunked(&'a mut BufReader<TcpStream>, Option<u64>),
}

impl<'a> Body<'a> {
    pub(crate) fn new(head: &Head, stream: &'a mut BufReader<TcpStream>) -> Self {
        if head
            .header("transfer-encoding")
            .is_some_and(|value| value.eq_ignore_ascii_case("chunked"))
        {
            return Self::Chunked(stream, Some(0));
        }
        let length = head
            .header("content-length")
            .and_then(|value| value.parse().ok())
            .unwrap_or(0);
        Self::Sized(stream.take(length))
    }
}

impl Read for Body<'_> {
    fn read(&mut self, buffer: &mut [u8]) -> io::Result<usize> {
        let (stream, left) = match self {
            Self::Sized(body) => return body.read(buffer),
            Self::Chunked(stream, left) => (stream, left),
        };
        let Some(mut rest) = *left else {
            return Ok(0);
        };
        if rest == 0 {
            rest = next_chunk(stream)?;
            if rest == 0 {
                *left = None;
                return Ok(0);
            }
        }
        let read = stream.take(rest).read(buffer)?;
        if read == 0 {
            return Err(io::ErrorKind::UnexpectedEof.into());
        }
        *left = Some(rest - read as u64);
        Ok(read)
    }
}

fn next_chunk(stream: &mut BufReader<TcpStream>) -> io::Result<u64> {
    let mut line = String::new();
    // The line break that ends a chunk comes before the next size.
    while line.trim().is_empty() {
        line.clear();
        if stream.by_ref().take(100).read_line(&mut line)? == 0 {
            return Err(io::ErrorKind::UnexpectedEof.into());
        }
    }
    let digits = line.trim().split(';').next().unwrap_or_default();
    let size = u64::from_str_radix(digits, 16).map_err(io::Error::other)?;
    if size == 0 {
        // The empty line behind the last chunk; left unread, closing would reset the connection.
        stream.read_line(&mut line)?;
    }
    Ok(size)
}
