//! Commits on demand: when they become durable, and which are pending.

use crate::args::{fill, text};
use crate::guard::status;
use crate::handles::{pmo_pool, pool};
use indelible::EpochBounds;
use indelible::raw::transactions;
use std::ffi::{c_char, c_int, c_void};
use std::time::Duration;

/// `struct pmo_pending`.
#[repr(C)]
#[allow(missing_docs)]
pub struct Pending {
    pub transactions: u64,
    pub bytes: u64,
}

#[unsafe(no_mangle)]
pub extern "C" fn pmo_tx_sync(object: *const c_void) -> c_int {
    status(|| Ok(transactions::tx_sync(object.cast())?))
}

#[unsafe(no_mangle)]
pub unsafe extern "C" fn pmo_tx_pending(object: *const c_void, pending: *mut Pending) -> c_int {
    status(|| {
        let found = transactions::pending(object.cast())?;
        let told = Pending { transactions: found.transactions, bytes: found.bytes };
        // SAFETY: the caller's promise.
        unsafe { fill(pending, told) }
    })
}

#[unsafe(no_mangle)]
pub extern "C" fn pmo_set_epochs(handle: *mut pmo_pool, milliseconds: u64, bytes: u64) -> c_int {
    status(|| {
        let every = if milliseconds == 0 { Duration::MAX } else { Duration::from_millis(milliseconds) };
        pool(handle)?.set_epochs(EpochBounds { every, bytes });
        Ok(())
    })
}

#[unsafe(no_mangle)]
pub unsafe extern "C" fn pmo_set_guard(handle: *mut pmo_pool, socket: *const c_char) -> c_int {
    status(|| {
        // SAFETY: the caller's promise.
        let socket = unsafe { text(socket, "socket") }?;
        pool(handle)?.set_guard(socket);
        Ok(())
    })
}
