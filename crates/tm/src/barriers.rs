//! Loads, stores and logs of compiled code, of every size.
//!
//! Hints about earlier accesses in the names are not needed. Larger numbers, and x87 ones, are in
//! [`registers`](crate::registers).

use crate::blocks::Thread;
use indelible_stm::Number;

/// # Safety
/// Invariant 1 of the crate.
#[inline(always)]
pub(crate) unsafe fn load<T: Number>(from: *const T) -> T {
    if let Some(thread) = Thread::transacting(from.addr())
        && let Some(mut running) = thread.running()
    {
        // SAFETY: the caller's promise; a word with a loadable byte exists whole.
        match unsafe { running.load(from) } {
            Ok(value) => return value,
            Err(_) => Thread::again(),
        }
    }
    // SAFETY: the caller's promise: no other thread has it.
    unsafe { from.read_unaligned() }
}

/// # Safety
/// As for `load`.
#[inline(always)]
pub(crate) unsafe fn store<T: Number>(to: *mut T, value: T) {
    if let Some(thread) = Thread::transacting(to.addr())
        && let Some(mut running) = thread.running()
    {
        // SAFETY: the caller's promise.
        match unsafe { running.store(to, value) } {
            Ok(()) => return,
            Err(_) => Thread::again(),
        }
    }
    // SAFETY: the caller's promise: no other thread has it.
    unsafe {
        keep(to.expose_provenance(), size_of::<T>(), false);
        to.write_unaligned(value);
    }
}

/// `own` bytes are those that, by the compiled code, no other thread knows.
///
/// # Safety
/// As for `load`.
#[inline(always)]
pub(crate) unsafe fn keep(address: usize, len: usize, own: bool) {
    if let Some(thread) = Thread::logging(own) {
        // SAFETY: the caller's promise.
        unsafe { thread.keep(address, len) };
    }
}

macro_rules! barriers {
    ($($type:ty, $log:ident, [$($read:ident)*], [$($write:ident)*];)*) => {$(
        $(
            /// # Safety
            /// Invariant 1 of the crate.
            #[unsafe(no_mangle)]
            pub unsafe extern "C" fn $read(from: *const $type) -> $type {
                // SAFETY: the caller's promise.
                unsafe { load(from) }
            }
        )*
        $(
            /// # Safety
            /// Invariant 1 of the crate.
            #[unsafe(no_mangle)]
            pub unsafe extern "C" fn $write(to: *mut $type, value: $type) {
                // SAFETY: the caller's promise.
                unsafe { store(to, value) }
            }
        )*
        /// # Safety
        /// Invariant 1 of the crate.
        #[unsafe(no_mangle)]
        pub unsafe extern "C" fn $log(at: *const $type) {
            // SAFETY: the caller's promise.
            unsafe { keep(at.expose_provenance(), size_of::<$type>(), true) }
        }
    )*};
}

barriers! {
    u8, _ITM_LU1, [_ITM_RU1 _ITM_RaRU1 _ITM_RaWU1 _ITM_RfWU1], [_ITM_WU1 _ITM_WaRU1 _ITM_WaWU1];
    u16, _ITM_LU2, [_ITM_RU2 _ITM_RaRU2 _ITM_RaWU2 _ITM_RfWU2], [_ITM_WU2 _ITM_WaRU2 _ITM_WaWU2];
    u32, _ITM_LU4, [_ITM_RU4 _ITM_RaRU4 _ITM_RaWU4 _ITM_RfWU4], [_ITM_WU4 _ITM_WaRU4 _ITM_WaWU4];
    u64, _ITM_LU8, [_ITM_RU8 _ITM_RaRU8 _ITM_RaWU8 _ITM_RfWU8], [_ITM_WU8 _ITM_WaRU8 _ITM_WaWU8];
    f32, _ITM_LF, [_ITM_RF _ITM_RaRF _ITM_RaWF _ITM_RfWF], [_ITM_WF _ITM_WaRF _ITM_WaWF];
    f64, _ITM_LD, [_ITM_RD _ITM_RaRD _ITM_RaWD _ITM_RfWD], [_ITM_WD _ITM_WaRD _ITM_WaWD];
    // A vector of 8 bytes and a complex number of two floats are in registers like one number of 8
    // bytes.
    f64, _ITM_LM64, [_ITM_RM64 _ITM_RaRM64 _ITM_RaWM64 _ITM_RfWM64], [_ITM_WM64 _ITM_WaRM64 _ITM_WaWM64];
    f64, _ITM_LCF, [_ITM_RCF _ITM_RaRCF _ITM_RaWCF _ITM_RfWCF], [_ITM_WCF _ITM_WaRCF _ITM_WaWCF];
}

macro_rules! logs {
    ($($name:ident $size:literal)*) => {$(
        /// # Safety
        /// Invariant 1 of the crate.
        #[unsafe(no_mangle)]
        pub unsafe extern "C" fn $name(at: *const u8) {
            // SAFETY: the caller's promise.
            unsafe { keep(at.expose_provenance(), $size, true) }
        }
    )*};
}

logs!(_ITM_LE 16 _ITM_LCE 32 _ITM_LCD 16 _ITM_LM128 16 _ITM_LM256 32);

/// # Safety
/// Invariant 1 of the crate.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn _ITM_LB(at: *const u8, size: usize) {
    // SAFETY: the caller's promise.
    unsafe { keep(at.expose_provenance(), size, true) }
}
