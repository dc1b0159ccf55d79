//! One `PAGEMAP_SCAN` over a range with asynchronous userfaultfd write tracking.

#![allow(unsafe_code)]

use crate::Result;
use std::io;
use std::os::fd::{AsRawFd, FromRawFd, OwnedFd};
use std::ptr;

const PAGE: usize = 4096;
const PAGEMAP_SCAN: libc::c_ulong = 0xc060_6610;
const UFFDIO_API: libc::c_ulong = 0xc018_aa3f;
const UFFDIO_REGISTER: libc::c_ulong = 0xc020_aa00;
const UFFDIO_WRITEPROTECT: libc::c_ulong = 0xc018_aa06;
const USER_MODE_ONLY: libc::c_long = 1;
const FEATURE_WP_ASYNC: u64 = 1 << 15;
const MODE_WP: u64 = 2;
const PAGE_IS_WRITTEN: u64 = 2;

#[repr(C)]
#[derive(Clone, Copy, Default)]
struct Region {
    start: u64,
    end: u64,
    categories: u64,
}

#[repr(C)]
#[derive(Default)]
struct ScanArg {
    size: u64,
    flags: u64,
    start: u64,
    end: u64,
    walk_end: u64,
    vec: u64,
    vec_len: u64,
    max_pages: u64,
    category_inverted: u64,
    category_mask: u64,
    category_anyof_mask: u64,
    return_mask: u64,
}

const _: () = assert!(size_of::<ScanArg>() == 96 && size_of::<Region>() == 24);

/// A private mapping of a memory file, every page present and all but one protected.
pub struct ScanFloor {
    base: *mut u8,
    len: usize,
    pagemap: OwnedFd,
    /// Keeps the registration alive.
    _uffd: OwnedFd,
    regions: [Region; 64],
}

// SAFETY: the mapping belongs to the value and is touched only by code that borrows it.
unsafe impl Send for ScanFloor {}

impl ScanFloor {
    /// Over `len` bytes. Fails on kernels before 6.7.
    pub fn new(len: usize) -> Result<Self> {
        // SAFETY: plain system calls; the mapping is new and its results are checked.
        unsafe {
            let file = own(libc::memfd_create(c"floor".as_ptr(), libc::MFD_CLOEXEC).into())?;
            check(libc::ftruncate(file.as_raw_fd(), len as libc::off_t).into())?;
            let (read_write, private) = (libc::PROT_READ | libc::PROT_WRITE, libc::MAP_PRIVATE);
            let base = libc::mmap(ptr::null_mut(), len, read_write, private, file.as_raw_fd(), 0);
            if base == libc::MAP_FAILED {
                return Err(io::Error::last_os_error().into());
            }
            let uffd = own(libc::syscall(
                libc::SYS_userfaultfd,
                libc::c_long::from(libc::O_CLOEXEC) | USER_MODE_ONLY,
            ))?;
            let floor = ScanFloor {
                base: base.cast(),
                len,
                pagemap: own(
                    libc::open(c"/proc/self/pagemap".as_ptr(), libc::O_RDONLY | libc::O_CLOEXEC).into()
                )?,
                _uffd: uffd,
                regions: [Region::default(); 64],
            };
            for page in 0..len / PAGE {
                floor.base.add(page * PAGE).write_volatile(1);
            }
            let (start, fd) = (base.addr() as u64, floor._uffd.as_raw_fd());
            let mut api = [0xaa, FEATURE_WP_ASYNC, 0];
            check(libc::ioctl(fd, UFFDIO_API, &raw mut api).into())?;
            let mut register = [start, len as u64, MODE_WP, 0];
            check(libc::ioctl(fd, UFFDIO_REGISTER, &raw mut register).into())?;
            let mut protect = [start, len as u64, 1];
            check(libc::ioctl(fd, UFFDIO_WRITEPROTECT, &raw mut protect).into())?;
            floor.base.add(len / 2).write_volatile(2);
            Ok(floor)
        }
    }

    #[inline]
    pub fn scan(&mut self) -> usize {
        let mut arg = ScanArg {
            size: size_of::<ScanArg>() as u64,
            start: self.base.addr() as u64,
            end: (self.base.addr() + self.len) as u64,
            vec: self.regions.as_mut_ptr().expose_provenance() as u64,
            vec_len: self.regions.len() as u64,
            category_mask: PAGE_IS_WRITTEN,
            return_mask: PAGE_IS_WRITTEN,
            ..ScanArg::default()
        };
        // SAFETY: the struct is the kernel's and names a buffer of `vec_len` regions.
        let found = unsafe { libc::ioctl(self.pagemap.as_raw_fd(), PAGEMAP_SCAN, &raw mut arg) };
        usize::try_from(found).unwrap_or(0)
    }
}

impl Drop for ScanFloor {
    fn drop(&mut self) {
        // SAFETY: mapped by `new`, and known to no other code.
        unsafe { libc::munmap(self.base.cast(), self.len) };
    }
}

fn check(result: libc::c_long) -> io::Result<libc::c_long> {
    if result < 0 { Err(io::Error::last_os_error()) } else { Ok(result) }
}

/// # Safety
/// A nonnegative result is a new descriptor of the caller.
unsafe fn own(result: libc::c_long) -> io::Result<OwnedFd> {
    let fd = check(result)?;
    // SAFETY: the caller's promise; descriptors fit.
    Ok(unsafe { OwnedFd::from_raw_fd(fd as libc::c_int) })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn it_finds_the_one_written_page() {
        match ScanFloor::new(1 << 20) {
            Ok(mut floor) => assert_eq!((floor.scan(), floor.scan()), (1, 1)),
            Err(error) => eprintln!("NOT TESTED: {error}"),
        }
    }
}
