#![allow(unsafe_code)]

use std::io;
use std::os::fd::{AsRawFd, BorrowedFd};

/// `LOOP_GET_STATUS64`.
const GET_STATUS: libc::Ioctl = 0x4c05;

#[repr(C)]
struct Status {
    device: u64,
    inode: u64,
    rest: [u64; 27],
}

const _: () = assert!(size_of::<Status>() == 232);

pub(crate) fn backing(fd: BorrowedFd<'_>) -> io::Result<(u64, u64)> {
    let mut status = Status { device: 0, inode: 0, rest: [0; 27] };
    // SAFETY: the kernel writes one `struct loop_info64`; other devices refuse the request.
    match unsafe { libc::ioctl(fd.as_raw_fd(), GET_STATUS, std::ptr::from_mut(&mut status)) } {
        0 => Ok((status.device, status.inode)),
        _ => Err(io::Error::last_os_error()),
    }
}
