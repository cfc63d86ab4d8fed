//! The network of a child: nothing but itself, and where the host serves a proxy, its socket.

use std::io::{self, IoSlice};
use std::mem::MaybeUninit;
use std::net::TcpListener;
use std::os::fd::{AsFd, AsRawFd, OwnedFd};

use rustix::io::Errno;
use rustix::net::{
    AddressFamily, SendAncillaryBuffer, SendAncillaryMessage, SendFlags, SocketFlags, SocketType,
    sendmsg, socket_with,
};
use warren_launch::{Frame, PROXY_ADDRESS};

use crate::target::last_errno;

/// Listens in the network namespace of the calling process, which is new, and hands the socket to
/// the client.
pub(super) fn serve_proxy(client: &OwnedFd) -> io::Result<()> {
    loopback_up()?;
    let socket = TcpListener::bind(PROXY_ADDRESS)?;
    let sockets = [socket.as_fd()];
    let mut space = [MaybeUninit::uninit(); rustix::cmsg_space!(ScmRights(1))];
    let mut control = SendAncillaryBuffer::new(&mut space);
    control.push(SendAncillaryMessage::ScmRights(&sockets));
    // The first bytes on the socket: it takes them at once.
    let header = Frame::Proxy.header(0);
    let sent = sendmsg(
        client,
        &[IoSlice::new(&header)],
        &mut control,
        SendFlags::NOSIGNAL,
    )?;
    if sent == header.len() {
        Ok(())
    } else {
        Err(Errno::IO.into())
    }
}

fn loopback_up() -> Result<(), Errno> {
    let flags = SocketFlags::CLOEXEC;
    let socket = socket_with(AddressFamily::INET, SocketType::DGRAM, flags, None)?;
    #[expect(unsafe_code, reason = "there is no other way to an interface's flags")]
    // SAFETY: a structure of plain numbers, in which all zero is valid; the kernel reads and writes
    // no more than it. The name is shorter than its place and ends with a zero.
    unsafe {
        let mut request: libc::ifreq = std::mem::zeroed();
        request.ifr_name[0] = b'l' as libc::c_char;
        request.ifr_name[1] = b'o' as libc::c_char;
        request.ifr_ifru.ifru_flags = (libc::IFF_UP | libc::IFF_RUNNING) as libc::c_short;
        if libc::ioctl(
            socket.as_raw_fd(),
            libc::SIOCSIFFLAGS as libc::Ioctl,
            &raw mut request,
        ) != 0
        {
            return Err(last_errno());
        }
    }
    Ok(())
}
