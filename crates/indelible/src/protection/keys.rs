//! Domains by protection keys: a thread's rights are a register, changed without a system call.
//!
//! Invariants:
//! 1. A [`Kept`] exists only where [`pkey::lack`] found nothing, which does not change while a
//!    process lives.
//! 2. `OURS` has the bits of the keys of live [`Kept`]s, and of no other: the program's own keys
//!    are left alone.
//! 3. A key that a page may still have is never given back.

#![allow(unsafe_code)]

use std::sync::atomic::{AtomicBool, AtomicU32, Ordering};

use super::ProtectionError;
use super::rights;
use crate::sys::mmap::Protection;
use crate::sys::pkey::{self, Key};

static OURS: AtomicU32 = AtomicU32::new(0);

#[derive(Debug)]
pub(super) struct Kept {
    key: Key,
    stuck: AtomicBool,
}

impl Kept {
    pub(super) fn new() -> Result<Kept, ProtectionError> {
        if let Some(lack) = pkey::lack() {
            return Err(ProtectionError::Lacking(lack));
        }
        let key = pkey::allocate().map_err(|error| match error.raw_os_error() {
            Some(libc::ENOSPC) => {
                ProtectionError::NoKeys { ours: OURS.load(Ordering::Relaxed).count_ones() / 2 }
            }
            _ => ProtectionError::Refused(error),
        })?;
        OURS.fetch_or(rights::mask(key.index()), Ordering::Relaxed);
        Ok(Kept { key, stuck: AtomicBool::new(false) })
    }

    #[inline]
    pub(super) fn set(&self, right: Protection) -> Protection {
        // SAFETY: there are keys (1).
        let word = unsafe { pkey::read() };
        let before = rights::of(word, self.key.index());
        // SAFETY: as above; references to pages of a domain live only while it is open, as
        // `Domain::add` demands.
        unsafe { pkey::write(rights::with(word, self.key.index(), right)) };
        before
    }

    pub(super) fn index(&self) -> usize {
        self.key.index()
    }

    #[inline]
    pub(super) fn right(&self) -> Protection {
        // SAFETY: there are keys (1).
        rights::of(unsafe { pkey::read() }, self.key.index())
    }

    /// # Safety
    /// As [`pkey::protect`].
    pub(super) unsafe fn close(&self, addr: usize, len: usize, most: Protection) -> std::io::Result<()> {
        // SAFETY: the caller's promise.
        unsafe { pkey::protect(addr, len, most, Some(self.key)) }
    }

    /// Makes the pages ordinary again.
    ///
    /// # Safety
    /// As [`pkey::protect`].
    pub(super) unsafe fn release(&self, addr: usize, len: usize, most: Protection) {
        // SAFETY: the caller's promise.
        if unsafe { pkey::protect(addr, len, most, None) }.is_err() {
            self.stuck.store(true, Ordering::Relaxed);
        }
    }

    pub(super) fn give_back(&self) {
        self.set(Protection::None);
        OURS.fetch_and(!rights::mask(self.key.index()), Ordering::Relaxed);
        if !self.stuck.load(Ordering::Relaxed) {
            // SAFETY: every range was released before, successfully (3).
            unsafe { pkey::free(self.key) };
        }
    }
}

pub(super) fn close_all() {
    if pkey::lack().is_some() {
        return;
    }
    let ours = OURS.load(Ordering::Relaxed);
    // SAFETY: nothing is lacking; as in `set`.
    unsafe { pkey::write(pkey::read() & !ours | rights::CLOSED & ours) };
}
