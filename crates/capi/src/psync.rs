use crate::args::{array, flags};
use crate::guard::{guarded, status};
use indelible::raw;
use std::ffi::{c_int, c_uint, c_void};

const CUT: c_uint = 1;

#[unsafe(no_mangle)]
pub unsafe extern "C" fn pmo_mark_dirty(address: *const c_void, size: usize) -> c_int {
    status(|| Ok(raw::mark_dirty(address.cast(), size)?))
}

#[unsafe(no_mangle)]
pub unsafe extern "C" fn pmo_prefault(address: *const c_void, size: usize) -> i64 {
    guarded(-1, || Ok(raw::prefault(address.cast(), size)? as i64))
}

#[unsafe(no_mangle)]
pub unsafe extern "C" fn pmo_psync(object: *mut c_void) -> c_int {
    // SAFETY: the caller's promise.
    status(|| Ok(unsafe { raw::psync(object.cast()) }?))
}

#[unsafe(no_mangle)]
pub unsafe extern "C" fn pmo_psync_flags(object: *mut c_void, with: c_uint) -> c_int {
    status(|| match flags(with, [CUT])? {
        [true] => Ok(raw::psync_cut(object.cast())?),
        // SAFETY: the caller's promise.
        [false] => Ok(unsafe { raw::psync(object.cast()) }?),
    })
}

#[unsafe(no_mangle)]
pub unsafe extern "C" fn pmo_revert(object: *mut c_void) -> c_int {
    // SAFETY: the caller's promise.
    status(|| Ok(unsafe { raw::revert(object.cast()) }?))
}

#[unsafe(no_mangle)]
pub unsafe extern "C" fn pmo_psync_all(objects: *const *mut c_void, count: usize, with: c_uint) -> c_int {
    status(|| {
        let [cut] = flags(with, [CUT])?;
        // SAFETY: the caller's promise.
        let objects = unsafe { array(objects, count, "list of objects") }?;
        let objects: Vec<*const u8> = objects.iter().map(|object| object.cast_const().cast()).collect();
        // SAFETY: the caller's promise.
        Ok(if cut { raw::psync_all_cut(&objects) } else { unsafe { raw::psync_all(&objects) } }?)
    })
}
