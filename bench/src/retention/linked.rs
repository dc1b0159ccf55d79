//! Structs as the paper's compiler lowers them, by hand.

use super::plain::Width;
use super::{Keyed, Recopy, Space, set};
use std::marker::PhantomData;

#[repr(C)]
pub struct Extension<const N: usize> {
    next: *mut u8,
    keys: [u64; N],
}

/// P-ORIGINAL of the automatic model; and P-AUTO, LAYOUT-ADD, as the unused name extends nothing.
#[repr(C)]
pub struct Linked<R, const N: usize> {
    keys: [u32; N],
    rest: R,
    to_extend: *mut Extension<N>,
}

/// P-AUTO, LAYOUT-CHANGE, with extensions found by `H`.
#[repr(transparent)]
pub struct LinkedKey<R, const N: usize, H = Checked>(Linked<R, N>, PhantomData<H>);

pub struct Checked;
pub struct Unchecked;

pub trait Lookup {
    const CHECKS: bool;
}

impl Lookup for Checked {
    const CHECKS: bool = true;
}

impl Lookup for Unchecked {
    const CHECKS: bool = false;
}

// SAFETY: its extension is its own.
unsafe impl<S: Space, R, const N: usize> Keyed<S, N> for Linked<R, N> {
    type Rest = R;

    unsafe fn make(at: *mut Self, keys: [u64; N], rest: R, _: &mut S) {
        // SAFETY: the caller's promise.
        unsafe { at.write(Linked { keys: keys.map(u32::of), rest, to_extend: std::ptr::null_mut() }) }
    }

    #[inline]
    unsafe fn keys(at: *mut Self, _: &mut S) -> [u64; N] {
        // SAFETY: the caller's promise.
        unsafe { (*at).keys.map(u64::from) }
    }

    #[inline]
    unsafe fn set_keys(at: *mut Self, keys: [u64; N], _: &mut S) {
        // SAFETY: the caller's promise.
        unsafe { (*at).keys = keys.map(u32::of) }
    }

    #[inline]
    unsafe fn rest(at: *mut Self) -> *mut R {
        // SAFETY: the caller's promise.
        unsafe { &raw mut (*at).rest }
    }

    unsafe fn is_extended(at: *mut Self) -> bool {
        // SAFETY: the caller's promise.
        unsafe { !(*at).to_extend.is_null() }
    }

    unsafe fn discard(at: *mut Self, space: &mut S) {
        // SAFETY: the caller's promise.
        unsafe {
            if !(*at).to_extend.is_null() {
                space.free((*at).to_extend.cast());
            }
        }
    }
}

impl<R, const N: usize, H: Lookup> LinkedKey<R, N, H> {
    #[inline]
    unsafe fn extension<S: Space>(
        at: *mut Self,
        keys: impl FnOnce() -> [u64; N],
        space: &mut S,
    ) -> *mut Extension<N> {
        // SAFETY: the caller's promise.
        unsafe {
            let link = &raw mut (*at).0.to_extend;
            if H::CHECKS && (*link).is_null() {
                let extension = space.alloc(size_of::<Extension<N>>()).cast::<Extension<N>>();
                (*extension).keys = keys();
                set(link, extension, space);
            }
            *link
        }
    }
}

// SAFETY: its extension is its own.
unsafe impl<S: Space, R, const N: usize, H: Lookup> Keyed<S, N> for LinkedKey<R, N, H> {
    type Rest = R;

    unsafe fn make(at: *mut Self, keys: [u64; N], rest: R, space: &mut S) {
        // SAFETY: the caller's promise.
        unsafe {
            <Linked<R, N> as Keyed<S, N>>::make(at.cast(), keys, rest, space);
            LinkedKey::<R, N, Checked>::extension(at.cast(), || keys, space);
        }
    }

    #[inline]
    unsafe fn keys(at: *mut Self, space: &mut S) -> [u64; N] {
        // SAFETY: the caller's promise.
        unsafe {
            let initial = || (*at).0.keys.map(u64::from);
            (*Self::extension(at, initial, space)).keys
        }
    }

    #[inline]
    unsafe fn set_keys(at: *mut Self, keys: [u64; N], space: &mut S) {
        // SAFETY: the caller's promise.
        unsafe {
            let extension = Self::extension(at, || keys, space);
            set(&raw mut (*extension).keys, keys, space);
        }
    }

    #[inline]
    unsafe fn rest(at: *mut Self) -> *mut R {
        // SAFETY: the caller's promise.
        unsafe { &raw mut (*at).0.rest }
    }

    unsafe fn is_extended(at: *mut Self) -> bool {
        // SAFETY: the caller's promise.
        unsafe { !(*at).0.to_extend.is_null() }
    }

    unsafe fn discard(at: *mut Self, space: &mut S) {
        // SAFETY: the caller's promise.
        unsafe { <Linked<R, N> as Keyed<S, N>>::discard(at.cast(), space) }
    }
}

// SAFETY: the old extension is freed, and the new one linked.
unsafe impl<S: Space, R, const N: usize> Recopy<S> for LinkedKey<R, N> {
    unsafe fn recopy(at: *mut Self, space: &mut S) {
        // SAFETY: the caller's promise.
        unsafe {
            let old = (*at).0.to_extend;
            if !old.is_null() {
                let new = space.alloc(size_of::<Extension<N>>()).cast::<Extension<N>>();
                std::ptr::copy_nonoverlapping(old, new, 1);
                // The bytes of the value are known to change.
                (*at).0.to_extend = new;
                space.free(old.cast());
            }
        }
    }
}
