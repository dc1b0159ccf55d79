//! Blocks for containers of other libraries, by the crate `allocator-api2`.

#![allow(unsafe_code)]

use super::place::HeapRef;
use allocator_api2::alloc::{AllocError, Allocator};
use std::alloc::Layout;
use std::ptr::NonNull;

/// Blocks of the heap for containers of other libraries, such as `hashbrown::HashMap` and
/// `allocator_api2::vec::Vec`, with the feature `allocator-api2`. Such a container is no
/// [`Persist`](super::Persist) value, but for temporary work within a borrow of the heap. Keeping
/// one in an object takes `unsafe` code, in one build only, with addresses of the heap alone.
///
/// **Empty tables.** `hashbrown` and others give an empty table the address of a constant in the
/// *executable*, which moves in the next run. Make a table for an object by `with_capacity_in`, and
/// do not shrink it. [`Heap::stray_pointers`](crate::Heap::stray_pointers) finds such an address.
///
/// ```
/// # let dir = tempfile::tempdir().unwrap();
/// # let pool = indelible::Pool::format(dir.path().join("p"), 16 << 20)?;
/// use allocator_api2::vec::Vec;
///
/// let heap = pool.heap("o", 1 << 20)?;
/// let mut numbers = Vec::new_in(heap.heap_ref()?); // not in the memory of the process
/// numbers.extend(0..1000_u64);
/// assert_eq!(numbers.iter().sum::<u64>(), 499_500);
/// # Ok::<(), indelible::Error>(())
/// ```
///
/// If the process dies, unfreed blocks become free, but leak after a consistent cut. As after
/// [`Heap::malloc`](crate::Heap::malloc), all stores are found from then on.
// SAFETY: a block stays where it is: the heap is borrowed for 'h, and its object keeps its address;
// a copy of a `HeapRef` is the same heap.
unsafe impl Allocator for HeapRef<'_> {
    fn allocate(&self, layout: Layout) -> Result<NonNull<[u8]>, AllocError> {
        if layout.size() == 0 {
            return Ok(NonNull::slice_from_raw_parts(layout.dangling_ptr(), 0));
        }
        let heap = self.heap().map_err(|_| AllocError)?;
        let block = match layout.align() {
            ..=16 => heap.malloc(layout.size()),
            align => heap.aligned(align, layout.size()),
        };
        Ok(NonNull::slice_from_raw_parts(block.map_err(|_| AllocError)?, layout.size()))
    }

    unsafe fn deallocate(&self, block: NonNull<u8>, layout: Layout) {
        if let (Ok(heap), 1..) = (self.heap(), layout.size()) {
            // SAFETY: the caller's promise. A damaged block stays in use.
            let _ = unsafe { heap.free(block.as_ptr()) };
        }
    }
}
