//! Sealed objects: read beside their writer, of another size, by another key, by another anchor.

use crate::args::{array, bytes, text};
use crate::guard::{guarded, status};
use crate::handles::{pmo_pool, pool};
use crate::seal_keys::{find, pmo_seal_key};
use indelible::{SealKey, raw};
use std::ffi::{c_char, c_int, c_void};
use std::ptr::null_mut;

/// # Safety
/// As the header says.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn pmo_attach_snapshot_sealed(
    handle: *mut pmo_pool,
    name: *const c_char,
    key: *const c_void,
    key_len: usize,
    seal: *const pmo_seal_key,
) -> *mut c_void {
    guarded(null_mut(), || {
        // SAFETY: the caller's promise.
        let (name, key) = unsafe { (text(name, "name")?, bytes(key, key_len, "key")?) };
        Ok(raw::attach_snapshot_sealed(&pool(handle)?, name, key, &find(seal)?)?.as_ptr().cast())
    })
}

/// # Safety
/// As the header says.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn pmo_resize_sealed(
    handle: *mut pmo_pool,
    name: *const c_char,
    size: u64,
    key: *const c_void,
    key_len: usize,
    seal: *const pmo_seal_key,
) -> c_int {
    status(|| {
        // SAFETY: the caller's promise.
        let (name, key) = unsafe { (text(name, "name")?, bytes(key, key_len, "key")?) };
        Ok(pool(handle)?.resize_sealed(name, size, key, &find(seal)?)?)
    })
}

/// # Safety
/// As the header says.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn pmo_reencrypt(
    handle: *mut pmo_pool,
    name: *const c_char,
    key: *const c_void,
    key_len: usize,
    seals: *const *const pmo_seal_key,
    count: usize,
) -> c_int {
    status(|| {
        // SAFETY: the caller's promise.
        let (name, key) = unsafe { (text(name, "name")?, bytes(key, key_len, "key")?) };
        // SAFETY: the caller's promise.
        let seals = unsafe { array(seals, count, "array of seal keys") }?;
        let seals = seals.iter().map(|seal| find(*seal)).collect::<crate::guard::Result<Vec<SealKey>>>()?;
        let seals: Vec<&SealKey> = seals.iter().collect();
        Ok(pool(handle)?.reencrypt(name, key, &seals, |_, _| {})?)
    })
}

/// # Safety
/// As the header says.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn pmo_set_anchor(
    handle: *mut pmo_pool,
    name: *const c_char,
    key: *const c_void,
    key_len: usize,
    seal: *const pmo_seal_key,
) -> c_int {
    status(|| {
        // SAFETY: the caller's promise.
        let (name, key) = unsafe { (text(name, "name")?, bytes(key, key_len, "key")?) };
        Ok(pool(handle)?.set_anchor(name, key, &find(seal)?)?)
    })
}
