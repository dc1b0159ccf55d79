//! Objects as a transaction knows them, and the heap that one may have.

#![allow(unsafe_code)]

use super::attached::Attached;
use super::pointer::TxPtr;
use crate::error::{Error, HeapError, Result};
use crate::heap::words::WordHeap;
use crate::plain::Plain;

/// Objects that a transaction can use: each [`TxObject`](crate::TxObject), and each [`TxHeap`](crate::TxHeap).
pub trait Transactional: private::Part {}

pub(super) mod private {
    /// Nobody else implements it: a transaction relies on what it says.
    pub trait Part {
        #[doc(hidden)]
        fn attached(&self) -> &super::Attached;

        /// The heap in it, if it is used as one.
        #[doc(hidden)]
        fn home(&self) -> Option<&super::Home> {
            None
        }
    }
}

/// An attached object, and the heap in it.
pub struct Home {
    pub(super) attached: Attached,
    pub(super) words: WordHeap,
}

/// Fails to compile unless a `T` can be a value in a block: nobody has a reference to it but as cells, whatever the block is used for next.
pub(super) const fn placed_in_block<T: Plain>() {
    let () = T::LAYOUT;
    assert!(
        T::CELLS,
        "a value in a transactional heap consists of TxCells alone: wrap each of its fields in one"
    );
    assert!(size_of::<T>() > 0 && align_of::<T>() <= 4096, "no block can be of such a type");
}

impl Home {
    pub(super) fn new(attached: Attached) -> Home {
        let words = WordHeap::new(attached.own(), attached.size());
        Home { attached, words }
    }

    /// The value at a pointer.
    #[inline]
    pub(super) fn value<T: Plain>(&self, pointer: TxPtr<T>) -> Result<&T> {
        const { placed_in_block::<T>() };
        let offset = pointer.address().wrapping_sub(self.attached.own() as u64);
        let last = self.attached.size().checked_sub(size_of::<T>());
        let fits = last.is_some_and(|last| offset <= last as u64);
        if !fits || !offset.is_multiple_of(align_of::<T>() as u64) {
            return Err(self.stray(offset));
        }
        // SAFETY: in the view, which is there as long as it is borrowed (2); aligned, as views begin at pages; cells alone, which are
        // values whatever the bytes are, and that transactions alone access (1, 3).
        Ok(unsafe { &*self.attached.base().add(offset as usize).cast::<T>() })
    }

    #[cold]
    fn stray(&self, offset: u64) -> Error {
        let what = "a pointer leads here, where its value cannot be";
        self.attached.error("follow a pointer in", HeapError::Damaged { offset, what })
    }
}
