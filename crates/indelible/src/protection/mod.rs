//! Pages that are closed to every access until a thread opens them, in up to 15 domains per
//! process.
//!
//! Two means share one interface: protection keys, with which a thread opens a domain for itself,
//! without a system call; and `mprotect`, which opens it to the whole process while any thread has
//! it open. Rules for both:
//!
//! - Every thread opens a domain for itself and closes it by dropping its [`Open`]s, in any order:
//!   the remaining ones give their maximum. With keys, a new thread inherits its parent's open
//!   domains: [`close_all`] is its first step.
//! - With keys, a signal handler begins with all domains closed, and opens those that it needs:
//!   [`Domain::open`] is async-signal-safe.
//! - A jump over frames (`longjmp`) leaves their [`Open`]s undropped, and one out of a handler
//!   keeps the handler's rights: the catching code closes open domains.
//! - Newly mapped memory has no key: [`Range::reapply`] follows every such mapping.
//! - System calls into closed pages fail with `EFAULT`.
//!
//! Invariants:
//! 1. A [`Range`]'s pages belong to its domain until it is dropped, and the domain lives as long.
//! 2. A domain's number, key or slot, goes to another domain only after all its ranges were
//!    dropped.
//! 3. A fork has none of its parent's domains or pages: every call on one fails there.

#![allow(unsafe_code)]

mod error;
mod held;
mod keys;
mod pages;
mod rights;
#[cfg(test)]
mod tests;

use std::io;
use std::marker::PhantomData;
use std::sync::Arc;

pub(crate) use error::ProtectionError;

use crate::sys::fork;
use crate::sys::mmap::Protection;
use crate::sys::pkey;
use held::RightsIndex;
use indelible_store::Mutant;

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Means {
    Keys,
    Mprotect,
}

pub(crate) fn means() -> Means {
    if pkey::available().is_ok() { Means::Keys } else { Means::Mprotect }
}

#[derive(Debug)]
pub(crate) struct Domain {
    number: Number,
    generation: u32,
}

#[derive(Debug)]
enum Number {
    Key(keys::Kept),
    Slot(&'static pages::Table, usize),
}

impl Domain {
    pub(crate) fn new(means: Means) -> Result<Arc<Domain>, ProtectionError> {
        fork::install().map_err(ProtectionError::Refused)?;
        let number = match means {
            Means::Keys => Number::Key(keys::Kept::new()?),
            Means::Mprotect => {
                let table = pages::Table::of_this_process();
                Number::Slot(table, table.take()?)
            }
        };
        Ok(Arc::new(Domain { number, generation: fork::generation() }))
    }

    /// `most`: the pages' access while the domain is open.
    ///
    /// # Safety
    /// The range is the caller's mapping, in no other domain. It is unmapped only after the
    /// [`Range`] was dropped. No reference to its bytes is used while the domain is closed.
    pub(crate) unsafe fn add(
        self: &Arc<Self>,
        addr: usize,
        len: usize,
        most: Protection,
    ) -> Result<Range, ProtectionError> {
        self.check()?;
        // SAFETY: the caller's promise.
        unsafe { self.close(addr, len, most) }?;
        Ok(Range { domain: Arc::clone(self), addr, len, most })
    }

    /// # Safety
    /// As [`add`](Self::add).
    unsafe fn close(&self, addr: usize, len: usize, most: Protection) -> Result<(), ProtectionError> {
        // SAFETY: the caller's promise.
        let done = unsafe {
            match &self.number {
                Number::Key(kept) => kept.close(addr, len, most),
                Number::Slot(table, index) => table.close(*index, addr, len, most),
            }
        };
        done.map_err(|source| ProtectionError::Io { addr, len, source })
    }

    /// Async-signal-safe, as long as another reference to the domain lives.
    #[inline]
    pub(crate) fn open(self: &Arc<Self>, access: Protection) -> Result<Open, ProtectionError> {
        self.check()?;
        let (before, place) = (self.right(), self.place());
        let counted = (before == place.right()).then(|| place.add(access));
        if access > before
            && let Err(error) = self.set(access)
        {
            if counted.is_some() {
                place.remove(access);
            }
            return Err(ProtectionError::Open(error));
        }
        Ok(Open { domain: self.clone(), access, before, counted, _thread: PhantomData })
    }

    #[inline]
    fn place(&self) -> RightsIndex {
        match &self.number {
            Number::Key(kept) => RightsIndex::of_key(kept.index(), self.generation),
            Number::Slot(_, index) => RightsIndex::of_slot(*index, self.generation),
        }
    }

    #[inline]
    fn right(&self) -> Protection {
        match &self.number {
            Number::Key(kept) => kept.right(),
            Number::Slot(_, index) => rights::of(pages::word(), *index),
        }
    }

    #[inline]
    fn set(&self, right: Protection) -> io::Result<()> {
        match &self.number {
            Number::Key(kept) => {
                kept.set(right);
                Ok(())
            }
            Number::Slot(table, index) => table.set(*index, right),
        }
    }

    #[inline]
    fn check(&self) -> Result<(), ProtectionError> {
        if fork::is_stale(self.generation) { Err(ProtectionError::Forked) } else { Ok(()) }
    }
}

impl Drop for Domain {
    fn drop(&mut self) {
        if fork::is_stale(self.generation) {
            return;
        }
        match &self.number {
            Number::Key(kept) => kept.give_back(),
            Number::Slot(table, index) => table.give_back(*index),
        }
    }
}

/// Dropping it makes the pages ordinary.
#[derive(Debug)]
pub(crate) struct Range {
    domain: Arc<Domain>,
    addr: usize,
    len: usize,
    most: Protection,
}

impl Range {
    pub(crate) fn domain(&self) -> &Arc<Domain> {
        &self.domain
    }

    /// After a failure some pages may be open to all threads: the caller unmaps them.
    ///
    /// # Safety
    /// As [`Domain::add`].
    pub(crate) unsafe fn reapply(&mut self, len: usize) -> Result<(), ProtectionError> {
        self.domain.check()?;
        self.len = len;
        // SAFETY: the caller's promise.
        unsafe { self.domain.close(self.addr, len, self.most) }
    }
}

impl Drop for Range {
    fn drop(&mut self) {
        if fork::is_stale(self.domain.generation) {
            return;
        }
        // SAFETY: still mapped, as the caller of `add` promised.
        unsafe {
            match &self.domain.number {
                Number::Key(kept) => kept.release(self.addr, self.len, self.most),
                Number::Slot(table, index) => table.release(*index, self.addr, self.len, self.most),
            }
        }
    }
}

/// Dropping it never gives the thread a right.
#[derive(Debug)]
pub(crate) struct Open {
    domain: Arc<Domain>,
    access: Protection,
    before: Protection,
    /// `None`: in a handler with closed domains, or with inherited rights.
    counted: Option<u32>,
    _thread: PhantomData<*const ()>,
}

impl Drop for Open {
    #[inline]
    fn drop(&mut self) {
        if self.domain.check().is_err() {
            return;
        }
        let place = self.domain.place();
        let left = match self.counted {
            Some(epoch) if !RightsIndex::is_current(epoch) => return,
            Some(_) => {
                place.remove(self.access);
                place.right()
            }
            None => self.before,
        };
        let right = self.domain.right();
        let left = if Mutant::GuardRestores.is_on() { self.before } else { left.min(right) };
        if right != left {
            let _ = self.domain.set(left);
        }
    }
}

pub(crate) fn close_all() -> io::Result<()> {
    held::forget();
    keys::close_all();
    pages::close_all()
}
