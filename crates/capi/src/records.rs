//! Transactions that record bytes before they change (Twizzler, S2.17): TXSTART, TXRECORD and
//! TXEND, on a psynced object.
//!
//! The undo log, persistent in the paper, is volatile here: only an abort needs it.
//!
//! Invariants:
//! 1. [`RUNNING`] has the first address of each object in a transaction; its one thread has the
//!    transaction in `OWN` until it ends.
//! 2. All recorded bytes lie in that object. They are put back only while an object of that size is
//!    attached for stores at that address.

#![allow(unsafe_code)]

use crate::args;
use crate::guard::{Failure, Result, status};
use indelible::{PerProcess, Tracking, raw};
use std::cell::RefCell;
use std::ffi::{c_int, c_void};
use std::sync::{Condvar, Mutex, MutexGuard, PoisonError};

/// Empty in a forked child, which lacks its parent's threads.
static RUNNING: PerProcess<Running> = PerProcess::new();

thread_local! {
    static OWN: RefCell<Option<Transaction>> = const { RefCell::new(None) };
}

#[derive(Default)]
struct Running {
    bases: Mutex<Vec<usize>>,
    ended: Condvar,
}

struct Transaction {
    /// Of the process that began it.
    running: &'static Running,
    base: usize,
    len: usize,
    records: Vec<Record>,
}

struct Record {
    address: usize,
    bytes: Vec<u8>,
}

impl Running {
    fn bases(&self) -> MutexGuard<'_, Vec<usize>> {
        self.bases.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Transaction {
    fn begin(object: *const u8) -> Result<Transaction> {
        let of = raw::attached(object)?;
        if !of.writable {
            return Err(Failure::argument(format_args!("the object {:?} is attached for reading", of.name)));
        }
        let base = of.base.addr().get();
        let running = RUNNING.get();
        let mut all = running.bases();
        while all.contains(&base) {
            all = running.ended.wait(all).unwrap_or_else(PoisonError::into_inner);
        }
        all.push(base);
        Ok(Transaction { running, base, len: of.len, records: Vec::new() })
    }

    /// Whether a forked child sees its parent's, which only the parent ends.
    fn is_parents(&self) -> bool {
        !std::ptr::eq(self.running, RUNNING.get())
    }

    fn record(&mut self, address: usize, size: usize) -> Result<()> {
        self.object()?;
        let end = address.checked_add(size);
        if address < self.base || end.is_none_or(|end| end > self.base + self.len) {
            return Err(Failure::argument("the bytes do not lie in the object of the transaction"));
        }
        // SAFETY: mapped bytes of the object; no other thread stores to them, as the header
        // demands.
        let bytes =
            unsafe { args::bytes(std::ptr::with_exposed_provenance(address), size, "recorded bytes") }?;
        self.records.push(Record { address, bytes: bytes.to_vec() });
        Ok(())
    }

    fn object(&self) -> Result<raw::Attached> {
        let of = raw::attached(std::ptr::without_provenance(self.base))?;
        let same = of.base.addr().get() == self.base && of.writable && of.len >= self.len;
        if same { Ok(of) } else { Err(Failure::argument("the object was detached in its transaction")) }
    }

    fn mark(&self, of: &raw::Attached) -> Result<()> {
        if of.tracking == Tracking::Explicit {
            for record in &self.records {
                raw::mark_dirty(std::ptr::without_provenance(record.address), record.bytes.len())?;
            }
        }
        Ok(())
    }

    fn undo(&mut self) -> Result<()> {
        let of = self.object()?;
        for record in self.records.iter().rev() {
            // SAFETY: bytes of the object (2), attached for stores; no thread uses them after the
            // end of the caller's transaction.
            unsafe {
                std::ptr::copy_nonoverlapping(
                    record.bytes.as_ptr(),
                    std::ptr::with_exposed_provenance_mut(record.address),
                    record.bytes.len(),
                );
            }
        }
        self.mark(&of)?;
        self.records.clear();
        Ok(())
    }

    fn end(mut self) -> Result<()> {
        let of = self.object()?;
        self.mark(&of)?;
        self.records.clear();
        // SAFETY: no thread stores to the object meanwhile, as the header demands.
        unsafe { raw::psync(std::ptr::without_provenance(self.base)) }?;
        Ok(())
    }
}

impl Drop for Transaction {
    fn drop(&mut self) {
        if self.is_parents() {
            return;
        }
        if !self.records.is_empty() {
            // The stores of a detached object are gone.
            let _ = self.undo();
        }
        self.running.bases().retain(|base| *base != self.base);
        self.running.ended.notify_all();
    }
}

fn own<T>(work: impl FnOnce(&mut Option<Transaction>) -> Result<T>) -> Result<T> {
    let gone = || Failure::argument("the thread is at its end");
    let work = |own: &mut Option<Transaction>| {
        let _ = own.take_if(|own| own.is_parents());
        work(own)
    };
    OWN.try_with(|own| work(&mut own.borrow_mut())).unwrap_or_else(|_| Err(gone()))
}

fn none() -> Failure {
    Failure::argument("the thread is in no such transaction: it begins with pmo_txstart")
}

#[unsafe(no_mangle)]
pub unsafe extern "C" fn pmo_txstart(object: *mut c_void) -> c_int {
    status(|| {
        own(|own| {
            if own.is_some() {
                return Err(Failure::argument("the thread is in such a transaction: pmo_txend ends it"));
            }
            *own = Some(Transaction::begin(object.cast())?);
            Ok(())
        })
    })
}

#[unsafe(no_mangle)]
pub unsafe extern "C" fn pmo_txrecord(address: *const c_void, size: usize) -> c_int {
    status(|| own(|own| own.as_mut().ok_or_else(none)?.record(address.addr(), size)))
}

#[unsafe(no_mangle)]
pub unsafe extern "C" fn pmo_txend() -> c_int {
    status(|| own(|own| own.take().ok_or_else(none))?.end())
}

#[unsafe(no_mangle)]
pub unsafe extern "C" fn pmo_txabort() -> c_int {
    status(|| own(|own| own.take().ok_or_else(none))?.undo())
}
