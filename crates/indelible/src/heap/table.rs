//! The table of a heap's pages, as long as the heap may become; only its used part takes memory.
//!
//! Invariant: (1) `first` leads to `len` slots, in memory that the table owns.

#![allow(unsafe_code)]

use super::leaked::Slot;
use super::span::Span;
use crate::mapping::Mapping;
use crate::sys::PAGE;
use crate::sys::mmap::Protection;
use std::ops::Deref;
use std::ptr::{NonNull, slice_from_raw_parts_mut};

/// Longer tables have pages of their own: an allocator clears reused memory.
const OWN_PAGES: usize = 512 << 10;

pub(super) struct Table {
    first: NonNull<Slot<Span>>,
    len: usize,
    pages: Option<Mapping>,
}

// SAFETY: slots are atomics, which threads share (1).
unsafe impl Send for Table {}
// SAFETY: as for `Send`.
unsafe impl Sync for Table {}

impl Table {
    pub(super) fn blank(len: usize) -> Table {
        let bytes = len.saturating_mul(size_of::<usize>()).next_multiple_of(PAGE);
        if bytes >= OWN_PAGES
            && let Ok(mut pages) = Mapping::anonymous_with_room((bytes, bytes), Protection::ReadWrite)
            && pages.inherit().is_ok()
        {
            return Table { first: pages.base().cast(), len, pages: Some(pages) };
        }
        let zeros = Box::into_raw(vec![0_usize; len].into_boxed_slice());
        Table { first: NonNull::new(zeros.cast()).unwrap_or(NonNull::dangling()), len, pages: None }
    }
}

impl Deref for Table {
    type Target = [Slot<Span>];

    #[inline]
    fn deref(&self) -> &[Slot<Span>] {
        // SAFETY: (1); a slot is an atomic pointer, with the size and alignment of a usize, and
        // zeros are null.
        unsafe { std::slice::from_raw_parts(self.first.as_ptr(), self.len) }
    }
}

impl Drop for Table {
    fn drop(&mut self) {
        if self.pages.is_none() {
            // SAFETY: the box that it was made of (1).
            drop(unsafe {
                Box::from_raw(slice_from_raw_parts_mut(self.first.as_ptr().cast::<usize>(), self.len))
            });
        }
    }
}

const _: () = assert!(size_of::<Slot<Span>>() == size_of::<usize>());
const _: () = assert!(align_of::<Slot<Span>>() == align_of::<usize>());
