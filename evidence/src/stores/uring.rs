//! An io_uring with one registered buffer, which acts like a device on page tables.
//!
//! The kernel pins the buffer's pages. Reads go to those pages, not through page tables: there are
//! no protection checks and no faults.

#![allow(unsafe_code)]

use std::io;
use std::os::fd::{AsRawFd, FromRawFd, OwnedFd, RawFd};
use std::ptr;
use std::sync::atomic::{AtomicU32, Ordering};

#[repr(C)]
#[derive(Default)]
struct Offsets {
    head: u32,
    tail: u32,
    mask: u32,
    entries: u32,
    rest: [u32; 2],
    array: u32,
    reserved: u32,
    address: u64,
}

#[repr(C)]
#[derive(Default)]
struct Params {
    sq_entries: u32,
    cq_entries: u32,
    flags: u32,
    rest: [u32; 7],
    sq: Offsets,
    cq: Offsets,
}

#[repr(C)]
#[derive(Default)]
struct Submission {
    opcode: u8,
    flags: u8,
    priority: u16,
    fd: i32,
    offset: u64,
    address: u64,
    len: u32,
    how: u32,
    user: u64,
    buffer: u16,
    rest: [u16; 11],
}

const _: () = assert!(size_of::<Params>() == 120 && size_of::<Submission>() == 64);

const REGISTER_BUFFERS: libc::c_uint = 0;
const READ_FIXED: u8 = 4;
const WAIT: libc::c_uint = 1;

const QUEUES: [libc::off_t; 3] = [0, 0x800_0000, 0x1000_0000];
const MAPPED: usize = 4096;

pub struct Ring {
    fd: OwnedFd,
    params: Params,
    queues: [*mut u8; 3],
}

impl Ring {
    /// Pins `len` bytes at `buffer`.
    ///
    /// # Errors
    /// The kernel's: io_uring is often forbidden, and pinned memory limited.
    ///
    /// # Safety
    /// The range is mapped for writing while the ring is used.
    pub unsafe fn pin(buffer: *mut u8, len: usize) -> io::Result<Ring> {
        let mut params = Params::default();
        // SAFETY: `params` has the kernel's layout (asserted above).
        let fd = unsafe { libc::syscall(libc::SYS_io_uring_setup, 1, &raw mut params) };
        if fd < 0 {
            return Err(io::Error::last_os_error());
        }
        // SAFETY: a descriptor made just now.
        let fd = unsafe { OwnedFd::from_raw_fd(fd as RawFd) };
        let mut queues = [ptr::null_mut(); 3];
        for (queue, at) in queues.iter_mut().zip(QUEUES) {
            let how = libc::PROT_READ | libc::PROT_WRITE;
            // SAFETY: replaces nothing.
            let got =
                unsafe { libc::mmap(ptr::null_mut(), MAPPED, how, libc::MAP_SHARED, fd.as_raw_fd(), at) };
            if got == libc::MAP_FAILED {
                return Err(io::Error::last_os_error());
            }
            *queue = got.cast();
        }
        let part = libc::iovec { iov_base: buffer.cast(), iov_len: len };
        // SAFETY: one buffer, which the caller answers for.
        let done = unsafe {
            libc::syscall(libc::SYS_io_uring_register, fd.as_raw_fd(), REGISTER_BUFFERS, &raw const part, 1)
        };
        if done < 0 {
            return Err(io::Error::last_os_error());
        }
        Ok(Ring { fd, params, queues })
    }

    fn word(&self, queue: usize, at: u32) -> &AtomicU32 {
        // SAFETY: an aligned word of the mapped queue, by an offset of the kernel's.
        unsafe { &*self.queues[queue].add(at as usize).cast() }
    }

    pub fn read(&mut self, file: RawFd, offset: u64, target: *mut u8, len: u32) -> io::Result<()> {
        let entry = Submission {
            opcode: READ_FIXED,
            fd: file,
            offset,
            address: target.expose_provenance() as u64,
            len,
            ..Submission::default()
        };
        let tail = self.word(0, self.params.sq.tail).load(Ordering::Relaxed);
        // SAFETY: the only entry of the queue, which is free as every read waits for its end.
        unsafe { self.queues[2].cast::<Submission>().write(entry) };
        self.word(0, self.params.sq.array).store(0, Ordering::Relaxed);
        self.word(0, self.params.sq.tail).store(tail.wrapping_add(1), Ordering::Release);
        loop {
            // SAFETY: passes no memory of ours.
            let done = unsafe {
                libc::syscall(libc::SYS_io_uring_enter, self.fd.as_raw_fd(), 1, 1, WAIT, ptr::null::<u8>(), 0)
            };
            if done >= 0 {
                break;
            }
            let error = io::Error::last_os_error();
            if error.kind() != io::ErrorKind::Interrupted {
                return Err(error);
            }
        }
        let head = self.word(1, self.params.cq.head);
        let at = head.load(Ordering::Relaxed);
        while self.word(1, self.params.cq.tail).load(Ordering::Acquire) == at {
            std::hint::spin_loop();
        }
        let index = at & self.word(1, self.params.cq.mask).load(Ordering::Relaxed);
        let result =
            self.word(1, self.params.cq.rest[1] + index * 16 + 8).load(Ordering::Relaxed).cast_signed();
        head.store(at.wrapping_add(1), Ordering::Release);
        match result {
            n if n == len.cast_signed() => Ok(()),
            n if n < 0 => Err(io::Error::from_raw_os_error(-n)),
            n => Err(io::Error::other(format!("{n} bytes instead of {len}"))),
        }
    }
}

impl Drop for Ring {
    fn drop(&mut self) {
        for queue in self.queues {
            // SAFETY: mapped by `pin`, and used by this value alone.
            unsafe { libc::munmap(queue.cast(), MAPPED) };
        }
    }
}
