//! C++ exceptions thrown and caught by blocks: those of an undone block vanish.
//!
//! A thrown object is the block's own, and accessed in place: the unwinder reads it, and the last
//! handler's end frees it within the block.

use crate::blocks::{Thread, fatal};
use crate::weak;
use std::ffi::c_void;
use std::ops::Range;

/// Bytes from the unwinder's header to the program's exception.
const HEADER: usize = 32;

struct Object {
    bytes: Range<usize>,
    freed: bool,
}

#[derive(Default)]
pub(crate) struct Exceptions {
    objects: Vec<Object>,
    unthrown: Vec<*mut c_void>,
    thrown: Vec<*mut c_void>,
    caught: Vec<*mut c_void>,
}

/// Numbers of objects, unthrown and uncaught exceptions, and handlers.
pub(crate) type Mark = [usize; 4];

impl Exceptions {
    pub(crate) fn forget(&mut self) {
        self.objects.clear();
        self.unthrown.clear();
        self.thrown.clear();
        self.caught.clear();
    }

    pub(crate) fn mark(&self) -> Mark {
        [self.objects.len(), self.unthrown.len(), self.thrown.len(), self.caught.len()]
    }

    #[inline(always)]
    pub(crate) fn have(&self, address: usize) -> bool {
        !self.objects.is_empty() && self.find(address)
    }

    #[cold]
    fn find(&self, address: usize) -> bool {
        self.objects.iter().any(|object| !object.freed && object.bytes.contains(&address))
    }

    /// Returns the object's bytes, if it is one of the block's.
    fn set_freed(&mut self, exception: *mut c_void, freed: bool) -> Option<Range<usize>> {
        let object = self.objects.iter_mut().rev().find(|object| object.bytes.start == exception.addr())?;
        object.freed = freed;
        Some(object.bytes.clone())
    }

    pub(crate) fn undo(&mut self, [objects, unthrown, thrown, caught]: Mark) {
        self.objects.truncate(objects);
        for exception in self.unthrown.split_off(unthrown.min(self.unthrown.len())) {
            if let Some(free) = weak::free_exception() {
                // SAFETY: it was allocated, and not thrown.
                unsafe { free(exception) };
            }
        }
        let mut handlers = self.caught.len().saturating_sub(caught) as u32;
        self.caught.truncate(caught);
        let thrown = self.thrown.split_off(thrown.min(self.thrown.len()));
        let Some(cleanup) = weak::cleanup() else { return };
        for exception in thrown {
            let header = exception.wrapping_byte_sub(HEADER);
            // SAFETY: it was thrown in the block and reached no handler; the handlers are the
            // block's.
            unsafe { cleanup(std::ptr::null_mut(), header, std::mem::take(&mut handlers)) };
        }
        if handlers > 0 {
            // SAFETY: as above.
            unsafe { cleanup(std::ptr::null_mut(), std::ptr::null_mut(), handlers) };
        }
    }
}

impl Thread {
    /// The object may be freed: its next owner's bytes must survive an undo.
    fn leave_exception(&mut self, exception: *mut c_void) {
        if let Some(bytes) = self.exceptions.set_freed(exception, true) {
            self.log.forget(&bytes);
        }
    }
}

#[unsafe(no_mangle)]
pub extern "C-unwind" fn _ITM_cxa_allocate_exception(size: usize) -> *mut c_void {
    let Some(allocate) = weak::allocate_exception() else { missing() };
    // SAFETY: any size will do.
    let exception = unsafe { allocate(size) };
    Thread::with(|thread| {
        let begin = exception.addr();
        thread.exceptions.objects.push(Object { bytes: begin..begin + size, freed: false });
        thread.exceptions.unthrown.push(exception);
    });
    exception
}

#[unsafe(no_mangle)]
pub extern "C-unwind" fn _ITM_cxa_free_exception(exception: *mut c_void) {
    Thread::with(|thread| {
        thread.exceptions.unthrown.retain(|known| *known != exception);
        thread.leave_exception(exception);
    });
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
        let exception = header.wrapping_byte_add(HEADER);
        thread.exceptions.thrown.retain(|known| *known != exception);
        thread.exceptions.caught.push(exception);
        thread.exceptions.set_freed(exception, false);
    });
    // SAFETY: the program's promise.
    unsafe { begin(header) }
}

#[unsafe(no_mangle)]
pub extern "C-unwind" fn _ITM_cxa_end_catch() {
    Thread::with(|thread| {
        if let Some(exception) = thread.exceptions.caught.pop()
            && !thread.exceptions.caught.contains(&exception)
        {
            thread.leave_exception(exception);
        }
    });
    let Some(end) = weak::end_catch() else { missing() };
    // SAFETY: the program's promise.
    unsafe { end() };
}

fn missing() -> ! {
    fatal("a block throws or catches, and the program has no exceptions of C++")
}
