//! Containers of other libraries in a heap: blocks by the interface of the crate `allocator-api2`.

#![allow(unsafe_code)]

use super::place::HeapRef;
use allocator_api2::alloc::{AllocError, Allocator};
use std::alloc::Layout;
use std::ptr::NonNull;

/// Blocks of the heap for containers of other libraries, such as `hashbrown::HashMap` and
/// `allocator_api2::vec::Vec`, with the feature `allocator-api2`.
///
/// Such a container is no [`Persist`](super::Persist) value: it lives no longer than the borrow of
/// the heap, so that safe code uses it for work in progress beside the object's own data, and no
/// psync comes meanwhile. To keep one in an object is the program's own risk: by `unsafe` code, of
/// one build only (another one may lay it out differently), with addresses of the heap alone.
///
/// **Empty tables.** `hashbrown`, and others like it, give an empty table the address of a constant
/// in the *executable*, which is somewhere else in the next run. So has a table that was made
/// without capacity, taken by `std::mem::take`, or shrunk while it was empty. A table that goes to
/// an object is made `with_capacity_in` and not shrunk.
/// [`Heap::stray_pointers`](crate::Heap::stray_pointers) finds such an address, and a heap that
/// [audits](crate::HeapOptions::audit) refuses to psync it.
///
/// ```
/// # fn main() -> indelible::Result<()> {
/// # let dir = tempfile::tempdir().unwrap();
/// # let pool = indelible::Pool::format(dir.path().join("p"), 16 << 20)?;
/// use allocator_api2::vec::Vec;
///
/// let heap = pool.heap("o", 1 << 20)?;
/// let mut numbers = Vec::new_in(heap.heap_ref()?); // not in the memory of the process
/// numbers.extend(0..1000_u64);
/// assert_eq!(numbers.iter().sum::<u64>(), 499_500);
/// # Ok(()) }
/// ```
///
/// Blocks that are not freed when the process dies are free after it, unless a consistent cut came
/// meanwhile: then they leak. Addresses are handed out: as after
/// [`Heap::malloc`](crate::Heap::malloc), all stores are found from then on.
// SAFETY: a block stays where it is until it is freed, as the heap is borrowed for 'h, and its
// object keeps its address when it grows; a copy of a `HeapRef` is the same heap.
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
