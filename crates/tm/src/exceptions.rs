//! Exceptions of C++ that a block throws and catches: those of a block that is undone are no more.

use crate::blocks::{Thread, fatal};
use crate::weak;
use std::ffi::c_void;

/// Bytes from the header that the unwinder knows to the exception of the program.
const HEADER: usize = 32;

#[derive(Default)]
pub(crate) struct Exceptions {
    /// Allocated, and not thrown yet.
    unthrown: Vec<*mut c_void>,
    /// Thrown, and not caught yet.
    thrown: Vec<*mut c_void>,
    /// Handlers that have begun and not ended.
    caught: u32,
}

impl Exceptions {
    /// The block has committed: they are the program's.
    pub(crate) fn forget(&mut self) {
        self.unthrown.clear();
        self.thrown.clear();
        self.caught = 0;
    }

    pub(crate) fn mark(&self) -> (usize, usize, u32) {
        (self.unthrown.len(), self.thrown.len(), self.caught)
    }

    /// Ends those since a mark, of a block that is undone.
    pub(crate) fn undo(&mut self, (unthrown, thrown, caught): (usize, usize, u32)) {
        for exception in self.unthrown.split_off(unthrown.min(self.unthrown.len())) {
            if let Some(free) = weak::free_exception() {
                // SAFETY: it was allocated, and not thrown.
                unsafe { free(exception) };
            }
        }
        let mut handlers = self.caught.saturating_sub(caught);
        self.caught -= handlers;
        let thrown = self.thrown.split_off(thrown.min(self.thrown.len()));
        let Some(cleanup) = weak::cleanup() else { return };
        for exception in thrown {
            let header = exception.wrapping_byte_sub(HEADER);
            // SAFETY: it was thrown in the block and reached no handler; the handlers are those that the block began.
            unsafe { cleanup(std::ptr::null_mut(), header, std::mem::take(&mut handlers)) };
        }
        if handlers > 0 {
            // SAFETY: as above.
            unsafe { cleanup(std::ptr::null_mut(), std::ptr::null_mut(), handlers) };
        }
    }
}

#[unsafe(no_mangle)]
pub extern "C-unwind" fn _ITM_cxa_allocate_exception(size: usize) -> *mut c_void {
    let Some(allocate) = weak::allocate_exception() else { missing() };
    // SAFETY: any size will do.
    let exception = unsafe { allocate(size) };
    Thread::with(|thread| thread.exceptions.unthrown.push(exception));
    exception
}

#[unsafe(no_mangle)]
pub extern "C-unwind" fn _ITM_cxa_free_exception(exception: *mut c_void) {
    Thread::with(|thread| thread.exceptions.unthrown.retain(|known| *known != exception));
    let Some(free) = weak::free_exception() else { missing() };
    // SAFETY: the program's promise: it was allocated, and is not thrown.
    unsafe { free(exception) };
}

#[unsafe(no_mangle)]
pub extern "C-unwind" fn _ITM_cxa_throw(exception: *mut c_void, of: *mut c_void, destructor: *mut c_void) {
    let Some(throw) = weak::throw() else { missing() };
    Thread::with(|thread| {
        thread.exceptions.unthrown.retain(|known| *known != exception);
        thread.exceptions.thrown.push(exception);
    });
    // SAFETY: the program's promise. It unwinds through this frame, which owns nothing.
    unsafe { throw(exception, of, destructor) };
}

#[unsafe(no_mangle)]
pub extern "C-unwind" fn _ITM_cxa_begin_catch(header: *mut c_void) -> *mut c_void {
    let Some(begin) = weak::begin_catch() else { missing() };
    Thread::with(|thread| {
        thread.exceptions.thrown.retain(|known| *known != header.wrapping_byte_add(HEADER));
        thread.exceptions.caught += 1;
    });
    // SAFETY: the program's promise.
    unsafe { begin(header) }
}

#[unsafe(no_mangle)]
pub extern "C-unwind" fn _ITM_cxa_end_catch() {
    Thread::with(|thread| thread.exceptions.caught = thread.exceptions.caught.saturating_sub(1));
    let Some(end) = weak::end_catch() else { missing() };
    // SAFETY: the program's promise.
    unsafe { end() };
}

fn missing() -> ! {
    fatal("a block throws or catches, and the program has no exceptions of C++")
}
