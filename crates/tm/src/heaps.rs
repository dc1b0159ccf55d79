//! Memory that blocks allocate in persistent objects: libpmo has the heaps, and accesses words by
//! functions passed here.
//!
//! Each function has a clone under GCC's name for it, which compiled code calls in a block: GCC
//! drops a block that calls only pure functions.
//!
//! `_ITM_malloc` and the like, which GCC calls for malloc in a block, give memory of the process: a
//! program names the object explicitly.

use crate::blocks::{Thread, fatal};
use crate::objects;
use crate::tm_interface::{Answer, CONFLICT, DONE, FAILED, FULL, Object, Words};
use std::ffi::{c_char, c_int, c_void};
use std::ptr::{null, null_mut, with_exposed_provenance, with_exposed_provenance_mut};

extern "C" fn load(address: usize, into: *mut u64) -> c_int {
    let Some(mut running) = Thread::in_transaction() else { return 1 };
    // SAFETY: a word of an attached object, as libpmo promises.
    match unsafe { running.load(with_exposed_provenance::<u64>(address)) } {
        Ok(value) => {
            // SAFETY: room for a word, as libpmo promises.
            unsafe { into.write(value) };
            0
        }
        Err(_) => 1,
    }
}

extern "C" fn store(address: usize, value: u64) -> c_int {
    let Some(mut running) = Thread::in_transaction() else { return 1 };
    // SAFETY: as for `load`.
    c_int::from(unsafe { running.store(with_exposed_provenance_mut::<u64>(address), value) }.is_err())
}

extern "C" fn store_byte(address: usize, value: u8) -> c_int {
    let Some(mut running) = Thread::in_transaction() else { return 1 };
    // SAFETY: as for `load`.
    c_int::from(unsafe { running.store(with_exposed_provenance_mut::<u8>(address), value) }.is_err())
}

extern "C" fn peek(address: usize) -> u64 {
    let Some(running) = Thread::in_transaction() else { return 0 };
    // SAFETY: as for `load`.
    unsafe { running.peek(with_exposed_provenance::<u64>(address)) }
}

pub(crate) static WORDS: Words = Words { load, store, store_byte, peek };

extern "C" fn load_direct(address: usize, into: *mut u64) -> c_int {
    // SAFETY: room for a word, as libpmo promises.
    unsafe { into.write(peek_direct(address)) };
    0
}

extern "C" fn store_direct(address: usize, value: u64) -> c_int {
    // SAFETY: a word of an attached object, as libpmo promises; its page is exposed to the thread,
    // whose block is alone.
    unsafe { with_exposed_provenance_mut::<u64>(address).write(value) };
    0
}

extern "C" fn store_byte_direct(address: usize, value: u8) -> c_int {
    // SAFETY: as for `store_direct`.
    unsafe { with_exposed_provenance_mut::<u8>(address).write(value) };
    0
}

extern "C" fn peek_direct(address: usize) -> u64 {
    // SAFETY: as for `store_direct`.
    unsafe { with_exposed_provenance::<u64>(address).read() }
}

static DIRECT: Words =
    Words { load: load_direct, store: store_direct, store_byte: store_byte_direct, peek: peek_direct };

/// `None`: it failed, with libpmo's error, or there is no room. May rerun the block.
fn step(address: usize, make: impl Fn(&Object, *const Words) -> Answer) -> Option<usize> {
    let functions = objects::functions()?;
    let words: *const Words = match Thread::with(|thread| thread.is_irrevocable()) {
        Some(true) => &raw const DIRECT,
        Some(false) => &raw const WORDS,
        None => null(),
    };
    loop {
        // Nothing of this frame is owned (3).
        let answer = make(functions, words);
        match answer.outcome {
            DONE => return Some(answer.value),
            CONFLICT => Thread::again(),
            FULL if Thread::grow(address, answer.value) => {}
            FULL | FAILED => return None,
            _ => fatal("libpmo gives an answer that this version does not know"),
        }
    }
}

fn pointer(address: Option<usize>) -> *mut c_void {
    address.map_or(null_mut(), with_exposed_provenance_mut)
}

/// See pmo/blocks.h.
#[unsafe(no_mangle)]
pub extern "C" fn pmo_tm_alloc(beside: *const c_void, size: usize) -> *mut c_void {
    let beside = beside.addr();
    pointer(step(beside, |functions, words| (functions.allocate)(words, beside, size)))
}

/// See pmo/blocks.h.
#[unsafe(no_mangle)]
pub extern "C" fn pmo_tm_free(block: *mut c_void) -> c_int {
    let block = block.addr();
    if block == 0 {
        return 0;
    }
    step(block, |functions, words| (functions.free)(words, block)).map_or(-1, |_| 0)
}

/// See pmo/blocks.h.
#[unsafe(no_mangle)]
pub extern "C" fn pmo_tm_root(beside: *const c_void, name: *const c_char, ty: *const c_void) -> *mut c_void {
    let (beside, ty) = (beside.addr(), ty.expose_provenance());
    pointer(step(beside, |functions, words| (functions.root)(words, beside, name, ty)))
}

/// `pmo_tm_alloc` in a block.
#[unsafe(export_name = "_ZGTt12pmo_tm_alloc")]
pub extern "C" fn alloc_in_block(beside: *const c_void, size: usize) -> *mut c_void {
    pmo_tm_alloc(beside, size)
}

/// `pmo_tm_free` in a block.
#[unsafe(export_name = "_ZGTt11pmo_tm_free")]
pub extern "C" fn free_in_block(block: *mut c_void) -> c_int {
    pmo_tm_free(block)
}

/// `pmo_tm_root` in a block.
#[unsafe(export_name = "_ZGTt11pmo_tm_root")]
pub extern "C" fn root_in_block(
    beside: *const c_void,
    name: *const c_char,
    ty: *const c_void,
) -> *mut c_void {
    pmo_tm_root(beside, name, ty)
}
