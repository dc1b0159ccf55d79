//! Mappings at fixed addresses: the memory of an object's shadow, private, or shared with a file.
//!
//! Invariants:
//! 1. `[addr, addr + len + kept)` is mapped by this value alone until drop, in the process of
//!    `generation` only: forked children do not inherit it (and a late drop in a child unmaps
//!    nothing), unless it is `inherited`: then each child has its own mapping there, which its copy
//!    of this value unmaps. The `kept` bytes at its end are inaccessible.
//! 2. `addr`, `len` and `kept` are multiples of the page size, `len` > 0, and the end is a user
//!    address.

#![allow(unsafe_code)]

mod buffer;
mod error;
mod range;
pub(crate) mod strays;

use std::io;
use std::os::fd::{AsFd, BorrowedFd};
use std::ptr::NonNull;

pub(crate) use buffer::SecretBuffer;
pub(crate) use error::MappingError;
#[cfg(test)]
pub(crate) use range::user_end;
use range::{check, duplicate, leave_out};

use crate::sys::PAGE;
use crate::sys::fork::{self, ForkFd, NoFork};
use crate::sys::mmap::{self, Place, Protection};

const WIPED_AT_ONCE: usize = 1 << 20;

#[derive(Debug)]
enum Kind {
    File(ForkFd, u64),
    Shared(ForkFd, u64),
    Anonymous,
}

impl Kind {
    fn begin_at(&mut self, offset: u64) -> u64 {
        match self {
            Kind::File(_, at) | Kind::Shared(_, at) => std::mem::replace(at, offset),
            Kind::Anonymous => 0,
        }
    }
}

#[derive(Debug)]
pub(crate) struct Mapping {
    addr: usize,
    len: usize,
    kept: usize,
    roomy: bool,
    kind: Kind,
    protection: Protection,
    generation: u32,
    inherited: bool,
    secret: bool,
}

impl Mapping {
    pub(crate) fn file(
        addr: impl Into<Option<usize>>,
        len: usize,
        file: BorrowedFd<'_>,
        offset: u64,
        protection: Protection,
    ) -> Result<Mapping, MappingError> {
        let at = addr.into();
        let addr = at.unwrap_or(0);
        if !offset.is_multiple_of(PAGE as u64) {
            return Err(MappingError::Range {
                addr,
                len,
                why: "the file offset is not a multiple of the page size",
            });
        }
        let own = duplicate(file).map_err(|source| MappingError::Io { addr, len, source })?;
        Mapping::new(at, (len, 0), Kind::File(own, offset), protection)
    }

    /// With `room` bytes of addresses to grow into, if possible.
    pub(crate) fn file_with_room(
        (len, room): (usize, usize),
        file: BorrowedFd<'_>,
        offset: u64,
        protection: Protection,
    ) -> Result<Mapping, MappingError> {
        let own = duplicate(file).map_err(|source| MappingError::Io { addr: 0, len, source })?;
        Mapping::new(None, (len, room), Kind::File(own, offset), protection)
    }

    pub(crate) fn anonymous_with_room(
        (len, room): (usize, usize),
        protection: Protection,
    ) -> Result<Mapping, MappingError> {
        Mapping::new(None, (len, room), Kind::Anonymous, protection)
    }

    pub(crate) fn shared(
        addr: Option<usize>,
        (len, room): (usize, usize),
        file: BorrowedFd<'_>,
        offset: u64,
        protection: Protection,
    ) -> Result<Mapping, MappingError> {
        let failed = |source| MappingError::Io { addr: addr.unwrap_or(0), len, source };
        let kind = Kind::Shared(duplicate(file).map_err(failed)?, offset);
        Mapping::new(addr, (len, room), kind, protection)
    }

    /// Earlier stores are gone. On failure nothing mapped is unmapped.
    ///
    /// # Safety
    /// No thread uses the range meanwhile.
    pub(crate) unsafe fn move_to(
        &mut self,
        len: usize,
        offset: u64,
        protection: Protection,
    ) -> Result<(), MappingError> {
        check(self.addr, len)?;
        let all = self.len + self.kept;
        if len > all {
            let why = "it is longer than what was kept";
            return Err(MappingError::Range { addr: self.addr, len, why });
        }
        let before = self.kind.begin_at(offset);
        if let Err(error) = map(self.addr, len, &self.kind, 0, protection, Place::Over) {
            self.kind.begin_at(before);
            return Err(error);
        }
        (self.len, self.kept, self.protection) = (len, all - len, protection);
        self.release();
        Ok(())
    }

    pub(crate) fn anonymous(
        addr: impl Into<Option<usize>>,
        len: usize,
        protection: Protection,
    ) -> Result<Mapping, MappingError> {
        Mapping::new(addr.into(), (len, 0), Kind::Anonymous, protection)
    }

