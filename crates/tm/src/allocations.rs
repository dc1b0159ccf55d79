//! Memory allocated and freed by blocks: undoing a block frees its allocations; memory that it
//! frees stays until it has committed and no block can read it.

use crate::blocks::{Thread, fatal};
use crate::weak;
use std::ffi::c_void;

#[derive(Clone, Copy)]
enum By {
    Free,
    Delete,
    DeleteArray,
}

#[derive(Default)]
pub(crate) struct Allocations {
    made: Vec<(*mut c_void, By)>,
    freed: Vec<(*mut c_void, By)>,
}

pub(crate) struct Unused(Vec<(*mut c_void, By)>);

impl Allocations {
    pub(crate) fn mark(&self) -> (usize, usize) {
        (self.made.len(), self.freed.len())
    }

    pub(crate) fn take_freed(&mut self) -> Unused {
        self.made.clear();
        Unused(std::mem::take(&mut self.freed))
    }

    /// Frees since the mark are cancelled.
    pub(crate) fn take_made(&mut self, (made, freed): (usize, usize)) -> Unused {
        self.freed.truncate(freed);
        Unused(self.made.split_off(made))
    }
}

impl Unused {
    pub(crate) fn free(self) {
        for (pointer, by) in self.0 {
            free_now(pointer, by);
        }
    }
}

fn free_now(pointer: *mut c_void, by: By) {
    let delete = match by {
        By::Free => None,
        By::Delete => weak::delete(),
        By::DeleteArray => weak::delete_array(),
    };
    // SAFETY: the matching function allocated it, and it has no users: the freeing program promises
    // that, or only the undone block had it.
    unsafe {
        match delete {
            Some(delete) => delete(pointer),
            None => libc::free(pointer),
        }
    }
}

fn made(pointer: *mut c_void, by: By) -> *mut c_void {
    if !pointer.is_null() {
        Thread::with(|thread| thread.allocations.made.push((pointer, by)));
    }
    pointer
}

fn freed(pointer: *mut c_void, by: By) {
    if !pointer.is_null() && Thread::with(|thread| thread.allocations.freed.push((pointer, by))).is_none() {
        free_now(pointer, by);
    }
}

#[unsafe(no_mangle)]
pub extern "C" fn _ITM_malloc(size: usize) -> *mut c_void {
    // SAFETY: any size will do.
    made(unsafe { libc::malloc(size) }, By::Free)
}

#[unsafe(no_mangle)]
pub extern "C" fn _ITM_calloc(count: usize, size: usize) -> *mut c_void {
    // SAFETY: any size will do.
    made(unsafe { libc::calloc(count, size) }, By::Free)
}

#[unsafe(no_mangle)]
pub extern "C" fn _ITM_free(pointer: *mut c_void) {
    freed(pointer, By::Free);
}

macro_rules! news {
    ($($name:ident = $new:ident($($argument:ident: $type:ty),*), $by:ident;)*) => {$(
        #[unsafe(no_mangle)]
        pub extern "C-unwind" fn $name($($argument: $type),*) -> *mut c_void {
            let Some(new) = weak::$new() else { fatal("a block of C++ allocates, and the program has no operator new") };
            // SAFETY: the function of that name, with the program's arguments; it may throw.
            made(unsafe { new($($argument),*) }, By::$by)
        }
    )*};
}

news! {
    _ZGTtnwm = new(size: usize), Delete;
    _ZGTtnam = new_array(size: usize), DeleteArray;
    _ZGTtnwmRKSt9nothrow_t = new_nothrow(size: usize, nothrow: *const c_void), Delete;
    _ZGTtnamRKSt9nothrow_t = new_array_nothrow(size: usize, nothrow: *const c_void), DeleteArray;
}

macro_rules! deletes {
    ($($name:ident($($rest:ident: $type:ty),*) = $by:ident;)*) => {$(
        #[unsafe(no_mangle)]
        pub extern "C" fn $name(pointer: *mut c_void $(, $rest: $type)*) {
            $(let _ = $rest;)*
            freed(pointer, By::$by);
        }
    )*};
}

deletes! {
    _ZGTtdlPv() = Delete;
    _ZGTtdaPv() = DeleteArray;
    _ZGTtdlPvm(size: usize) = Delete;
    _ZGTtdaPvm(size: usize) = DeleteArray;
    _ZGTtdlPvRKSt9nothrow_t(nothrow: *const c_void) = Delete;
    _ZGTtdaPvRKSt9nothrow_t(nothrow: *const c_void) = DeleteArray;
    _ZGTtdlPvmRKSt9nothrow_t(size: usize, nothrow: *const c_void) = Delete;
    _ZGTtdaPvmRKSt9nothrow_t(size: usize, nothrow: *const c_void) = DeleteArray;
}
