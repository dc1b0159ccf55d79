//! A pool that is memory: tmpfs or any file treated as persistent memory, a DAX file, device-DAX.
//!
//! Invariants:
//! 1. Each of `mappings` is a shared mapping of the file until drop, and the newest covers the
//!    pool's `len` bytes, in the process of generation `fd.generation` only.
//! 2. A page that `mappings` knows to have blocks had them reserved through this handle after its
//!    last discard through this handle; a store to it cannot raise SIGBUS for lack of space. A
//!    process that takes over a range discarded by another calls `reserve` before it writes: an
//!    explicit `reserve` always asks the kernel.
//! 3. A range is written by one process at a time: the one whose lock covers it. Its bytes are
//!    copied by assembly, never through references, as other processes may read them meanwhile.
//! 4. Every `write` starts the write-back of its lines itself and hands them over, so that any
//!    thread's fence is a barrier.
//!
//! A file truncated while mapped raises SIGBUS on access; `verify` detects it beforehand only.

#![allow(unsafe_code)]

use std::os::fd::AsFd;
use std::ptr::NonNull;
use std::sync::Arc;

use indelible_store::format::{TABLE_LANE, TABLE_ROOT};
use indelible_store::medium::{
    Capabilities, Extended, Fatal, LockKey, LockMode, LockTable, Locks, Medium, MediumError, Process,
    ReserveError,
};
use rustix::io::Errno;

use super::file::{live, verify};
use super::mappings::{Mapping, Mappings};
use super::{huge, space};
use crate::sys::fork::{ForkFd, NoFork};
use crate::sys::mmap::{self, Protection};
use crate::sys::sync::{AtomicU64, Ordering};
use crate::sys::{PAGE, flush, lock_table, ofd, process};

/// Longer writes bypass the caches: they would evict more than a later comparison gains.
const STREAM_FROM: usize = 32 << 10;
/// Bytes mapped at a time, so that they are used while still cached.
const PIECE: u64 = 1 << 20;
const STORE_ZEROS_BELOW: u64 = 256 << 10;

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Backing {
    File,
    /// As `File`; block allocation becomes durable by fdatasync, not by fences.
    Dax,
    Device,
}

pub(crate) struct MemoryMedium {
    fd: Arc<ForkFd>,
    mappings: Mappings,
    len: AtomicU64,
    read_only: bool,
    backing: Backing,
}

// SAFETY: the mapping belongs to the value and is touched under invariant 3.
unsafe impl Send for MemoryMedium {}
// SAFETY: as above; threads coordinate through the store's locks, and unsynchronised access is by
// assembly.
unsafe impl Sync for MemoryMedium {}

fn whole_pages(len: u64) -> std::io::Result<usize> {
    let pages = usize::try_from(len).ok().and_then(|len| len.checked_next_multiple_of(PAGE));
    pages.filter(|len| *len > 0 && *len <= isize::MAX as usize).ok_or(std::io::ErrorKind::InvalidInput.into())
}

fn map(fd: &ForkFd, mapped: usize, read_only: bool, backing: Backing) -> std::io::Result<Mapping> {
    let protection = if read_only { Protection::Read } else { Protection::ReadWrite };
    let no_fork = NoFork::enter()?;
    let base = mmap::shared(fd.as_fd(), mapped, protection, backing == Backing::Dax)?;
    // A load from a tmpfs hole claims a page, even in read-only use.
    let holes = backing == Backing::File || (backing == Backing::Dax && !read_only);
    let mapping = Mapping::new(base, mapped, holes);
    // SAFETY: the mapping was made just now.
    unsafe { mmap::dont_fork(base.addr().get(), mapped) }?;
    drop(no_fork);
    Ok(mapping)
}

impl MemoryMedium {
    pub(super) fn map(
        fd: Arc<ForkFd>,
        len: u64,
        read_only: bool,
        backing: Backing,
    ) -> std::io::Result<MemoryMedium> {
        let mapping = map(&fd, whole_pages(len)?, read_only, backing)?;
        Ok(MemoryMedium {
            fd,
            mappings: Mappings::new(mapping),
            len: AtomicU64::new(len),
            read_only,
            backing,
        })
    }

