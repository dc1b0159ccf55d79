//! Keys and values as versions of the program have them: before, after a conversion, and extended in place.
//!
//! LAYOUT-CHANGE: a key of 32 bits becomes one of 64. LAYOUT-ADD: a name of 32 bytes, which the workloads do not use.

use super::{Entry, Space, set};
use indelible::Persist;
use indelible::retention::{Extensions, extendible};

/// Before: P-ORIGINAL of the manual model.
#[derive(Clone, Copy)]
#[repr(C)]
pub struct Plain32 {
    key: u32,
    value: u64,
}

/// P-MANUAL, LAYOUT-CHANGE.
#[derive(Clone, Copy)]
#[repr(C)]
pub struct Plain64 {
    key: u64,
    value: u64,
}

/// P-MANUAL, LAYOUT-ADD.
#[derive(Clone, Copy)]
#[repr(C)]
pub struct Named {
    key: u32,
    value: u64,
    name: [u8; 32],
}

macro_rules! plain {
    ($($entry:ty: $key:ty),*) => {$(
        // SAFETY: it owns nothing.
        unsafe impl<S: Space> Entry<S> for $entry {
            unsafe fn put(at: *mut Self, key: u64, value: u64, _: &mut S) {
                // SAFETY: the caller's promise; other fields are zeros.
                unsafe {
                    (*at).key = key as $key;
                    (*at).value = value;
                }
            }

            #[inline]
            unsafe fn key(at: *mut Self, _: &mut S) -> u64 {
                // SAFETY: the caller's promise.
                unsafe { (*at).key.into() }
            }

            #[inline]
            unsafe fn value(at: *mut Self) -> u64 {
                // SAFETY: the caller's promise.
                unsafe { (*at).value }
            }

            unsafe fn discard(_: *mut Self, _: &mut S) {}
        }
    )*};
}

plain!(Plain32: u32, Plain64: u64, Named: u32);

mod original {
    use super::*;

    #[extendible]
    #[derive(Persist)]
    #[repr(C)]
    pub struct Pair<'h> {
        pub key: u32,
        pub value: u64,
    }
}

mod change {
    use super::*;

    #[extendible]
    #[derive(Persist)]
    #[repr(C)]
    pub struct Pair<'h> {
        pub key: u32,
        pub value: u64,
        #[extension(1, init = |pair| u64::from(pair.key))]
        pub wide: u64,
    }
}

mod add {
    use super::*;

    #[extendible]
    #[derive(Persist)]
    #[repr(C)]
    pub struct Pair<'h> {
        pub key: u32,
        pub value: u64,
        #[extension(1)]
        pub name: [u8; 32],
    }
}

