#![allow(unsafe_code)]

use crate::plain::Plain;
use std::fmt;
use std::marker::PhantomData;

/// The address of a `T` in a block of a [`TxHeap`](crate::TxHeap), or null, the same in every
/// process. It may lie in a [`TxCell`](crate::TxCell); [`Tx::at`](crate::Tx::at) returns the value.
#[repr(transparent)]
pub struct TxPtr<T> {
    address: u64,
    to: PhantomData<fn() -> T>,
}

impl<T> TxPtr<T> {
    /// The null pointer.
    pub const NULL: TxPtr<T> = TxPtr::new(0);

    pub(crate) const fn new(address: u64) -> TxPtr<T> {
        TxPtr { address, to: PhantomData }
    }

    /// Whether it is null.
    #[must_use]
    pub fn is_null(self) -> bool {
        self.address == 0
    }

    /// The pointer, unless null.
    #[must_use]
    pub fn some(self) -> Option<TxPtr<T>> {
        (!self.is_null()).then_some(self)
    }

    pub(crate) fn nth(self, n: u64) -> TxPtr<T> {
        TxPtr::new(self.address.wrapping_add(n.wrapping_mul(size_of::<T>() as u64)))
    }

    /// The address.
    #[must_use]
    pub fn address(self) -> u64 {
        self.address
    }
}

// SAFETY: an integer of fixed layout; its target is checked on use.
unsafe impl<T> Plain for TxPtr<T> {
    const SHARED: bool = false;
}

impl<T> Clone for TxPtr<T> {
    fn clone(&self) -> Self {
        *self
    }
}

impl<T> Copy for TxPtr<T> {}

impl<T> PartialEq for TxPtr<T> {
    fn eq(&self, other: &Self) -> bool {
        self.address == other.address
    }
}

impl<T> Eq for TxPtr<T> {}

impl<T> Default for TxPtr<T> {
    fn default() -> Self {
        TxPtr::NULL
    }
}

impl<T> fmt::Debug for TxPtr<T> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "TxPtr({:#x})", self.address)
    }
}