    fn new(
        addr: Option<usize>,
        (len, room): (usize, usize),
        kind: Kind,
        protection: Protection,
    ) -> Result<Mapping, MappingError> {
        let (addr, room, place) = match addr {
            Some(addr) => {
                check(addr, len)?;
                (addr, len, Place::Free)
            }
            None => {
                check(PAGE, len)?;
                let room = room.max(len);
                let found = mmap::addresses(room).map(|addr| (addr, room));
                let found = found.or_else(|_| mmap::addresses(len).map(|addr| (addr, len)));
                let (addr, room) = found.map_err(|source| MappingError::Io { addr: 0, len, source })?;
                (addr, room, Place::Over)
            }
        };
        let behind = || match room > len {
            true => map(addr + len, room - len, &Kind::Anonymous, 0, Protection::None, Place::Over),
            false => Ok(()),
        };
        let mapped = map(addr, len, &kind, 0, protection, place).and_then(|()| behind());
        if mapped.is_err() && place == Place::Over {
            // SAFETY: unpublished addresses.
            let _ = unsafe { mmap::unmap(addr, room) };
        }
        mapped?;
        Ok(Mapping {
            addr,
            len,
            kept: room - len,
            roomy: room > len,
            kind,
            protection,
            generation: fork::generation(),
            inherited: false,
            secret: false,
        })
    }

    pub(crate) fn inherit(&mut self) -> io::Result<()> {
        self.inherited = true;
        // SAFETY: our own mapping (1).
        let done = unsafe { mmap::do_fork(self.addr, self.len) };
        self.inherited = done.is_ok();
        done
    }

    fn is_absent(&self) -> bool {
        !self.inherited && fork::is_stale(self.generation)
    }

    pub(crate) fn addr(&self) -> usize {
        self.addr
    }

    pub(crate) fn len(&self) -> usize {
        self.len
    }

    pub(crate) fn base(&self) -> NonNull<u8> {
        // The kernel maps nothing at address 0 (2: `check` refuses it).
        NonNull::new(std::ptr::with_exposed_provenance_mut(self.addr)).unwrap_or(NonNull::dangling())
    }

    pub(crate) fn is_file(&self) -> bool {
        matches!(self.kind, Kind::File(..))
    }

    /// On failure none.
    pub(crate) fn keep(&mut self, new_len: usize) -> Result<(), MappingError> {
        if self.roomy {
            let why = "it is longer than what was kept";
            let fits = new_len <= self.room();
            return fits.then_some(()).ok_or(MappingError::Range { addr: self.addr, len: new_len, why });
        }
        self.release();
        if new_len <= self.len {
            return Ok(());
        }
        check(self.addr, new_len)?;
        let (behind, kept) = (self.addr + self.len, new_len - self.len);
        map(behind, kept, &Kind::Anonymous, 0, Protection::None, Place::Free)?;
        self.kept = kept;
        Ok(())
    }

    pub(crate) fn room(&self) -> usize {
        self.len + self.kept
    }

    pub(crate) fn release(&mut self) {
        if self.kept == 0 || self.roomy || self.is_absent() {
            return;
        }
        // SAFETY: the end of our own mapping (1), which was never handed out.
        if unsafe { mmap::unmap(self.addr + self.len, self.kept) }.is_ok() {
            self.kept = 0;
        }
    }

    pub(crate) fn grow(&mut self, new_len: usize, offset: Option<u64>) -> Result<(), MappingError> {
        if new_len <= self.len {
            return Ok(());
        }
        if new_len > self.len + self.kept {
            self.keep(new_len)?;
        }
        let more = new_len - self.len;
        let at = self.addr + self.len;
        let done = match offset {
            Some(offset) => {
                let before = self.kind.begin_at(offset);
                let done = map(at, more, &self.kind, self.len, self.protection, Place::Over);
                self.kind.begin_at(before);
                done
            }
            None => map(at, more, &Kind::Anonymous, 0, self.protection, Place::Over),
        };
        let secret = |source| MappingError::Io { addr: at, len: more, source };
        let done = done.and_then(|()| if self.secret { leave_out(at, more).map_err(secret) } else { Ok(()) });
        if done.is_ok() {
            (self.len, self.kept) = (new_len, self.kept - more);
        }
        self.release();
        done
    }

    pub(crate) fn is_secret(&self) -> bool {
        self.secret
    }

    /// No core dumps; overwritten before unmapping; no swap if the process may lock memory.
    pub(crate) fn keep_secret(&mut self) -> io::Result<()> {
        self.secret = true;
        leave_out(self.addr, self.len)
    }

