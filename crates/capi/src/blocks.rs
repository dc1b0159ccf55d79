//! Transactional objects for blocks that GCC compiles: libpmo-tm runs these, and tells of their commits by the functions that it gets here.

use crate::args::{array, borrow, bytes, text};
use crate::guard::{Failure, Result, guarded, pmo_error_message};
use crate::handles::{pmo_pool, pool};
use indelible::raw::{self, blocks};
use std::collections::BTreeMap;
use std::ffi::{c_char, c_int, c_void};
use std::ptr::{null, null_mut};
use std::sync::{Mutex, PoisonError};

/// An object, with what is called for it.
#[repr(C)]
struct Object {
    address: usize,
    view: usize,
    len: usize,
    shortage: extern "C" fn(*const usize, usize) -> u64,
    make_room: extern "C" fn(usize, u64) -> *const c_char,
    tell: extern "C" fn(*const blocks::Line, usize) -> *const c_char,
    wait: extern "C" fn(usize) -> *const c_char,
}

/// `struct pmo_tm_runtime`: what libpmo-tm has.
#[repr(C)]
pub struct Runtime {
    version: u32,
    reserved: u32,
    add: extern "C" fn(*const Object) -> c_int,
    remove: extern "C" fn(usize) -> c_int,
}

/// How objects are taken from libpmo-tm, by address.
static ATTACHED: Mutex<BTreeMap<usize, extern "C" fn(usize) -> c_int>> = Mutex::new(BTreeMap::new());

extern "C" fn shortage(addresses: *const usize, count: usize) -> u64 {
    // SAFETY: libpmo-tm has so many addresses.
    guarded(0, || Ok(blocks::shortage(unsafe { array(addresses, count, "list of lines") }?)?))
}

/// NULL, or the text of the error.
fn said(body: impl FnOnce() -> Result<()>) -> *const c_char {
    if guarded(false, || body().map(|()| true)) { null() } else { pmo_error_message() }
}

extern "C" fn make_room(address: usize, bytes: u64) -> *const c_char {
    said(|| Ok(blocks::make_room(address, bytes)?))
}

extern "C" fn tell(lines: *const blocks::Line, count: usize) -> *const c_char {
    // SAFETY: libpmo-tm has so many lines.
    said(|| Ok(blocks::tell(unsafe { array(lines, count, "list of lines") }?)?))
}

extern "C" fn wait(address: usize) -> *const c_char {
    said(|| Ok(blocks::wait(address)?))
}

/// # Safety
/// As the header says.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn pmo_attach_for_blocks(
    handle: *mut pmo_pool,
    name: *const c_char,
    key: *const c_void,
    key_len: usize,
    runtime: *const Runtime,
) -> *mut c_void {
    guarded(null_mut(), || {
        // SAFETY: the caller's promise.
        let runtime = unsafe { borrow(runtime, "run-time library") }?;
        if runtime.version != 1 {
            return Err(Failure::argument("libpmo-tm is of another version than libpmo: install both anew"));
        }
        // SAFETY: the caller's promise.
        let (name, key) = unsafe { (text(name, "name")?, bytes(key, key_len, "key")?) };
        let blocks::ForBlocks { address, view, len } = blocks::attach(&pool(handle)?, name, key)?;
        if (runtime.add)(&Object { address, view, len, shortage, make_room, tell, wait }) != 0 {
            raw::detach(std::ptr::without_provenance(address))?;
            return Err(Failure::argument("a block runs on this thread, or it has 64 objects already"));
        }
        ATTACHED.lock().unwrap_or_else(PoisonError::into_inner).insert(address, runtime.remove);
        Ok(std::ptr::with_exposed_provenance_mut(address))
    })
}

/// Takes an object from blocks, if they have it, before it is detached.
pub(crate) fn take_back(address: usize) -> Result<()> {
    let mut attached = ATTACHED.lock().unwrap_or_else(PoisonError::into_inner);
    let Some(remove) = attached.get(&address) else { return Ok(()) };
    if remove(address) != 0 {
        return Err(Failure::argument("a block runs on this thread: detach its objects after it"));
    }
    attached.remove(&address);
    Ok(())
}