    pub(crate) fn base(&self) -> NonNull<u8> {
        self.mappings.newest().base
    }

    fn know(&self, len: u64) -> std::io::Result<()> {
        if len > self.len() {
            self.mappings
                .cover(whole_pages(len)?, |mapped| map(&self.fd, mapped, self.read_only, self.backing))?;
            self.len.fetch_max(len, Ordering::Release);
        }
        Ok(())
    }

    fn at(&self, offset: u64, len: u64) -> Result<*mut u8, MediumError> {
        space::check(offset, len, self.len())?;
        live(&self.fd)?;
        // SAFETY: within the mapping (1): offset ≤ len ≤ mapped.
        Ok(unsafe { self.base().as_ptr().add(offset as usize) })
    }

    /// In bounds, writable, with blocks, reserved here if need be.
    #[inline]
    fn target(&self, offset: u64, len: u64) -> Result<*mut u8, Fatal> {
        if self.read_only {
            return Err(MediumError::ReadOnly.into());
        }
        let at = self.at(offset, len)?;
        if !self.mappings.newest().is_known(offset, len) {
            self.reserve_pages(offset, len)?.map_err(space::failed)?;
        }
        Ok(at)
    }

    fn has_blocks(&self, offset: u64, len: u64) -> Result<bool, Fatal> {
        if self.mappings.newest().is_known(offset, len) {
            return Ok(true);
        }
        match self.reserve_pages(offset, len)?.map_err(space::refused) {
            Ok(()) => Ok(true),
            Err(ReserveError::NoSpace) => Ok(false),
            Err(ReserveError::Fatal(error)) => Err(error),
        }
    }

    #[cold]
    fn reserve_pages(&self, offset: u64, len: u64) -> Result<Result<(), Errno>, MediumError> {
        let start = offset & !(PAGE as u64 - 1);
        let end = (offset + len).next_multiple_of(PAGE as u64).min(self.len());
        let done = space::reserve(live(&self.fd)?, start, end - start);
        if done.is_ok() {
            self.mappings.know(offset, len);
        }
        Ok(done)
    }

    fn populate(&self, offset: u64, len: u64) {
        let start = offset as usize / PAGE * PAGE;
        let end = (offset + len) as usize;
        if end - start > PAGE {
            // SAFETY: within the mapping (1), as the caller has checked.
            unsafe { mmap::populate(self.base().addr().get() + start, end - start) };
        }
    }
}

impl Medium for MemoryMedium {
    fn len(&self) -> u64 {
        self.len.load(Ordering::Acquire)
    }

    fn read_only(&self) -> bool {
        self.read_only
    }

    fn read(&self, offset: u64, buf: &mut [u8]) -> Result<(), MediumError> {
        let at = self.at(offset, buf.len() as u64)?;
        if !self.mappings.newest().is_known(offset, buf.len() as u64) {
            // Without blocks a load would claim one, and raise SIGBUS for lack of room.
            return space::read_all(live(&self.fd)?, offset, buf);
        }
        // SAFETY: the range was checked; the copy is assembly (3).
        unsafe { flush::copy(buf.as_mut_ptr(), at, buf.len()) };
        Ok(())
    }

    fn read_once(&self, offset: u64, buf: &mut [u8]) -> Result<(), MediumError> {
        // Each page that a load touches stays mapped.
        match self.backing {
            Backing::File | Backing::Dax => {
                space::check(offset, buf.len() as u64, self.len())?;
                space::read_all(live(&self.fd)?, offset, buf)
            }
            Backing::Device => self.read(offset, buf),
        }
    }

