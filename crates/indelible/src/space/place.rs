//! The target of a far pointer, in memory.
//!
//! Invariants:
//! 1. A [`Range`] is a mapped object of the space that has it in a link or an
//!    [`Attached`](super::attached::Attached): it stays mapped as long as that space is not
//!    borrowed exclusively, and is nowhere else.
//! 2. While a space is shared, no thread stores to its objects: those attached for reading are
//!    locked against writers, and the space owns the heaps of the others, and lends them only for
//!    an exclusive borrow of itself.
//! 3. A value is stored to by [`value_mut`](Range::value_mut) only in a block of a heap whose
//!    values have no invariants beyond their bits: all of its roots are described, and own nothing
//!    (`Attached::free_heap_mut`).

#![allow(unsafe_code)]

use crate::plain::{Plain, frozen};
use indelible_store::Mutant;
use std::ptr::NonNull;

#[derive(Clone, Copy)]
pub(super) struct Range {
    base: NonNull<u8>,
    len: usize,
}

// SAFETY: an address and a length; (2) and (3) govern accesses.
unsafe impl Send for Range {}
// SAFETY: as above.
unsafe impl Sync for Range {}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum NoValue {
    Beyond,
    Misaligned,
}

impl Range {
    pub(super) fn new(base: *const u8, len: usize) -> Range {
        match NonNull::new(base.cast_mut()) {
            Some(base) => Range { base, len },
            None => Range { base: NonNull::dangling(), len: 0 },
        }
    }

    pub(super) fn len(self) -> usize {
        self.len
    }

    pub(super) fn base(self) -> usize {
        self.base.addr().get()
    }

    #[inline]
    fn find<T>(self, offset: u64, count: usize) -> Result<NonNull<T>, NoValue> {
        let len = if Mutant::FarBeyondFollowed.is_on() { self.len.next_multiple_of(4096) } else { self.len };
        let fits = |size| offset < len as u64 && len - (offset as usize) >= size;
        if !size_of::<T>().checked_mul(count).is_some_and(fits) {
            return Err(NoValue::Beyond);
        }
        if !offset.is_multiple_of(align_of::<T>() as u64) {
            return Err(NoValue::Misaligned);
        }
        // SAFETY: within the object.
        Ok(unsafe { self.base.byte_add(offset as usize) }.cast())
    }

    /// # Safety
    /// The space whose range it is (1) is shared for `'s`.
    #[inline]
    pub(super) unsafe fn value<'s, T: Plain>(self, offset: u64) -> Result<&'s T, NoValue> {
        const { frozen::<T>() };
        let at = self.find::<T>(offset, 1)?;
        // SAFETY: mapped (1), aligned, any bits are a `T`, and no thread stores to it (2).
        Ok(unsafe { at.as_ref() })
    }

    /// # Safety
    /// The space is borrowed exclusively for `'s`; the value lies in a block as in (3), of an
    /// object attached for writing.
    pub(super) unsafe fn value_mut<'s, T: Plain>(self, offset: u64) -> Result<&'s mut T, NoValue> {
        const { frozen::<T>() };
        let mut at = self.find::<T>(offset, 1)?;
        // SAFETY: as for `value`; the only reference (2).
        Ok(unsafe { at.as_mut() })
    }

    /// # Safety
    /// As for `value`.
    pub(super) unsafe fn values<'s, T: Plain>(self, offset: u64, count: usize) -> Result<&'s [T], NoValue> {
        const { frozen::<T>() };
        let at = self.find::<T>(offset, count)?;
        // SAFETY: as for `value`, of all of them.
        Ok(unsafe { NonNull::slice_from_raw_parts(at, count).as_ref() })
    }

    /// # Safety
    /// As for `value_mut`, of all of them.
    pub(super) unsafe fn values_mut<'s, T: Plain>(
        self,
        offset: u64,
        count: usize,
    ) -> Result<&'s mut [T], NoValue> {
        const { frozen::<T>() };
        let at = self.find::<T>(offset, count)?;
        // SAFETY: as for `value_mut`, of all of them.
        Ok(unsafe { NonNull::slice_from_raw_parts(at, count).as_mut() })
    }
}
