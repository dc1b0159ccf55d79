use super::{Keyed, Space};

pub trait Width: Copy + Into<u64> {
    fn of(key: u64) -> Self;
}

impl Width for u32 {
    #[inline]
    fn of(key: u64) -> u32 {
        key as u32
    }
}

impl Width for u64 {
    #[inline]
    fn of(key: u64) -> u64 {
        key
    }
}

#[derive(Clone, Copy)]
#[repr(C)]
pub struct Plain<K, R, const N: usize> {
    keys: [K; N],
    rest: R,
}

/// P-ORIGINAL of the manual model.
pub type Plain32<R = u64, const N: usize = 1> = Plain<u32, R, N>;
/// P-MANUAL, LAYOUT-CHANGE.
pub type Plain64<R = u64, const N: usize = 1> = Plain<u64, R, N>;

/// P-MANUAL, LAYOUT-ADD.
#[derive(Clone, Copy)]
#[repr(C)]
pub struct Named<R, const N: usize> {
    plain: Plain32<R, N>,
    name: [u8; 32],
}

// SAFETY: it owns nothing.
unsafe impl<S: Space, K: Width, R, const N: usize> Keyed<S, N> for Plain<K, R, N> {
    type Rest = R;

    #[inline]
    unsafe fn make(at: *mut Self, keys: [u64; N], rest: R, _: &mut S) {
        // SAFETY: the caller's promise.
        unsafe { at.write(Plain { keys: keys.map(K::of), rest }) }
    }

    #[inline]
    unsafe fn keys(at: *mut Self, _: &mut S) -> [u64; N] {
        // SAFETY: the caller's promise.
        unsafe { (*at).keys.map(K::into) }
    }

    #[inline]
    unsafe fn set_keys(at: *mut Self, keys: [u64; N], _: &mut S) {
        // SAFETY: the caller's promise.
        unsafe { (*at).keys = keys.map(K::of) }
    }

    #[inline]
    unsafe fn rest(at: *mut Self) -> *mut R {
        // SAFETY: the caller's promise.
        unsafe { &raw mut (*at).rest }
    }

    unsafe fn is_extended(_: *mut Self) -> bool {
        false
    }

    unsafe fn discard(_: *mut Self, _: &mut S) {}
}

// SAFETY: it owns nothing.
unsafe impl<S: Space, R, const N: usize> Keyed<S, N> for Named<R, N> {
    type Rest = R;

    #[inline]
    unsafe fn make(at: *mut Self, keys: [u64; N], rest: R, _: &mut S) {
        // SAFETY: the caller's promise; the name stays zeros.
        unsafe { (&raw mut (*at).plain).write(Plain { keys: keys.map(u32::of), rest }) }
    }

    #[inline]
    unsafe fn keys(at: *mut Self, _: &mut S) -> [u64; N] {
        // SAFETY: the caller's promise.
        unsafe { (*at).plain.keys.map(u64::from) }
    }

    #[inline]
    unsafe fn set_keys(at: *mut Self, keys: [u64; N], _: &mut S) {
        // SAFETY: the caller's promise.
        unsafe { (*at).plain.keys = keys.map(u32::of) }
    }

    #[inline]
    unsafe fn rest(at: *mut Self) -> *mut R {
        // SAFETY: the caller's promise.
        unsafe { &raw mut (*at).plain.rest }
    }

    unsafe fn is_extended(_: *mut Self) -> bool {
        false
    }

    unsafe fn discard(_: *mut Self, _: &mut S) {}
}
