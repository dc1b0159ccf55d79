//! A root's value, and its replacement by one of another type (docs/decisions/0035-retention.md).
//! The root's record changes only once nothing can fail.
//!
//! Invariants of [`RootValue`]:
//!
//! 1. A value of the type lies at the address, in a block of its own, to which the root refers.
//! 2. It has no other reference: the caller borrows the heap exclusively for `'h`, and uses one at
//!    a time.

#![allow(unsafe_code)]

use super::persist::{Persist, put};
use super::place::{HeapRef, discard, finally, free, lend, stored, verify};
use super::rc::disown;
use super::roots::Describing;
use crate::error::Result;
use crate::heap::{Heap, Reclaimed};
use indelible_store::Mutant;

/// A root's value.
pub struct RootValue<'h, T> {
    at: *mut T,
    heap: HeapRef<'h>,
}

/// A root's value of any type, to be replaced.
pub struct OldValue<'h>(Old<'h>);

enum Old<'h> {
    Typed(Box<dyn FnOnce() + 'h>),
    Blocks(Reclaimed),
}

impl<'h, T: Persist<'h>> RootValue<'h, T> {
    pub(crate) fn get(&self) -> &T {
        // SAFETY: a value (1), to which no thread stores (2).
        unsafe { &*self.at }
    }

    pub(crate) fn into_mut(self) -> &'h mut T {
        // SAFETY: a value (1), the caller's alone (2).
        unsafe { lend(self.at) }
    }

    pub(crate) fn into_old(self) -> OldValue<'h> {
        OldValue(Old::Typed(Box::new(move || {
            let at = self.at;
            finally(
                // SAFETY: a value (1) to which no root refers.
                || unsafe { discard(at) },
                // SAFETY: its block.
                || unsafe { free(at.addr() as u64) },
            );
        })))
    }
}

impl OldValue<'_> {
    pub(crate) fn of_blocks(found: Reclaimed) -> Self {
        OldValue(Old::Blocks(found))
    }

    pub(super) fn discard(self) {
        match self.0 {
            Old::Typed(discard) => discard(),
            Old::Blocks(found) => {
                let (blocks, shared) = found.into_blocks();
                let count = if Mutant::ResetLeaks.is_on() { 1 } else { blocks.len() };
                // SAFETY: blocks in use, the value's alone, which no root leads to.
                blocks.into_iter().take(count).for_each(|block| unsafe { free(block) });
                // SAFETY: blocks with a count; the value's owners of them are gone.
                shared.into_iter().for_each(|(block, owners)| unsafe { disown(block, owners) });
            }
        }
    }
}

struct Unfinished;

impl Drop for Unfinished {
    fn drop(&mut self) {
        crate::sys::signal::die("a root of a heap refers to a block that has no value yet");
    }
}

impl Heap {
    /// The heap is borrowed exclusively for `'h`, one root at a time.
    pub(crate) fn root_value<'h, T: Persist<'h>>(
        &self,
        heap: HeapRef<'h>,
        name: &str,
    ) -> Result<RootValue<'h, T>> {
        let at = self.locate::<T>(name, &heap.bounds())?;
        // SAFETY: a root's value, aligned, in the heap borrowed for 'h.
        unsafe { verify(at) };
        Ok(RootValue { at, heap })
    }

    /// A failure or panic leaves the old value; a panic of its `drop` leaves the new one.
    pub(crate) fn exchange<'h, T: Persist<'h>>(
        &self,
        heap: HeapRef<'h>,
        name: &str,
        old: OldValue<'h>,
        value: T,
    ) -> Result<&'h mut T> {
        heap.expect_own(&value);
        if Mutant::OldFreedFirst.is_on() {
            old.discard();
            return self.put(heap, name, value);
        }
        let new = self.put(heap, name, value)?;
        old.discard();
        Ok(new)
    }

    fn put<'h, T: Persist<'h>>(&self, heap: HeapRef<'h>, name: &str, value: T) -> Result<&'h mut T> {
        let at = self.block_of_root::<T>(heap, name)?;
        // SAFETY: a new block, large enough; then the invariants.
        unsafe {
            put(at, value);
            Ok(lend(at))
        }
    }

    /// A failure leaves the old value; `wrap` must not panic.
    pub(crate) fn rewrap<'h, Old: Persist<'h>, New: Persist<'h>>(
        &self,
        name: &str,
        old: RootValue<'h, Old>,
        wrap: impl FnOnce(Old) -> New,
    ) -> Result<&'h mut New> {
        let at = self.block_of_root::<New>(old.heap, name)?;
        let unfinished = Unfinished;
        // SAFETY: a value (1), which no root refers to, moves into a new block; its own is freed.
        let new = unsafe {
            put(at, wrap(old.at.read()));
            free(old.at.addr() as u64);
            lend(at)
        };
        std::mem::forget(unfinished);
        Ok(new)
    }

    pub(super) fn put_bytes(
        &self,
        bytes: &[u8],
        align: usize,
        refer: impl FnOnce(*const u8) -> Result<()>,
    ) -> Result<()> {
        let block = HeapRef::new(self).bytes(bytes.len().max(1), align)?.as_ptr();
        // SAFETY: a new block of a borrowed heap, large enough.
        unsafe {
            block.copy_from_nonoverlapping(bytes.as_ptr(), bytes.len());
            stored(block, bytes.len());
        }
        let referred = refer(block);
        if referred.is_err() {
            // SAFETY: a block that no other code knows of.
            unsafe { free(block.addr() as u64) };
        }
        referred
    }

    fn block_of_root<'h, T: Persist<'h>>(&self, heap: HeapRef<'h>, name: &str) -> Result<*mut T> {
        let at = heap.bytes(size_of::<T>(), align_of::<T>())?.cast::<T>().as_ptr();
        let described = Describing::of::<T>().describe();
        match self.replace_root(name, at.cast(), size_of::<T>() as u64, &described.info()) {
            Ok(()) => Ok(at),
            Err(error) => {
                // SAFETY: a block that no other code knows of.
                unsafe { free(at.addr() as u64) };
                Err(error)
            }
        }
    }
}
