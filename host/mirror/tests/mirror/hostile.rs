//! Servers that send what no git would.

use std::io::{BufRead, BufReader, Read, Write};
use std::net::{TcpListener, TcpStream};

use sha1::{Digest, Sha1};
use warren_mirror::{Limits, MirrorError, Mirrors, Origin, UrlPolicy};
use warren_testkit::Work;

use crate::setup::{limits, mirrors, spec};

const ID: &str = "1111111111111111111111111111111111111111";

/// One line of git's protocol.
fn line(text: &[u8]) -> Vec<u8> {
    [format!("{:04x}", text.len() + 4).as_bytes(), text].concat()
}

/// A list of refs with these capabilities.
fn listing(refs: &[(&str, &str)], capabilities: &str) -> Vec<u8> {
    let mut out = line(b"# service=git-upload-pack\n");
    out.extend(b"0000");
    for (at, (id, name)) in refs.iter().enumerate() {
        let more = if at == 0 { capabilities } else { "" };
        let zero = if at == 0 { "\0" } else { "" };
        out.extend(line(format!("{id} {name}{zero}{more}\n").as_bytes()));
    }
    out.extend(b"0000");
    out
}

/// A server that answers each kind of request in its own way, as long as the test runs.
struct Fake {
    port: u16,
}

type Answer = Box<dyn Fn(&mut TcpStream) -> std::io::Result<()> + Send + Sync>;

impl Fake {
    fn serve(list: Answer, pack: Answer) -> Self {
        let listener = TcpListener::bind("127.0.0.1:0").unwrap();
        let port = listener.local_addr().unwrap().port();
        // It ends with the test's process.
        std::thread::spawn(move || {
            for stream in listener.incoming().flatten() {
                // Whoever had enough hangs up.
                drop(answer(stream, &list, &pack));
            }
        });
        Self { port }
    }

    /// With a list of refs and, for a pack, these bytes.
    fn of(list: Vec<u8>, pack: Vec<u8>) -> Self {
        Self::serve(
            Box::new(move |out| whole(out, "application/x-git-upload-pack-advertisement", &list)),
            Box::new(move |out| whole(out, "application/x-git-upload-pack-result", &pack)),
        )
    }

    fn origin(&self) -> Origin {
        Origin {
            url: format!("http://127.0.0.1:{}/up.git", self.port),
            credential_alias: None,
        }
    }
}

fn answer(stream: TcpStream, list: &Answer, pack: &Answer) -> std::io::Result<()> {
    let mut input = BufReader::new(stream.try_clone()?);
    let mut out = stream;
    let (mut first, mut length) = (String::new(), 0);
    input.read_line(&mut first)?;
    loop {
        let mut header = String::new();
        if input.read_line(&mut header)? < 3 {
            break;
        }
        if let Some(value) = header.to_ascii_lowercase().strip_prefix("content-length:") {
            length = value.trim().parse().unwrap_or(0);
        }
    }
    std::io::copy(&mut input.take(length), &mut std::io::sink())?;
    if first.starts_with("GET") {
        list(&mut out)
    } else {
        pack(&mut out)
    }
}

fn head(out: &mut TcpStream, kind: &str, length: u64) -> std::io::Result<()> {
    write!(
        out,
        "HTTP/1.1 200 OK\r\nContent-Type: {kind}\r\nContent-Length: {length}\r\nConnection: close\r\n\r\n"
    )
}

fn whole(out: &mut TcpStream, kind: &str, bytes: &[u8]) -> std::io::Result<()> {
    head(out, kind, bytes.len() as u64)?;
    out.write_all(bytes)
}

const LIST: &str = "application/x-git-upload-pack-advertisement";
const PACK: &str = "application/x-git-upload-pack-result";

struct Host {
    work: Work,
    mirrors: Mirrors,
}

impl Host {
    fn new(limits: Limits) -> Self {
        let work = Work::new();
        let mirrors = mirrors(
            &work,
            &["http://127.0.0.1:*/**"],
            Default::default(),
            limits,
        );
        Self { work, mirrors }
    }

    /// What a clone fails with; nothing of it is left, and the next one is as good as any.
    fn fails(&self, fake: &Fake) -> MirrorError {
        let session = self.mirrors.session(spec(&self.work, "r"));
        let error = session.clone(&fake.origin(), None).unwrap_err();
        let left = std::fs::read_dir(self.work.join("roots/r"))
            .unwrap()
            .count();
        assert_eq!(left, 0, "{error}");
        error
    }

    fn code(&self, fake: &Fake) -> &'static str {
        self.fails(fake).code()
    }
}

