use crate::args;
use crate::guard::{guarded, status};
use crate::handles::{pmo_pool, pool};
use indelible::raw;
use std::ffi::{c_int, c_uint, c_void};
use std::ptr::null_mut;

#[unsafe(no_mangle)]
pub extern "C" fn pmo_space_add(handle: *mut pmo_pool) -> c_int {
    status(|| {
        raw::add_pool(&pool(handle)?);
        Ok(())
    })
}

#[unsafe(no_mangle)]
pub extern "C" fn pmo_space_remove(handle: *mut pmo_pool) -> c_int {
    status(|| {
        raw::remove_pool(&pool(handle)?);
        Ok(())
    })
}

#[unsafe(no_mangle)]
pub unsafe extern "C" fn pmo_lea(home: *const c_void, pointer: u64, size: usize) -> *mut c_void {
    // SAFETY: the caller's promise.
    guarded(null_mut(), || Ok(unsafe { raw::follow(home.cast(), pointer, size) }?.as_ptr().cast()))
}

#[unsafe(no_mangle)]
pub unsafe extern "C" fn pmo_store(home: *const c_void, target: *const c_void, rights: c_uint) -> u64 {
    guarded(0, || {
        let rights = args::rights(rights)?;
        // SAFETY: the caller's promise.
        Ok(unsafe { raw::store(home.cast(), target.cast(), rights) }?)
    })
}
