use crate::args::{bytes, flags, text};
use crate::guard::status;
use crate::handles::{pmo_pool, pool};
use std::ffi::{c_char, c_int, c_uint, c_void};

const REBASE: c_uint = 1;

#[unsafe(no_mangle)]
pub unsafe extern "C" fn pmo_copy_to(
    handle: *mut pmo_pool,
    name: *const c_char,
    key: *const c_void,
    key_len: usize,
    other: *mut pmo_pool,
    copy: *const c_char,
    options: c_uint,
    each: Option<extern "C" fn(u64, u64, *mut c_void)>,
    context: *mut c_void,
) -> c_int {
    status(|| {
        // SAFETY: the caller's promise.
        let (name, key) = unsafe { (text(name, "name")?, bytes(key, key_len, "key")?) };
        // SAFETY: the caller's promise.
        let copy = unsafe { text(copy, "name of the copy") }?;
        let [rebase] = flags(options, [REBASE])?;
        let told = &mut |done, all| each.iter().for_each(|each| each(done, all, context));
        let (from, to) = (pool(handle)?, pool(other)?);
        match rebase {
            false => Ok(from.copy_to(name, key, &to, copy, told)?),
            true => Ok(from.copy_rebased(name, key, &to, copy, told)?),
        }
    })
}

#[unsafe(no_mangle)]
pub unsafe extern "C" fn pmo_move_to(
    handle: *mut pmo_pool,
    name: *const c_char,
    key: *const c_void,
    key_len: usize,
    other: *mut pmo_pool,
    options: c_uint,
    each: Option<extern "C" fn(u64, u64, *mut c_void)>,
    context: *mut c_void,
) -> c_int {
    status(|| {
        // SAFETY: the caller's promise.
        let (name, key) = unsafe { (text(name, "name")?, bytes(key, key_len, "key")?) };
        let [rebase] = flags(options, [REBASE])?;
        let told = &mut |done, all| each.iter().for_each(|each| each(done, all, context));
        let (from, to) = (pool(handle)?, pool(other)?);
        match rebase {
            false => Ok(from.move_to(name, key, &to, told)?),
            true => Ok(from.move_rebased(name, key, &to, told)?),
        }
    })
}
