//! The table of a heap's pages: as long as the heap may become, of which only what is used is memory.

#![allow(unsafe_code)]

use super::leaked::Slot;
use super::span::Span;

/// A table of so many empty slots.
pub(super) fn blank(pages: usize) -> Box<[Slot<Span>]> {
    // The allocator gives zeros without touching them.
    let zeros = vec![0_usize; pages].into_boxed_slice();
    let len = zeros.len();
    let first = Box::into_raw(zeros).cast::<Slot<Span>>();
    // SAFETY: a slot is an atomic pointer, of the size and alignment of a usize; zeros are null.
    unsafe { Box::from_raw(std::ptr::slice_from_raw_parts_mut(first, len)) }
}

const _: () = assert!(size_of::<Slot<Span>>() == size_of::<usize>());
const _: () = assert!(align_of::<Slot<Span>>() == align_of::<usize>());
