//! The one growth path of heaps, by type or by address.

#![allow(unsafe_code)]

use super::error::{HeapError, Limit, Result};
use super::raw::RawHeap;
use std::ops::Range;
use std::ptr::NonNull;

pub(crate) trait Growable {
    fn mapped(&self) -> usize;

    fn grow(&self, size: usize) -> Result<(), Limit>;

    fn grown(&self) {}

    fn stored(&self, _addresses: Range<usize>) {}
}

pub(crate) fn grow_object(
    object: &impl Growable,
    (size, align): (usize, usize),
    reach: usize,
) -> Option<Limit> {
    let old = object.mapped();
    let (mut limit, mut tried) = (None, 0);
    for len in RawHeap::growth(old, size, align) {
        let len = len.min(reach);
        if std::mem::replace(&mut tried, len) == len {
            continue;
        }
        limit = if len <= old { Some(Limit::Reach) } else { object.grow(len).err() };
        if !limit.as_ref().is_some_and(Limit::is_of_size) {
            break;
        }
    }
    limit
}

impl RawHeap {
    #[inline]
    pub(crate) fn malloc_in(
        &self,
        object: &impl Growable,
        size: usize,
    ) -> Result<NonNull<u8>, Box<HeapError>> {
        self.malloc(size).or_else(|error| self.grow_for(object, error, size, 16, false))
    }

    pub(crate) fn allocate_in(
        &self,
        object: &impl Growable,
        size: usize,
        align: usize,
        zero: bool,
    ) -> Result<NonNull<u8>, Box<HeapError>> {
        self.allocate(size, align, zero)
            .or_else(|error| self.grow_for(object, Box::new(error), size, align, zero))
    }

    pub(crate) fn calloc_in(
        &self,
        object: &impl Growable,
        count: usize,
        size: usize,
    ) -> Result<NonNull<u8>, Box<HeapError>> {
        match count.checked_mul(size) {
            Some(size) => self.allocate_in(object, size, 16, true),
            None => Err(Box::new(HeapError::Overflow { count, size })),
        }
    }

    /// # Safety
    /// As for [`free`](RawHeap::free), of the block if it moved.
    pub(crate) unsafe fn realloc_in(
        &self,
        object: &impl Growable,
        block: *mut u8,
        size: usize,
    ) -> Result<NonNull<u8>, Box<HeapError>> {
        // SAFETY: the caller's promise.
        match unsafe { self.realloc(block.addr(), size) } {
            Err(HeapError::Full { .. }) if self.grows() => {}
            result => return Ok(result?),
        }
        let len = self.usable_size(block.addr())?.min(size);
        let new = self.malloc_in(object, size)?;
        // SAFETY: two live blocks of the caller's.
        unsafe { block.copy_to_nonoverlapping(new.as_ptr(), len) };
        object.stored(new.addr().get()..new.addr().get() + len);
        // SAFETY: the caller's promise.
        unsafe { self.free(block.addr())? };
        Ok(new)
    }

    #[cold]
    #[inline(never)]
    fn grow_for(
        &self,
        object: &impl Growable,
        error: Box<HeapError>,
        size: usize,
        align: usize,
        zero: bool,
    ) -> Result<NonNull<u8>, Box<HeapError>> {
        if !self.grows() || !matches!(*error, HeapError::Full { .. }) {
            return Err(error);
        }
        let limit = grow_object(object, (size, align), self.reach());
        // SAFETY: the range that is mapped now.
        let extended = unsafe { self.extend(object.mapped()) };
        object.grown();
        let allocated = extended.and_then(|()| self.allocate(size, align, zero));
        let limit = limit.or_else(|| (object.mapped() >= self.reach()).then_some(Limit::Reach));
        Ok(allocated.map_err(|error| match (error, limit) {
            (HeapError::Full { needed, largest }, Some(limit)) => HeapError::Stuck { needed, largest, limit },
            (error, _) => error,
        })?)
    }

    /// `false`: the tables lack room; open the heap anew.
    ///
    /// # Safety
    /// The bytes are mapped.
    pub(crate) unsafe fn take_in(&self, len: usize) -> Result<bool> {
        if len > self.reach() {
            return Ok(false);
        }
        // SAFETY: the caller's promise.
        unsafe { self.extend(len) }.map(|()| true)
    }
}