/// P-ORIGINAL of the automatic model.
#[repr(transparent)]
pub struct Grown(original::Pair<'static>);
/// P-AUTO, LAYOUT-CHANGE; reading a key that was not stored computes it.
#[repr(transparent)]
pub struct Lazy(change::Pair<'static>);
/// P-AUTO, LAYOUT-CHANGE, as the paper has it: the first access to a key extends its entry.
#[repr(transparent)]
pub struct Eager(change::Pair<'static>);
/// P-AUTO, LAYOUT-ADD.
#[repr(transparent)]
pub struct GrownName(add::Pair<'static>);

macro_rules! grown {
    ($($entry:ident($pair:ident), |$new:ident, $wide:ident| $put:block, |$at:ident| $key:expr;)*) => {$(
        // SAFETY: its chain is its own.
        unsafe impl<S: Space> Entry<S> for $entry {
            unsafe fn put(at: *mut Self, key: u64, value: u64, _: &mut S) {
                // SAFETY: the caller's promise.
                unsafe {
                    at.write($entry($pair { key: key as u32, value, extensions: Extensions::new() }));
                    let ($new, $wide) = (&mut (*at).0, key);
                    $put
                }
            }

            #[inline]
            unsafe fn key(at: *mut Self, _: &mut S) -> u64 {
                // SAFETY: the caller's promise.
                let $at = unsafe { &mut (*at).0 };
                $key
            }

            #[inline]
            unsafe fn value(at: *mut Self) -> u64 {
                // SAFETY: the caller's promise.
                unsafe { (*at).0.value }
            }

            unsafe fn discard(at: *mut Self, _: &mut S) {
                // SAFETY: the caller's promise.
                unsafe { at.drop_in_place() }
            }
        }
    )*};
}

type Original = original::Pair<'static>;
type Change = change::Pair<'static>;
type Add = add::Pair<'static>;

grown! {
    Grown(Original), |_new, _wide| {}, |at| u64::from(at.key);
    GrownName(Add), |_new, _wide| {}, |at| u64::from(at.key);
    Lazy(Change), |new, wide| { *new.wide_mut() = wide; }, |at| at.wide();
    Eager(Change), |new, wide| { *new.wide_mut() = wide; }, |at| {
        at.extend().expect("the heap has room");
        at.wide()
    };
}

/// As the paper's compiler lowers it, by hand: what an extension of a `T` is.
#[repr(C)]
struct Extension<T> {
    next: *mut u8,
    value: T,
}

/// P-ORIGINAL of the automatic model, by hand.
#[repr(C)]
pub struct Linked {
    key: u32,
    value: u64,
    to_extend: *mut Extension<u64>,
}

/// P-AUTO by hand, LAYOUT-CHANGE.
#[repr(transparent)]
pub struct LinkedKey(Linked);
/// P-AUTO by hand, LAYOUT-ADD: the name is not used, so that nothing is extended.
#[repr(transparent)]
pub struct LinkedName(Linked);

macro_rules! linked {
    ($($entry:ident),*) => {$(
        // SAFETY: its extension is its own.
        unsafe impl<S: Space> Entry<S> for $entry {
            unsafe fn put(at: *mut Self, key: u64, value: u64, _: &mut S) {
                let at = at.cast::<Linked>();
                // SAFETY: the caller's promise.
                unsafe { at.write(Linked { key: key as u32, value, to_extend: std::ptr::null_mut() }) };
            }

            #[inline]
            unsafe fn key(at: *mut Self, _: &mut S) -> u64 {
                // SAFETY: the caller's promise.
                unsafe { (*at.cast::<Linked>()).key.into() }
            }

            #[inline]
            unsafe fn value(at: *mut Self) -> u64 {
                // SAFETY: the caller's promise.
                unsafe { (*at.cast::<Linked>()).value }
            }

            unsafe fn discard(at: *mut Self, space: &mut S) {
                // SAFETY: the caller's promise.
                unsafe {
                    let extension = (*at.cast::<Linked>()).to_extend;
                    if !extension.is_null() {
                        space.free(extension.cast());
                    }
                }
            }
        }
    )*};
}

linked!(Linked, LinkedName);

impl LinkedKey {
    /// The extension, made if there is none.
    #[inline]
    unsafe fn extension<S: Space>(at: *mut Self, key: u64, space: &mut S) -> *mut Extension<u64> {
        // SAFETY: the caller's promise.
        unsafe {
            let base = at.cast::<Linked>();
            if (*base).to_extend.is_null() {
                let extension = space.alloc(size_of::<Extension<u64>>()).cast::<Extension<u64>>();
                (*extension).value = key;
                set(&raw mut (*base).to_extend, extension, space);
            }
            (*base).to_extend
        }
    }
}

// SAFETY: its extension is its own.
unsafe impl<S: Space> Entry<S> for LinkedKey {
    unsafe fn put(at: *mut Self, key: u64, value: u64, space: &mut S) {
        // SAFETY: the caller's promise.
        unsafe {
            <Linked as Entry<S>>::put(at.cast(), key, value, space);
            Self::extension(at, key, space);
        }
    }

    #[inline]
    unsafe fn key(at: *mut Self, space: &mut S) -> u64 {
        // SAFETY: the caller's promise.
        unsafe {
            let initial = u64::from((*at.cast::<Linked>()).key);
            (*Self::extension(at, initial, space)).value
        }
    }

    #[inline]
    unsafe fn value(at: *mut Self) -> u64 {
        // SAFETY: the caller's promise.
        unsafe { (*at.cast::<Linked>()).value }
    }

    unsafe fn discard(at: *mut Self, space: &mut S) {
        // SAFETY: the caller's promise.
        unsafe { <Linked as Entry<S>>::discard(at.cast(), space) }
    }
}
