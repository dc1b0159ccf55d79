//! Types that may lie in an object and be used in place.

#![allow(unsafe_code)]

use std::mem::ManuallyDrop;
use std::num::Wrapping;
use std::ptr::NonNull;
use std::sync::atomic;

/// Types whose values may lie in an object and be referred to in place.
///
/// Derive it for `#[repr(C)]` structs:
///
/// ```
/// # extern crate indelible_types as indelible;
/// #[derive(indelible::Plain)]
/// #[repr(C)]
/// struct Counter {
///     runs: u64,
///     next: *mut Counter,
/// }
/// ```
///
/// Native pointers are allowed: an object has the same address in every process, so a pointer into
/// any object is valid wherever that object is attached. Following one is `unsafe`.
///
/// Types that cannot work do not compile:
///
/// ```compile_fail
/// # extern crate indelible_types as indelible;
/// #[derive(indelible::Plain)]
/// #[repr(C)]
/// struct Cache {
///     name: String, // its bytes are on this process's own heap
/// }
/// ```
/// ```compile_fail
/// # extern crate indelible_types as indelible;
/// #[derive(indelible::Plain)]
/// #[repr(C)]
/// struct Borrowed {
///     text: &'static str, // a reference must be valid at every instant; an object's bytes may be anything
/// }
/// ```
/// ```compile_fail
/// # extern crate indelible_types as indelible;
/// #[derive(indelible::Plain)]
/// #[repr(C)]
/// struct Padded { // seven bytes behind `a` are in no field: name them
///     a: u8,
///     b: u64,
/// }
/// ```
/// ```compile_fail
/// # extern crate indelible_types as indelible;
/// #[derive(indelible::Plain)]
/// struct Unfixed { // no #[repr(C)]: the next build may lay it out differently
///     a: u8,
///     b: u64,
/// }
/// ```
///
/// # Safety
///
/// 1. Every bit pattern is a value: objects start as zeros, hold any program's psynced bytes, and
///    are not inspected by an attach.
/// 2. The layout is fixed, independent of build and process.
/// 3. The type needs no drop and refers to other values only by raw pointers.
/// 4. It has no padding, whose bytes would be undefined, and nothing that a shared reference could
///    change without being atomic.
/// 5. [`SHARED`](Plain::SHARED) is true if it contains atomics or `TxCell`s,
///    [`ATOMICS`](Plain::ATOMICS) if it contains atomics; [`CELLS`](Plain::CELLS) only if each of
///    its bytes is in a `TxCell`.
///
/// Values are used by any thread of any process, one after the other, whether the type is `Send` or
/// not.
#[diagnostic::on_unimplemented(
    message = "`{Self}` cannot lie in an object",
    label = "not `Plain`",
    note = "integers, floats, arrays, raw pointers, atomics and #[repr(C)] structs of these can; derive it with #[derive(indelible::Plain)]"
)]
pub unsafe trait Plain {
    /// Whether a shared reference suffices to store to it: it contains atomics, or `TxCell`s.
    const SHARED: bool;

    /// Whether it contains atomics, which a shared reference stores to outside transactions.
    /// Without them, it may still contain `TxCell`s.
    const ATOMICS: bool = Self::SHARED;

    /// Whether it consists of `TxCell`s alone, as values in blocks of a `TxHeap` do.
    const CELLS: bool = false;

    /// Fails to compile if (4) does not hold; checked where a value is used in place.
    #[doc(hidden)]
    const LAYOUT: () = ();
}

macro_rules! plain {
    ($shared:literal: $($ty:ty),* $(,)?) => {
        $(
            // SAFETY: a primitive without invalid bit patterns (1), of fixed layout (2, 3).
            unsafe impl Plain for $ty {
                const SHARED: bool = $shared;
            }
        )*
    };
}

plain!(false: u8, u16, u32, u64, u128, usize, i8, i16, i32, i64, i128, isize, f32, f64, ());
plain!(true: atomic::AtomicU8, atomic::AtomicU16, atomic::AtomicU32, atomic::AtomicU64, atomic::AtomicUsize);
plain!(true: atomic::AtomicI8, atomic::AtomicI16, atomic::AtomicI32, atomic::AtomicI64, atomic::AtomicIsize);

macro_rules! pointer {
    ($shared:literal: $($ty:ty),*) => {
        $(
            // SAFETY: any address is one, zero is `None`; following it is the user's `unsafe`.
            unsafe impl<T> Plain for $ty {
                const SHARED: bool = $shared;
            }
        )*
    };
}

pointer!(false: *mut T, *const T, Option<NonNull<T>>);
pointer!(true: atomic::AtomicPtr<T>);

macro_rules! of {
    ($($ty:ty $(, $size:ident)?);*) => {
        $(
            // SAFETY: transparent, or elements back to back.
            unsafe impl<T: Plain $(, const $size: usize)?> Plain for $ty {
                const SHARED: bool = T::SHARED;
                const ATOMICS: bool = T::ATOMICS;
                const CELLS: bool = T::CELLS;
                const LAYOUT: () = T::LAYOUT;
            }
        )*
    };
}

of!([T; N], N; Wrapping<T>; ManuallyDrop<T>);

/// Fails to compile unless shared references to a `T` are for reading: the same bytes may be
/// referenced as another type.
pub const fn frozen<T: Plain>() {
    placed::<T>();
    assert!(
        !T::SHARED,
        "a shared reference to atomics is no place for them: use `Object::share`, or `root_mut`"
    );
}

/// Fails to compile unless a `T` may lie at the page-aligned start of an object.
pub const fn placed<T: Plain>() {
    let () = T::LAYOUT;
    assert!(align_of::<T>() <= 4096, "objects begin at multiples of 4096: no larger alignment can be had");
}
