//! Interface functions that end blocks, and describe them; `entry` begins blocks.

use crate::blocks::Thread;
use std::ffi::{c_int, c_void};

#[unsafe(no_mangle)]
pub extern "C" fn _ITM_commitTransaction() {
    Thread::end();
}

/// An exception leaves the block, which commits.
#[unsafe(no_mangle)]
pub extern "C" fn _ITM_commitTransactionEH(_exception: *mut c_void) {
    _ITM_commitTransaction();
}

#[unsafe(no_mangle)]
pub extern "C" fn _ITM_abortTransaction(reason: c_int) -> ! {
    Thread::cancel(reason)
}

#[unsafe(no_mangle)]
pub extern "C" fn _ITM_changeTransactionMode(_mode: c_int) {
    Thread::go_irrevocable();
}

/// 0 outside of blocks, 1 in a rerunnable one, 2 in an irrevocable one.
#[unsafe(no_mangle)]
pub extern "C" fn _ITM_inTransaction() -> c_int {
    Thread::with(|thread| if thread.is_irrevocable() { 2 } else { 1 }).unwrap_or(0)
}

/// 1 outside of blocks.
#[unsafe(no_mangle)]
pub extern "C" fn _ITM_getTransactionId() -> u64 {
    Thread::with(|thread| thread.id()).unwrap_or(1)
}

/// The block does not use these bytes any more. They stay in its read set.
#[unsafe(no_mangle)]
pub extern "C" fn _ITM_dropReferences(_start: *mut c_void, _size: usize) {}
