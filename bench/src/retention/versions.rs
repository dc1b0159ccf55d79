//! Structs with keys in a program's versions: before, converted, and extended in place.
//!
//! LAYOUT-CHANGE: keys of 32 bits become 64. LAYOUT-ADD: a name of 32 bytes, which workloads do not
//! use.

use super::{Entry, Space};
use std::marker::PhantomData;

/// A struct with `N` keys and other fields, in one version.
///
/// # Safety
/// A value owns all of its bytes except those that `discard` frees; its bytes may be moved.
pub unsafe trait Keyed<S: Space, const N: usize>: Sized {
    type Rest;

    /// Makes a value in new memory.
    ///
    /// # Safety
    /// `at` is aligned, and in the space.
    unsafe fn make(at: *mut Self, keys: [u64; N], rest: Self::Rest, space: &mut S);

    /// # Safety
    /// A value lies at `at`.
    unsafe fn keys(at: *mut Self, space: &mut S) -> [u64; N];

    /// # Safety
    /// A value lies at `at`, and the space knows that its bytes change.
    unsafe fn set_keys(at: *mut Self, keys: [u64; N], space: &mut S);

    /// # Safety
    /// A value lies at `at`.
    unsafe fn rest(at: *mut Self) -> *mut Self::Rest;

    /// # Safety
    /// A value lies at `at`.
    unsafe fn is_extended(at: *mut Self) -> bool;

    /// Called after a copy of a value's bytes to `at`.
    ///
    /// # Safety
    /// A value lies at `at`.
    #[inline]
    unsafe fn was_moved(_at: *mut Self, _space: &mut S) {}

    /// # Safety
    /// A value lies at `at`, and is unused.
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

/// The versions of a struct on both sides of a change. P-ORIGINAL of the manual model is always
/// [`Plain32`](super::Plain32).
pub trait Versions<S: Space, const N: usize> {
    type Rest;
    type Manual: Keyed<S, N, Rest = Self::Rest>;
    /// P-ORIGINAL of the automatic model.
    type Before: Keyed<S, N, Rest = Self::Rest>;
    /// P-AUTO of the paper: the first access to a new field extends its struct.
    type Auto: Keyed<S, N, Rest = Self::Rest>;
    /// P-AUTO that computes missing fields.
    type Computed: Keyed<S, N, Rest = Self::Rest>;
    const COMPUTES: bool;
}

pub struct Change<T>(PhantomData<T>);

pub struct Add<T>(PhantomData<T>);

/// Programs of a change that separate parts of its cost.
pub trait Parts<S: Space, const N: usize>: Versions<S, N> {
    /// All values were extended before: extensions are followed unchecked.
    type Unchecked: Keyed<S, N, Rest = Self::Rest>;
    /// P-AUTO that copies extensions of moved values.
    type Deep: Keyed<S, N, Rest = Self::Rest>;
}

/// A struct whose extension can be copied.
///
/// # Safety
/// Afterwards the value has its own, equal extension; the old one is freed.
pub unsafe trait Recopy<S: Space> {
    /// Copies a value's extension, if any.
    ///
    /// # Safety
    /// A value lies at `at`.
    unsafe fn recopy(at: *mut Self, space: &mut S);
}

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
