//! Reading the request from the client.

use std::io::{self, IoSliceMut, Read};
use std::mem::MaybeUninit;
use std::os::fd::OwnedFd;
use std::os::unix::net::UnixStream;

use rustix::net::{RecvAncillaryBuffer, RecvAncillaryMessage, RecvFlags, recvmsg};
use warren_launch::{HEADER_BYTES, Header, Spec, WRITABLE_MAX};

use crate::report::Failure;

/// What to do, complete.
pub(crate) struct Request {
    pub(crate) spec: Spec,
    pub(crate) directory: OwnedFd,
    /// The program itself, when it is pinned.
    pub(crate) program: Option<OwnedFd>,
    /// Folders that a confined child may write besides.
    pub(crate) writable: Vec<OwnedFd>,
    pub(crate) stdin: Option<Vec<u8>>,
}

/// Receives the request. A client that goes away in the middle looks like a request that is not
/// valid; the answer then reaches nobody.
pub(crate) fn receive(socket: &OwnedFd) -> Result<Request, Failure> {
    let read = || -> io::Result<(Spec, Vec<OwnedFd>, Vec<u8>)> {
        let (header, descriptors) = receive_header(socket)?;
        let mut stream = UnixStream::from(socket.try_clone()?);
        let mut json = vec![0; header.spec_bytes as usize];
        stream.read_exact(&mut json)?;
        let mut stdin = vec![0; header.stdin_bytes as usize];
        stream.read_exact(&mut stdin)?;
        Ok((serde_json::from_slice(&json)?, descriptors, stdin))
    };
    let (spec, descriptors, stdin) = read().map_err(|_| Failure::spec())?;
    let mut descriptors = descriptors.into_iter();
    let directory = descriptors.next().ok_or_else(Failure::spec)?;
    let program = spec.pinned.then(|| descriptors.next()).flatten();
    let writable: Vec<_> = descriptors.collect();
    let confinement = spec.confinement.as_ref();
    let expected = confinement.map_or(0, |confinement| usize::from(confinement.writable));
    let program_is_path = spec.program.starts_with('/') || spec.program.starts_with("./");
    if program.is_some() != spec.pinned || writable.len() != expected || !program_is_path {
        return Err(Failure::spec());
    }
    let stdin = spec.stdin.then_some(stdin);
    Ok(Request {
        spec,
        directory,
        program,
        writable,
        stdin,
    })
}

fn receive_header(socket: &OwnedFd) -> io::Result<(Header, Vec<OwnedFd>)> {
    let mut bytes = [0; HEADER_BYTES];
    let mut descriptors = Vec::new();
    let mut filled = 0;
    while filled < HEADER_BYTES {
        let mut space = [MaybeUninit::uninit(); rustix::cmsg_space!(ScmRights(3 + WRITABLE_MAX))];
        let mut control = RecvAncillaryBuffer::new(&mut space);
        let received = recvmsg(
            socket,
            &mut [IoSliceMut::new(&mut bytes[filled..])],
            &mut control,
            RecvFlags::CMSG_CLOEXEC,
        )?;
        for message in control.drain() {
            if let RecvAncillaryMessage::ScmRights(rights) = message {
                descriptors.extend(rights);
            }
        }
        if received.bytes == 0 {
            return Err(io::ErrorKind::UnexpectedEof.into());
        }
        filled += received.bytes;
    }
    let header = Header::from_bytes(bytes).ok_or(io::ErrorKind::InvalidData)?;
    Ok((header, descriptors))
}
