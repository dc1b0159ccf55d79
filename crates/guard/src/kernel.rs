//! Calls of the kernel that no library wraps: waiting for a signal, the lines of a serial port, and the process at the other end of a socket.
//!
//! Invariants: each call gets memory that is as large as it says, and of which any bytes are a value.

#![allow(unsafe_code)]

use std::io;
use std::mem::MaybeUninit;
use std::os::fd::{AsFd, AsRawFd};

fn power_signal() -> libc::sigset_t {
    let mut set = MaybeUninit::<libc::sigset_t>::zeroed();
    // SAFETY: the calls initialize the set that they are given.
    unsafe {
        libc::sigemptyset(set.as_mut_ptr());
        libc::sigaddset(set.as_mut_ptr(), libc::SIGPWR);
        set.assume_init()
    }
}

/// Keeps SIGPWR for a thread that waits for it: it does not end the process any more. To be called before the process has other threads.
pub fn hold_back_power_signal() {
    let set = power_signal();
    // SAFETY: changes the mask of this thread, which those that it starts inherit.
    unsafe { libc::pthread_sigmask(libc::SIG_BLOCK, &raw const set, std::ptr::null_mut()) };
}

/// Waits until the process gets a SIGPWR.
pub(crate) fn wait_for_power_signal() -> io::Result<()> {
    let (set, mut found) = (power_signal(), 0);
    // SAFETY: both are values of this function's.
    match unsafe { libc::sigwait(&raw const set, &raw mut found) } {
        0 => Ok(()),
        error => Err(io::Error::from_raw_os_error(error)),
    }
}

/// Waits until one of the modem-control lines in `mask` changes.
pub(crate) fn wait_for_lines(port: impl AsFd, mask: i32) -> io::Result<()> {
    // SAFETY: this call takes a number.
    let done = unsafe { libc::ioctl(port.as_fd().as_raw_fd(), libc::TIOCMIWAIT, mask) };
    if done < 0 { Err(io::Error::last_os_error()) } else { Ok(()) }
}

/// The modem-control lines that are on.
pub(crate) fn lines(port: impl AsFd) -> io::Result<i32> {
    let mut lines = 0;
    // SAFETY: the call stores one `int`.
    let done = unsafe { libc::ioctl(port.as_fd().as_raw_fd(), libc::TIOCMGET, &raw mut lines) };
    if done < 0 { Err(io::Error::last_os_error()) } else { Ok(lines) }
}

/// The process that made a connection; ID 0: it is not to be seen from here, as in another container.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Peer {
    pub(crate) pid: i32,
    pub(crate) uid: u32,
    pub(crate) gid: u32,
}

pub(crate) fn peer(socket: impl AsFd) -> io::Result<Peer> {
    let mut peer = MaybeUninit::<libc::ucred>::zeroed();
    let mut len = size_of::<libc::ucred>() as libc::socklen_t;
    // SAFETY: the call fills at most `len` bytes of `peer`.
    let peer = unsafe {
        let socket = socket.as_fd().as_raw_fd();
        let into = peer.as_mut_ptr().cast();
        if libc::getsockopt(socket, libc::SOL_SOCKET, libc::SO_PEERCRED, into, &raw mut len) != 0 {
            return Err(io::Error::last_os_error());
        }
        peer.assume_init()
    };
    Ok(Peer { pid: peer.pid, uid: peer.uid, gid: peer.gid })
}