    fn write(&self, offset: u64, bytes: &[u8]) -> Result<(), Fatal> {
        let at = self.target(offset, bytes.len() as u64)?;
        // SAFETY: the range was checked and has blocks (2); it is the caller's to write (3).
        unsafe {
            if bytes.len() >= STREAM_FROM {
                flush::persist_copy(at, bytes);
            } else {
                flush::cached_copy(at, bytes);
            }
        }
        flush::hand_over();
        Ok(())
    }

    fn write_once(&self, offset: u64, bytes: &[u8]) -> Result<(), Fatal> {
        if self.read_only || self.backing != Backing::File {
            return self.write(offset, bytes);
        }
        // A store to a page that no write has filled makes the kernel zero it before.
        space::check(offset, bytes.len() as u64, self.len())?;
        let fd = live(&self.fd)?;
        space::write_all(bytes, offset, |bytes, at| rustix::io::pwrite(fd, bytes, at)).map_err(space::failed)
    }

    fn copy(&self, from: u64, to: u64, len: usize) -> Result<(), Fatal> {
        let source = self.at(from, len as u64)?;
        if !self.mappings.newest().is_known(from, len as u64) {
            let mut bytes = vec![0; len];
            self.read(from, &mut bytes)?;
            return self.write(to, &bytes);
        }
        let target = self.target(to, len as u64)?;
        // SAFETY: as in `read` and in `write`; the ranges are disjoint.
        unsafe { flush::cached_move(target, source, len) };
        flush::hand_over();
        Ok(())
    }

    fn stream(&self, offset: u64, bytes: &[u8]) -> Result<(), Fatal> {
        let at = self.target(offset, bytes.len() as u64)?;
        // SAFETY: as in `write`.
        unsafe { flush::persist_copy(at, bytes) };
        flush::hand_over();
        Ok(())
    }

    fn write_durable(&self, offset: u64, bytes: &[u8]) -> Result<(), Fatal> {
        let at = self.target(offset, bytes.len() as u64)?;
        // SAFETY: as in `write`.
        unsafe { flush::persist_copy(at, bytes) };
        flush::fence();
        Ok(())
    }

    fn barrier(&self) -> Result<(), Fatal> {
        flush::fence();
        Ok(())
    }

    fn zero(&self, offset: u64, len: u64) -> Result<(), Fatal> {
        if self.read_only {
            return Err(MediumError::ReadOnly.into());
        }
        space::check(offset, len, self.len())?;
        // Without room for blocks it becomes a hole: zeroing never fails.
        if (len < STORE_ZEROS_BELOW || self.backing == Backing::Device) && self.has_blocks(offset, len)? {
            let at = self.at(offset, len)?;
            // SAFETY: as in `write`; `len` fits, being within the mapping.
            unsafe { flush::persist_zeros(at, len as usize) };
            flush::hand_over();
            return Ok(());
        }
        self.mappings.forget(offset, len);
        let fd = live(&self.fd)?;
        space::zero(fd, offset, len).map_err(space::failed)?;
        if self.backing == Backing::Dax {
            // The hole is metadata, which a fence does not reach.
            rustix::fs::fdatasync(fd).map_err(space::failed)?;
        }
        Ok(())
    }

    fn reserve(&self, offset: u64, len: u64) -> Result<(), ReserveError> {
        if self.read_only {
            return Err(MediumError::ReadOnly.into());
        }
        self.at(offset, len)?;
        if self.backing == Backing::Device || len == 0 {
            return Ok(());
        }
        self.reserve_pages(offset, len)?.map_err(space::refused)
    }

    fn prepare(&self, offset: u64, len: u64) -> Result<(), ReserveError> {
        if self.backing == Backing::File && !self.read_only {
            self.at(offset, len)?;
            huge::fill(live(&self.fd)?, self.base().addr().get(), offset, len).map_err(space::refused)?;
        }
        self.reserve(offset, len)?;
        self.populate(offset, len);
        Ok(())
    }

