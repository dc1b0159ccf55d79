use crate::args::{bytes, name as in_struct, room, text};
use crate::guard::{Failure, guarded, status};
use crate::handles::{pmo_pool, pool};
use std::ffi::{c_char, c_int, c_void};

#[unsafe(no_mangle)]
pub unsafe extern "C" fn pmo_delete(
    handle: *mut pmo_pool,
    name: *const c_char,
    key: *const c_void,
    key_len: usize,
) -> c_int {
    status(|| {
        // SAFETY: the caller's promise.
        let (name, key) = unsafe { (text(name, "name")?, bytes(key, key_len, "key")?) };
        Ok(pool(handle)?.delete(name, key)?)
    })
}

#[unsafe(no_mangle)]
pub unsafe extern "C" fn pmo_tie(
    handle: *mut pmo_pool,
    name: *const c_char,
    to: *const c_char,
    key: *const c_void,
    key_len: usize,
) -> c_int {
    status(|| {
        // SAFETY: the caller's promise.
        let (name, to) = unsafe { (text(name, "name")?, text(to, "name of the other one")?) };
        // SAFETY: the caller's promise.
        Ok(pool(handle)?.tie(name, to, unsafe { bytes(key, key_len, "key") }?)?)
    })
}

#[unsafe(no_mangle)]
pub unsafe extern "C" fn pmo_tie_to_process(
    handle: *mut pmo_pool,
    name: *const c_char,
    key: *const c_void,
    key_len: usize,
) -> c_int {
    status(|| {
        // SAFETY: the caller's promise.
        let (name, key) = unsafe { (text(name, "name")?, bytes(key, key_len, "key")?) };
        Ok(pool(handle)?.tie_to_process(name, key)?)
    })
}

#[unsafe(no_mangle)]
pub unsafe extern "C" fn pmo_tie_to_thread(
    handle: *mut pmo_pool,
    name: *const c_char,
    key: *const c_void,
    key_len: usize,
) -> c_int {
    status(|| {
        // SAFETY: the caller's promise.
        let (name, key) = unsafe { (text(name, "name")?, bytes(key, key_len, "key")?) };
        Ok(pool(handle)?.tie_to_thread(name, key)?)
    })
}

#[unsafe(no_mangle)]
pub unsafe extern "C" fn pmo_untie(
    handle: *mut pmo_pool,
    name: *const c_char,
    from: *const c_char,
    key: *const c_void,
    key_len: usize,
    was_tied: *mut c_int,
) -> c_int {
    status(|| {
        // SAFETY: the caller's promise.
        let (name, from) = unsafe { (text(name, "name")?, text(from, "name of the other one")?) };
        // SAFETY: the caller's promise.
        let (key, was_tied) = unsafe { (bytes(key, key_len, "key")?, room(was_tied)?) };
        was_tied.fill(c_int::from(pool(handle)?.untie(name, from, key)?));
        Ok(())
    })
}

/// `struct pmo_tie`.
#[repr(C)]
#[allow(missing_docs)]
pub struct Tie {
    pub name: [u8; 512],
    pub id: [u8; 16],
    pub deleted: u32,
    pub reserved: u32,
}

#[unsafe(no_mangle)]
pub unsafe extern "C" fn pmo_ties(
    handle: *mut pmo_pool,
    name: *const c_char,
    each: Option<extern "C" fn(*const Tie, *mut c_void) -> c_int>,
    context: *mut c_void,
) -> c_int {
    guarded(-1, || {
        let each = each.ok_or_else(|| Failure::argument("the function to be called is NULL"))?;
        // SAFETY: the caller's promise.
        for tie in pool(handle)?.ties(unsafe { text(name, "name") }?)? {
            let given =
                Tie { name: in_struct(&tie.name), id: tie.id, deleted: u32::from(tie.deleted), reserved: 0 };
            let result = each(&given, context);
            if result != 0 {
                return Ok(result);
            }
        }
        Ok(0)
    })
}
