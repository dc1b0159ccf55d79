//! Domains by `mprotect`, without keys. Pages are open for the whole process, handlers included,
//! while any thread has them open.
//!
//! Invariants:
//! 1. A slot's `readers` and `writers` are the threads whose word has that right to it.
//! 2. A page has the protection in `applied`, which is never less than these threads need.
//! 3. The lock is taken with all signals blocked, so that a handler which opens a domain finds it
//!    free or held by another thread. Nothing else is locked meanwhile.
//! 4. A slot that a thread has open is not given to another domain.

#![allow(unsafe_code)]

use std::cell::Cell;
use std::io;
use std::sync::{Mutex, PoisonError};

use super::ProtectionError;
use super::rights::{self, CLOSED, MOST};
use crate::sys::fork;
use crate::sys::mask::Blocked;
use crate::sys::mmap::{self, Protection};
use crate::sys::per_process::PerProcess;

#[derive(Debug)]
struct Pages {
    addr: usize,
    len: usize,
    most: Protection,
    applied: Protection,
}

impl Pages {
    fn apply(&mut self, right: Protection) -> io::Result<()> {
        let wanted = right.min(self.most);
        if self.applied != wanted {
            // SAFETY: pages of a domain, to which references live only while it is open
            // (`Domain::add`).
            unsafe { mmap::protect(self.addr, self.len, wanted) }?;
            self.applied = wanted;
        }
        Ok(())
    }
}

#[derive(Debug, Default)]
struct Slot {
    taken: bool,
    readers: u32,
    writers: u32,
    pages: Vec<Pages>,
}

impl Slot {
    fn right(&self) -> Protection {
        match (self.readers, self.writers) {
            (0, 0) => Protection::None,
            (_, 0) => Protection::Read,
            _ => Protection::ReadWrite,
        }
    }

    fn count(&mut self, before: Protection, after: Protection) {
        for (right, more) in [(before, false), (after, true)] {
            let threads = match right {
                Protection::None => continue,
                Protection::Read => &mut self.readers,
                Protection::ReadWrite => &mut self.writers,
            };
            *threads = if more { *threads + 1 } else { *threads - 1 };
        }
    }

    fn apply(&mut self) -> io::Result<()> {
        let right = self.right();
        let mut done = Ok(());
        for pages in &mut self.pages {
            done = done.and(pages.apply(right));
        }
        done
    }
}

#[derive(Debug, Default)]
pub(super) struct Table {
    slots: Mutex<[Slot; MOST + 1]>,
}

static TABLE: PerProcess<Table> = PerProcess::new();

thread_local! {
    /// No destructor: handlers use it.
    static RIGHTS: Cell<(u32, u32)> = const { Cell::new((CLOSED, 0)) };
}

pub(super) fn word() -> u32 {
    let (word, generation) = RIGHTS.get();
    if fork::is_stale(generation) { CLOSED } else { word }
}

impl Table {
    pub(super) fn of_this_process() -> &'static Table {
        TABLE.get()
    }

    fn change<T>(&self, body: impl FnOnce(&mut [Slot; MOST + 1]) -> T) -> T {
        let blocked = Blocked::all();
        let mut slots = self.slots.lock().unwrap_or_else(PoisonError::into_inner);
        let done = body(&mut slots);
        drop(slots);
        drop(blocked);
        done
    }

    pub(super) fn take(&self) -> Result<usize, ProtectionError> {
        self.change(|slots| {
            let free = |slot: &Slot| !slot.taken && slot.right() == Protection::None;
            let index = (1..=MOST).find(|index| free(&slots[*index]));
            let index = index.ok_or(ProtectionError::NoKeys { ours: MOST as u32 })?;
            slots[index].taken = true;
            Ok(index)
        })
    }

    pub(super) fn give_back(&self, index: usize) {
        self.change(|slots| slots[index].taken = false);
    }

    /// Replaces pages at the same address.
    ///
    /// # Safety
    /// As [`mmap::protect`].
    pub(super) unsafe fn close(
        &self,
        index: usize,
        addr: usize,
        len: usize,
        most: Protection,
    ) -> io::Result<()> {
        self.change(|slots| {
            let slot = &mut slots[index];
            let wanted = slot.right().min(most);
            // SAFETY: the caller's promise.
            unsafe { mmap::protect(addr, len, wanted) }?;
            slot.pages.retain(|pages| pages.addr != addr);
            slot.pages.push(Pages { addr, len, most, applied: wanted });
            Ok(())
        })
    }

    /// # Safety
    /// As [`mmap::protect`].
    pub(super) unsafe fn release(&self, index: usize, addr: usize, len: usize, most: Protection) {
        self.change(|slots| {
            slots[index].pages.retain(|pages| pages.addr != addr);
            // SAFETY: the caller's promise. Pages that stay closed are no danger.
            let _ = unsafe { mmap::protect(addr, len, most) };
        });
    }

    /// If pages cannot be opened nothing changes; the next change closes pages that could not be
    /// closed.
    pub(super) fn set(&self, index: usize, right: Protection) -> io::Result<()> {
        self.change(|slots| {
            let slot = &mut slots[index];
            let before = rights::of(word(), index);
            slot.count(before, right);
            let done = slot.apply();
            if done.is_err() && right > before {
                slot.count(right, before);
                let _ = slot.apply();
                return done;
            }
            RIGHTS.set((rights::with(word(), index, right), fork::generation()));
            done
        })
    }
}

pub(super) fn close_all() -> io::Result<()> {
    let before = word();
    // A handler makes no table.
    if before == CLOSED {
        return Ok(());
    }
    let table = Table::of_this_process();
    let mut done = Ok(());
    for index in (1..=MOST).filter(|index| rights::of(before, *index) != Protection::None) {
        done = done.and(table.set(index, Protection::None));
    }
    done
}
