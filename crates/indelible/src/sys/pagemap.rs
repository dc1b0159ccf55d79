//! `PAGEMAP_SCAN` (Linux 6.7): which pages of a range were written since they were protected.
//!
//! Struct layouts are the kernel's (`include/uapi/linux/fs.h`), asserted below.

#![allow(unsafe_code)]

use std::io;
use std::os::fd::{AsFd, AsRawFd};
use std::sync::atomic::{AtomicBool, Ordering};

use super::PAGE;
use super::fork::ForkFd;
use super::per_process::PerProcess;

#[repr(C)]
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct Region {
    pub(crate) start: u64,
    pub(crate) end: u64,
    pub(crate) categories: u64,
}

#[repr(C)]
#[derive(Clone, Copy, Debug, Default)]
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

const _: () = assert!(size_of::<Region>() == 24 && size_of::<ScanArg>() == 96);
const _: () = assert!(std::mem::offset_of!(ScanArg, vec) == 40);
const _: () = assert!(std::mem::offset_of!(ScanArg, return_mask) == 88);

/// `_IOWR('f', 16, struct pm_scan_arg)`.
const PAGEMAP_SCAN: libc::Ioctl = (3_u32 << 30 | 96 << 16 | (b'f' as u32) << 8 | 16) as libc::Ioctl;

const WRITTEN: u64 = 1 << 1;
const FILE: u64 = 1 << 2;
const PRESENT: u64 = 1 << 3;
const SWAPPED: u64 = 1 << 4;

/// Protect matching pages; fail unless the kernel lifts the protection by itself.
const WP_MATCHING: u64 = 1 << 0;
const CHECK_WPASYNC: u64 = 1 << 1;

#[derive(Clone, Copy, Debug)]
pub(crate) enum Seek {
    /// Without write protection: the only question with a fast path in the kernel. Includes pages
    /// only read, absent pages, and holes without a page table.
    Written,
    /// A protected absent page looks swapped. [`Region::is_dirty`] tells which were stored to.
    Existing,
    OwnPresent,
    Present,
    /// As [`Seek::Written`], and protects the found pages atomically. Needs asynchronous write
    /// protection.
    ProtectWritten,
}

impl Region {
    /// For [`Seek::Existing`]: stored to since its last protection, and this process's own copy.
    pub(crate) fn is_dirty(self) -> bool {
        self.categories & (WRITTEN | FILE) == WRITTEN
    }
}

#[derive(Debug)]
pub(crate) struct Pagemap(ForkFd);

impl Pagemap {
    pub(crate) fn get() -> io::Result<&'static Pagemap> {
        static MAP: PerProcess<Pagemap> = PerProcess::new();
        MAP.get_or_try(|_| {
            use rustix::fs::{Mode, OFlags, open};
            let fd = open("/proc/self/pagemap", OFlags::RDONLY | OFlags::CLOEXEC, Mode::empty())?;
            Ok(Pagemap(ForkFd::new(fd)?))
        })
    }

    pub(crate) fn of(process: u32) -> io::Result<Pagemap> {
        use rustix::fs::{Mode, OFlags, open};
        let path = format!("/proc/{process}/pagemap");
        Ok(Pagemap(ForkFd::new(open(path, OFlags::RDONLY | OFlags::CLOEXEC, Mode::empty())?)?))
    }

    pub(crate) fn supported() -> bool {
        static YES: AtomicBool = AtomicBool::new(false);
        if YES.load(Ordering::Relaxed) {
            return true;
        }
        let page = std::ptr::from_ref(&PAGEMAP_SCAN).addr() & !(PAGE - 1);
        let yes = Pagemap::get()
            .is_ok_and(|map| map.scan(page, page + PAGE, Seek::Present, &mut [Region::default(); 2]).is_ok());
        YES.store(yes, Ordering::Relaxed);
        yes
    }

    /// In order; returns their number and the address reached: less than `end` if `found` is full.
    #[inline]
    pub(crate) fn scan(
        &self,
        start: usize,
        end: usize,
        seek: Seek,
        found: &mut [Region],
    ) -> io::Result<(usize, usize)> {
        let (category_mask, category_inverted, category_anyof_mask, return_mask) = match seek {
            Seek::Written | Seek::ProtectWritten => (WRITTEN, 0, 0, WRITTEN),
            Seek::Existing => (0, 0, PRESENT | SWAPPED, FILE | WRITTEN),
            Seek::OwnPresent => (PRESENT | FILE, FILE, 0, PRESENT),
            Seek::Present => (PRESENT, 0, 0, PRESENT),
        };
        let mut arg = ScanArg {
            size: size_of::<ScanArg>() as u64,
            flags: if matches!(seek, Seek::ProtectWritten) { WP_MATCHING | CHECK_WPASYNC } else { 0 },
            start: start as u64,
            end: end as u64,
            vec: found.as_mut_ptr().expose_provenance() as u64,
            vec_len: found.len() as u64,
            category_inverted,
            category_mask,
            category_anyof_mask,
            return_mask,
            ..ScanArg::default()
        };
        loop {
            // SAFETY: `arg` has the kernel's layout (asserted above) and names a buffer of
            // `found.len()` regions.
            let n = unsafe { libc::ioctl(self.0.as_fd().as_raw_fd(), PAGEMAP_SCAN, &raw mut arg) };
            if let Ok(n) = usize::try_from(n) {
                return Ok((n, arg.walk_end as usize));
            }
            let error = io::Error::last_os_error();
            if error.kind() != io::ErrorKind::Interrupted {
                return Err(error);
            }
        }
    }
}
