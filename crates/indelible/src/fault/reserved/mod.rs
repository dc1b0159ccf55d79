//! Ranges of addresses that are mapped when they are first touched: those of a view's objects.
//!
//! The memory of a range is an inaccessible mapping at first, its owner's. A thread that touches it
//! is stopped in the SIGSEGV handler, which can map nothing: it hands over to one thread of the
//! process, which asks the owner of the range, and tries the access again once the range is mapped
//! (S2.8). If it could not be mapped, or the access is still forbidden, the fault goes on to the
//! program's own handler. System calls raise no SIGSEGV: on a range that is not mapped yet they
//! fail with `EFAULT`.
//!
//! Invariants:
//! 1. A published slot of the table has an owner in `owners`: both change together, under the lock
//!    of `owners`.
//! 2. Owners are asked by the service's thread without a lock of this module; they touch no range
//!    that is reserved.
//! 3. A forked child has none of its parent's ranges, descriptors or threads: it makes its own.

#![allow(unsafe_code)]

mod table;
#[cfg(test)]
mod tests;

use std::collections::HashMap;
use std::io;
use std::ops::Range;
use std::os::fd::{AsFd, AsRawFd};
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::atomic::Ordering;
use std::sync::{Arc, Mutex, PoisonError, Weak};

use rustix::event::{EventfdFlags, eventfd};

use crate::sys::fork::{self, ForkFd, ForkLocal};
use crate::sys::mask::Blocked;
use crate::sys::signal;
use table::Slot;

/// Maps ranges that were touched.
pub(crate) trait Owner: Send + Sync {
    /// Maps the range that it gave this number; returns whether it is mapped now. For a window, it
    /// looks for ranges that are new in it.
    fn touched(&self, number: usize) -> bool;
}

/// A range, and its number.
type Owned = (Weak<dyn Owner>, usize);

struct Service {
    bell: ForkFd,
    /// Keyed by the address of the slot.
    owners: Mutex<HashMap<usize, Owned>>,
    started: Mutex<bool>,
}

impl Service {
    /// The service of this process, running.
    fn get() -> io::Result<&'static Service> {
        static SERVICE: ForkLocal<Service> = ForkLocal::new();
        let service = SERVICE.get_or_try(|| {
            let bell = ForkFd::new(eventfd(0, EventfdFlags::CLOEXEC)?)?;
            Ok::<_, io::Error>(Service { bell, owners: Mutex::default(), started: Mutex::new(false) })
        })?;
        let mut started = service.started.lock().unwrap_or_else(PoisonError::into_inner);
        if !*started {
            table::BELL.store(service.bell.as_fd().as_raw_fd(), Ordering::SeqCst);
            // Handlers of the program's signals may touch ranges: they run on other threads.
            let blocked = Blocked::all();
            std::thread::Builder::new().name("indelible-views".into()).spawn(|| service.run())?;
            drop(blocked);
            signal::install_toucher(table::touched)?;
            *started = true;
        }
        Ok(service)
    }

    fn run(&'static self) {
        table::ANSWERS.store(rustix::thread::gettid().as_raw_nonzero().get(), Ordering::SeqCst);
        let mut rings = [0_u8; 8];
        // Only a broken descriptor ends it: it is ours, and never closed.
        while rustix::io::retry_on_intr(|| rustix::io::read(self.bell.as_fd(), &mut rings)).is_ok() {
            table::slots().filter(|slot| slot.is_asked()).for_each(|slot| self.answer(slot));
        }
    }

    fn answer(&self, slot: &Slot) {
        // The thread that waits is told also where the owner is gone.
        let owner = self.owner(slot);
        // After a panic the touch is refused: this thread answers those of all other ranges, too.
        let touched = |(owner, number): &(Arc<dyn Owner>, usize)| {
            catch_unwind(AssertUnwindSafe(|| owner.touched(*number))).unwrap_or(false)
        };
        let mapped = owner.as_ref().is_some_and(touched);
        let owners = self.owners.lock().unwrap_or_else(PoisonError::into_inner);
        let same = |(other, its): &Owned| {
            owner.as_ref().is_none_or(|(owner, number)| {
                its == number && other.as_ptr().addr() == Arc::as_ptr(owner).addr()
            })
        };
        // Otherwise it was given up meanwhile, and is another range, maybe.
        match owners.get(&key(slot)).is_some_and(same) {
            true if mapped => slot.mapped(),
            true => slot.refused(),
            false => {}
        }
        drop(owners);
    }

    fn owner(&self, slot: &Slot) -> Option<(Arc<dyn Owner>, usize)> {
        let owners = self.owners.lock().unwrap_or_else(PoisonError::into_inner);
        let (owner, number) = owners.get(&key(slot))?;
        Some((owner.upgrade()?, *number))
    }
}

fn key(slot: &Slot) -> usize {
    std::ptr::from_ref(slot).addr()
}

/// Touches of a range of addresses are answered until this is dropped. The memory there is its
/// owner's.
pub(crate) struct Reserved {
    slot: &'static Slot,
    service: &'static Service,
    generation: u32,
}

impl Reserved {
    /// Has touches of a range that is not accessible be answered by `owner`, as those of range
    /// `number`.
    ///
    /// # Errors
    /// The kernel refuses a descriptor, a thread or a handler; `OutOfMemory`: there are too many
    /// ranges.
    pub(crate) fn new(range: Range<usize>, owner: Weak<dyn Owner>, number: usize) -> io::Result<Reserved> {
        Reserved::of(range, false, owner, number)
    }

    /// The same for addresses in which ranges may come to be: of those that nothing is mapped at.
    ///
    /// # Errors
    /// As for [`new`](Reserved::new).
    pub(crate) fn window(range: Range<usize>, owner: Weak<dyn Owner>, number: usize) -> io::Result<Reserved> {
        Reserved::of(range, true, owner, number)
    }

    fn of(range: Range<usize>, whole: bool, owner: Weak<dyn Owner>, number: usize) -> io::Result<Reserved> {
        let service = Service::get()?;
        let mut owners = service.owners.lock().unwrap_or_else(PoisonError::into_inner);
        let slot = Slot::publish(range.start, range.end, whole);
        let slot = slot.ok_or_else(|| io::Error::from(io::ErrorKind::OutOfMemory))?;
        owners.insert(key(slot), (owner, number));
        Ok(Reserved { slot, service, generation: fork::generation() })
    }

    /// The range was mapped, and not because it was touched.
    pub(crate) fn mapped(&self) {
        self.slot.mapped();
    }

    /// The range is not mapped any more.
    pub(crate) fn unmapped(&self) {
        self.slot.reserved();
    }
}

impl Drop for Reserved {
    fn drop(&mut self) {
        if fork::is_stale(self.generation) {
            return;
        }
        let mut owners = self.service.owners.lock().unwrap_or_else(PoisonError::into_inner);
        self.slot.vacate();
        owners.remove(&key(self.slot));
    }
}
