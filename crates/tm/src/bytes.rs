//! Copies and fills of compiled code.

use crate::barriers::keep;
use crate::blocks::Thread;

const PIECE: usize = 256;

/// # Safety
/// Invariant 1 of the crate: so many bytes may be loaded there, by the transaction if `shared`.
unsafe fn load(from: *const u8, into: &mut [u8], shared: bool) {
    if shared
        && let Some(thread) = Thread::transacting(from.addr())
        && let Some(mut running) = thread.running()
    {
        // SAFETY: the caller's promise.
        match unsafe { running.load_bytes(from, into) } {
            Ok(()) => return,
            Err(_) => Thread::again(),
        }
    }
    // SAFETY: the caller's promise: no other thread has them.
    unsafe { from.copy_to_nonoverlapping(into.as_mut_ptr(), into.len()) };
}

/// # Safety
/// Invariant 1 of the crate: so many bytes may be stored there, by the transaction if `shared`.
unsafe fn store(to: *mut u8, bytes: &[u8], shared: bool) {
    if shared
        && let Some(thread) = Thread::transacting(to.addr())
        && let Some(mut running) = thread.running()
    {
        // SAFETY: the caller's promise.
        match unsafe { running.store_bytes(to, bytes) } {
            Ok(()) => return,
            Err(_) => Thread::again(),
        }
    }
    // SAFETY: the caller's promise: no other thread has them.
    unsafe {
        keep(to.expose_provenance(), bytes.len(), false);
        to.copy_from_nonoverlapping(bytes.as_ptr(), bytes.len());
    }
}

/// # Safety
/// Invariant 1 of the crate.
pub(crate) unsafe fn copy(to: *mut u8, from: *const u8, size: usize, reads: bool, writes: bool) {
    let mut room = [0; PIECE];
    // Overwritten bytes are copied first.
    let backwards = to.addr().wrapping_sub(from.addr()) < size;
    let mut done = 0;
    while done < size {
        let len = PIECE.min(size - done);
        let at = if backwards { size - done - len } else { done };
        // SAFETY: a piece of the caller's bytes.
        unsafe {
            load(from.wrapping_add(at), &mut room[..len], reads);
            store(to.wrapping_add(at), &room[..len], writes);
        }
        done += len;
    }
}

/// # Safety
/// Invariant 1 of the crate.
unsafe fn fill(to: *mut u8, byte: i32, size: usize) {
    let piece = [byte as u8; PIECE];
    let mut done = 0;
    while done < size {
        let len = PIECE.min(size - done);
        // SAFETY: a piece of the caller's bytes.
        unsafe { store(to.wrapping_add(done), &piece[..len], true) };
        done += len;
    }
}

macro_rules! copies {
    ($($name:ident $reads:literal $writes:literal)*) => {$(
        /// # Safety
        /// Invariant 1 of the crate.
        #[unsafe(no_mangle)]
        pub unsafe extern "C" fn $name(to: *mut u8, from: *const u8, size: usize) -> *mut u8 {
            // SAFETY: the caller's promise.
            unsafe { copy(to, from, size, $reads, $writes) };
            to
        }
    )*};
}

copies! {
    _ITM_memcpyRnWt false true
    _ITM_memcpyRnWtaR false true
    _ITM_memcpyRnWtaW false true
    _ITM_memcpyRtWn true false
    _ITM_memcpyRtWt true true
    _ITM_memcpyRtWtaR true true
    _ITM_memcpyRtWtaW true true
    _ITM_memcpyRtaRWn true false
    _ITM_memcpyRtaRWt true true
    _ITM_memcpyRtaRWtaR true true
    _ITM_memcpyRtaRWtaW true true
    _ITM_memcpyRtaWWn true false
    _ITM_memcpyRtaWWt true true
    _ITM_memcpyRtaWWtaR true true
    _ITM_memcpyRtaWWtaW true true
    _ITM_memmoveRnWt false true
    _ITM_memmoveRnWtaR false true
    _ITM_memmoveRnWtaW false true
    _ITM_memmoveRtWn true false
    _ITM_memmoveRtWt true true
    _ITM_memmoveRtWtaR true true
    _ITM_memmoveRtWtaW true true
    _ITM_memmoveRtaRWn true false
    _ITM_memmoveRtaRWt true true
    _ITM_memmoveRtaRWtaR true true
    _ITM_memmoveRtaRWtaW true true
    _ITM_memmoveRtaWWn true false
    _ITM_memmoveRtaWWt true true
    _ITM_memmoveRtaWWtaR true true
    _ITM_memmoveRtaWWtaW true true
}

macro_rules! fills {
    ($($name:ident)*) => {$(
        /// # Safety
        /// Invariant 1 of the crate.
        #[unsafe(no_mangle)]
        pub unsafe extern "C" fn $name(to: *mut u8, byte: i32, size: usize) -> *mut u8 {
            // SAFETY: the caller's promise.
            unsafe { fill(to, byte, size) };
            to
        }
    )*};
}

fills!(_ITM_memsetW _ITM_memsetWaR _ITM_memsetWaW);
