//! Mappings and operations on them. The caller owns the range.

#![allow(unsafe_code)]

use std::ffi::c_void;
use std::io;
use std::os::fd::BorrowedFd;
use std::ptr::{self, NonNull};

use rustix::io::Errno;
use rustix::mm::{self, Advice, MapFlags, MprotectFlags, ProtFlags};

#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) enum Protection {
    None,
    Read,
    ReadWrite,
}

impl Protection {
    fn map(self) -> ProtFlags {
        match self {
            Protection::None => ProtFlags::empty(),
            Protection::Read => ProtFlags::READ,
            Protection::ReadWrite => ProtFlags::READ | ProtFlags::WRITE,
        }
    }

    fn change(self) -> MprotectFlags {
        match self {
            Protection::None => MprotectFlags::empty(),
            Protection::Read => MprotectFlags::READ,
            Protection::ReadWrite => MprotectFlags::READ | MprotectFlags::WRITE,
        }
    }

    pub(super) fn bits(self) -> u32 {
        self.map().bits()
    }
}

fn at(addr: usize) -> *mut c_void {
    ptr::with_exposed_provenance_mut(addr)
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Place {
    Free,
    Over,
}

/// Maps `[addr, addr + len)` privately: from `file` at its offset, or zeros.
///
/// # Safety
/// With [`Place::Over`] the range is the caller's, and no code relies on its content.
pub(crate) unsafe fn private(
    addr: usize,
    len: usize,
    protection: Protection,
    file: Option<(BorrowedFd<'_>, u64)>,
    place: Place,
) -> io::Result<()> {
    if cfg!(miri) {
        assert!(file.is_none(), "an interpreter maps no files");
        // SAFETY: under Miri there is memory at every address of the pool's window.
        unsafe { at(addr).cast::<u8>().write_bytes(0, len) };
        return Ok(());
    }
    // Without NORESERVE a sparse object beyond the machine's memory could not be attached. SAFETY:
    // the caller's promise.
    unsafe { fixed(addr, len, protection, MapFlags::PRIVATE | MapFlags::NORESERVE, file, place) }
}

/// Maps from the file's offset.
///
/// # Safety
/// As for [`private`].
pub(crate) unsafe fn shared_at(
    addr: usize,
    len: usize,
    protection: Protection,
    file: (BorrowedFd<'_>, u64),
    place: Place,
) -> io::Result<()> {
    // SAFETY: the caller's promise.
    unsafe { fixed(addr, len, protection, MapFlags::SHARED, Some(file), place) }
}

/// # Safety
/// As for [`private`].
unsafe fn fixed(
    addr: usize,
    len: usize,
    protection: Protection,
    sharing: MapFlags,
    file: Option<(BorrowedFd<'_>, u64)>,
    place: Place,
) -> io::Result<()> {
    let flags = sharing
        | match place {
            Place::Free => MapFlags::FIXED_NOREPLACE,
            Place::Over => MapFlags::FIXED,
        };
    // SAFETY: `Free` replaces nothing; for `Over` the caller answers.
    let got = unsafe {
        match file {
            Some((fd, offset)) => mm::mmap(at(addr), len, protection.map(), flags, fd, offset),
            None => mm::mmap_anonymous(at(addr), len, protection.map(), flags),
        }
    }?;
    if got.addr() != addr {
        // A kernel before 4.17 takes the address as a hint. SAFETY: the mapping is new and
        // unpublished.
        unsafe { mm::munmap(got, len) }?;
        return Err(io::Error::from_raw_os_error(libc::EEXIST));
    }
    Ok(())
}

pub(crate) fn addresses(len: usize) -> io::Result<usize> {
    let flags = MapFlags::PRIVATE | MapFlags::NORESERVE;
    // SAFETY: no address is given, so the mapping replaces nothing.
    let got = unsafe { mm::mmap_anonymous(ptr::null_mut(), len, ProtFlags::empty(), flags) }?;
    Ok(got.expose_provenance())
}

pub(crate) const HUGE: usize = 2 << 20;

/// At a multiple of [`HUGE`] if possible; `sync` asks for `MAP_SYNC`.
pub(crate) fn shared(
    file: BorrowedFd<'_>,
    len: usize,
    protection: Protection,
    sync: bool,
) -> io::Result<NonNull<u8>> {
    let flags = if sync { MapFlags::SHARED_VALIDATE | MapFlags::SYNC } else { MapFlags::SHARED };
    let hint = if len < HUGE { 0 } else { aligned(len).unwrap_or(0) };
    // SAFETY: the address is a hint, so the mapping replaces nothing.
    let base = unsafe { mm::mmap(at(hint), len, protection.map(), flags, file, 0) }?;
    NonNull::new(base.cast()).ok_or_else(|| io::Error::from_raw_os_error(libc::ENOMEM))
}

/// A multiple of [`HUGE`] at which `len` bytes were free a moment ago.
fn aligned(len: usize) -> io::Result<usize> {
    let flags = MapFlags::PRIVATE | MapFlags::NORESERVE;
    // SAFETY: no address is given, so the mapping replaces nothing; it is unpublished.
    unsafe {
        let probe = mm::mmap_anonymous(ptr::null_mut(), len + HUGE, ProtFlags::empty(), flags)?;
        mm::munmap(probe, len + HUGE)?;
        Ok(probe.addr().next_multiple_of(HUGE))
    }
}

/// If the kernel can (6.1, files in memory). Contents stay.
pub(crate) fn collapse(addr: usize, len: usize) -> io::Result<()> {
    // Not in the C library's headers yet.
    const COLLAPSE: i32 = 25;
    // SAFETY: changes neither contents nor access.
    match unsafe { libc::madvise(at(addr), len, COLLAPSE) } {
        0 => Ok(()),
        _ => Err(io::Error::last_os_error()),
    }
}

/// # Safety
/// The range is the caller's mapping, and nothing uses it any more.
pub(crate) unsafe fn unmap(addr: usize, len: usize) -> io::Result<()> {
    if cfg!(miri) {
        return Ok(());
    }
    // SAFETY: the caller's promise.
    Ok(unsafe { mm::munmap(at(addr), len) }?)
}

/// Async-signal-safe.
///
/// # Safety
/// The range is the caller's mapping, and no reference relies on the access that is taken away.
pub(crate) unsafe fn protect(addr: usize, len: usize, protection: Protection) -> io::Result<()> {
    if cfg!(miri) {
        return Ok(());
    }
    // SAFETY: the caller's promise.
    Ok(unsafe { mm::mprotect(at(addr), len, protection.change()) }?)
}

/// Linux 5.14; cheaper than faults.
///
/// # Safety
/// The range is a mapping, and has blocks under it.
pub(crate) unsafe fn populate(addr: usize, len: usize) {
    if cfg!(miri) {
        return;
    }
    // Read faults map neighbours, and write faults find them mapped: 8 MiB take 1.0 ms, without the
    // read 1.8.
    for advice in [Advice::LinuxPopulateRead, Advice::LinuxPopulateWrite] {
        // SAFETY: the caller's promise.
        let _ = unsafe { mm::madvise(at(addr), len, advice) };
    }
}

/// Linux 5.14. An error where touching would raise SIGBUS.
pub(crate) fn populate_for_reading(addr: usize, len: usize) -> io::Result<()> {
    if cfg!(miri) {
        return Ok(());
    }
    // SAFETY: changes neither contents nor access.
    Ok(unsafe { mm::madvise(at(addr), len, Advice::LinuxPopulateRead) }?)
}

pub(crate) fn resident(addr: usize, pages: usize) -> io::Result<Vec<bool>> {
    let mut out = vec![0_u8; pages];
    // SAFETY: the kernel fills a byte for each page, and reads no mapped bytes.
    match unsafe { libc::mincore(at(addr), pages * super::PAGE, out.as_mut_ptr()) } {
        0 => Ok(out.into_iter().map(|byte| byte & 1 != 0).collect()),
        _ => Err(io::Error::last_os_error()),
    }
}

/// Locked pages as well: the next access faults (Linux 5.18).
///
/// # Safety
/// The range is the caller's; its fault handler restores the same bytes, or no code relies on them.
pub(crate) unsafe fn drop_pages(addr: usize, len: usize) -> io::Result<()> {
    // SAFETY: the caller's promise.
    match unsafe { libc::madvise(at(addr), len, libc::MADV_DONTNEED_LOCKED) } {
        0 => Ok(()),
        _ => Err(io::Error::last_os_error()),
    }
}

/// Not locked pages (`EINVAL`): their program wants them in memory.
///
/// # Safety
/// The range is the caller's private mapping of a file, and equals the file in every byte; no
/// thread stores to it until this returns.
pub(crate) unsafe fn drop_copies(addr: usize, len: usize) -> io::Result<()> {
    // SAFETY: the caller's promise.
    match unsafe { libc::madvise(at(addr), len, libc::MADV_DONTNEED) } {
        0 => Ok(()),
        _ => Err(io::Error::last_os_error()),
    }
}

/// Never in swap. `EPERM`: longer than the limit for locked memory (`ulimit -l`, also for root).
pub(crate) fn lock_when_touched(addr: usize, len: usize) -> io::Result<()> {
    use rustix::process::{Resource, getrlimit};
    if cfg!(miri) || getrlimit(Resource::Memlock).current.is_some_and(|most| len as u64 > most) {
        return Err(io::Error::from_raw_os_error(libc::EPERM));
    }
    // SAFETY: changes neither contents nor access.
    Ok(unsafe { mm::mlock_with(at(addr), len, mm::MlockFlags::ONFAULT) }?)
}

pub(crate) fn dont_dump(addr: usize, len: usize) -> io::Result<()> {
    if cfg!(miri) {
        return Ok(());
    }
    // SAFETY: changes neither contents nor access.
    Ok(unsafe { mm::madvise(at(addr), len, Advice::LinuxDontDump) }?)
}

/// Where a sandbox forbids the advice, children have the range but never use it: a parent's handles
/// are stale there.
///
/// # Safety
/// The range is the caller's mapping.
pub(crate) unsafe fn dont_fork(addr: usize, len: usize) -> io::Result<()> {
    if cfg!(miri) {
        return Ok(());
    }
    // SAFETY: the advice changes nothing in this process.
    match unsafe { mm::madvise(at(addr), len, Advice::LinuxDontFork) } {
        Err(Errno::PERM | Errno::NOSYS) => Ok(()),
        done => Ok(done?),
    }
}

/// Undoes [`dont_fork`].
///
/// # Safety
/// The range is the caller's mapping.
pub(crate) unsafe fn do_fork(addr: usize, len: usize) -> io::Result<()> {
    if cfg!(miri) {
        return Ok(());
    }
    // SAFETY: the advice changes nothing in this process.
    match unsafe { mm::madvise(at(addr), len, Advice::LinuxDoFork) } {
        Err(Errno::PERM | Errno::NOSYS) => Ok(()),
        done => Ok(done?),
    }
}