/// Bytes as a zlib stream that compresses nothing.
fn stored(bytes: &[u8]) -> Vec<u8> {
    let (mut a, mut b) = (1_u32, 0_u32);
    for byte in bytes {
        a = (a + u32::from(*byte)) % 65521;
        b = (b + a) % 65521;
    }
    let mut out = vec![0x78, 0x01, 0x01];
    let length = u16::try_from(bytes.len()).unwrap();
    out.extend(length.to_le_bytes());
    out.extend((!length).to_le_bytes());
    out.extend(bytes);
    out.extend(((b << 16) | a).to_be_bytes());
    out
}

/// The header of an entry: kind and length.
fn entry(kind: u8, mut length: u64) -> Vec<u8> {
    let mut byte = (kind << 4) | (length & 15) as u8;
    length >>= 4;
    let mut out = Vec::new();
    while length > 0 {
        out.push(byte | 0x80);
        byte = (length & 0x7f) as u8;
        length >>= 7;
    }
    out.push(byte);
    out
}

fn size(mut length: u64) -> Vec<u8> {
    let mut out = Vec::new();
    loop {
        let byte = (length & 0x7f) as u8;
        length >>= 7;
        if length == 0 {
            out.push(byte);
            return out;
        }
        out.push(byte | 0x80);
    }
}

/// A pack of entries, with another count when a lie is wanted.
fn pack(count: u32, entries: &[Vec<u8>]) -> Vec<u8> {
    let mut out = b"PACK\0\0\0\x02".to_vec();
    out.extend(count.to_be_bytes());
    out.extend(entries.concat());
    let sum = Sha1::digest(&out);
    out.extend(sum);
    out
}

/// An answer that holds a pack and no side-band.
fn sent(pack: &[u8]) -> Vec<u8> {
    [&line(b"NAK\n"), pack].concat()
}

fn one_ref() -> Vec<u8> {
    listing(&[(ID, "refs/heads/main")], "ofs-delta")
}

fn blob(bytes: &[u8]) -> Vec<u8> {
    [entry(3, bytes.len() as u64), stored(bytes)].concat()
}

/// A delta upon the entry `back` bytes ahead of it (below 128), which promises `result` bytes.
fn delta(back: u8, base: u64, result: u64, steps: &[u8]) -> Vec<u8> {
    let data = [size(base), size(result), steps.to_vec()].concat();
    [entry(6, data.len() as u64), vec![back], stored(&data)].concat()
}

#[test]
fn a_delta_that_stands_for_gigabytes_takes_no_memory() {
    let host = Host::new(limits());
    let base = blob(&[b'x'; 64]);
    let back = u8::try_from(base.len()).unwrap();
    // Copies all of the base, once.
    let copy = [0x91, 0, 64];
    for promised in [3 << 30, 1 << 36] {
        let bomb = delta(back, 64, promised, &copy);
        let fake = Fake::of(one_ref(), sent(&pack(2, &[base.clone(), bomb])));
        let error = host.fails(&fake);
        assert_eq!(error.code(), "GitTooLarge", "{error}");
    }
    // An honest delta of the same make gets further: only the commit is missing.
    let honest = delta(back, 64, 64, &copy);
    let fake = Fake::of(one_ref(), sent(&pack(2, &[base, honest])));
    assert_ne!(host.code(&fake), "GitTooLarge");
}

#[test]
fn packs_that_are_none_are_refused() {
    let host = Host::new(limits());
    let good = pack(1, &[blob(b"x")]);
    let mut wrong_sum = good.clone();
    *wrong_sum.last_mut().unwrap() ^= 1;
    let packs: Vec<(&str, Vec<u8>)> = vec![
        ("nothing", Vec::new()),
        ("no pack", b"HELO\0\0\0\x02\0\0\0\x01".to_vec()),
        ("another version", b"PACK\0\0\0\x63\0\0\0\x01".to_vec()),
        ("a wrong sum", wrong_sum),
        ("cut", good[..good.len() - 25].to_vec()),
        ("more objects than it has", pack(3, &[blob(b"x")])),
        (
            "a kind that is none",
            pack(1, &[[entry(5, 1), stored(b"x")].concat()]),
        ),
        (
            "no zlib",
            pack(1, &[[entry(3, 4), b"zzzz".to_vec()].concat()]),
        ),
        (
            "a length that lies",
            pack(1, &[[entry(3, 9), stored(b"x")].concat()]),
        ),
        ("a base before the start", pack(1, &[delta(100, 1, 1, &[])])),
        ("one that lacks what was asked for", good.clone()),
        ("junk behind it", [good, vec![7; 4096]].concat()),
    ];
    for (what, bytes) in packs {
        let error = host.fails(&Fake::of(one_ref(), sent(&bytes)));
        let code = error.code();
        assert!(
            ["GitUnreachable", "GitIo", "GitMissing"].contains(&code),
            "{what}: {error:?}"
        );
    }
}

#[test]
fn a_pack_of_too_many_objects_is_refused_by_its_header() {
    let few = Limits {
        objects_max: 1000,
        ..limits()
    };
    let host = Host::new(few);
    for count in [1001, u32::MAX] {
        let fake = Fake::of(one_ref(), sent(&pack(count, &[blob(b"x")])));
        assert_eq!(host.code(&fake), "GitTooLarge");
    }
}