    fn keep_near(&self, offset: u64, len: u64) {
        if !self.read_only && self.at(offset, len).is_ok() && !self.mappings.newest().is_known(offset, len) {
            // Without room for blocks, reads of holes stay system calls.
            let _ = self.reserve_pages(offset, len);
        }
    }

    fn extend(&self, len: u64) -> Result<Extended, ReserveError> {
        if self.read_only {
            return Err(MediumError::ReadOnly.into());
        }
        let fd = live(&self.fd)?;
        let Some(extended) = space::lengthen(fd, len)? else {
            return Ok(Extended { len: self.len(), zeros_from: self.len() });
        };
        if self.backing == Backing::Dax {
            rustix::fs::fdatasync(fd).map_err(space::failed)?;
        }
        self.know(extended.len).map_err(MediumError::Io)?;
        Ok(extended)
    }

    fn persist(&self, offset: u64, len: u64) -> Result<(), Fatal> {
        let (mut from, end) = (offset, offset + len);
        while from < end {
            let len = (end - from).min(PIECE);
            let at = self.target(from, len)?;
            // SAFETY: the range was checked and has blocks (2).
            unsafe { flush::write_back(at, len as usize) };
            from += len;
        }
        flush::fence();
        if self.backing == Backing::Dax {
            // System calls may have written bytes, whose metadata a fence does not reach.
            rustix::fs::fdatasync(live(&self.fd)?).map_err(space::failed)?;
        }
        Ok(())
    }

    fn discard(&self, offset: u64, len: u64) {
        if self.read_only || self.backing == Backing::Device || self.at(offset, len).is_err() {
            return;
        }
        self.mappings.forget(offset, len);
        if let Ok(fd) = live(&self.fd) {
            let _ = space::punch(fd, offset, len);
        }
    }

    fn shared_word(&self, offset: u64) -> Option<&AtomicU64> {
        // Called twice per psync. That page is never a hole: it begins with the root.
        if self.read_only || !offset.is_multiple_of(8) || !(TABLE_ROOT..TABLE_LANE).contains(&offset) {
            return None;
        }
        let at = self.at(offset, 8).ok()?;
        // SAFETY: aligned, in the mapping (1) and with blocks; all processes change it by atomic
        // operations only (3), or by copies while no process has a lane.
        Some(unsafe { AtomicU64::from_ptr(at.cast()) })
    }

    fn capabilities(&self) -> Capabilities {
        Capabilities::MEMORY
    }

    fn verify(&self) -> Result<(), MediumError> {
        Ok(self.know(verify(live(&self.fd)?, self.len())?)?)
    }
}

impl Locks for MemoryMedium {
    fn try_lock(&self, key: LockKey, mode: LockMode) -> Result<bool, MediumError> {
        ofd::try_lock_range(live(&self.fd)?, key.bytes(), mode)
    }

    fn unlock(&self, key: LockKey) {
        ofd::unlock_range(self.fd.as_fd(), key.bytes());
    }

    fn probe(&self, key: LockKey) -> Result<Option<LockMode>, MediumError> {
        ofd::probe(live(&self.fd)?, key.byte())
    }

    fn may_have_locks(&self, from: LockKey, to: LockKey) -> Result<bool, MediumError> {
        Ok(ofd::probe_range(live(&self.fd)?, from.byte()..=to.byte())?.is_some())
    }

    fn holder(&self, key: LockKey) -> Option<Process> {
        ofd::holder(self.fd.as_fd(), key.byte())
    }

    fn table(&self) -> LockTable {
        lock_table::locks(self.fd.as_fd())
    }

    fn process(&self, pid: u32) -> Process {
        process::seen(pid)
    }
}

impl Drop for MemoryMedium {
    fn drop(&mut self) {
        if self.fd.is_stale() {
            return;
        }
        for mapping in self.mappings.iter() {
            // SAFETY: a mapping of (1); its users borrow or share this value.
            let _ = unsafe { mmap::unmap(mapping.base.addr().get(), mapping.mapped) };
        }
        ofd::unlock_all(self.fd.as_fd());
    }
}
