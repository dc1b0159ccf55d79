//! Table I of the paper, under its names.

use crate::args::{permission, text};
use crate::guard::{Result, guarded, status};
use crate::handles::pool;
use indelible::{CreateOptions, raw};
use std::ffi::{c_char, c_int, c_void};
use std::ptr::{null_mut, with_exposed_provenance_mut};

/// # Safety
/// NULL, or a zero-terminated string that outlives the result.
unsafe fn key<'a>(key: *const c_char) -> Result<&'a [u8]> {
    // SAFETY: the caller's promise.
    if key.is_null() { Ok(b"") } else { Ok(unsafe { text(key, "key") }?.as_bytes()) }
}

#[unsafe(no_mangle)]
pub unsafe extern "C" fn pcreate(name: *const c_char, size: usize, with: *const c_char) -> *mut c_void {
    guarded(null_mut(), || {
        // SAFETY: the caller's promise.
        let (name, key) = unsafe { (text(name, "name")?, key(with)?) };
        let pool = pool(null_mut())?;
        pool.create_with(name, &CreateOptions::new(size as u64).key(key))?;
        Ok(with_exposed_provenance_mut(pool.stat(name)?.address as usize))
    })
}

#[unsafe(no_mangle)]
pub unsafe extern "C" fn pdestroy(name: *const c_char, with: *const c_char) -> c_int {
    status(|| {
        // SAFETY: the caller's promise.
        let (name, key) = unsafe { (text(name, "name")?, key(with)?) };
        Ok(pool(null_mut())?.destroy_with_key(name, key)?)
    })
}

#[unsafe(no_mangle)]
pub unsafe extern "C" fn attach(name: *const c_char, perm: c_int, with: *const c_char) -> *mut c_void {
    guarded(null_mut(), || {
        // SAFETY: the caller's promise.
        let (name, key) = unsafe { (text(name, "name")?, key(with)?) };
        Ok(raw::attach(&pool(null_mut())?, name, permission(perm)?, key)?.as_ptr().cast())
    })
}

#[unsafe(no_mangle)]
pub extern "C" fn detach(addr: *mut c_void) -> c_int {
    status(|| Ok(raw::detach(addr.cast())?))
}

#[unsafe(no_mangle)]
pub unsafe extern "C" fn psync(addr: *mut c_void) -> c_int {
    // SAFETY: the caller's promise.
    status(|| Ok(unsafe { raw::psync(addr.cast()) }?))
}
