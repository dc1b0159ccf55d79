#![allow(unsafe_code)]

use crate::plain::Plain;
use std::cell::UnsafeCell;
use std::fmt;

/// A value in a [`TxObject`](crate::TxObject) that only transactions read and change, of whole
/// 8-byte words: 64-bit numbers, pointers, arrays and structs of these.
///
/// ```
/// use indelible::{Plain, TxCell};
///
/// #[derive(Plain)]
/// #[repr(C)]
/// struct Account {
///     number: u64, // does not change
///     balance: TxCell<i64>,
///     last: TxCell<[u64; 4]>,
/// }
/// ```
///
/// [`Tx::read`](crate::Tx::read) and [`Tx::write`](crate::Tx::write) are the only access, without
/// references:
///
/// ```compile_fail
/// # fn example(account: &indelible::TxCell<u64>) {
/// let balance: u64 = **account; // error: it cannot be dereferenced
/// # }
/// ```
///
/// ```compile_fail,E0080
/// #[derive(indelible::Plain)]
/// #[repr(C)]
/// struct Flag {
///     set: indelible::TxCell<u8>, // error: no whole word
///     rest: [u8; 7],
/// }
/// # fn example(object: indelible::TxObject<Flag>) { let _ = object.root(); }
/// ```
#[repr(C, align(8))]
pub struct TxCell<T>(UnsafeCell<T>);

impl<T: Plain + Copy> TxCell<T> {
    /// A cell to store to an object of class `psync` before it becomes transactional.
    #[must_use]
    pub const fn new(value: T) -> Self {
        TxCell(UnsafeCell::new(value))
    }

    pub(super) fn address(&self) -> *mut T {
        self.0.get()
    }
}

// SAFETY: a T of whole words, changed by transactions alone.
unsafe impl<T: Plain + Copy> Plain for TxCell<T> {
    const SHARED: bool = true;
    const ATOMICS: bool = false;
    const CELLS: bool = true;
    const LAYOUT: () = {
        let () = T::LAYOUT;
        assert!(!T::SHARED, "a value in a TxCell has neither atomics nor cells of its own");
        assert!(
            size_of::<T>() > 0 && size_of::<T>().is_multiple_of(8),
            "a TxCell has whole words of 8 bytes: use a larger number, or an array of bytes"
        );
    };
}

// SAFETY: any thread may use values of `Plain` types, and transactions alone access this one.
unsafe impl<T: Plain + Copy> Sync for TxCell<T> {}

impl<T> fmt::Debug for TxCell<T> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("TxCell(..)")
    }
}
