//! Kernel calls without a wrapper: waiting for signals and for lines of a serial port, peers of a
//! socket.
//!
//! Invariants: each call gets memory of the stated size in which any bytes are valid.

#![allow(unsafe_code)]

use std::io;
use std::mem::MaybeUninit;
use std::os::fd::{AsFd, AsRawFd, FromRawFd, OwnedFd};

fn set_of(signals: &[libc::c_int]) -> libc::sigset_t {
    let mut set = MaybeUninit::<libc::sigset_t>::zeroed();
    // SAFETY: the calls initialize the set that they are given.
    unsafe {
        libc::sigemptyset(set.as_mut_ptr());
        for signal in signals {
            libc::sigaddset(set.as_mut_ptr(), *signal);
        }
        set.assume_init()
    }
}

/// Blocks SIGPWR and SIGTERM for threads that wait for them, so that they do not end the process.
/// Call it before the process has other threads.
pub fn hold_back_signals() {
    let set = set_of(&[libc::SIGPWR, libc::SIGTERM]);
    // SAFETY: changes this thread's mask, which its new threads inherit.
    unsafe { libc::pthread_sigmask(libc::SIG_BLOCK, &raw const set, std::ptr::null_mut()) };
}

pub(crate) fn wait_for_power_signal() -> io::Result<()> {
    wait_for(libc::SIGPWR)
}

pub(crate) fn wait_for_termination() -> io::Result<()> {
    wait_for(libc::SIGTERM)
}

fn wait_for(signal: libc::c_int) -> io::Result<()> {
    let (set, mut found) = (set_of(&[signal]), 0);
    // SAFETY: both are values of this function's.
    match unsafe { libc::sigwait(&raw const set, &raw mut found) } {
        0 => Ok(()),
        error => Err(io::Error::from_raw_os_error(error)),
    }
}

pub(crate) fn wait_for_lines(port: impl AsFd, mask: i32) -> io::Result<()> {
    // SAFETY: this call takes a number.
    let done = unsafe { libc::ioctl(port.as_fd().as_raw_fd(), libc::TIOCMIWAIT, mask) };
    if done < 0 { Err(io::Error::last_os_error()) } else { Ok(()) }
}

pub(crate) fn lines(port: impl AsFd) -> io::Result<i32> {
    let mut lines = 0;
    // SAFETY: the call stores one `int`.
    let done = unsafe { libc::ioctl(port.as_fd().as_raw_fd(), libc::TIOCMGET, &raw mut lines) };
    if done < 0 { Err(io::Error::last_os_error()) } else { Ok(lines) }
}

/// A connection's peer process; ID 0: invisible from here, as in another container.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Peer {
    pub(crate) pid: i32,
    pub(crate) uid: u32,
    pub(crate) gid: u32,
}

pub(crate) fn peer(socket: impl AsFd) -> io::Result<Peer> {
    // SAFETY: any bytes are a `ucred`.
    let peer = unsafe { option::<libc::ucred>(socket, libc::SO_PEERCRED) }?;
    Ok(Peer { pid: peer.pid, uid: peer.uid, gid: peer.gid })
}

const SO_PEERPIDFD: libc::c_int = 77;

/// A descriptor of the peer, whose number may be another process's by now. Before Linux 6.16 dead
/// processes have none.
pub(crate) fn peer_process(socket: impl AsFd) -> io::Result<OwnedFd> {
    // SAFETY: any bytes are a `c_int`.
    let fd = unsafe { option::<libc::c_int>(socket, SO_PEERPIDFD) }?;
    // SAFETY: the call opened this descriptor for its caller.
    Ok(unsafe { OwnedFd::from_raw_fd(fd) })
}

/// # Safety
/// Any bytes are a `T`.
unsafe fn option<T>(socket: impl AsFd, name: libc::c_int) -> io::Result<T> {
    let mut value = MaybeUninit::<T>::zeroed();
    let mut len = size_of::<T>() as libc::socklen_t;
    let socket = socket.as_fd().as_raw_fd();
    // SAFETY: the call fills at most `len` bytes of `value`; any bytes are valid.
    unsafe {
        let into = value.as_mut_ptr().cast();
        if libc::getsockopt(socket, libc::SOL_SOCKET, name, into, &raw mut len) != 0 {
            return Err(io::Error::last_os_error());
        }
        Ok(value.assume_init())
    }
}