#[test]
fn text_without_end_is_cut_off() {
    let few = Limits {
        received_bytes_max: 2 << 20,
        ..limits()
    };
    let host = Host::new(few);
    let aside = line(&[&[2_u8], &[b'\x1b'; 900][..]].concat());
    let fake = Fake::serve(
        Box::new(|out| {
            let list = listing(&[(ID, "refs/heads/main")], "side-band-64k ofs-delta");
            whole(out, LIST, &list)
        }),
        Box::new(move |out| {
            head(out, PACK, 1 << 40)?;
            out.write_all(&line(b"NAK\n"))?;
            loop {
                out.write_all(&aside)?;
            }
        }),
    );
    assert_eq!(host.code(&fake), "GitTooLarge");
    let fake = Fake::serve(
        Box::new(|out| {
            head(out, LIST, 1 << 40)?;
            out.write_all(&line(b"# service=git-upload-pack\n"))?;
            out.write_all(b"0000")?;
            for number in 0_u64.. {
                out.write_all(&line(format!("{ID} refs/heads/{number}\n").as_bytes()))?;
            }
            Ok(())
        }),
        Box::new(|_| Ok(())),
    );
    assert_eq!(host.code(&fake), "GitTooLarge");
}

#[test]
fn lengths_that_lie_end_as_they_come() {
    let host = Host::new(limits());
    for length in [1, 100, 1 << 50] {
        let list = one_ref();
        let fake = Fake::serve(
            Box::new(move |out| {
                head(out, LIST, length)?;
                out.write_all(&list)
            }),
            Box::new(|_| Ok(())),
        );
        assert_eq!(host.code(&fake), "GitUnreachable", "{length}");
    }
}

#[test]
fn names_that_no_file_system_should_see_are_left_out() {
    let host = Host::new(limits());
    let long = format!("refs/heads/{}", "n".repeat(60_000));
    let deep = format!("refs/heads/{}", "d/".repeat(600) + "x");
    let refs = [
        (ID, "refs/heads/main"),
        (ID, &long),
        (ID, &deep),
        (ID, "refs/heads/../../x"),
        (ID, "refs/heads/a\u{1b}[2J"),
    ];
    let fake = Fake::of(listing(&refs, ""), Vec::new());
    let session = host.mirrors.session(spec(&host.work, "r"));
    let found = session.remote_ref(&fake.origin(), "main").unwrap();
    assert_eq!(found.as_deref(), Some(ID));
    let error = session.clone(&fake.origin(), None).unwrap_err();
    assert!(error.to_string().len() < 1000, "{error}");
    assert!(!error.to_string().contains('\u{1b}'), "{error}");
}

#[test]
fn every_hop_is_held_against_the_policy() {
    let work = Work::new();
    let moved = |to: &'static str| {
        Fake::serve(
            Box::new(move |out| {
                write!(
                    out,
                    "HTTP/1.1 301 Moved\r\nLocation: {to}/info/refs?service=git-upload-pack\r\n\
                     Content-Length: 0\r\nConnection: close\r\n\r\n"
                )
            }),
            Box::new(|_| Ok(())),
        )
    };
    let allow = ["http://127.0.0.1:*/up.git", "http://127.0.0.1:*/team/**"];
    let mirrors = mirrors(&work, &allow, Default::default(), limits());
    let said = |to, layer: &[&str]| {
        let mut spec = spec(&work, "r");
        spec.remotes = vec![UrlPolicy::layer(layer).unwrap()];
        let asked = mirrors
            .session(spec)
            .remote_ref(&moved(to).origin(), "main");
        asked.unwrap_err().to_string()
    };
    // An allowed path is followed: in circles, as this server does.
    assert!(said("/team/new.git", &["**"]).contains("redirects elsewhere"));
    for (to, layer) in [
        ("/other/new.git", &["**"][..]),
        ("/team/../other.git", &["**"]),
        ("/team/%2e%2e/x.git", &["**"]),
        ("/team/new.git", &["http://127.0.0.1:*/up.git"]),
    ] {
        let said = said(to, layer);
        assert!(said.contains("path that is not allowed"), "{to}: {said}");
    }
}

#[test]
fn a_redirect_that_goes_in_circles_ends() {
    let host = Host::new(limits());
    let fake = Fake::serve(
        Box::new(|out| {
            let place = out.local_addr()?;
            write!(
                out,
                "HTTP/1.1 302 Found\r\nLocation: http://{place}/up.git/info/refs?service=git-upload-pack\r\n\
                 Content-Length: 0\r\nConnection: close\r\n\r\n"
            )
        }),
        Box::new(|_| Ok(())),
    );
    assert_eq!(host.code(&fake), "GitDenied");
}