    /// Touching an absent page would wait for its filler.
    fn wipe(&mut self) {
        if !matches!(self.kind, Kind::Anonymous) {
            return;
        }
        // SAFETY: our own mapping (1), no longer used.
        if unsafe { mmap::protect(self.addr, self.len, Protection::ReadWrite) }.is_err() {
            return;
        }
        for at in (0..self.len).step_by(WIPED_AT_ONCE) {
            let pages = WIPED_AT_ONCE.min(self.len - at) / PAGE;
            let present = mmap::resident(self.addr + at, pages).unwrap_or_default();
            for (page, _) in present.iter().enumerate().filter(|(_, present)| **present) {
                // SAFETY: a writable, present page of our own mapping (1), no longer used.
                unsafe { self.base().as_ptr().add(at + page * PAGE).write_bytes(0, PAGE) };
            }
        }
    }

    pub(crate) fn protect(&mut self, protection: Protection) -> io::Result<()> {
        // SAFETY: our own mapping (1); a caller that takes rights away finds stores that need them.
        unsafe { mmap::protect(self.addr, self.len, protection) }?;
        self.protection = protection;
        Ok(())
    }

    /// # Safety
    /// No code relies on the range's protection any more.
    pub(crate) unsafe fn open_up(&mut self) {
        // SAFETY: our own mapping (1).
        let _ = unsafe { mmap::protect(self.addr, self.len, Protection::ReadWrite) };
    }

    pub(crate) fn shrink(&mut self, new_len: usize) {
        if new_len == 0 || new_len >= self.len || !new_len.is_multiple_of(PAGE) || self.is_absent() {
            return;
        }
        let (tail, len) = (self.addr + new_len, self.len - new_len);
        if self.roomy {
            if map(tail, len, &Kind::Anonymous, 0, Protection::None, Place::Over).is_ok() {
                (self.len, self.kept) = (new_len, self.kept + len);
            }
            return;
        }
        // SAFETY: the tail of our own mapping (1), which the layer above did not hand out.
        if unsafe { mmap::unmap(tail, len) }.is_ok() {
            self.len = new_len;
        }
    }

    #[cfg(test)]
    pub(crate) fn adopt(&mut self, len: usize) {
        self.len = len;
    }

    /// Frees private copies and page tables.
    ///
    /// # Safety
    /// No thread stores to the range meanwhile, and nothing in it differs from the file.
    pub(crate) unsafe fn renew(&mut self, offset: u64) -> Result<(), MappingError> {
        let before = self.kind.begin_at(offset);
        let done = map(self.addr, self.len, &self.kind, 0, self.protection, Place::Over);
        if done.is_err() {
            self.kind.begin_at(before);
        }
        done
    }
}

impl Drop for Mapping {
    fn drop(&mut self) {
        if self.is_absent() {
            return;
        }
        if self.secret {
            self.wipe();
        }
        // SAFETY: our own mapping (1); the layer that handed out pointers keeps this value alive.
        if unsafe { mmap::unmap(self.addr, self.len + self.kept) }.is_err() {
            // Out of mapping slots for a split: at least make the range inaccessible. SAFETY: as
            // above.
            let _ = unsafe { mmap::protect(self.addr, self.len, Protection::None) };
        }
    }
}

fn map(
    addr: usize,
    len: usize,
    kind: &Kind,
    skip: usize,
    protection: Protection,
    place: Place,
) -> Result<(), MappingError> {
    let failed = |source: io::Error| match source.raw_os_error() {
        Some(libc::EEXIST) => MappingError::Occupied { addr, len, occupant: error::occupant(addr, len) },
        _ => MappingError::Io { addr, len, source },
    };
    let no_fork = NoFork::enter().map_err(failed)?;
    // SAFETY: `Free` replaces nothing; `Over` is for our own ranges: `grow`, kept room; `shrink`, a
    // tail not handed out; `new`, unpublished addresses; `renew`, `move_to`: their callers answer.
    unsafe {
        match kind {
            Kind::File(fd, offset) => {
                mmap::private(addr, len, protection, Some((fd.as_fd(), offset + skip as u64)), place)
            }
            Kind::Shared(fd, offset) => {
                mmap::shared_at(addr, len, protection, (fd.as_fd(), offset + skip as u64), place)
            }
            Kind::Anonymous => mmap::private(addr, len, protection, None, place),
        }
    }
    .map_err(failed)?;
    // SAFETY: mapped just now.
    let done = unsafe { mmap::dont_fork(addr, len) };
    drop(no_fork);
    done.map_err(|source| {
        if place == Place::Free {
            // SAFETY: mapped just now, not yet used.
            let _ = unsafe { mmap::unmap(addr, len) };
        }
        MappingError::Io { addr, len, source }
    })
}

#[cfg(test)]
mod tests;
