//! Structs with keys, as versions of a program have them: before, after a conversion, and extended
//! in place.
//!
//! LAYOUT-CHANGE: keys of 32 bits become keys of 64. LAYOUT-ADD: a name of 32 bytes, which the
//! workloads do not use.

use super::{Entry, Space};
use std::marker::PhantomData;

/// A struct with `N` keys and other fields, as one version of a program has it.
///
/// # Safety
/// All bytes of a value are its own but for those that `discard` frees; its bytes may be moved.
pub unsafe trait Keyed<S: Space, const N: usize>: Sized {
    /// The other fields.
    type Rest;

    /// Makes a value in memory that is new.
    ///
    /// # Safety
    /// `at` is aligned, and in the space.
    unsafe fn make(at: *mut Self, keys: [u64; N], rest: Self::Rest, space: &mut S);

    /// The keys as the program has them.
    ///
    /// # Safety
    /// A value lies at `at`.
    unsafe fn keys(at: *mut Self, space: &mut S) -> [u64; N];

    /// Stores other keys.
    ///
    /// # Safety
    /// A value lies at `at`, and the space was told that its bytes change.
    unsafe fn set_keys(at: *mut Self, keys: [u64; N], space: &mut S);

    /// The other fields.
    ///
    /// # Safety
    /// A value lies at `at`.
    unsafe fn rest(at: *mut Self) -> *mut Self::Rest;

    /// Whether the value has an extension.
    ///
    /// # Safety
    /// A value lies at `at`.
    unsafe fn is_extended(at: *mut Self) -> bool;

    /// Called where a value came to lie by a copy of its bytes.
    ///
    /// # Safety
    /// A value lies at `at`.
    #[inline]
    unsafe fn was_moved(_at: *mut Self, _space: &mut S) {}

    /// Frees what the value owns.
    ///
    /// # Safety
    /// A value lies at `at`, and is not used any more.
    unsafe fn discard(at: *mut Self, space: &mut S);
}

// SAFETY: the promises of `Keyed`.
unsafe impl<S: Space, E: Keyed<S, 1, Rest = u64>> Entry<S> for E {
    #[inline]
    unsafe fn put(at: *mut Self, key: u64, value: u64, space: &mut S) {
        // SAFETY: the caller's promise.
        unsafe { E::make(at, [key], value, space) }
    }

    #[inline]
    unsafe fn key(at: *mut Self, space: &mut S) -> u64 {
        // SAFETY: the caller's promise.
        unsafe { E::keys(at, space)[0] }
    }

    #[inline]
    unsafe fn value(at: *mut Self) -> u64 {
        // SAFETY: the caller's promise.
        unsafe { *E::rest(at) }
    }

    #[inline]
    unsafe fn was_moved(at: *mut Self, space: &mut S) {
        // SAFETY: the caller's promise.
        unsafe { <E as Keyed<S, 1>>::was_moved(at, space) }
    }

    unsafe fn discard(at: *mut Self, space: &mut S) {
        // SAFETY: the caller's promise.
        unsafe { <E as Keyed<S, 1>>::discard(at, space) }
    }
}

/// The versions of a struct on both sides of a change, as they are stored in a space. P-ORIGINAL of
/// the manual model is [`Plain32`](super::Plain32) everywhere.
pub trait Versions<S: Space, const N: usize> {
    type Rest;
    /// P-MANUAL.
    type Manual: Keyed<S, N, Rest = Self::Rest>;
    /// P-ORIGINAL of the automatic model.
    type Before: Keyed<S, N, Rest = Self::Rest>;
    /// P-AUTO, as the paper has it: the first access to a new field extends its struct.
    type Auto: Keyed<S, N, Rest = Self::Rest>;
    /// P-AUTO that computes missing fields.
    type Computed: Keyed<S, N, Rest = Self::Rest>;
    /// Whether that is another program.
    const COMPUTES: bool;
}

/// LAYOUT-CHANGE of a struct.
pub struct Change<T>(PhantomData<T>);

/// LAYOUT-ADD of a struct.
pub struct Add<T>(PhantomData<T>);

/// The programs of a change by which parts of its cost are told apart.
pub trait Parts<S: Space, const N: usize>: Versions<S, N> {
    /// All values were extended before: the extension is followed without a check.
    type Unchecked: Keyed<S, N, Rest = Self::Rest>;
    /// P-AUTO that copies the extension of each value that is moved.
    type Deep: Keyed<S, N, Rest = Self::Rest>;
}

/// A struct whose extension can be copied.
///
/// # Safety
/// The value has an extension of its own afterwards, equal to the one before, which is freed.
pub unsafe trait Recopy<S: Space> {
    /// Gives a value a copy of its extension, if it has one.
    ///
    /// # Safety
    /// A value lies at `at`.
    unsafe fn recopy(at: *mut Self, space: &mut S);
}

/// A struct of which every copy is deep, also that of a value that is only moved.
#[repr(transparent)]
pub struct Deep<E>(E);

// SAFETY: as for `E`.
unsafe impl<S: Space, const N: usize, E: Keyed<S, N> + Recopy<S>> Keyed<S, N> for Deep<E> {
    type Rest = E::Rest;

    unsafe fn make(at: *mut Self, keys: [u64; N], rest: E::Rest, space: &mut S) {
        // SAFETY: the caller's promise.
        unsafe { E::make(at.cast(), keys, rest, space) }
    }

    #[inline]
    unsafe fn keys(at: *mut Self, space: &mut S) -> [u64; N] {
        // SAFETY: the caller's promise.
        unsafe { E::keys(at.cast(), space) }
    }

    #[inline]
    unsafe fn set_keys(at: *mut Self, keys: [u64; N], space: &mut S) {
        // SAFETY: the caller's promise.
        unsafe { E::set_keys(at.cast(), keys, space) }
    }

    #[inline]
    unsafe fn rest(at: *mut Self) -> *mut E::Rest {
        // SAFETY: the caller's promise.
        unsafe { E::rest(at.cast()) }
    }

    unsafe fn is_extended(at: *mut Self) -> bool {
        // SAFETY: the caller's promise.
        unsafe { E::is_extended(at.cast()) }
    }

    unsafe fn was_moved(at: *mut Self, space: &mut S) {
        // SAFETY: the caller's promise.
        unsafe { E::recopy(at.cast(), space) }
    }

    unsafe fn discard(at: *mut Self, space: &mut S) {
        // SAFETY: the caller's promise.
        unsafe { E::discard(at.cast(), space) }
    }
}
