//! Address ranges mapped on first touch: those of a view's objects (S2.8).
//!
//! The SIGSEGV handler hands a touching thread over to the process's service thread, which asks the
//! owner to map the range, then retries the access. If that fails, the program's own handler gets
//! the fault. System calls on an unmapped range fail with `EFAULT`.
//!
//! Invariants:
//! 1. A published slot of the table has an owner in `owners`: both change together, under the lock
//!    of `owners`.
//! 2. The service's thread asks owners without a lock of this module; owners touch no reserved
//!    range.
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

use crate::sys::fork::{self, ForkFd};
use crate::sys::mask::Blocked;
use crate::sys::per_process::PerProcess;
use crate::sys::signal;
use table::Slot;

pub(crate) trait Owner: Send + Sync {
    fn touched(&self, number: usize) -> bool;
}

type Owned = (Weak<dyn Owner>, usize);

struct Service {
    bell: ForkFd,
    owners: Mutex<HashMap<usize, Owned>>,
    started: Mutex<bool>,
}

impl Service {
    fn get() -> io::Result<&'static Service> {
        static SERVICE: PerProcess<Service> = PerProcess::new();
        let service = SERVICE.get_or_try(|_| {
            let bell = ForkFd::new(eventfd(0, EventfdFlags::CLOEXEC)?)?;
            Ok::<_, io::Error>(Service { bell, owners: Mutex::default(), started: Mutex::new(false) })
        })?;
        let mut started = service.started.lock().unwrap_or_else(PoisonError::into_inner);
        if !*started {
            table::BELL.store(service.bell.as_fd().as_raw_fd(), Ordering::SeqCst);
            // Signal handlers of the program may touch ranges, so they run on other threads.
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
        // Ends only with a broken descriptor.
        while rustix::io::retry_on_intr(|| rustix::io::read(self.bell.as_fd(), &mut rings)).is_ok() {
            table::slots().filter(|slot| slot.is_asked()).for_each(|slot| self.answer(slot));
        }
    }

    fn answer(&self, slot: &Slot) {
        let owner = self.owner(slot);
        // A panic refuses the touch: this thread serves all other ranges, too.
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
        // Otherwise the slot was vacated meanwhile, and may be another range.
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

pub(crate) struct Reserved {
    slot: &'static Slot,
    service: &'static Service,
    generation: u32,
}

impl Reserved {
    /// `OutOfMemory`: too many ranges.
    pub(crate) fn new(range: Range<usize>, owner: Weak<dyn Owner>, number: usize) -> io::Result<Reserved> {
        Reserved::of(range, false, owner, number)
    }

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

    pub(crate) fn mapped(&self) {
        self.slot.mapped();
    }

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
