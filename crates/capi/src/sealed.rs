//! Sealed objects: snapshots, sizes, keys, anchors, names, signatures.

use crate::args::{array, bytes, text};
use crate::guard::{Failure, guarded, status};
use crate::handles::{pmo_pool, pool};
use crate::seal_keys::{find, made, pmo_seal_key};
use indelible::{AttachOptions, SealKey, SignKey, raw};
use std::ffi::{CString, c_char, c_int, c_void};
use std::ptr::null_mut;

const DIGITS: usize = 65;

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
        let how = AttachOptions::new().key(key).seal(&find(seal)?);
        Ok(raw::attach_snapshot_with(&pool(handle)?, name, &how)?.as_ptr().cast())
    })
}

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

#[unsafe(no_mangle)]
pub unsafe extern "C" fn pmo_renew_key(
    handle: *mut pmo_pool,
    name: *const c_char,
    key: *const c_void,
    key_len: usize,
    seal: *const pmo_seal_key,
    next: *const pmo_seal_key,
) -> c_int {
    status(|| {
        // SAFETY: the caller's promise.
        let (name, key) = unsafe { (text(name, "name")?, bytes(key, key_len, "key")?) };
        Ok(pool(handle)?.renew_key(name, key, &find(seal)?, &find(next)?, |_, _| {})?)
    })
}

#[unsafe(no_mangle)]
pub unsafe extern "C" fn pmo_seal_key_erasable(seal: *const pmo_seal_key) -> *mut pmo_seal_key {
    made(|| Ok(find(seal)?.erasable()?))
}

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

#[unsafe(no_mangle)]
pub unsafe extern "C" fn pmo_rename_sealed(
    handle: *mut pmo_pool,
    name: *const c_char,
    new_name: *const c_char,
    key: *const c_void,
    key_len: usize,
    seal: *const pmo_seal_key,
) -> c_int {
    status(|| {
        // SAFETY: the caller's promise.
        let (name, key) = unsafe { (text(name, "name")?, bytes(key, key_len, "key")?) };
        // SAFETY: the caller's promise.
        let new = unsafe { text(new_name, "new name") }?;
        Ok(pool(handle)?.rename_sealed(name, new, key, &find(seal)?)?)
    })
}

#[unsafe(no_mangle)]
pub unsafe extern "C" fn pmo_bind_name(
    handle: *mut pmo_pool,
    name: *const c_char,
    key: *const c_void,
    key_len: usize,
    seal: *const pmo_seal_key,
) -> c_int {
    status(|| {
        // SAFETY: the caller's promise.
        let (name, key) = unsafe { (text(name, "name")?, bytes(key, key_len, "key")?) };
        Ok(pool(handle)?.bind_name(name, key, &find(seal)?)?)
    })
}

#[unsafe(no_mangle)]
pub unsafe extern "C" fn pmo_seal_key_sealed_as(
    seal: *const pmo_seal_key,
    name: *const c_char,
) -> *mut pmo_seal_key {
    // SAFETY: the caller's promise.
    made(|| Ok(find(seal)?.sealed_as(unsafe { text(name, "name") }?)))
}

#[unsafe(no_mangle)]
pub unsafe extern "C" fn pmo_seal_key_signed_by(
    seal: *const pmo_seal_key,
    path: *const c_char,
) -> *mut pmo_seal_key {
    // SAFETY: the caller's promise.
    made(|| Ok(find(seal)?.signed_by(&SignKey::from_file(unsafe { text(path, "path") }?)?)?))
}

#[unsafe(no_mangle)]
pub unsafe extern "C" fn pmo_seal_key_verified_by(
    seal: *const pmo_seal_key,
    digits: *const c_char,
) -> *mut pmo_seal_key {
    // SAFETY: the caller's promise.
    made(|| Ok(find(seal)?.verified_by(unsafe { text(digits, "verify key") }?.parse()?)))
}

#[unsafe(no_mangle)]
pub unsafe extern "C" fn pmo_verify_key(path: *const c_char, digits: *mut c_char) -> c_int {
    status(|| {
        if digits.is_null() {
            return Err(Failure::argument("the place of the digits is NULL"));
        }
        // SAFETY: the caller's promise.
        let key = SignKey::from_file(unsafe { text(path, "path") }?)?.verify_key();
        let text = CString::new(key.to_string()).unwrap_or_default();
        let text = text.as_bytes_with_nul();
        // SAFETY: room for 64 digits and a zero, by the caller's promise.
        unsafe { digits.cast::<u8>().copy_from_nonoverlapping(text.as_ptr(), text.len().min(DIGITS)) };
        Ok(())
    })
}

#[unsafe(no_mangle)]
pub unsafe extern "C" fn pmo_change_signer(
    handle: *mut pmo_pool,
    name: *const c_char,
    key: *const c_void,
    key_len: usize,
    seal: *const pmo_seal_key,
    path: *const c_char,
) -> c_int {
    status(|| {
        // SAFETY: the caller's promise.
        let (name, key) = unsafe { (text(name, "name")?, bytes(key, key_len, "key")?) };
        // SAFETY: the caller's promise.
        let new = SignKey::from_file(unsafe { text(path, "path") }?)?;
        Ok(pool(handle)?.change_signer(name, key, &find(seal)?, &new)?)
    })
}
